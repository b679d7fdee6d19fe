import random
import re
import sys
import unicodedata
from collections.abc import Sequence
from typing import Any

import pytest

from server.text.characters import Characters
from server.text.masked import Masked
from server.text.masking import Masker
from server.text.numbers import NumberSpan
from server.text.sentences import WINDOW_CHARACTERS, split_text
from server.text.source import SplitText


def encode(text: str) -> tuple[int, ...]:
    """One id per character, and eos."""
    return (*map(ord, text), 3)


def symbols(number: int, **more: Any) -> Masker:
    """Returns a masker with so many symbols."""
    return Masker(carriers=(tuple(chr(0xE000 + index) for index in range(number)),), **more)


def split(text: str, max_tokens: int = 1000) -> SplitText:
    return split_text(text, "en", encode, max_tokens)


def sentences(text: str, max_tokens: int = 1000) -> list[str]:
    return [sentence.text for sentence in split(text, max_tokens).sentences]


def rejoined(parts: SplitText) -> str:
    return parts.join([sentence.text for sentence in parts.sentences])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Dr. Smith paid $3.50. Then he left.", ["Dr. Smith paid $3.50.", "Then he left."]),
        ('He said "Stop. Now." Then he left.', ['He said "Stop. Now."', "Then he left."]),
        ("Well... I don't know. Really?", ["Well... I don't know.", "Really?"]),
        ("See https://a.org/b.html?x=1.2. It works.", ["See https://a.org/b.html?x=1.2.", "It works."]),
        ("See HTTP://A.ORG/B.PDF?D=E. IT works.", ["See HTTP://A.ORG/B.PDF?D=E.", "IT works."]),
        ("See http://a.org/b?ID=5. It works.", ["See http://a.org/b?ID=5.", "It works."]),
        ("GEHE ZU HTTP://EXAMPLE.COM.", ["GEHE ZU HTTP://EXAMPLE.COM."]),
        ("See http://a.org.It works.", ["See http://a.org.", "It works."]),
        ("See (http://a.org/3).Then go!", ["See (http://a.org/3).", "Then go!"]),
        ("See http://a.org!Then go.", ["See http://a.org!", "Then go."]),
        ("J. R. R. Tolkien wrote it. The U.S. Army came.", ["J. R. R. Tolkien wrote it.", "The U.S. Army came."]),
        ("On Jan. 5 he left at 5 p.m. Then he slept.", ["On Jan. 5 he left at 5 p.m.", "Then he slept."]),
        ("Hello!!! How are you???", ["Hello!!!", "How are you???"]),
        ("one line\nthe next", ["one line", "the next"]),
        ("a cell\tanother cell", ["a cell", "another cell"]),
        ("  ", []),
        ("", []),
    ],
)
def test_sentences_are_found(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


def test_white_space_round_sentences_is_kept_apart_from_them() -> None:
    parts = split("\n  One.  Two.\r\n\r\n\tThree. \u2003")

    assert parts.leading == "\n  "
    assert [(s.text, s.separator) for s in parts.sentences] == [
        ("One.", "  "),
        ("Two.", "\r\n\r\n\t"),
        ("Three.", " \u2003"),
    ]


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("zh", "请看http://a.org。然后我们去吃饭。再见。", ["请看http://a.org。", "然后我们去吃饭。", "再见。"]),
        ("ja", "詳細はhttps://a.org/です。次に進みます。", ["詳細はhttps://a.org/です。", "次に進みます。"]),
    ],
)
def test_text_beside_an_address_without_a_space_is_no_part_of_it(language: str, text: str, expected: list[str]) -> None:
    assert [each.text for each in split_text(text, language, encode, 1000).sentences] == expected


def test_a_sentence_without_a_letter_is_copied_not_translated() -> None:
    parts = split("*** Hello! 42 ... \U0001f600\n---\n\ue000")

    copied = [s.text for s in parts.sentences if s.source_ids is None]
    assert "---" in copied
    assert "\ue000" in copied
    assert all(not any(map(str.isalpha, text)) for text in copied)
    assert rejoined(parts) == "*** Hello! 42 ... \U0001f600\n---\n\ue000"


def test_an_over_long_sentence_is_wrapped_at_a_clause_near_its_middle() -> None:
    assert sentences("the first clause here, and the second clause", 30) == [
        "the first clause here,",
        "and the second clause",
    ]


def test_an_over_long_sentence_without_clauses_is_wrapped_at_white_space() -> None:
    assert sentences("one two three four", 12) == ["one two", "three four"]


def test_an_over_long_word_is_wrapped_anywhere() -> None:
    parts = split("x" * 100, 11)

    assert rejoined(parts) == "x" * 100
    assert all(s.source_ids is not None and len(s.source_ids) <= 11 for s in parts.sentences)


def test_a_cut_does_not_part_a_letter_from_its_accents() -> None:
    pieces = sentences("e\u0301" * 20, 11)

    assert all(piece.startswith("e") for piece in pieces)


def test_a_single_character_of_too_many_tokens_is_copied() -> None:
    parts = split_text("\ufdfa", "en", lambda text: (*[9] * 30 * len(text), 3), 11)

    assert [s.source_ids for s in parts.sentences] == [None]


def test_a_text_that_normalises_to_nothing_is_copied() -> None:
    parts = split_text("abc", "en", lambda _: (3,), 11)

    assert [(s.text, s.source_ids) for s in parts.sentences] == [("abc", None)]


SPACES = [chr(code) for code in range(sys.maxunicode + 1) if chr(code).isspace()]


@pytest.mark.parametrize("space", SPACES, ids=ascii)
def test_any_white_space_may_stand_before_a_full_stop(space: str) -> None:
    text = f"Plan B{space}. B{space}{space}. Go on."

    assert rejoined(split(text)) == text


class Panic(BaseException):
    """As PyO3 derives that of extensions written in Rust."""


def test_a_line_that_the_splitter_fails_on_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(language: str, text: str) -> list[str]:
        raise Panic

    monkeypatch.setattr("sentencex.segment", fail)

    assert sentences("One. Two.\nThree.") == ["One. Two.", "Three."]


def test_a_line_that_the_splitter_changes_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sentencex.segment", lambda language, text: [text[:-1]])

    assert sentences("One. Two.\nThree.") == ["One. Two.", "Three."]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_what_ends_the_process_ends_the_splitting(monkeypatch: pytest.MonkeyPatch, error: type[BaseException]) -> None:
    def end(language: str, text: str) -> list[str]:
        raise error

    monkeypatch.setattr("sentencex.segment", end)

    with pytest.raises(error):
        split("One. Two.")


def test_who_watches_sees_every_sentence_and_ends_the_work() -> None:
    seen: list[int] = []

    def watch(num_sentences: int) -> None:
        seen.append(num_sentences)
        if num_sentences > 9:
            raise TimeoutError

    split_text("One.\n" * 9, "en", encode, 1000, watch)
    assert seen[-1] == 9
    with pytest.raises(TimeoutError):
        split_text("One.\n" * 1000, "en", encode, 1000, watch)
    assert seen[-1] == 10


ALPHABET = [
    *"ab. ,!?;:\n\t\r\"'()[]0-*\x00\x07\x85",
    *"AB\u00a0\u00ab\u0301\u200b\u201c\u201d\u2026\u2028\u202e\u202f\u3000\u3002\u300a\u300b\u4f60\ufeff\U0001f600",
    *("Dr. ", "http://a.b/c?d=e.f ", "1. ", "...", "U.S. ", "\r\n", "word "),
]


@pytest.mark.parametrize("seed", range(300))
def test_whatever_the_text_nothing_is_lost(seed: int) -> None:
    source = random.Random(seed)
    text = "".join(source.choices(ALPHABET, k=source.choice([1, 5, 50, 500])))
    max_tokens = source.choice([2, 8, 64, 1000])

    parts = split(text, max_tokens)

    assert rejoined(parts) == text
    for sentence in parts.sentences:
        assert sentence.text.strip() == sentence.text
        assert sentence.text
        assert not sentence.separator.strip()
        assert sentence.source_ids is None or 2 <= len(sentence.source_ids) <= max_tokens
    assert not parts.leading.strip()


@pytest.mark.parametrize(
    "unit", ["word ", "a. ", "\u201ca. ", "x", "\n", "a\n", ". ", "e\u0301", "\u4f60\u3002", "Dr. "]
)
def test_long_texts_are_looked_at_in_windows_and_nothing_is_lost(unit: str) -> None:
    text = unit * (10 * WINDOW_CHARACTERS // len(unit))
    longest = 0

    def measure(sentence: str) -> tuple[int, ...]:
        nonlocal longest
        longest = max(longest, len(sentence))
        return encode(sentence)

    parts = split_text(text, "en", measure, 64)

    assert rejoined(parts) == text
    assert longest <= WINDOW_CHARACTERS


def normalizing(text: str) -> tuple[int, ...]:
    """One id for each byte of what the text normalises to, and eos."""
    return (*unicodedata.normalize("NFKC", text).encode(), 3)


@pytest.mark.parametrize(
    "text", ["\ufdfa" * 5000, "a\ufdfa" * 2000, "\ufdfa\n" * 1000, "".join(map(chr, range(0x3300, 0x3358))) * 20 + "a"]
)
def test_no_text_makes_more_ids_than_it_has_bytes(text: str) -> None:
    parts = split_text(text, "en", normalizing, 100)

    num_ids = sum(sentence.num_tokens for sentence in parts.sentences)
    assert num_ids <= len(text.encode())
    assert rejoined(parts) == text


def test_characters_that_become_many_are_not_shown_to_the_network() -> None:
    shown: list[str] = []

    def remember(text: str) -> tuple[int, ...]:
        shown.append(text)
        return normalizing(text)

    masker = Masker(characters=Characters(lambda character: unicodedata.normalize("NFKC", character) == character))
    parts = split_text("The prophet \ufdfa  said so.", "en", remember, 100, masker=masker)

    assert shown == ["The prophet said so."]
    assert rejoined(parts) == "The prophet \ufdfa  said so."


def test_such_characters_stay_where_a_sentence_is_long_enough_to_bear_them() -> None:
    text = "\u00bd a cup of sugar, as the recipe says."

    def pieces(text: str) -> tuple[int, ...]:
        return (*range(len(text) // 3), 3)

    assert [s.text for s in split_text(text, "en", pieces, 100).sentences] == [text]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("【Test】Where is it?", ["【Test】", "Where is it?"]),
        ("One.\n「A b」 Two", ["One.", "「A b」", "Two"]),
        ("【Test】", ["【Test】"]),
        ("See 【Test】 there", ["See 【Test】 there"]),
        ("[Test] Where?", ["[Test] Where?"]),
    ],
)
def test_a_label_in_brackets_is_a_sentence_of_its_own(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected
    assert rejoined(split(text)) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Es ist im 30. Stock. Gut.", ["Es ist im 30. Stock.", "Gut."]),
        ("Es war ihr 39. Geburtstag.", ["Es war ihr 39. Geburtstag."]),
        ("Er wurde 39. Dann ging er.", ["Er wurde 39.", "Dann ging er."]),
        ("Es steht in ./docs oder ../docs. Gut.", ["Es steht in ./docs oder ../docs.", "Gut."]),
        ("Nimm ...args. Er ging.Dann kam sie.", ["Nimm ...args.", "Er ging.", "Dann kam sie."]),
    ],
)
def test_a_german_ordinal_and_a_path_end_no_sentence(text: str, expected: list[str]) -> None:
    parts = split_text(text, "de", encode, 1000)

    assert [sentence.text for sentence in parts.sentences] == expected
    assert rejoined(parts) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("See vol. 2 and Ch. 7. Go.", ["See vol. 2 and Ch. 7.", "Go."]),
        ("From Mon. 9 a.m. to Fri. 5 p.m. we work.", ["From Mon. 9 a.m. to Fri. 5 p.m. we work."]),
        ("We saw the sun. 5 people came.", ["We saw the sun.", "5 people came."]),
        ("Max. 3 persons. I asked Max. 3 came.", ["Max. 3 persons.", "I asked Max.", "3 came."]),
        ("It came on Fri. Nobody was there.", ["It came on Fri.", "Nobody was there."]),
    ],
)
def test_an_english_abbreviation_before_a_number_ends_no_sentence(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected
    assert rejoined(split(text)) == text


def test_a_network_is_shown_what_the_masker_says() -> None:
    shown: list[str] = []

    def remember(text: str) -> tuple[int, ...]:
        shown.append(text)
        return encode(text)

    parts = split_text(
        "GO TO https://a.io/B NOW! {x} a dog.", "en", remember, 1000, masker=symbols(2, folds_capitals=True)
    )

    assert shown == ["Go to \ue000 now!", "\ue000 a dog."]
    assert [each.text for each in parts.sentences] == ["GO TO https://a.io/B NOW!", "{x} a dog."]
    assert [[part.text for part in each.masked.parts] for each in parts.sentences if each.masked] == [
        ["https://a.io/B"],
        ["{x}"],
    ]


def test_a_sentence_that_is_one_address_is_copied() -> None:
    (sentence,) = split_text("https://a.io/B.", "en", encode, 1000, masker=symbols(2)).sentences

    assert sentence.source_ids is None


@pytest.mark.parametrize("length", [600, 1500, 12_000])
@pytest.mark.parametrize("before", ["", "See ", "Hi. See ", "word " * 90 + "see "])
def test_an_address_is_not_cut_however_long_it_is(before: str, length: int) -> None:
    address = "https://a.io/" + "aB3" * (length // 3)

    parts = split_text(f"{before}{address} now.", "en", encode, 1000, masker=symbols(2))

    assert rejoined(parts) == f"{before}{address} now."
    assert [each.text for each in parts.sentences if address in each.text]
    assert not [each for each in parts.sentences if each.source_ids and "aB3" in (each.masked or each).text]


def test_a_word_that_is_too_long_to_be_an_address_is_not_looked_at_as_a_whole() -> None:
    looked_at: list[int] = []

    class Watched(Masker):
        def mask(self, text: str, attempt: int = 0, numbers: Sequence[NumberSpan] = ()) -> Masked:
            looked_at.append(len(text))
            return super().mask(text)

    text = "https://a.io/" + "<" * 100_000

    assert rejoined(split_text(text, "en", encode, 1000, masker=Watched(carriers=symbols(2).carriers))) == text
    assert max(looked_at) <= 1 << 15


def test_a_window_ends_between_words() -> None:
    parts = split_text("word " * 120 + "x" * 600 + " and" * 200, "en", encode, 10_000)

    assert [each.text.split()[-1] for each in parts.sentences] == ["word", "and", "and"]


def test_a_sentence_with_more_parts_than_symbols_is_cut_between_them() -> None:
    text = "{{ name }} or " * 40 + "a@b.de,c@d.de,e@f.de,g@h.de,i@j.de or nobody."

    parts = split_text(text, "en", encode, 10_000, masker=symbols(4))

    assert rejoined(parts) == text
    shown = [(each.masked or each).text for each in parts.sentences if each.source_ids]
    assert not [each for each in shown if "name" in each or "@" in each]
    assert sum(len(re.findall("[\ue000-\ue003]", each)) for each in shown) == 41  # four stand alone, and are copied


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{n, plural, one {# cat} other {# cats. Go!}}", ["# cat", "# cats.", "Go!"]),
        ("<p>One cat</p>\n<p>Two</p>", ["One cat", "Two"]),
        ("{% if x %}Hello{% else %}Bye{% endif %}", ["Hello", "Bye"]),
        ("| A cat | Two |\n|---|---|\n| Bee | C |", ["A cat", "Two", "Bee"]),
        ("```python\nA cat", ["A cat"]),
        ("A cat\n```\nThe code, {n, plural, other {# cats}}\n\nIs it?\n```\nTwo", ["A cat", "Two"]),
        (r"One cat\nTwo cats", ["One cat", "Two cats"]),
    ],
)
def test_syntax_is_copied_as_sentences_of_its_own(text: str, expected: list[str]) -> None:
    split = split_text(text, "en", encode, 1000)

    assert split.join([each.text for each in split.sentences]) == text
    assert [each.text for each in split.sentences if any(map(str.isalpha, each.text)) and each.source_ids] == expected
