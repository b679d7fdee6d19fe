"""Tests of plain stand-ins for typographic characters, and back."""

import pytest

from server.text.typography import ordinal_ending, restore_typography


@pytest.mark.parametrize(
    ("source", "translation", "language", "expected"),
    [
        ("\u201cGo,\u201d she said.", '"Geh", sagte sie.', "de", "\u201eGeh\u201c, sagte sie."),
        ("\u201cGo,\u201d she said.", '"Va", disse ela.', "pt-BR", "\u201cVa\u201d, disse ela."),
        ("\u201cGo (\u201cnow\u201d)\u201d", '"Va ("ora")"', "it", "\u00abVa (\u00abora\u00bb)\u00bb"),
        ('"Go," she said.', '"Geh", sagte sie.', "de", '"Geh", sagte sie.'),
        ('"Go," \u201cshe\u201d said.', '"Geh", sagte sie.', "de", '"Geh", sagte sie.'),
        ("It\u2019s on", "C'est l'eau", "fr", "C\u2019est l\u2019eau"),
        ("It's on, it\u2019s", "C'est l'eau", "fr", "C'est l'eau"),
        ("It\\'s", "C'est l\\'eau", "fr", "C\\'est l\\'eau"),
        ('A \\"dog\\"', 'Ein "Hund"', "de", 'Ein \\"Hund\\"'),
        ("It\\'s, it's", "C'est l'eau", "fr", "C'est l'eau"),
        ("It is \u22125 or 4-3.", "Es ist -5 oder 4-3.", "de", "Es ist \u22125 oder 4-3."),
        ("Im 2. Stock, am 11. Tag", "In the 2. floor, on the 11. day.", "en", "In the 2nd floor, on the 11th day."),
        ("Am 2. Stock", "No 2. stock", "pt", "No 2. stock"),
        ("Her 2nd birthday", "Seu 2nd aniversário", "pt", "Seu 2º aniversário"),
        ("Her 2nd birthday", "Ihr 2nd Geburtstag", "de", "Ihr 2. Geburtstag"),
        ("Wait\u2026", "Warte...", "de", "Warte\u2026"),
        ("Wait...", "Warte\u2026", "de", "Warte..."),
        ("Wait...\u2026", "Warte\u2026...", "de", "Warte\u2026..."),
        ("Say \u2018yes\u2019, don\u2019t", "Sag 'ja', tu's", "de", "Sag \u201aja\u2018, tu\u2019s"),
        ("Sag \u201aja, ja\u2018!", "Say 'it's it', boys' hat", "en", "Say \u2018it's it\u2019, boys' hat"),
        ("Don\u2019t go", "Nicht 'gehen'", "de", "Nicht 'gehen'"),
        ("Say 'yes' \u2018no\u2019", "Sag 'ja'", "de", "Sag 'ja'"),
        ("Pay 500\u00a0euros to 2", "Zahle 500 Euro an 2", "de", "Zahle 500\u00a0Euro an 2"),
        ("It is 5\u202f%", "Es sind 5 %", "de", "Es sind 5\u202f%"),
        ("It costs 1\u00a0250\u00a0\u20ac", "Es kostet 1 250 \u20ac", "de", "Es kostet 1\u00a0250\u00a0\u20ac"),
        ("Etwa 25\u202f000 Menschen", "About 25 000 people", "en", "About 25\u202f000 people"),
        ("Pay 500\u00a0euros to 2 men", "Zahle 500 Euro an 2 Männer", "de", "Zahle 500 Euro an 2 Männer"),
    ],
)
def test_marks_of_the_sources_kinds_are_those_of_the_target(
    source: str, translation: str, language: str, expected: str
) -> None:
    assert restore_typography(source, translation, language) == expected


@pytest.mark.parametrize(("language", "expected"), [("de", "."), ("en-GB", "th"), ("es", ".\u00ba"), ("sv", ".")])
def test_endings_of_ordinals(language: str, expected: str) -> None:
    assert ordinal_ending("th", language) == expected


@pytest.mark.parametrize(
    ("translation", "language", "expected"),
    [
        ("$5 und 10 $", "de", "5 $ und 10 $"),
        ("$5, $6,50 und 10 $.", "de", "5 $, 6,50 $ und 10 $."),
        ("\u20ac5 oder $10", "de", "\u20ac5 oder $10"),
        ("$5 und $10", "de", "$5 und $10"),
        ("$5.50 und 10 $", "de", "$5.50 und 10 $"),
        ("A$5 und 10 $", "de", "A$5 und 10 $"),
        ("$5 and 10 $", "en", "$5 and 10 $"),
    ],
)
def test_prices_are_written_alike(translation: str, language: str, expected: str) -> None:
    assert restore_typography("$5 and $10", translation, language) == expected
