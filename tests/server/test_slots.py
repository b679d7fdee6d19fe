"""Which rows share which slot, with integers only."""

import random

import pytest

from server.slots import SLOT_ROWS, SlotTable


def new_table(num_rows: int) -> SlotTable:
    table = SlotTable()
    for row in range(num_rows):
        table.admit(row)
    return table


def test_beams_of_a_sentence_share_a_slot() -> None:
    table = new_table(2)

    assert [table.share(to=row, from_=0) for row in (2, 3, 4)] == [None] * 3

    assert table.rows.tolist() == [[0, 2, 3, 4], [1, 1, 1, 1]]
    assert table.num_rows == 5


def test_a_wide_beam_takes_a_slot_more_for_every_few_rows() -> None:
    table = new_table(1)

    copied_to = [table.share(to=row, from_=0) for row in range(1, 10)]

    assert copied_to == [None] * 3 + [1] + [None] * 3 + [2] + [None]
    assert table.rows.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 8, 8]]


def test_a_row_that_changes_its_sentence_leaves_its_slot() -> None:
    table = new_table(3)

    table.share(to=1, from_=2)

    assert table.tidy(3) == [(1, 2)]
    assert table.rows.tolist() == [[0] * 4, [2, 1, 2, 2]]


def test_a_row_that_is_admitted_again_leaves_its_slot() -> None:
    table = new_table(2)
    table.share(to=1, from_=0)

    assert table.admit(1) == 1

    assert table.rows.tolist() == [[0] * 4, [1] * 4]


def test_nothing_moves_while_all_rows_stay() -> None:
    table = new_table(5)

    assert table.tidy(5) == []
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
def test_every_row_finds_its_sentence_through_random_traffic(seed: int) -> None:
    rng = random.Random(seed)
    table = SlotTable()
    sentences: list[int] = []  # of each row
    contents: dict[int, int] = {}  # the sentence in each slot
    for step in range(400):
        for _ in range(rng.randint(0, 3)):
            if sentences and rng.random() < 0.7:
                to, from_ = rng.randint(0, min(15, len(sentences))), rng.randrange(len(sentences))
                if to == from_:
                    continue
                copied_to = table.share(to, from_)
                if copied_to is not None:
                    contents[copied_to] = contents[table.slot_of(from_)]
                sentences[to : to + 1] = [sentences[from_]]
            elif len(sentences) < 16:
                contents[table.admit(len(sentences))] = step
                sentences.append(step)
        del sentences[rng.randint(max(0, len(sentences) - 2), len(sentences)) :]
        moves = table.tidy(len(sentences))
        assert not {to for to, _ in moves} & {from_ for _, from_ in moves}
        for to, from_ in moves:
            contents[to] = contents[from_]

        assert [contents[table.slot_of(row)] for row in range(len(sentences))] == sentences
        assert table.num_rows == len(sentences)
        rows = table.rows.tolist()
        assert len(rows) == len(table) <= max(1, len(sentences))
        assert sorted({row for slot in rows for row in slot}) == list(range(len(sentences)))
        assert all(row in rows[table.slot_of(row)] for row in range(len(sentences)))
