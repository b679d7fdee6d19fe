"""The pages of the files that people read or write: recipes, and a bundle's manifest."""

import typing
from typing import Any

from docs.generate.fields import fields_table, nested, summary
from docs.generate.markdown_text import code, page
from model.recipe import Recipe
from server.bundle.manifest import MANIFEST_FILE, REVISION, Manifest


def recipe_tables() -> dict[str, type[Any]]:
    """The dataclass of each table of a recipe, by how TOML writes it; corpora are alike in both of theirs."""
    tables: dict[str, type[Any]] = {}
    for name, hint in typing.get_type_hints(Recipe).items():
        if typing.get_origin(hint) is tuple:
            tables[f"[[{name}]]"] = typing.get_args(hint)[0]
        elif hint is not str:
            tables[f"[{name}]"] = hint
    return tables


def recipe_page() -> str:
    """All keys of a recipe."""
    headings: dict[type[Any], list[str]] = {}
    for heading, kind in recipe_tables().items():
        headings.setdefault(kind, []).append(heading)

    def link(kind: type[Any]) -> str:
        return f"[table](#{_anchor(' '.join(headings[kind]))})"

    return page(
        "# Recipe",
        f"A TOML file for {code('babelserve-train')}; {code('--init')} writes one with comments to begin with. Unknown"
        " keys and values out of their range are faults, and all of them are listed at once.",
        fields_table(Recipe, link),
        f"A recipe with {code('name')} and {code('variant_of')}, a file beside it, is that one, but for what its tables"
        f" change. With {code('reverse_of')} it is that one for the other direction, too: languages, and the sides of"
        " each corpus, are exchanged.",
        *(
            block
            for kind, names in headings.items()
            for block in (f"## {' '.join(map(code, names))}", summary(kind), fields_table(kind, link))
        ),
    )


def manifest_page() -> str:
    """All fields of a manifest."""

    def link(kind: type[Any]) -> str:
        return f"[{kind.__name__}](#{kind.__name__.lower()})"

    first, *others = nested(Manifest)
    return page(
        "# Manifest",
        f"{code(MANIFEST_FILE)} says what a bundle is; `babelserve-export` and `babelserve-import` write it, revision"
        f" {REVISION}. A server refuses one with unknown, missing or contradicting fields, and lists all"
        " faults.",
        summary(first),
        fields_table(first, link),
        *(block for kind in others for block in (f"## {kind.__name__}", summary(kind), fields_table(kind, link))),
    )


def _anchor(heading: str) -> str:
    """As the extension `toc` of Python-Markdown makes it of a heading."""
    return "-".join("".join(each for each in heading if each.isalnum() or each in " _-").split()).lower()
