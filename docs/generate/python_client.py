"""The page of the Python client: what mkdocstrings is asked to show. It reads the docstrings itself."""

import inspect
from collections.abc import Iterator

import babelserve
from babelserve.messages import TranslateOptions
from docs.generate.markdown_text import page


def client_page() -> str:
    """All public names of the client, and its options."""
    return page(
        "# Python client",
        "`from babelserve import Client`: the package `babelserve` of the distribution `babelserve-client`."
        " The site that `make docs` builds shows each name with its docstring here,"
        " as `python -m pydoc babelserve.client.Client` does in a shell.",
        *_sections(),
    )


def documented() -> dict[str, list[str]]:
    """Full names of what is shown, by heading."""
    headings: dict[str, list[str]] = {"Clients": [], "Options": [], "Results": [], "Errors": []}
    values = {name: getattr(babelserve, name) for name in babelserve.__all__}
    for name, value in sorted(values.items(), key=lambda item: (item[1].__module__, inspect.findsource(item[1])[1])):
        if issubclass(value, Exception):
            heading = "Errors"
        elif value.__module__ in ("babelserve.results", "babelserve.terms"):
            heading = "Results"
        else:
            heading = "Options" if "Options" in name else "Clients"
        headings[heading].append(f"{value.__module__}.{name}")
    headings["Options"].append(f"{TranslateOptions.__module__}.{TranslateOptions.__name__}")
    return headings


def _sections() -> Iterator[str]:
    for heading, names in documented().items():
        yield f"## {heading}"
        yield from (f"::: {name}" for name in names)
