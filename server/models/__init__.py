"""Loads bundles and serves them; alone knows engine and runtime. Its face: `load_model`, `check_bundle`, `Model`."""
