"""Tests of what a network is shown in the place of what it should not read."""

import pytest

from server.bundle.masking import Masking
from server.text.characters import Characters
from server.text.masked import Masked
from server.text.masking import NO_MASKING, Masker
from server.text.numbers import NumberSpan

LATIN = Characters(lambda character: character.isascii() or character.lower() in "äöüßé\u201c\u201d")
MASKER = Masker(
    carriers=Masking(num_placeholders=3, codes=("%{}",)).carriers,
    characters=LATIN,
    folds_capitals=True,
    language="de",
)


def shown(text: str, masker: Masker = MASKER) -> str:
    return masker.mask(text).text


def parts(masked: Masked) -> list[str]:
    return [part.text for part in masked.parts]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Send a.txt to b@example.org", "Send \ue000 to \ue001"),
        ("Price: 5 (\u2248 4)", "Price: 5 (\ue000 4)"),
        ("I said \u4f60\u597d to her.", "I said \ue000 to her."),
        ("The price is \u20b9500 now", "The price is \ue000 now"),
        ("My friend \u0110or\u0111e \u017di\u017ei\u0107 is here.", "My friend \ue000 is here."),
        ("Click\u2192Next now", "Click \ue000 Next now"),
        ("5 km\u00b2 and 10\u00b3 cells", "5 \ue000 and \ue001 cells"),
        ("soft\u00adhyphen, no\u00a0break, zero\u200bwidth", "softhyphen, no break, zerowidth"),
        ("Cafe\u0301 is open", "Café is open"),
        ("It\u2019s \u22125 degrees\u2026", "It's -5 degrees..."),
        ("\u201cStop\u201d", "\ue000 Stop \ue001"),
    ],
)
def test_what_a_network_does_not_know_is_not_shown_to_it(text: str, expected: str) -> None:
    assert shown(text) == expected


@pytest.mark.parametrize(
    ("text", "leading", "expected", "trailing"),
    [
        ("\u2022 Buy milk now", "\u2022 ", "Buy milk now.", ""),
        ("- item one", "- ", "item one", ""),
        ("\u25ac\u25ac News \u25ac\u25ac", "\u25ac\u25ac ", "News", " \u25ac\u25ac"),
        ("\u3010Test", "\u3010", "Test", ""),
        ("I love you \u2764\ufe0f", "", "I love you", " \u2764\ufe0f"),
        ("** - \u2192 Go on \u2026", "** - \u2192 ", "Go on", " \u2026"),
        ("-5 degrees", "", "-5 degrees", ""),
        ("20 \u00b0", "", "20", " \u00b0"),
    ],
)
def test_marks_at_the_ends_are_cut_off(text: str, leading: str, expected: str, trailing: str) -> None:
    masked = MASKER.mask(text)

    assert (masked.leading, masked.text, masked.trailing) == (leading, expected, trailing)
    assert masked.restore(masked.text).text == text


@pytest.mark.parametrize("text", ["", "\u4f60\u597d", "https://a.io/B.", "*** 42 \u2192", "\u2022", "{a} {b}", "a | b"])
def test_a_sentence_of_nothing_but_parts_has_no_words(text: str) -> None:
    assert not MASKER.mask(text).has_words


def test_letters_of_a_carrier_are_no_words() -> None:
    assert not Masker(carriers=(("X1",),), characters=LATIN).mask("(\u4f60)").has_words


def test_a_second_attempt_shows_other_carriers_and_a_third_none() -> None:
    text = "Send a.txt to \u4f60, now"
    first = MASKER.mask(text)
    second = MASKER.mask_again(first, ())
    assert second is not None
    third = MASKER.mask_again(second, ())
    assert third is not None

    assert [each.text for each in (first, second, third)] == [
        "Send \ue000 to \ue001, now",
        "Send %1 to %2, now",
        "Send to , now",
    ]
    assert MASKER.mask_again(third, ()) is None


def test_a_sentence_without_parts_is_not_shown_again() -> None:
    assert MASKER.mask_again(MASKER.mask("A dog."), ()) is None


def test_a_word_behind_a_bracket_is_shown_apart_from_it_once() -> None:
    first = MASKER.mask("Tiere (und Katzen) [alle], f(x)")
    again = MASKER.mask_again(first, ())

    assert first.text == "Tiere ( und Katzen) [ alle], f(x)"
    assert again is not None
    assert again.text == first.original
    assert MASKER.mask_again(again, ()) is None
    assert first.restore("Animals ( and cats) [ all], f(x)").text == "Animals (and cats) [all], f(x)"
    assert first.restore("Animals ( and cats) [ all], f(x)").is_whole
    assert not first.restore("Animals ( and cats [ all], f(x)").is_whole
    assert again.restore("Animals (and cats [all], f(x)").is_whole
    assert first.restore("Animals ( and cats ) [ all ], f(x)").text == "Animals (and cats) [all], f(x)"
    assert shown("[A cat] (I am)") == "[ A cat] ( I am)"
    assert shown("A ( b (cats)") == "A ( b (cats)"
    assert shown("Dogs (cats)", Masker(carriers=(("%1",),))) == "Dogs (cats)"


def test_numbers_that_were_missing_are_parts_of_later_attempts_but_not_cut_out() -> None:
    text = "Pages 10\u201315, room 7"
    masked = MASKER.mask_again(MASKER.mask(text), [NumberSpan(6, 8), NumberSpan(9, 11)])
    assert masked is not None

    assert (masked.text, parts(masked)) == ("Pages %1, room 7", ["10\u201315"])
    last = MASKER.mask_again(masked, ())
    assert last is not None
    assert (last.text, parts(last)) == (MASKER.mask(text).text, [])


def test_carriers_that_the_text_has_are_not_used() -> None:
    masker = Masker(carriers=(("%1", "%2", "%3"),))

    assert shown("Use %1 or a.txt", masker) == "Use %1 or %2"


def test_a_text_with_more_parts_than_carriers_tells_how_much_of_it_fits() -> None:
    masked = MASKER.mask("{a} {b} {c} or {d} {e}")

    assert masked.num_fit == len("{a} {b} {c} or ")


def test_without_carriers_parts_are_cut_out() -> None:
    masked = Masker(characters=LATIN).mask("See \u4f60 and {name} now")

    assert (masked.text, parts(masked)) == ("See and now", ["\u4f60", "{name}"])


def test_parts_of_a_text_in_capitals_keep_their_letters() -> None:
    masked = MASKER.mask("VISIT https://example.org/Now TODAY")

    assert masked.text == "Visit \ue000 today"
    assert masked.restore("besuchen sie \ue000").text == "BESUCHEN SIE https://example.org/Now"


def test_titles_are_shown_in_small_letters() -> None:
    masked = MASKER.mask("The Book Of {name} And His Friends")

    assert masked.text == "the book of \ue000 and his friends"
    assert masked.restore("das Buch von \ue000 und seinen friends").text == "Das Buch von {name} und seinen Friends"


@pytest.mark.parametrize(
    ("text", "expected", "kept"),
    [
        ("He read <b>the</b> book", "He read \ue000 the \ue001 book", ["<b>", "</b>"]),
        ("Some *italic* text", "Some \ue000 italic \ue001 text", ["*", "*"]),
        ("It is __very good__ now", "It is \ue000 very good \ue001 now", ["__", "__"]),
        ("Hello <b>{name}</b>, welcome", "Hello \ue000, welcome", ["<b>{name}</b>"]),
        ("Open {a}{b} now", "Open \ue000 now", ["{a}{b}"]),
        ("You have # files", "You have \ue000 files", ["#"]),
        ("Take [[1]] here", "Take \ue000 here", ["[[1]]"]),
        ("The {n}th day", "The \ue000 day", ["{n}"]),
        ("{n}th place", "\ue000 place", ["{n}"]),
        ("Only {n}MB left", "Only \ue000 MB left", ["{n}"]),
        ("{0}The house", "The house", []),
        ("The house{0}", "The house", []),
        ("%s The house", "The house", []),
        ("<ph id='1'/> is here", "\ue000 is here", ["<ph id='1'/>"]),
        ("<name> is here", "\ue000 is here", ["<name>"]),
        ("<i>Go <0>home</0> now</i>", "Go \ue000 home \ue001 now", ["<0>", "</0>"]),
        ("Use snake_case or 2 * 3 * 4", "Use \ue000 or 2 * 3 * 4", ["snake_case"]),
        ("- [ ] Buy milk", "Buy milk.", []),
    ],
)
def test_marks_and_placeholders_take_no_word_beside_them(text: str, expected: str, kept: list[str]) -> None:
    masked = MASKER.mask(text)

    assert (masked.text, parts(masked)) == (expected, kept)
    if "th " not in text:
        assert masked.restore(masked.text).text == text


def test_an_ordinal_is_written_as_the_target_does() -> None:
    masked = MASKER.mask("The {n}th day")

    assert masked.restore("Der \ue000 Tag").text == "Der {n}. Tag"


def test_the_name_of_a_variable_may_have_the_ending_of_an_ordinal() -> None:
    (kept,) = MASKER.mask("Delete the $COUNTth item").parts

    assert (kept.text, kept.ending) == ("$COUNT", ".")


@pytest.mark.parametrize("part", ["$path", "#weekend", "$first_rd", "$dateEnd", "#TheEnd", "#Ost", "#th", "#1st"])
def test_an_ending_of_ordinals_is_none_within_a_word(part: str) -> None:
    (kept,) = MASKER.mask(f"Set {part} now").parts

    assert kept.text + kept.ending == (part if part not in ("#1st", "#th") else part[:-2] + ".")


def test_marks_that_have_changed_places_are_not_whole() -> None:
    masked = MASKER.mask("He read <b>the</b> book")

    assert masked.restore("Er las \ue000 das \ue001 Buch").is_whole
    assert not masked.restore("Er las \ue001 das \ue000 Buch").is_whole
    assert not masked.restore("Er las \ue000 \ue001 Buch").is_whole


def test_a_word_that_marks_keep_untranslated_is_asked_for_again_and_a_name_is_found_again() -> None:
    first = MASKER.mask("I saw <b>Bonn</b> today")
    again = MASKER.mask_again(first, ())
    last = MASKER.mask_again(again, ()) if again else None

    assert not first.restore("Ich sah \ue000 Bonn \ue001 heute").is_whole
    assert last is not None
    assert last.text == "I saw Bonn today"
    assert last.restore("Heute sah ich Bonn").text == "Heute sah ich <b>Bonn</b>"
    assert last.restore("Heute sah ich es").text == "Heute <b>sah</b> ich es"


def test_without_masking_every_text_is_shown_as_it_is() -> None:
    assert NO_MASKING.mask("GO TO https://example.org").text == "GO TO https://example.org"


@pytest.mark.parametrize(
    ("text", "script"),
    [("Привет", "CYRILLIC"), ("你好 hi", "CJK"), ("Hi \u2192", ""), ("https://a.io", ""), ("Łódź", "LATIN")],
)
def test_a_script_that_the_network_does_not_know_is_named(text: str, script: str) -> None:
    assert MASKER.unknown_script(text) == script
    assert NO_MASKING.unknown_script(text) == ""


UNITS = [
    "a.",
    "a@",
    "/a",
    "{",
    "<a",
    "A1-",
    "1.",
    "%",
    "a_",
    "http://.",
    "x.py.",
    "😀",
    "a-1",
    "\u4f60",
    "\u2192a",
    "\u00b9",
]


@pytest.mark.parametrize("unit", [*UNITS, "\ue000", "\ufffd", "e\u0301", "\u200d", "- ", "$\u20b9"])
def test_any_text_comes_back_however_odd(unit: str) -> None:
    text = "@" + (unit * 300).strip()
    masker = Masker(carriers=(tuple(map(chr, range(0xE000, 0xF000))),), characters=Characters(str.isascii))
    masked = masker.mask(text)

    assert masked.restore(masked.text).text.replace("\u200d", "") == text.replace("\u200d", "")


def test_codes_stay_in_capitals_where_a_sentence_is_shown_in_small_letters() -> None:
    masker = Masker(carriers=(("XQ1",),), folds_capitals=True, language="de")

    assert masker.mask("The Old House of {name} in London Town").text == "the old house of XQ1 in london town"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I was tired\u2014very tired.", "I was tired \u2013 very tired."),
        ("I was tired--very tired.", "I was tired \u2013 very tired."),
        ("It is 3 p.m.\u2014too late.", "It is 3 p.m. \u2013 too late."),
        ("It is tired \u2014 very tired.", "It is tired \u2014 very tired."),
    ],
)
def test_a_dash_that_touches_words_is_shown_apart_from_them(text: str, expected: str) -> None:
    assert Masker(carriers=(("\ue000",),), language="de").mask(text).text == expected
    assert Masker(carriers=(("%1",),), language="de").mask(text).text == text


def test_escapes_of_quotation_marks_are_written_again_but_not_shown() -> None:
    masked = MASKER.mask("It\\'s `a\\'b` here")

    assert masked.text == "It's \ue000 here"
    assert masked.restore("'S ist \ue000 hier").text == "\\'S ist `a\\'b` hier"


def test_a_backslash_elsewhere_is_a_part() -> None:
    assert "\\" in [part.text for part in MASKER.mask("Use \\ or it\\'s here").parts]
    assert MASKER.mask("Use a\\\\'b here").text == "Use a\\\\'b here"


def test_brackets_round_a_whole_sentence_are_not_shown() -> None:
    masked = MASKER.mask("[MUSIC PLAYING]")

    assert masked.text == "Music playing"
    assert masked.restore("Musik spielt").text == "[MUSIK SPIELT]"


@pytest.mark.parametrize("text", ["Neue Nachricht", "(Neue Nachricht)", "- Neue Nachricht *"])
def test_the_full_stop_that_a_label_is_shown_with_is_taken_off(text: str) -> None:
    masked = Masker(carriers=(("\ue000",),), language="en").mask(text)

    assert masked.text == "Neue Nachricht."
    assert masked.restore("New message.").text == text.replace("Neue Nachricht", "New message")
