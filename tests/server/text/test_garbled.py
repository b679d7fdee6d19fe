import pytest

from server.text.garbled import has_invented_capitals, is_garbled


@pytest.mark.parametrize(
    ("source", "translation", "expected"),
    [
        ("A dog runs.", "Ein Hund läuft.", False),
        ("A dog runs.", "Ein \ufffd läuft.", True),
        ("A \ufffd runs.", "Ein \ufffd läuft.", False),
        ("A dog runs.", "EIN HUND LÄUFT.", True),
        ("A dog runs.", "Ein ÄÖÜÄÖ läuft.", True),
        ("Собака бежит.", "ДВА КОТА.", True),
        ("A dog runs.", "DER HUND IST", True),
        ("A DOG runs.", "EIN HUND läuft.", False),
        ("A dog runs.", "A DOG RUNS.", True),
        ("use wi-fi and ok", "WLAN benutzen und OK", False),
        ("it is xhtml", "Es ist XHTML", False),
        ("I Am", "Ich Bin Da Und Dort", False),
        ("A dog", "A, B, C, D, E", False),
        ("", "", False),
    ],
)
def test_what_no_translation_is_can_be_told(source: str, translation: str, expected: bool) -> None:
    assert is_garbled(source, translation) is expected


def test_a_word_in_capitals_that_the_source_has_not_is_invented() -> None:
    assert has_invented_capitals("Buy of them", "ZIMMER kaufen")
    assert not has_invented_capitals("Buy zimmer", "ZIMMER kaufen")
    assert not has_invented_capitals("BUY", "ZIMMER kaufen")


def test_long_texts_take_one_pass() -> None:
    capitals = "ABCD " * 100_000

    assert is_garbled("a" * 500_000, capitals)
    assert not is_garbled("xhtml" * 100_000, "XHTML" * 100_000)
    assert not is_garbled("a" * 500_000, "ABCd" * 100_000)
