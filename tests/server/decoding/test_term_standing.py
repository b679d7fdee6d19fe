"""Where beams stand with their terms."""

from server.decoding.term_standing import Standing
from server.decoding.term_trie import Written
from tests.server.decoding.test_term_trie import EOS, trie, write


def test_most_tokens_leave_a_beam_where_it_stands() -> None:
    terms = trie(((10, 11),), ((20,),))
    standing = Standing(Written(), terms)

    assert standing.usual is None
    assert standing.ahead.leading == {10, 20}
    assert standing.ahead.special == {10, 20, 11, EOS}, "11 would write the term again"
    assert sorted(standing.ahead.wanted) == [10, 20]
    assert (standing.gain, standing.level) == (0.0, 0)


def test_a_beam_within_a_term_loses_it_behind_another_token() -> None:
    terms = trie(((10, 11),), ((20,),))
    standing = Standing(write(terms, 10), terms)
    assert standing.usual is not None
    behind_word, in_word = standing.usual

    assert (standing.gain, standing.level, standing.ahead.wanted) == (3.0, 1, [11])
    assert behind_word is in_word
    assert (in_word.gain, in_word.level, in_word.written) == (0.0, 0, Written())


def test_a_beam_has_written_a_term_if_no_part_of_a_word_follows() -> None:
    terms = trie(((10, 11),), ((20,),))
    usual = Standing(write(terms, 10, 11), terms).usual
    assert usual is not None
    behind_word, in_word = usual

    assert (behind_word.gain, behind_word.level, behind_word.ahead.wanted) == (4.0, 2, [20])
    assert (in_word.gain, in_word.level) == (0.0, 0)
