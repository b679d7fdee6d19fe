"""Tests of a translation with the parts that its network was not shown."""

import dataclasses

import pytest

from server.text.characters import Characters
from server.text.masked import KeptPart, Masked, Placement
from server.text.masking import Masker

MASKER = Masker(
    carriers=(("\ue000", "\ue001", "\ue002"), ("%1", "%2")), characters=Characters(str.isascii), language="de"
)
TEXT = "Send a.txt to b@example.org"


def test_a_translation_may_have_the_parts_in_another_order() -> None:
    restored = MASKER.mask(TEXT).restore("An \ue001 \ue000 senden")

    assert (restored.text, restored.is_whole) == ("An b@example.org a.txt senden", True)
    assert restored.parts == (
        KeptPart("a.txt", Placement.BY_MODEL),
        KeptPart("b@example.org", Placement.BY_MODEL),
    )


@pytest.mark.parametrize(
    ("translation", "text"),
    [
        ("An \ue001 senden", "An a.txt b@example.org senden"),  # lost
        ("An \ue001 \ue000 \ue000\ue000senden", "An b@example.org a.txt senden"),  # twice
    ],
)
def test_what_is_lost_is_put_about_where_the_source_has_it_and_what_came_twice_stands_once(
    translation: str, text: str
) -> None:
    restored = MASKER.mask(TEXT).restore(translation)

    assert (restored.text, restored.is_whole) == (text, False)


@pytest.mark.parametrize(
    ("source", "translation", "text"),
    [
        (
            'Sent on {{ user name }} <img src="a.png" alt="our mail box"/> of be day ready.',
            "Sent \ue001 on of be day ready.",
            'Sent {{ user name }} <img src="a.png" alt="our mail box"/> on of be day ready.',
        ),
        ("{{ a b }} and {{ c d }} go", "geht", "{{ a b }} geht {{ c d }}"),
        ("Press **name** of {name} now.", "Von \ue002 jetzt", "Von **{name}** jetzt"),
    ],
)
def test_what_is_lost_is_put_into_no_other_part(source: str, translation: str, text: str) -> None:
    assert MASKER.mask(source).restore(translation).text == text


def test_parts_that_are_put_at_one_place_keep_their_order() -> None:
    masked = MASKER.mask("One \u4f60 \u2192 two")

    assert masked.restore("Eins").text.split() in (["Eins", "\u4f60", "\u2192"], ["\u4f60", "\u2192", "Eins"])


def test_who_put_a_part_there_is_told() -> None:
    restored = MASKER.mask(TEXT).restore("Senden \ue001")

    assert [each.placement for each in restored.parts] == [Placement.BY_POSITION, Placement.BY_MODEL]


def test_a_part_that_touches_a_mark_touches_no_word() -> None:
    restore = MASKER.mask("Call get_name() now: see:a.txt").restore

    assert restore("\ue000 an () jetzt: siehe: \ue001").text == "get_name an () jetzt: siehe:a.txt"
    assert restore("Ruf \ue000 () an: siehe \ue001").text == "Ruf get_name() an: siehe a.txt"


@pytest.mark.parametrize(
    ("source", "translation", "text"),
    [
        ("See https://a.org/the-1st-day now.", "Siehe jetzt \ue000.", "Siehe jetzt https://a.org/the-1st-day."),
        ("Open 1st-place.png on the 2nd.", "\ue000 am 2nd öffnen.", "1st-place.png am 2. öffnen."),
        ("Ask 1st@a.org.", "Fragen Sie \ue000.", "Fragen Sie 1st@a.org."),
        ("Page No. 5 is /a/5/b.", "\ue000 ist 5.", "/a/5/b ist Nr. 5."),
        ("10\u00a0MB in 2 `a1` runs", "In 2: 10 MB in \ue000", "In 2: 10\u00a0MB in `a1`"),
        ("Use `Room No. 3` for 3 days.", "\ue000 3 Tage verwenden.", "`Room No. 3` 3 Tage verwenden."),
    ],
)
def test_a_part_is_no_place_for_typography(source: str, translation: str, text: str) -> None:
    masked = MASKER.mask(source)

    assert masked.restore(translation).text == text
    assert masked.restore_beginning(translation) == text


@pytest.mark.parametrize(
    ("source", "translation", "text"),
    [
        ("Name of {name}", "Nom d'\ue000", "Nom d\u2019{name}"),
        ("Day of # days", "Jour d'\ue000 jours de l'an", "Jour d\u2019# jours de l'an"),
        ("Name of {{name}} and a.txt", "Nom d'\ue000 et d'\ue001", "Nom d\u2019{{name}} et d'a.txt"),
        ("Name of '{name} too", "Nom '\ue000 ici", "Nom '{name} ici"),
    ],
)
def test_an_elision_before_an_argument_begins_no_quotation(source: str, translation: str, text: str) -> None:
    masked = dataclasses.replace(MASKER, language="fr").mask(source)

    assert masked.restore(translation).text == text
    assert masked.restore_beginning(translation) == text


def test_an_apostrophe_before_a_part_is_written_as_the_target_does() -> None:
    masked = dataclasses.replace(MASKER, language="fr").mask("Don\u2019t open /a/5 of H264.txt now")

    assert masked.restore("N'ouvrez pas \ue000 d'\ue001").text == "N\u2019ouvrez pas /a/5 d\u2019H264.txt"


def test_a_number_that_was_a_part_is_written_as_the_target_does() -> None:
    first = MASKER.mask("Come on the 25th day.")
    again = MASKER.mask_again(first, first.restore("Kommen Sie am Tag.").missing)

    assert again is not None
    assert again.restore("Kommen Sie am %1 Tag.").text == "Kommen Sie am 25. Tag."


def test_symbols_that_stand_for_nothing_are_left_out() -> None:
    restored = MASKER.mask("Send a.txt").restore("\ue000 \ue001senden\uf000\ufffd")

    assert restored.text == "a.txt senden"


def test_codes_are_found_as_whole_words() -> None:
    masked = Masker(carriers=(("X1",),)).mask("See a.txt")

    assert masked.restore("Siehe X12 X1").text == "Siehe X12 a.txt"


def test_a_part_touches_again_what_it_touched() -> None:
    masked = MASKER.mask("Click\u2192Next")

    assert masked.restore("Klick \ue000 Weiter").text == "Klick\u2192Weiter"


def test_a_number_that_is_missing_is_told_with_its_place() -> None:
    text = "\u2022 See a.txt for 25 kg"
    restored = MASKER.mask(text).restore("Siehe \ue000 für kg")

    assert not restored.is_whole
    assert restored.parts[-1] == KeptPart("25 kg", Placement.MISSING)
    assert [text[span.start : span.end] for span in restored.missing] == ["25 kg"]


def test_a_digit_of_a_carrier_is_no_number() -> None:
    masked = Masker(carriers=(("%1",),), language="de").mask("Send a.txt 1 time")

    assert not masked.restore("Senden %1").is_whole
    assert masked.restore("Senden %1 1 mal").is_whole


@pytest.mark.parametrize(
    ("source", "translation", "is_whole"),
    [
        ("Buy 2 of them", "ZIMMER 2 kaufen", False),
        ("Buy 2 zimmer", "ZIMMER 2 kaufen", True),
        ("USE 2", "ZIMMER 2", True),
        ("See a.txt", "Siehe \ue000 9 Uhr", False),
        ("Buy 2 of the USA", "2 der WLAN kaufen", True),
    ],
)
def test_capitals_that_the_source_has_in_no_case_are_noise(source: str, translation: str, is_whole: bool) -> None:
    assert MASKER.mask(source).restore(translation).is_whole is is_whole


@pytest.mark.parametrize(("part", "is_whole"), [("\u2192", False), ("\u4f60", False), ("a@b.org", True)])
def test_marks_and_foreign_words_must_be_near_their_place_and_addresses_move_with_the_grammar(
    part: str, is_whole: bool
) -> None:
    restored = MASKER.mask(f"One {part} two three four five").restore("Eins zwei drei vier fünf \ue000")

    assert restored.is_whole is is_whole


@pytest.mark.parametrize(
    ("source", "translation", "is_whole"),
    [
        ("Click on it \u2192 Edit.", "Klicken Sie darauf \ue000.", False),
        ("Click on it => Edit.", "Klicken Sie darauf \ue000.", False),
        ("Click on it \u2192 Edit.", "Klicken Sie darauf \ue000 Edit.", True),
        ("Rename it \u2192 new_name.", "Umbenennen \ue000 \ue001.", True),
        ("Click on Next \u2192!", "Klicken \ue000!", True),
    ],
)
def test_what_stands_behind_an_arrow_may_not_be_lost(source: str, translation: str, is_whole: bool) -> None:
    assert MASKER.mask(source).restore(translation).is_whole is is_whole


def test_a_long_carrier_does_not_hide_that_its_part_moved() -> None:
    masker = Masker(carriers=(("<placeholder>",),), characters=Characters(str.isascii), language="en")
    masked = masker.mask("Wir wurden \u4f60 ausgeraubt")

    assert masked.restore("We were <placeholder> robbed").is_whole
    assert not masked.restore("We were robbed <placeholder>").is_whole


def test_a_german_time_that_was_a_part_is_written_as_the_target_does() -> None:
    masker = Masker(carriers=(("\ue000",), ("%1",)), language="en")
    first = masker.mask("Um 14.20 Uhr beginnt es")
    again = masker.mask_again(first, first.restore("At 14.20 am it begins").missing)

    assert again is not None
    assert again.restore("At %1 it begins").text == "At 14:20 it begins"


def test_a_translation_begins_as_its_source_does_behind_marks_that_were_cut_off() -> None:
    masked = Masked(text="Log 2", original="- Log 2", source="  Log 2", leading="- ")

    assert masked.restore("protokoll 2").text == "- Protokoll 2"


@pytest.mark.parametrize(
    ("translation", "beginning"),
    [
        ("An", "An"),
        ("An \ue001 se", "An b@example.org se"),
        ("An \ue001 \ue001", "An b@example.org "),  # twice
        ("An \ue005 se", "An  se"),  # that stands for nothing
        ("An \ufffd", "An "),  # half a character
    ],
)
def test_a_beginning_has_the_parts_that_are_there(translation: str, beginning: str) -> None:
    assert MASKER.mask(TEXT).restore_beginning(translation) == beginning


@pytest.mark.parametrize(
    ("translation", "beginning"),
    [
        ("An %", "An "),
        ("An %2", "An "),  # it may become %21
        ("An %2 se", "An b@example.org se"),
        ("An %2 se %1", "An b@example.org se "),
        ("100 % sicher", "100 % sicher"),
    ],
)
def test_a_beginning_has_no_half_of_a_code(translation: str, beginning: str) -> None:
    assert MASKER.mask(TEXT, attempt=1).restore_beginning(translation) == beginning


@pytest.mark.parametrize(("adapts_from", "price"), [("en", "1.250,50 $"), ("", "$1,250.50")])
def test_quantities_are_adapted_if_that_is_asked_for_and_carriers_stay(adapts_from: str, price: str) -> None:
    masker = dataclasses.replace(MASKER, adapts_from=adapts_from)
    masked = masker.mask("Send $1,250.50 and 1 % to a.txt", attempt=1)

    assert masked.restore("Sende $1,250.50 und 1 % an %1").text == f"Sende {price} und 1 % an a.txt"


def test_a_quotation_that_holds_much_less_than_before_is_not_whole() -> None:
    masked = MASKER.mask("He called it a 'good idea'.")

    assert masked.restore("Er nannte es eine \ue000 gute Idee \ue001.").is_whole
    assert not masked.restore("Er rief es eine gute Idee \ue000 an \ue001.").is_whole
