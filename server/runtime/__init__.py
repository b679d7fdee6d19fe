"""The network on ONNX Runtime, which nobody else knows. Its face: `open_runner`."""
