"""Tests of sentences in capitals and of titles."""

import pytest

from server.text.casing import Casing, begun, casing_of, fold, raise_again


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("MIND THE GAP!", "Mind the gap!"),
        ("STOP IT", "Stop it"),
        ("WARNING!", "Warning!"),
        ("PLEASE DO NOT FEED THEM", "please do not feed them"),
        ("ÖFFNEN: 2 TÜREN", "Öffnen: 2 türen"),
        ("GROßE STRAßE", "Große straße"),
    ],
)
def test_capitals_are_shown_small_and_raised_again(text: str, shown: str) -> None:
    assert casing_of(text) is Casing.CAPITALS
    assert fold(text, Casing.CAPITALS) == shown
    assert raise_again(text, "große 2 {x}", Casing.CAPITALS, "de") == "GROSSE 2 {X}"


@pytest.mark.parametrize(
    ("text", "language", "translation", "expected"),
    [
        ("How To Make A Cake", "de", "wie man Cake macht.", "Wie man Cake macht"),
        ("Barack Obama Visits Berlin", "de", "barack obama besucht berlin", "Barack Obama besucht Berlin"),
        ("Das Leben Der Anderen", "en", "the life of the other's", "The Life of the Other's"),
        ("How to Make a Cake in Ten Minutes", "fr", "comment faire", "Comment faire"),
    ],
)
def test_titles_are_shown_small_and_written_as_the_target_does(
    text: str, language: str, translation: str, expected: str
) -> None:
    assert casing_of(text) is Casing.TITLE
    assert fold(text, Casing.TITLE) == text.lower()
    assert raise_again(text, translation, Casing.TITLE, language) == expected


def test_a_label_in_capitals_is_shown_as_a_sentence() -> None:
    assert fold("ATTENTION: THE STORE IS CLOSED.", Casing.CAPITALS) == "Attention: the store is closed."
    assert fold("THE STORE IS CLOSED: WAIT.", Casing.CAPITALS) == "the store is closed: wait."


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
        "Bill Gates",
        "A&B and Q&A",
        "J. R. R. Tolkien",
        "The New York Times reports",
        "Mr. Brown met Mrs. White in Oxford",
        "",
    ],
)
def test_names_and_mixed_case_are_plain(text: str) -> None:
    assert casing_of(text) is Casing.PLAIN
    assert fold(text, Casing.PLAIN) == raise_again(text, text, Casing.PLAIN, "de") == text


@pytest.mark.parametrize(
    ("source", "translation", "expected"),
    [
        ("Get started", "loslegen", "Loslegen"),
        ("\u00dcbung", "exercise", "Exercise"),
        ("get started", "loslegen", "loslegen"),
        ("My phone", "iPhone", "iPhone"),
        ("It is $5", "\ue000 kostet", "\ue000 kostet"),
        ("Get started", "", ""),
    ],
)
def test_what_begins_with_a_capital_is_translated_so(source: str, translation: str, expected: str) -> None:
    assert begun(source, translation) == expected
