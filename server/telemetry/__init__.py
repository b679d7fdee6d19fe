"""What operators see. Its face: `Metrics`, `ModelMetrics`, `set_up_logging`, `add_facts`, `describe`."""
