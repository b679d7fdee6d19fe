"""Bundles brought to life; alone knows both engine and runtime. Its face: `load_model`, `check_bundle`, `Model`."""
