"""What can be set. Its face: `Settings`, `read_settings`."""
