"""gRPC in and out; alone knows gRPC and protobuf. Its face: `open_servers`, `TranslationService`, `Health`."""
