"""Split texts of hand-made sentences."""

import dataclasses

import pytest

from server.text.glossary import Glossary
from server.text.masked import KeptPart, Masked, Part, Placement, Restored
from server.text.source import Given, SourceSentence, SplitText
from server.text.term_table import Term


def of(text: str, separator: str = "") -> SourceSentence:
    return SourceSentence(text, separator, (5, 3))


def test_begins_are_where_translations_stand_in_the_joined_text() -> None:
    parts = SplitText(" \n", (of("One here.", " "), of("Two there.", "\t\t"), of("Three.")))
    translations = ["Eins 😀.", "", "Drei."]

    begins = parts.begins(translations)

    joined = parts.join(translations)
    assert [joined[begin : begin + len(text)] for begin, text in zip(begins, translations, strict=True)] == translations
    assert begins == [2, 10, 12]


def test_what_a_translation_begins_with_is_encoded_as_the_network_would_have_written_it() -> None:
    part = Part(text="a.txt", start=5, carrier="\ue000", place=1.0, reach=1.0, touches_left=False, touches_right=False)
    masked = Masked(text="Send \ue000", original="Send a.txt", source="Send      ", parts=(part,))
    encoded: list[str] = []

    def encode(text: str) -> tuple[int, ...]:
        encoded.append(text)
        return 7, 8, 3

    given, sentence = SourceSentence("Send a.txt", "", (5, 3), masked=masked).begun_with("Sende a.txt", encode)

    assert encoded == ["Sende \ue000"]
    assert sentence.prefix == given == Given("Sende a.txt", (7, 8))


def test_sentences_within_tags_stand_in_no_text() -> None:
    parts = SplitText("", (of("One."), of("A title"), of("Another")), homes=(0, 0))

    assert parts.num_shown == 1
    assert parts.join(["Eins."]) == "Eins."
    assert parts.begins(["Eins."]) == [0]


LOST = KeptPart("a.txt", Placement.BY_POSITION)


@pytest.mark.parametrize(
    ("restored", "before", "is_better"),
    [
        (Restored("Hund"), Restored("Tier"), True),
        (Restored("Hund", (LOST,), is_whole=False), Restored("Tier"), True),  # terms come first
        (Restored("Tier"), Restored("Hund", (LOST,), is_whole=False), False),
        (Restored("Tier"), Restored("Vieh", (LOST,), is_whole=False), True),
        (Restored("Tier", (LOST,)), Restored("Vieh", (LOST,), is_whole=False), True),
        (Restored("Tier", (LOST,)), Restored("Vieh", is_whole=False), False),  # better in one, and worse in another
        (Restored("Tier", is_garbled=True), Restored("Vieh", is_whole=False), False),
        (Restored("Tier"), Restored("Vieh"), False),
    ],
)
def test_a_translation_is_better_if_it_is_worse_in_no_respect(
    restored: Restored, before: Restored, is_better: bool
) -> None:
    terms = tuple(Glossary([Term(("dog",), ("Hund",))]).find("a dog"))

    assert dataclasses.replace(of("a dog"), terms=terms).is_better(restored, before) is is_better
