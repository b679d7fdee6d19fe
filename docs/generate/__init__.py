"""The reference: Markdown of what the code itself says of its flags, metrics, messages, keys and classes.

`docs.hook` brings it to MkDocs at build time. Nothing here needs MkDocs, so that the tests of what the pages hold run
without it. Weighed: mkdocs-gen-files, which would save ten lines of the hook, and brings a second MkDocs along.
"""
