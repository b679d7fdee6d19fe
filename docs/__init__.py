"""The documentation: pages for MkDocs, and `docs.generate`, which makes the reference of the source as it is."""
