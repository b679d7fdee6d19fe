"""Tests of quotations that an apostrophe confuses."""

import pytest

from server.text.masking import Masker
from server.text.quotes import find_quotes, is_quote, written

MASKER = Masker(carriers=(("%1", "%2"), ("X1", "X2")), language="de")


@pytest.mark.parametrize(
    ("text", "shown", "translation", "expected"),
    [
        (
            "“Don’t go,” she said.",
            "%1 Don’t go %2, she said.",
            "%1 Geh nicht %2, sagte sie.",
            "„Geh nicht“, sagte sie.",
        ),
        ('"Don\'t!" he said', "%1 Don't! %2 he said", "%1 Nicht! %2 sagte er", '"Nicht!" sagte er'),
        ("He said 'it's mine' now", "He said %1 it's mine %2 now", "Er %1 mein %2 jetzt", "Er 'mein' jetzt"),
        ("'I can't,' he said", "%1 I can't %2, he said", "%1 Nein %2, sagte er", "'Nein', sagte er"),
        ("‘Can’t you?’ he said", "%1 Can’t you? %2 he said", "%1 Nein? %2 sagte er", "'Nein?' sagte er"),
    ],
)
def test_marks_of_quotations_are_carriers(text: str, shown: str, translation: str, expected: str) -> None:
    masked = MASKER.mask(text)
    restored = masked.restore(translation)

    assert masked.text == shown
    assert (restored.text, restored.parts, restored.is_whole) == (expected, (), True)


@pytest.mark.parametrize(
    "text",
    [
        '"It\'s mine," he said.',
        'He said "no".',
        "The boys' and the girls' room",
        "Don't",
        "5'10\" tall",
        "rock 'n' roll",
    ],
)
def test_other_quotations_and_apostrophes_stay(text: str) -> None:
    assert list(find_quotes(text)) == []


def test_marks_are_known_with_their_comma() -> None:
    assert is_quote(",”")
    assert not is_quote(",")
    assert written(",”") == '"'


def test_a_mark_that_the_network_loses_is_told() -> None:
    restored = MASKER.mask("“Don’t go,” she said.").restore("Geh nicht, sagte sie.")

    assert [part.text for part in restored.parts] == ["“", ",”"]
    assert not restored.is_whole
