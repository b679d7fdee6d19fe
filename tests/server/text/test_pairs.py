from dataclasses import replace

import numpy as np
import pytest

from server.text.alignment import WordWeights
from server.text.glossary import Glossary
from server.text.masked import Placement, Restored
from server.text.masking import Masker
from server.text.pairs import find_terms, with_blanks, with_pairs, without_pairs
from server.text.patterns import find_emphasis, find_parts
from server.text.runs import Run
from server.text.term_table import Term


def runs_of(text: str) -> list[Run]:
    """The parts of a text; those that touch are one."""
    runs: list[Run] = []
    for start, end in sorted({*find_parts(text), *find_emphasis(text)}):
        if runs and start <= runs[-1].end:
            start, end = runs[-1].start, max(end, runs.pop().end)
        runs.append(Run(start, end, is_word=False))
    return runs


def weights(source: str, target: str, *pairs: tuple[str, str]) -> WordWeights:
    """Attention of the words that belong together, in texts whose words are parted by blanks."""
    texts = [source.split(), target.split()]
    spans = [[(begin := text.index(word), begin + len(word)) for word in text.split()] for text in (source, target)]
    attention = np.zeros((len(texts[1]), len(texts[0])), np.float32)
    for own, other in pairs:
        attention[texts[1].index(other), texts[0].index(own)] = 1.0
    return WordWeights(spans[0], spans[1], attention)


@pytest.mark.parametrize(
    ("text", "bare", "marked"),
    [
        ("Some *old* and **new** text", "Some old and new text", ["old", "new"]),
        ("He read <b>the long</b> book.", "He read the long book.", ["the long"]),
        ("<b>The end.</b>", "The end.", ["The end."]),
        ("See {0}here{/}.", "See here.", ["here"]),
        ("A <b><i>b</i></b> c", "A b c", ["b"]),
        ("The {0} items of {1}", "The {0} items of {1}", []),
        ("re{0}do{1} it", "re{0}do{1} it", []),
        ("Go {0}do{1}ing it", "Go {0}do{1}ing it", []),
        ("{0}one{1}two{2}", "{0}one{1}two{2}", []),
        ("{0} of{1}", "{0} of{1}", []),
        ("{0}12{1}", "{0}12{1}", []),
        ("a.txt(see)b.txt", "a.txt(see)b.txt", []),
        ("He<b>llo</b> you", "Hello you", ["llo"]),
        ("The 1<sup>st</sup> of May", "The 1st of May", ["st"]),
        ("The x<sup>n</sup> of it", "The x<sup>n</sup> of it", []),
        ("He<b>llo<i> you", "He<b>llo<i> you", []),
        ("Save &as...", "Save as...", [""]),
        ("Send &to {name}", "Send to {name}", [""]),
        ("Go to https://a.io/?b=M&c=red", "Go to https://a.io/?b=M&c=red", []),
        ("See https://a.io/_layouts", "See https://a.io/_layouts", []),
        ("Check $_SERVER", "Check $_SERVER", []),
        ("Hi {_host}", "Hi {_host}", []),
    ],
)
def test_marks_that_touch_what_they_enclose_are_pairs(text: str, bare: str, marked: list[str]) -> None:
    found, marks = without_pairs(text, runs_of(text))

    assert found == bare
    assert [bare[mark.begin : mark.end] for mark in marks] == marked
    blanked = with_blanks(bare, marks)
    assert len(blanked) == len(text)
    assert all(blanked[place] in (" ", text[place]) for place in range(len(text)))


def test_pairs_stand_round_the_words_that_attended_to_theirs() -> None:
    source, target = "The red house burns", "Es brennt das rote Haus"
    bare, marks = without_pairs("The *red* house <b>burns</b>", runs_of("The *red* house <b>burns</b>"))
    words = weights(source, target, ("red", "rote"), ("burns", "brennt"), ("house", "Haus"), ("The", "das"))

    restored = with_pairs(Restored(target), bare, marks, words)

    assert restored.text == "Es <b>brennt</b> das *rote* Haus"
    assert [part.text for part in restored.parts] == ["*", "*", "<b>", "</b>"]
    assert {part.placement for part in restored.parts} == {Placement.BY_MODEL}


def test_without_attention_they_are_put_by_position_and_told() -> None:
    bare, marks = without_pairs("one *two* three", runs_of("one *two* three"))

    restored = with_pairs(Restored("eins zwei drei"), bare, marks, None)

    assert restored.text == "eins *zwei* drei"
    assert {part.placement for part in restored.parts} == {Placement.BY_POSITION}


def test_marks_that_no_word_stands_for_are_put_by_position() -> None:
    bare, marks = without_pairs("one *two* three", runs_of("one *two* three"))

    restored = with_pairs(Restored("eins drei"), bare, marks, weights("one two three", "eins drei", ("one", "eins")))

    assert restored.text.count("*") == 2
    assert {part.placement for part in restored.parts} == {Placement.BY_POSITION}


def test_more_marks_than_words_are_told_as_missing() -> None:
    bare, marks = without_pairs("*one* *two* *three*", runs_of("*one* *two* *three*"))

    restored = with_pairs(Restored("eins"), bare, marks, None)

    assert Placement.MISSING in {part.placement for part in restored.parts}


def test_a_network_that_is_aligned_is_shown_no_pairs_in_any_attempt() -> None:
    masker = Masker(carriers=(("\ue000",), ("%1",)), places_pairs=True)

    masked = masker.mask("See *this* in {name}")
    again = masker.mask_again(masked, ())

    assert masked.text == "See this in \ue000"
    assert again is not None
    assert (again.text, again.pairs) == ("See this in %1", masked.pairs)
    assert masker.mask("See *the {name}* now").pairs == ()  # what stands between is no text alone
    assert replace(masker, places_pairs=False).mask("See *this* now").pairs == ()


def test_a_sentence_with_too_many_parts_keeps_its_pairs_until_it_is_cut() -> None:
    masked = Masker(carriers=(("\ue000",),), places_pairs=True).mask("See *this* in {name} and {other} now")

    assert (masked.pairs, masked.num_fit) == ((), len("See *this"))


@pytest.mark.parametrize(("count", "num_pairs"), [(16, 16), (17, 0)])
def test_a_sentence_of_very_many_pairs_keeps_them(count: int, num_pairs: int) -> None:
    text = "*a* " * count

    bare, marks = without_pairs(text, runs_of(text))

    assert (len(marks), bare == text) == (num_pairs, not num_pairs)


def test_the_sign_of_a_shortcut_stands_before_a_word() -> None:
    bare, marks = without_pairs("Save &as...", [])
    restored = with_pairs(Restored("Speichern als..."), bare, marks, None)

    assert restored.text == "Speichern &als..."
    assert [(part.text, part.placement) for part in restored.parts] == [("&", Placement.BY_MODEL)]


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("E&xit", ["E&xit"]),
        ("&Exit", ["Exit"]),
        ("Open and E&xit file", ["E&xit", "file"]),
        ("Open &Exit", ["Exit"]),
        ("_Save _As E&xit", []),  # is no label
        ("Exit", ["Exit"]),
        ("Save _As", ["Save _As"]),
        ("An *Exit* here", ["Exit"]),
    ],
)
def test_the_sign_of_a_shortcut_ends_no_word_of_a_term(text: str, terms: list[str]) -> None:
    glossary = Glossary([Term(("Exit",), ("Beenden",)), Term(("file", "Save As"), ("Datei",))])
    bare, marks = without_pairs(text, [Run(*span, is_word=False) for span in find_emphasis(text)])

    assert [text[each.start : each.end] for each in find_terms(glossary, bare, marks)] == terms


def test_a_part_of_one_sign_at_the_end_is_no_end_of_a_tag() -> None:
    text = "no<b>one\ue000"
    runs = [Run(2, 5, is_word=False), Run(8, 9, is_word=False)]

    assert without_pairs(text, runs) == (text, ())
