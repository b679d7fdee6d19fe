"""Tests of what a caller wants kept."""

import re

import pytest

from server.errors import InvalidRequest
from server.text.masking import Masker
from server.text.own_parts import OwnParts


def found(own: OwnParts, text: str) -> list[str]:
    return [text[start:end] for start, end in own.find(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Buy Acme Pro at Acme, not Acmes", ["Acme Pro", "Acme"]),
        ("See §§a b§§ and @@x@@", ["§§a b§§", "@@x@@"]),
        ("Never @@closed or §§on\ntwo§ lines", []),
        ("A ^ in [a] and [^b^]", ["^", "[a]", "[^b^]"]),
        (f"[{'x' * 201}]", []),
    ],
)
def test_literals_and_delimited_parts_are_found(text: str, expected: list[str]) -> None:
    own = OwnParts(["Acme", "Acme Pro", "^"], [("§§", "§§"), ("@@", "@@"), ("[", "]")])

    assert found(own, text) == expected


def test_nothing_is_found_without_any() -> None:
    assert found(OwnParts(), "a b") == []


@pytest.mark.parametrize(
    ("literals", "delimiters", "message"),
    [
        (["a"] * 65, [], "placeholders.literals: must be at most 64 texts, not 65"),
        ([], [("a", "b")] * 9, "placeholders.delimiters: must be at most 16 texts, not 18"),
        (["a", " "], [], "placeholders.literals[1]: must have 1 to 100 characters that are no white space, not 1"),
        (
            [],
            [("a", "b" * 9)],
            "placeholders.delimiters[1]: must have 1 to 8 characters that are no white space, not 9",
        ),
    ],
)
def test_what_breaks_a_limit_is_refused(literals: list[str], delimiters: list[tuple[str, str]], message: str) -> None:
    with pytest.raises(InvalidRequest, match=re.escape(message)):
        OwnParts(literals, delimiters)


def test_a_masker_keeps_them() -> None:
    masker = Masker(carriers=(("%1", "%2"),), own_parts=OwnParts(["Acme Pro"], [("«", "»")]))

    assert masker.mask("Buy Acme Pro for «my wife» now").text == "Buy %1 for %2 now"
