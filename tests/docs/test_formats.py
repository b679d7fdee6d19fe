"""Every key of a recipe and of a manifest is in the reference."""

import dataclasses
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from docs.generate.formats import manifest_page, recipe_page, recipe_tables
from server.bundle.manifest_file import read_manifest
from server.settings.settings import BUILTIN_BUNDLE

RECIPES = Path(__file__).parents[2] / "model" / "configs"


def keys(page: str, heading: str) -> list[str]:
    """The first column below a heading; of what stands ahead of all without one."""
    text = re.split(r"^## (.*)$", page, flags=re.MULTILINE)
    section = dict(zip(["", *text[1::2]], text[::2], strict=True))[heading]
    return re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)


@pytest.mark.parametrize("heading", ["[model]", "[training]", "[tokenizer]", "[augmentation]", "[[train]]", "[[dev]]"])
def test_every_key_of_a_recipes_table_is_there(heading: str) -> None:
    shown = "`[[train]]` `[[dev]]`" if "[[" in heading else f"`{heading}`"

    assert keys(recipe_page(), shown) == [each.name for each in dataclasses.fields(recipe_tables()[heading])]


@pytest.mark.parametrize("path", sorted(RECIPES.rglob("*.toml")), ids=lambda path: path.stem)
def test_every_key_of_our_recipes_is_there(path: Path) -> None:
    recipe = tomllib.loads(path.read_text(encoding="utf-8"))
    page = recipe_page()

    assert recipe.keys() <= {*keys(page, ""), "reverse_of", "variant_of"}
    for name, table in recipe.items():
        for each in table if isinstance(table, list) else [table] if isinstance(table, dict) else []:
            heading = "`[[train]]` `[[dev]]`" if name in ("train", "dev") else f"`[{name}]`"
            assert each.keys() <= {*keys(page, heading)}


def test_every_key_of_a_recipe_has_a_meaning() -> None:
    rows = re.findall(r"^\| `\w+` .*$", recipe_page(), re.MULTILINE)

    assert rows
    assert [row for row in rows if row.count(" | ") < 3 or row.endswith("|  |")] == []


def test_every_key_of_a_manifest_is_there() -> None:
    manifest: dict[str, Any] = json.loads(read_manifest(BUILTIN_BUNDLE).to_json())  # as today's revision has it
    page = manifest_page()

    variant, golden = manifest["variants"]["cpu-int8"], manifest["golden"]
    for heading, value in {
        "": manifest,
        "Dimensions": manifest["dimensions"],
        "SpecialIds": manifest["special_ids"],
        "Limits": manifest["limits"],
        "State": manifest["states"][0],
        "LanguagePair": manifest["language_pairs"][0],
        "Variant": variant,
        "FileFacts": manifest["tokenizer"],
        "Golden": golden,
        "GoldenOutput": golden["outputs"]["cpu-int8"],
    }.items():
        assert value.keys() <= {*keys(page, heading)}, heading


def test_every_kind_that_a_manifest_names_has_a_section() -> None:
    page = manifest_page()

    links = {anchor for _, anchor in re.findall(r"\[(\w+)\]\(#(\w+)\)", page)}
    assert links == {heading.lower() for heading in re.findall(r"^## (.*)$", page, re.MULTILINE)}
