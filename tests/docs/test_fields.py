"""Dataclasses as tables."""

from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from docs.generate.fields import fields_table, meanings, nested, summary

LIMIT = 7


@dataclass
class Inner:
    """Inside."""

    deep: int


@dataclass
class Outer:
    """Outside, up to `LIMIT`.

    Attributes:
        size, width: how much, in
            two lines.
        kind: of it.
        inner: within.
        others: by name.
        free: anything.
    """

    size: int
    width: float = 0.5
    kind: Literal["a", "b"] | None = None
    inner: tuple[Inner, ...] = ()
    others: dict[str, Inner] = field(default_factory=dict)
    free: dict[str, Any] = field(default_factory=dict)


@dataclass
class Undocumented:
    """Some.

    Attributes:
        gone: was here.
    """

    there: bool = True


def link(kind: type[Any]) -> str:
    return f"<{kind.__name__}>"


def test_a_summary_names_values_for_the_constants_of_its_module() -> None:
    assert summary(Outer) == "Outside, up to `7`."


def test_names_that_share_a_line_share_its_meaning() -> None:
    assert meanings(Outer)["size"] == meanings(Outer)["width"]
    assert list(meanings(Outer)) == ["size", "width", "kind", "inner", "others", "free"]


def test_a_table_has_every_field() -> None:
    assert fields_table(Outer, link).splitlines()[2:] == [
        "| `size` | whole number | required | how much, in two lines. |",
        "| `width` | number | `0.5` | how much, in two lines. |",
        '| `kind` | `"a"`, `"b"` | none | of it. |',
        "| `inner` | list: <Inner> | none | within. |",
        "| `others` | object: <Inner> | none | by name. |",
        "| `free` | object: anything | none | anything. |",
    ]


def test_without_attributes_the_summary_says_it_all() -> None:
    assert (
        fields_table(Inner, link)
        == "| Key | Value | Default |\n| --- | --- | --- |\n| `deep` | whole number | required |\n"
    )


def test_a_field_without_a_meaning_and_a_meaning_without_a_field_are_faults() -> None:
    with pytest.raises(LookupError, match=r"Undocumented: .*: gone, there$"):
        fields_table(Undocumented, link)


def test_what_is_nested_is_found_once() -> None:
    assert list(nested(Outer)) == [Outer, Inner]
