"""Split texts of hand-made sentences."""

from server.text.source import SourceSentence, SplitText


def of(text: str, separator: str = "") -> SourceSentence:
    return SourceSentence(text, separator, (5, 3))


def test_begins_are_where_translations_stand_in_the_joined_text() -> None:
    parts = SplitText(" \n", (of("One here.", " "), of("Two there.", "\t\t"), of("Three.")))
    translations = ["Eins 😀.", "", "Drei."]

    begins = parts.begins(translations)

    joined = parts.join(translations)
    assert [joined[begin : begin + len(text)] for begin, text in zip(begins, translations, strict=True)] == translations
    assert begins == [2, 10, 12]


def test_sentences_within_tags_stand_in_no_text() -> None:
    parts = SplitText("", (of("One."), of("A title"), of("Another")), homes=(0, 0))

    assert parts.num_shown == 1
    assert parts.join(["Eins."]) == "Eins."
    assert parts.begins(["Eins."]) == [0]
