"""What operators see. Its face: `Metrics`."""
