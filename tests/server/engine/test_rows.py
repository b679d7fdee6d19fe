"""What a step is fed, row by row."""

import numpy as np

from server.decoding.options import DecodingOptions
from server.engine.rows import Rows
from server.engine.sentence import Sentence
from server.network import RowMoves
from tests.server.engine.parts import BOS, sentence_of


def placed(row: int, source_tokens: int, beam_size: int = 1, *, with_scores: bool = False) -> Sentence:
    options = DecodingOptions(beam_size=beam_size, with_scores=with_scores)
    sentence = sentence_of((7,) * source_tokens, options)
    sentence.rows = [row]
    return sentence


def fed(rows: Rows, num_rows: int) -> tuple[list[int], list[int], list[int]]:
    inputs = rows.inputs([placed(0, 1)], num_rows, is_alone=False)
    assert [array.dtype.name for array in (inputs.input_ids, inputs.past_lengths, inputs.source_lengths)] == [
        "int64",
        "int32",
        "int32",
    ]
    return inputs.input_ids.tolist(), inputs.past_lengths.tolist(), inputs.source_lengths.tolist()


def test_rows_start_with_bos_and_go_on_with_the_best_tokens() -> None:
    rows = Rows(max_rows=4)
    rows.admit([placed(0, 5), placed(1, 8)])
    assert fed(rows, 2) == ([BOS, BOS], [0, 0], [5, 8])

    rows.advance(np.array([11, 12]))
    rows.admit([placed(2, 3)])

    assert fed(rows, 3) == ([11, 12, BOS], [1, 1, 0], [5, 8, 3])


def test_a_moved_row_takes_all_of_it_along() -> None:
    rows = Rows(max_rows=4)
    rows.admit([placed(0, 5), placed(1, 8), placed(2, 6, 4)])
    rows.advance(np.array([11, 12, 13]))

    rows.move(RowMoves([0], [2], [0]))

    assert fed(rows, 2) == ([13, 12], [1, 1], [6, 8])


def test_beams_go_on_with_the_tokens_that_their_search_chose() -> None:
    rows = Rows(max_rows=4)
    sentence = placed(0, 5, beam_size=2)
    rows.admit([sentence])
    sentence.search.advance([[3, 21, 22, 23]], [[-0.1, -0.2, -0.3, -0.4]])
    rows.advance(np.array([3]))
    sentence.rows = [0, 1]

    rows.move(RowMoves([1], [0], [1]))
    rows.feed(sentence)

    assert fed(rows, 2) == ([21, 22], [1, 1], [5, 5])


def test_a_step_asks_for_no_more_than_its_rows_need() -> None:
    rows = Rows(max_rows=4)
    sentences = [placed(0, 5), placed(1, 5, with_scores=True), placed(2, 5, 4)]
    rows.admit(sentences)

    found = [rows.inputs(sentences[:count], count, is_alone=False) for count in (1, 2, 3)]

    assert [(inputs.top_k, inputs.with_log_probs) for inputs in found] == [(1, False), (1, True), (8, True)]


def test_what_was_fed_is_not_changed_by_the_next_step() -> None:
    rows = Rows(max_rows=2)
    rows.admit([sentence := placed(0, 5)])
    inputs = rows.inputs([sentence], 1, is_alone=True)

    rows.advance(np.array([9]))

    assert (inputs.input_ids.tolist(), inputs.past_lengths.tolist()) == ([BOS], [0])
    assert inputs.is_alone
