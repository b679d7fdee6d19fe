"""Tests of what a caller wants kept."""

import re

import pytest

from server.errors import InvalidRequest
from server.text.masking import Masker
from server.text.own_parts import OwnParts, Rule, own_parts
from server.text.sentences import split_text


def found(own: OwnParts, text: str) -> list[str]:
    return [text[start:end] for start, end in own.find(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Buy Acme Pro at Acme, not Acmes", ["Acme Pro", "Acme"]),
        ("TopAcme, Top-Acme and acme", ["Acme"]),
        ("See §§a b§§ and @@x@@", ["§§a b§§", "@@x@@"]),
        ("Never @@closed or §§one§ lines", []),
        ("A ^ in [a] and [^b^]", ["^", "[a]", "[^b^]"]),
        ("[a [b] c], []", ["[a [b]", "[]"]),
        ("{{x}", ["{x}"]),
        ("{{{x}}}", ["{{{x}}"]),
        ("A DATE(1) and UPDATE(2)", ["DATE(1)"]),
    ],
)
def test_literals_and_delimited_parts_are_found(text: str, expected: list[str]) -> None:
    rules: list[Rule] = [
        "Acme",
        "Acme Pro",
        "^",
        ("§§", "§§"),
        ("@@", "@@"),
        ("[", "]"),
        ("{", "}"),
        ("{{", "}}"),
        ("DATE(", ")"),
    ]

    assert found(OwnParts(rules), text) == expected


def test_nothing_is_found_without_any() -> None:
    assert found(OwnParts(), "a b") == []


def test_of_two_rules_with_the_same_opening_the_last_one_holds() -> None:
    assert found(OwnParts([("<", "x"), ("<", ">")]), "<ax>") == ["<ax>"]


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (["a"] * 101, "text.keep: must be at most 100 rules, not 101"),
        (["x" * 100] * 40 + ["y"], "text.keep: must have at most 4000 characters in all rules, not 4001"),
        (["a", " "], "text.keep[1].literal: must have 1 to 100 characters, not all white space, not 1"),
        (["a", "b" * 101], "text.keep[1].literal: must have 1 to 100 characters, not all white space, not 101"),
        ([("a", "")], "text.keep[0].closing: must have 1 to 100 characters, not all white space, not 0"),
        ([("", "a")], "text.keep[0].opening: must have 1 to 100 characters, not all white space, not 0"),
    ],
)
def test_what_breaks_a_limit_is_refused(rules: list[Rule], message: str) -> None:
    with pytest.raises(InvalidRequest, match=f"^{re.escape(message)}$"):
        OwnParts(rules)


def test_what_is_at_the_limits_is_found() -> None:
    rules = [*("x" * number for number in range(1, 80)), *["y" * 100] * 8]

    assert found(OwnParts(rules), f"{'y' * 100} {'x' * 79} {'x' * 80}") == ["y" * 100, "x" * 79]


def test_the_rules_of_the_last_callers_are_compiled_once() -> None:
    assert own_parts(("Acme",)) is own_parts(("Acme",))


def test_a_masker_keeps_them() -> None:
    own = OwnParts(["Acme Pro", ("«", "»")])

    assert Masker(carriers=(("%1", "%2"),), own_parts=own).mask("Buy Acme Pro for «my wife» now").text == (
        "Buy %1 for %2 now"
    )
    assert [part.text for part in Masker(own_parts=own).mask("Buy Acme Pro now").parts] == ["Acme Pro"]


def test_no_sentence_ends_in_one() -> None:
    masker = Masker(own_parts=OwnParts(["Yahoo! Inc.", ("<<", ">>")]))

    text = "Buy it. Ask Yahoo! Inc. He said <<Go. Now. Please>> again. Yes."
    split = split_text(text, "en", lambda _: (1, 2), 50, masker=masker)

    sentences = [sentence.text for sentence in split.sentences]
    assert sentences == ["Buy it.", "Ask Yahoo! Inc.", "He said <<Go. Now. Please>> again.", "Yes."]
    assert split.join(sentences) == text


@pytest.mark.parametrize("ahead", ["word ", "字", "x"])
@pytest.mark.parametrize("num_ahead", [*range(1000, 1026, 3), 2040])
def test_no_window_of_a_long_line_ends_in_one(ahead: str, num_ahead: int) -> None:
    part = "{{the name, of it. And more}}"
    text = (ahead * num_ahead)[:num_ahead] + part + " and so on" * 50

    split = split_text(text, "en", lambda _: (1, 2), 50, masker=Masker(own_parts=OwnParts([("{{", "}}")])))

    sentences = [sentence.text for sentence in split.sentences]
    assert sum(part in sentence for sentence in sentences) == 1
    assert split.join(sentences) == text


def test_a_sentence_that_fits_into_a_window_is_not_cut_before_its_part() -> None:
    sentence = f"Please keep {{{{{'lorem ipsum ' * 74}}}}} as it is."
    text = f"{'Word and more words here. ' * 7}{sentence} Then go on.{' And so on.' * 100}"

    split = split_text(text, "en", lambda _: (1, 2), 50, masker=Masker(own_parts=OwnParts([("{{", "}}")])))

    assert sentence in [each.text for each in split.sentences]


def test_no_mark_at_the_beginning_of_one_draws_a_cut_into_it() -> None:
    part = "\u200d" + "-" * 50
    masker = Masker(own_parts=OwnParts([part]))

    split = split_text("x" * 100 + part + "y" * 49, "en", lambda text: tuple(text.encode()), 110, masker=masker)

    assert sum(part in sentence.text for sentence in split.sentences) == 1


@pytest.mark.parametrize("part", ["{{a name, of it}}", f"{{{{{'a, ' * 40}}}}}"])
@pytest.mark.parametrize("num_ahead", range(0, 120, 7))
@pytest.mark.parametrize("plain", ["字", "字, "])
def test_no_long_sentence_is_cut_in_one(part: str, num_ahead: int, plain: str) -> None:
    text = (plain * 120)[:num_ahead] + part + (plain * 120)[: 120 - num_ahead] + "."
    masker = Masker(own_parts=OwnParts([("{{", "}}")]))

    split = split_text(text, "en", lambda sentence: tuple(sentence.encode()), 130, masker=masker)

    sentences = [sentence.text for sentence in split.sentences]
    assert len(sentences) > 1
    assert sum(part in sentence for sentence in sentences) == 1
    assert split.join(sentences) == text


@pytest.mark.parametrize("num_characters", [1500, 5000])
def test_one_longer_than_a_window_is_cut(num_characters: int) -> None:
    text = "See {{" + "a " * num_characters + "}} now."

    split = split_text(text, "en", lambda _: (1, 2), 50, masker=Masker(own_parts=OwnParts([("{{", "}}")])))

    assert len(split.sentences) > 1
    assert split.join([sentence.text for sentence in split.sentences]) == text
