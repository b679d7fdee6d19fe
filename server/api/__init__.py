"""The use cases in the messages of `babelserve.v1`, whatever protocol carries these. Its face: `Api`."""
