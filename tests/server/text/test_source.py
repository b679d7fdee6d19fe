"""Split texts of hand-made sentences."""

from server.text.masked import Masked, Part
from server.text.source import Given, SourceSentence, SplitText


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
