import random

import pytest

from babelserve.explanation.tree import label, said, shown_number, tree
from babelserve.results import SearchNode
from tests.babelserve.explanation.sentences import Reader, node, sentence


def drawn(nodes: tuple[SearchNode, ...]) -> list[tuple[int, int, str, bool]]:
    """Where each node's token stands, and whether it is of the chosen path."""
    reader = Reader(tree(nodes))
    texts = [text for tag, text in reader.texts if tag == "text"]
    places = reader.all_of("text")
    return [
        (int(each["x"] or 0), int(each["y"] or 0), text, each.get("class") == "c")
        for each, text in zip(places[::2], texts[::2], strict=True)
    ]


def test_the_chosen_path_is_the_first_row_and_others_are_below() -> None:
    nodes = drawn(sentence().search)

    assert [text for *_, text, _ in nodes] == ["Ein", "Der", "Hund", "Kater", "end", "end"]
    assert [is_chosen for *_, is_chosen in nodes] == [True, False, True, False, True, False]
    tops = [y for _, y, *_ in nodes]
    assert tops[0] == tops[2] == tops[4] < min(tops[1], tops[3])
    assert tops[3] == tops[5], "what goes on stays in its row"
    lefts = [x for x, *_ in nodes]
    assert lefts[0] == lefts[1] < lefts[2] == lefts[3] < lefts[4] == lefts[5]


def test_an_end_shows_the_score_of_its_hypothesis() -> None:
    texts = [text for _, text in Reader(tree(sentence().search)).texts]

    assert texts[-2:] == ["end", "-1.50"]
    assert texts[4:6] == ["Hund", "-1.12"]


def test_no_two_nodes_stand_in_the_same_place() -> None:
    generator = random.Random(7)
    nodes: list[SearchNode] = [node(None, "\u2581a", -1.0, is_chosen=True)]
    live = [0]
    for _ in range(30):
        parents = [generator.choice(live) for _ in range(5)]
        live = list(range(len(nodes), len(nodes) + 5))
        nodes += [node(parent, f"\u2581{generator.random():.8f}", -1.0) for parent in parents]
    nodes.append(node(0, "", -1.0, score=-1.0, is_chosen=True))

    places = [(x, y) for x, y, *_ in drawn(tuple(nodes))]
    assert len(set(places)) == len(nodes)
    assert max(y for _, y in places) < 600, "rows are used again"


@pytest.mark.parametrize(
    ("text", "begin_words", "shown"),
    [
        ("\u2581Hund", True, "Hund"),
        ("chen", True, "+chen"),
        ("Hünd", False, "Hünd+"),
        ("chen\u2581", False, "chen"),
        (".", True, "."),
        ("\u2581", True, "(blank)"),
        ("\u2581Donaudampfschifffahrt", True, "Donaudampfschifff\u2026"),
    ],
)
def test_a_label_says_what_belongs_to_a_word(text: str, begin_words: bool, shown: str) -> None:
    assert label(node(None, text, -1.0), begin_words=begin_words) == shown


def test_nodes_without_a_text_are_ends_or_kept() -> None:
    assert [label(node(0, "", -1.0, score=score)) for score in (-1.0, None)] == ["end", "(kept)"]


def test_a_hypothesis_is_said_by_its_end() -> None:
    assert [said(sentence().search, index) for index in (4, 5)] == ["Ein Hund", "Ein Kater"]


def test_numbers_are_short() -> None:
    assert [shown_number(each) for each in (-1.234, -0.001, float("-inf"))] == ["-1.23", "0.00", "never"]
