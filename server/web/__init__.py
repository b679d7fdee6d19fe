"""HTTP in and out, an optional extra; alone knows its libraries. Its face: `open_http`, `create_app`."""
