import itertools
import time

from hypothesis import given
from hypothesis import strategies as st

from server.bundle.byte_pairs import BytePairs

Merges = list[tuple[str, str]]


def cut_naively(merges: Merges, word: str, *, end_is_piece: bool = False) -> list[str]:
    """As it is defined: the first pair of the list that is in the word, everywhere, again and again."""
    ranks = {pair: rank for rank, pair in enumerate(merges)}
    pieces = [*word, "</w>"] if end_is_piece else [*word[:-1], word[-1:] + "</w>"]
    while True:
        known = [pair for pair in itertools.pairwise(pieces) if pair in ranks]
        if not known:
            return [*pieces[:-2], pieces[-2] + "</w>"] if pieces[-1] == "</w>" else pieces
        best = min(known, key=lambda pair: ranks[pair])
        merged: list[str] = []
        i = 0
        while i < len(pieces):
            is_pair = tuple(pieces[i : i + 2]) == best
            merged.append("".join(best) if is_pair else pieces[i])
            i += 2 if is_pair else 1
        pieces = merged


PIECES = st.text("ab", min_size=1, max_size=3)
LAST = st.builds(lambda piece, end: piece + end, PIECES, st.sampled_from(["", "</w>"])) | st.just("</w>")


@given(st.lists(st.tuples(PIECES, LAST), max_size=24), st.text("abc", min_size=1, max_size=20), st.booleans())
def test_a_word_is_cut_as_the_definition_does(merges: Merges, word: str, end_is_piece: bool) -> None:
    found = BytePairs(merges, end_is_piece=end_is_piece).cut(word)

    assert found == cut_naively(merges, word, end_is_piece=end_is_piece)


def test_the_end_of_a_word_may_be_a_piece_of_its_own() -> None:
    """As subword-nmt 0.1 has it: of its merges none is with "b</w>" before "b" and the end are one."""
    merges = [("a", "b"), ("b", "</w>"), ("a", "b</w>")]

    assert BytePairs(merges, end_is_piece=True).cut("ab") == ["ab</w>"]
    assert BytePairs(merges[1:], end_is_piece=True).cut("bab") == ["b", "ab</w>"]
    assert BytePairs(merges, end_is_piece=True).cut("x") == ["x</w>"]
    assert BytePairs(merges).cut("ab") == ["ab</w>"]


def test_the_same_pair_is_merged_everywhere_before_another() -> None:
    """Else (the, th) would be merged before the second (th, e)."""
    merges = [("t", "h"), ("the", "th"), ("th", "e"), ("e", "</w>")]

    assert BytePairs(merges).cut("thethex") == cut_naively(merges, "thethex") == ["the", "the", "x</w>"]


def test_a_long_word_takes_no_longer_than_its_length() -> None:
    pairs = BytePairs([("a", "a"), ("aa", "aa"), ("aaaa", "aaaa")])
    started = time.process_time()

    pieces = pairs.cut("a" * 100_001)

    assert pieces == ["a" * 8] * 12_500 + ["a</w>"]
    assert time.process_time() - started < 10  # naively it is some minutes
