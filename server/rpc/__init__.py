"""gRPC in and out; alone knows protobuf. Its face: `open_servers`, `TranslationService`, `Health`."""
