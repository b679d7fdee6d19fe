"""The server: a bundle behind a batching gRPC service. `python -m server --help` says how it is set up."""
