"""The reference: Markdown of what the code itself says of its flags, metrics, messages, keys and classes.

`make reference` writes it into `docs/reference`, and a test says when that is due. Its pages are in the repository, so
that whoever reads the documentation there finds them. Weighed: to make them when the site is built, as changes of a
flag would be in one file then; every link to them leads nowhere but in the site. Nothing here needs MkDocs.
"""
