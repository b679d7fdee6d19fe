from server.decoding.beam_search import BeamSearch
from server.decoding.options import DecodingOptions
from server.decoding.placeholders import DROPPED
from tests.server.decoding.test_beam_search import BOS, EOS, advance


def copying(beam_size: int, placeholders: dict[int, int]) -> BeamSearch:
    options = DecodingOptions(beam_size=beam_size, num_hypotheses=beam_size)
    return BeamSearch(options, max_tokens=9, bos_id=BOS, eos_id=EOS, placeholders=placeholders)


def test_a_beam_that_ends_has_every_placeholder_of_the_source_once() -> None:
    search = copying(2, {20: 1, 21: 0})

    advance(search, {EOS: -0.1, 21: -0.2, 7: -2.0, 20: -3.0})
    assert search.last_ids == [7, 20]  # neither the end, nor what the source does not have
    advance(search, {EOS: -0.1, 20: -0.5, 8: -4.0, 9: -5.0}, {20: -0.1, EOS: -0.2, 8: -4.0, 9: -5.0})

    assert [hypothesis.ids for hypothesis in search.best()] == [(20,)]
    assert search.last_ids == [20, 8]


def test_a_beam_that_would_be_far_behind_ends_without_its_placeholders_and_pays() -> None:
    search = copying(2, {20: 1, 21: 1, 22: 0})

    advance(search, {EOS: -0.5, 22: -0.6, 7: -13.0, 8: -14.0})

    (best,) = search.best()
    assert (best.ids, best.score) == ((), -0.5 - 2 * DROPPED)


def test_greedy_search_takes_what_is_best() -> None:
    search = copying(1, {20: 1})

    assert not search.advance_greedily(EOS, -0.1)
