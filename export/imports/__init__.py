"""Other people's translation models made into bundles: read, never run."""
