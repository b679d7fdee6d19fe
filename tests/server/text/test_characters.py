"""Tests of which characters a network can be shown."""

import itertools

import pytest

from server.text.characters import Characters
from server.text.runs import Run


def knows(character: str) -> bool:
    return character.isascii() or character in "äéğ\u2192\u3042\u3044"


def runs(text: str) -> list[str]:
    return [text[run.start : run.end] for run in Characters(knows).runs(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain text, ä and é", []),
        ("Łódź and Kraków-Łódź", ["Łódź", "Kraków-Łódź"]),
        ("Привет, мир and you", ["Привет, мир"]),
        ("you你好and 第3章", ["你好", "第3章"]),
        ("100 µg, 100µg", ["µg", "100µg"]),
        ("₹500, 500₹ and ₹ 5", ["₹500", "500₹", "₹"]),
        ("10³ cells, 5 km², word¹, 1½", ["10³", "km²", "¹", "1½"]),
        ("$½ a cup", ["$½"]),
        ("a→b, A→B", ["a→b", "→"]),
        ("【Test】Where", ["【", "】"]),
        ("so (╯°□°）╯ angry", ["(╯°□°）╯"]),
        ("¯\\_(ツ)_/¯", ["¯\\_(ツ)_/¯"]),
        ("ten ★★★ stars", ["★★★"]),
        ("Nº5 is", ["Nº5"]),
        ("XQ1→XQ2", ["→"]),
        ("so ❤\ufe0f. And (╯°□°）╯!", ["❤\ufe0f", "(╯°□°）╯"]),
        ("un☃believable, Click★Next", ["un☃believable", "★"]),
        ("th\ufffd music, \ufffd", ["th\ufffd", "\ufffd"]),
        ("I likе yоur car", ["likе yоur"]),
        ("xⁿ and H₂O, CO₂", ["xⁿ", "H₂O", "CO₂"]),
        ("'Łódź'", ["Łódź"]),
    ],
)
def test_an_unknown_character_takes_what_belongs_to_it(text: str, expected: list[str]) -> None:
    assert runs(text) == expected


def test_words_and_numbers_have_a_place_in_the_grammar_and_marks_have_none() -> None:
    assert Characters(knows).runs("→ ½ 你 5³") == [
        Run(0, 1, is_word=False),
        Run(2, 3, is_word=False),
        Run(4, 5, is_word=True),
        Run(6, 8, is_word=True),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("“It’s” – 5−3…", '"It\'s" - 5-3...'),
        ("soft\u00adhy\u200bphen\u2060", "softhyphen"),
        ("a\u00a0b\u202fc", "a b c"),
        ("e\u0301 a\u0308", "é ä"),
        ("eﬃcient ﬁnd", "efficient find"),
        ("ＡＢＣ", "ＡＢＣ"),
    ],
)
def test_a_plainer_character_stands_for_one_that_shows_the_same(text: str, expected: str) -> None:
    assert Characters(knows).plain(text) == expected


def test_a_space_is_the_one_blank_that_a_network_is_shown() -> None:
    assert Characters(lambda _: True).plain("a\u00a0b\u202fc\u2003d") == "a b c d"


def test_a_letter_in_two_characters_is_known_if_it_is_known_as_one() -> None:
    assert runs("Cafe\u0301, g\u0306") == []
    assert runs("Ze\u0302 zone") == ["Ze\u0302"]


def test_arrows_and_other_symbols_are_never_shown() -> None:
    assert knows("\u2192")
    assert runs("a \u2192 b") == ["\u2192"]


def test_a_character_is_asked_for_once() -> None:
    asked: list[str] = []

    def remember(character: str) -> bool:
        asked.append(character)
        return character != "x"

    characters = Characters(remember)
    for _ in range(3):
        characters.runs("abcx abcx")

    assert sorted(asked) == ["a", "b", "c", "x"]


def test_unknown_characters_are_not_kept_without_end() -> None:
    asked: list[str] = []

    def forget(character: str) -> bool:
        asked.append(character)
        return False

    characters = Characters(forget)
    many = "".join(map(chr, range(0x3400, 0x9000)))  # 23,552
    for _ in range(2):
        assert characters.unknown_in(many) == set(many)
        assert characters.unknown_in("xy") == {"x", "y"}

    assert asked.count("x") == 2, "it is judged again"


@pytest.mark.parametrize("unit", ["你", "→", "½", "Ł", "₹5", "★ ", "5", "e\u0301", "-Ł", "°□"])
def test_however_long_the_text_each_character_belongs_to_one_run(unit: str) -> None:
    text = unit * 5000
    found = Characters(knows).runs(text)

    assert all(one.end <= other.start for one, other in itertools.pairwise(found))
