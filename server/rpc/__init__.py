"""gRPC in and out; the only room that knows protobuf. Its face: `TranslationService`, `CallInterceptor`, `Health`."""
