import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.engine.encoder_runs import encoder_runs
from server.engine.sentence import Sentence
from tests.server.engine.parts import new_sentence


def lengths(runs: list[list[Sentence]]) -> list[list[int]]:
    return [[len(each.source_ids) for each in run] for run in runs]


@pytest.mark.parametrize(
    ("most_padding", "expected"),
    [
        pytest.param(0, [[9, 9], [8], [5], [2]], id="no padding at all"),
        pytest.param(4, [[9, 9, 8], [5, 2]], id="1 and 3 tokens of padding"),
        pytest.param(1000, [[9, 9, 8, 5, 2]], id="a single run, however much is padding"),
    ],
)
def test_sentences_of_like_lengths_are_encoded_together(most_padding: int, expected: list[list[int]]) -> None:
    sentences = [new_sentence(tokens) for tokens in (5, 9, 2, 8, 9)]

    assert lengths(encoder_runs(sentences, most_padding)) == expected


@given(st.lists(st.integers(1, 60), max_size=20), st.integers(0, 40))
def test_each_sentence_is_in_one_run_and_no_run_has_more_padding(tokens: list[int], most_padding: int) -> None:
    sentences = [new_sentence(number) for number in tokens]

    runs = encoder_runs(sentences, most_padding)

    assert sorted(map(id, sentences)) == sorted(id(each) for run in runs for each in run)
    for run in lengths(runs):
        assert sum(max(run) - each for each in run) <= most_padding
