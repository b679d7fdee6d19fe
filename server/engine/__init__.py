"""Continuous batching; knows no ONNX Runtime. Its face: `Engine`, `EngineLimits`."""
