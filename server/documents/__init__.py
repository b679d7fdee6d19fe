"""Documents of callers: read in processes with bounds, translated as jobs, kept for a while. Its face: `Documents`."""
