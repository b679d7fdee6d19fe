"""Terms by their words."""

import pytest

from server.text.term_table import Term, TermTable, phrase_fault, words_of


def found(table: TermTable, *words: str, is_folded: bool = False) -> tuple[str, int]:
    term, end = table.longest(words, 0, is_folded=is_folded)
    return (term.targets[0] if term else "", end)


def test_the_longest_term_is_found_and_of_equal_ones_the_first() -> None:
    sources = ["hard disk", "hard", "hard disk drive", "Hard disk"]
    table = TermTable([Term((source,), (str(index),)) for index, source in enumerate([*sources, "hard"])])

    assert (table.num_terms, table.num_words) == (5, 9)
    assert found(table, "hard", "disk", "of") == ("0", 2)
    assert found(table, "hard", "disk", "drive") == ("2", 3)
    assert found(table, "hard", "drive") == ("1", 1)
    assert found(table, "disk") == ("", 0)
    assert found(table, "Hard", "disk") == ("3", 2)
    assert found(table, "Hard", "drive") == ("", 0)
    assert found(table, "hard", "disk", is_folded=True) == ("0", 2)


def test_a_beginning_of_a_term_becomes_a_term_of_its_own() -> None:
    table = TermTable([Term(("ice cream",), ("Eis",)), Term(("ice",), ("Eis!",))])

    assert found(table, "ice", "cream") == ("Eis", 2)
    assert found(table, "ice") == ("Eis!", 1)


def test_a_found_term_has_all_of_its_forms() -> None:
    term = Term(("mouse", "mice"), ("Maus", "Mäuse", "Mause wegen"))

    assert TermTable([term]).longest(["mice"], 0, is_folded=False) == (term, 1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A hard-disk,  2 disks.", ("A", "hard-disk", ",", "2", "disks", ".")),
        ("图书", ("图", "书")),
        ("C++", ("C", "+", "+")),
        (" ", ()),
        ("राजा, वि\u200dदेश।", ("राजा", ",", "वि", "\u200d", "देश", "।")),
        ("கிளி শিশু كِتاب", ("கிளி", "শিশু", "كِتاب")),
    ],
)
def test_words_are_runs_of_letters_marks_and_characters(text: str, words: tuple[str, ...]) -> None:
    assert words_of(text) == words


@pytest.mark.parametrize("text", ["", " \u3000", "x" * 201, "a\nb", "a\x00", "a\u200bb", "\ufeff"])
def test_a_phrase_that_breaks_a_rule_has_a_fault(text: str) -> None:
    assert phrase_fault(text).startswith("must have ")
    assert not phrase_fault("x" * 200)
