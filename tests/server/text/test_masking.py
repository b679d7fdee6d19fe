"""Tests of what a network is shown in the place of addresses, codes and ALL CAPS."""

import pytest

from server.text.masking import NO_MASKING, Masked, Masker

MASKER = Masker(num_placeholders=3, folds_capitals=True)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (
            "See https://example.org/a_b?q=1&r=ü#top, or www.example.com.",
            ["https://example.org/a_b?q=1&r=ü#top", "www.example.com"],
        ),
        ("(museum.example.de/plan)", ["museum.example.de/plan"]),
        ("Mail to a.b-c@mail.example.org.", ["a.b-c@mail.example.org"]),
        ("Open report_2.pdf or notes.txt!", ["report_2.pdf", "notes.txt"]),
        ("It is in /etc/app/config.yaml.", ["/etc/app/config.yaml"]),
        (r"Copy C:\Users\Public, please.", [r"C:\Users\Public"]),
        ("<b>Save</b> &amp; go", ["<b>", "</b>", "&amp;"]),
        ("Hello {name}, {{ count }} of ${total}", ["{name}", "{{ count }}", "${total}"]),
        ("%s has %1$d files, %(done).1f done", ["%s", "%1$d", "%(done).1f"]),
        ("Set $HOME and [NAME] to `sudo reboot`.", ["$HOME", "[NAME]", "`sudo reboot`"]),
        ("@anna fixed #42 in v2.3.1", ["@anna", "#42", "v2.3.1"]),
        ("Order AB-1234, voucher SUMMER24.", ["AB-1234", "SUMMER24"]),
        ("Error 0x80070057 in 9f8e7d6c", ["0x80070057", "9f8e7d6c"]),
        ("max_tokens is too small", ["max_tokens"]),
        ("Call +49 30 901820.", ["+49 30 901820"]),
        ("It is 2025-03-07, on 192.168.0.1 or ./run.sh", ["2025-03-07", "192.168.0.1", "./run.sh"]),
        ("Use example.com:8080/x or shop.com.au", ["example.com:8080/x", "shop.com.au"]),
        ("{temp, number} and {{ a | b }} of [USER_NAME]", ["{temp, number}", "{{ a | b }}", "[USER_NAME]"]),
        ("\uf0b7 Mail a@b.org", ["\uf0b7", "a@b.org"]),
        ("Die #MeToo-Debatte", ["#MeToo"]),
        ("libfoo.so.6 is missing", ["libfoo.so.6"]),
        ("Great 👍🏽👩‍🚀 and 🇩🇪!", ["👍🏽👩‍🚀", "🇩🇪"]),
    ],
)
def test_parts_stand_again_in_their_places(text: str, parts: list[str]) -> None:
    masked = MASKER.mask(text)

    assert list(masked.parts) == parts
    assert not any(part in masked.text for part in parts)
    assert masked.restore(masked.text) == text


@pytest.mark.parametrize(
    "text",
    [
        "It costs $1,250.50, or 12,99 €, at 7:30 pm on 3/4.",
        "100% sure: 50 % of 2.5 km, and/or he/she, e.g. the U.S.",
        "COVID-19, the 1990s, a 21-year-old, 20th, F-16, 10km",
        "a < b and c > d; it's 5 o'clock (or six).",
        "Wait... what?! No – yes.",
        "Am 24.12.2024 oder 1.3.25 für 1.250.000,50 €, 10 €/Monat, Tag /Nacht, Kunde(in)/Gast",
        "Ich hab`s gesehen, er hat`s auch. It`s John`s car.",
        "Lehrer_innen, 100-METER-LAUF, [MUSIC] {Please wait until done}",
        "I saw it.It was there, look.at it.so what?",
    ],
)
def test_what_languages_write_in_different_ways_stays(text: str) -> None:
    assert MASKER.mask(text) == Masked(text)


def test_a_translation_may_have_the_parts_in_another_order() -> None:
    masked = MASKER.mask("Send a.txt to b@example.org")

    assert masked.text == "Send \ue000 to \ue001"
    assert masked.restore("An \ue001 \ue000 senden") == "An b@example.org a.txt senden"


def test_symbols_that_stand_for_nothing_are_left_out() -> None:
    assert MASKER.mask("Send a.txt").restore("\ue000 \ue001senden\uf000") == "a.txt senden"


def test_parts_beyond_the_symbols_stay_text() -> None:
    assert MASKER.mask("{a} {b} {c} {d}").text == "\ue000 \ue001 \ue002 {d}"


def test_a_part_comes_back_once_however_often_its_symbol_does() -> None:
    assert MASKER.mask("Send a.txt").restore("\ue000 \ue000\ue000senden") == "a.txt senden"


def test_symbols_of_the_texts_own_are_parts() -> None:
    masked = MASKER.mask("\ue001 and {name}")

    assert (masked.text, masked.parts) == ("\ue000 and \ue001", ("\ue001", "{name}"))


def test_a_text_with_more_symbols_of_its_own_than_there_are_is_left_alone() -> None:
    text = "\ue001\ue001 \ue001 \ue001 a.txt"

    assert MASKER.mask(text) == Masked(text, num_fit=5)


@pytest.mark.parametrize("text", ["MIND THE GAP!", "STOP IT", "WARNING!", "ÖFFNEN: 2 TÜREN", "GROßE STRAßE"])
def test_all_caps_are_shown_in_small_letters_and_raised_again(text: str) -> None:
    masked = MASKER.mask(text)

    assert masked.text == text.lower()
    assert masked.restore("große {x}") == "GROSSE {X}"


@pytest.mark.parametrize(
    "text",
    [
        "NATO",
        "OK!",
        "A",
        "Hello WORLD",
        "USA 2024",
        "İSTANBUL İÇİN",
        "我喜欢NASA。",
        "منظمة NASA اليوم",
        "A + B = C",
        "{x} NASA",
    ],
)
def test_names_and_mixed_case_stay(text: str) -> None:
    assert not MASKER.mask(text).is_folded


def test_parts_of_a_text_in_capitals_keep_their_letters() -> None:
    masked = MASKER.mask("VISIT https://example.org/Now TODAY")

    assert masked.text == "visit \ue000 today"
    assert masked.restore("besuchen sie \ue000") == "BESUCHEN SIE https://example.org/Now"


def test_without_masking_every_text_is_shown_as_it_is() -> None:
    assert NO_MASKING.mask("GO TO https://example.org") == Masked("GO TO https://example.org")


@pytest.mark.parametrize(
    "unit", ["a.", "a@", "/a", "{", "<a", "A1-", "1.", "%", "a_", "http://.", "x.py.", "😀", "a-1"]
)
def test_any_text_comes_back_however_odd(unit: str) -> None:
    text = "@" + unit * 300
    masked = MASKER.mask(text)

    assert masked.restore(masked.text) == text
