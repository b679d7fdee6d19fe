"""The marks at the ends of texts."""

import pytest

from server.text.full_stops import end_like, with_stop


@pytest.mark.parametrize(
    ("text", "language", "leading", "expected"),
    [
        ("Neue Nachricht", "en", "", "Neue Nachricht."),
        ("# Nachricht", "en-GB", "", "# Nachricht."),
        ("New message", "de", "", "New message"),
        ("New message", "de", "# ", "New message"),
        ("Buy milk", "de", "\u2022 ", "Buy milk."),
        ("Buy milk", "de", "- [ ] ", "Buy milk."),
        ("Buy milk", "de", "b) ", "Buy milk."),
        ("ja", "en", "", "ja"),
        ("Neue Nachricht!", "en", "", "Neue Nachricht!"),
        ("A b c d e f g h", "en", "", "A b c d e f g h."),
        ("A b c d e f g h i", "en", "", "A b c d e f g h i"),
    ],
)
def test_labels_and_items_are_shown_with_a_full_stop(text: str, language: str, leading: str, expected: str) -> None:
    assert with_stop(text, language, leading) == expected


@pytest.mark.parametrize(
    ("source", "translation", "expected"),
    [
        ("Turn off the light", "Schalte das Licht aus.", "Schalte das Licht aus"),
        ("Turn off {name}", "Schalte {name} aus.", "Schalte {name} aus"),
        ("He waits.", "Er wartet.", "Er wartet."),
        ("Nicht rauchen!", "Do not smoke.", "Do not smoke!"),
        ("Wer?", "Who.", "Who?"),
        ("Go back", "Geh zur\u00fcck!", "Geh zur\u00fcck"),
        ("Please go.", "Bitte geh!", "Bitte geh!"),
        ("What???", "Was?", "Was???"),
        ("Don't!!!", "Nicht..", "Nicht!!!"),
        ("Really?!", "Wirklich?", "Wirklich?!"),
        ("He waits", "Er wartet...", "Er wartet..."),
        ("He waits!", "Er wartet...", "Er wartet..."),
        ("and so on", "usw.", "usw."),
        ("at 8 in the morning", "at 8 a.m.", "at 8 a.m."),
        ("On May 1st", "Am 1.", "Am 1."),
        ("the big company", "(the Big Co.", "(the Big Co."),
        ("x", ".", "."),
    ],
)
def test_translations_end_as_their_sources(source: str, translation: str, expected: str) -> None:
    assert end_like(source, translation) == expected
