"""The server: a bundle behind a batching gRPC service. `babelserve --help` says how it is set up."""

import os

# ONNX Runtime's Linux wheels collect usage data by default (1.29 and later) and read this when they are imported.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
