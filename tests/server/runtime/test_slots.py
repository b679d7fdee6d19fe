"""Which rows share which slot, with integers only."""

import random

import pytest

from server.bundle.graphs import SLOT_ROWS
from server.runtime.slots import SlotTable


def new_table(num_rows: int) -> SlotTable:
    table = SlotTable()
    for row in range(num_rows):
        table.admit(row)
    return table


def share(table: SlotTable, *moves: tuple[int, int]) -> None:
    for to, from_ in moves:
        table.share(to, from_)


def test_beams_of_a_sentence_share_a_slot() -> None:
    table = new_table(2)

    share(table, (2, 0), (3, 0), (4, 0))

    assert table.tidy(5) == ([], [])
    assert table.rows.tolist() == [[0, 2, 3, 4], [1, 1, 1, 1]]
    assert table.num_rows == 5


def test_a_wide_beam_takes_a_slot_more_for_every_few_rows() -> None:
    table = new_table(1)

    share(table, *((row, 0) for row in range(1, 10)))

    assert table.tidy(10) == ([1, 2], [0, 0])
    assert sorted(map(len, map(set, table.rows.tolist()))) == [2, 4, 4]


def test_a_wide_beam_that_is_reordered_needs_no_copy() -> None:
    table = new_table(1)
    share(table, *((row, 0) for row in range(1, 5)))
    table.tidy(5)
    first, (fifth, *_) = table.rows.tolist()

    share(table, (fifth, first[0]))

    assert table.tidy(5) == ([], [])
    assert len(table) == 2


def test_a_beam_that_moves_to_a_gap_stays_in_one_slot() -> None:
    table = new_table(2)
    share(table, (2, 1), (3, 1), (4, 1))  # rows 1 to 4 are a beam; row 0 leaves

    share(table, (0, 4))

    assert table.tidy(4) == ([0], [1])
    assert sorted(table.rows.tolist()[0]) == [0, 1, 2, 3]
    assert len(table) == 1


def test_a_row_that_changes_its_sentence_leaves_its_slot() -> None:
    table = new_table(3)

    share(table, (1, 2))

    assert table.tidy(3) == ([1], [2])
    assert table.rows.tolist() == [[0] * 4, [2, 1, 2, 2]]


def test_slots_become_rows_again_when_the_last_beam_leaves() -> None:
    table = new_table(1)
    share(table, (1, 0), (2, 0), (3, 0))
    table.tidy(4)
    for row in (4, 5, 6):
        table.admit(row)

    share(table, (0, 4), (1, 5), (2, 6))

    assert table.tidy(3) == ([0, 1, 2], [1, 2, 3])
    assert table.rows.tolist() == [[0] * 4, [1] * 4, [2] * 4]


def test_nothing_moves_while_all_rows_stay() -> None:
    table = new_table(5)

    assert table.tidy(5) == ([], [])
    assert len(table) == 5


@pytest.mark.parametrize("seed", range(3))
def test_slots_of_greedy_search_are_rows(seed: int) -> None:
    """However rows leave, if the last ones then fill the gaps."""
    rng = random.Random(seed)
    table, num_rows = new_table(6), 6
    for _ in range(200):
        left = rng.sample(range(num_rows), rng.randint(0, num_rows))
        num_rows -= len(left)
        stay = [row for row in range(num_rows + len(left)) if row not in left and row >= num_rows]
        for to, from_ in zip([row for row in left if row < num_rows], rng.sample(stay, len(stay)), strict=True):
            table.share(to, from_)
        table.tidy(num_rows)
        while num_rows < 6 and rng.random() < 0.8:
            assert table.admit(num_rows) == num_rows
            num_rows += 1

        assert table.rows.tolist() == [[row] * SLOT_ROWS for row in range(num_rows)]


@pytest.mark.parametrize("seed", range(3))
def test_every_row_finds_its_sentence_through_random_moves(seed: int) -> None:
    rng = random.Random(seed)
    table = SlotTable()
    sentences: list[int] = []  # of each row
    contents = [-1] * 16  # the sentence in each slot
    for step in range(400):
        for _ in range(rng.randint(0, 4)):
            to = rng.randint(0, min(15, len(sentences)))
            if sentences and to != (from_ := rng.randrange(len(sentences))):
                table.share(to, from_)
                sentences[to : to + 1] = [sentences[from_]]
        del sentences[rng.randint(max(0, len(sentences) - 2), len(sentences)) :]
        to_slots, from_slots = table.tidy(len(sentences))
        for slot, content in zip(to_slots, [contents[slot] for slot in from_slots], strict=True):
            contents[slot] = content
        while len(sentences) < 16 and rng.random() < 0.5:
            contents[table.admit(len(sentences))] = step + 1000 * len(sentences)
            sentences.append(step + 1000 * len(sentences))

        rows = table.rows.tolist()
        assert [contents[slot] for slot, each in enumerate(rows) for _ in set(each)] == [
            sentences[row] for each in rows for row in set(each)
        ]
        assert sorted(row for each in rows for row in set(each)) == list(range(len(sentences)))
        assert len(rows) == len(table) <= max(1, len(sentences))
