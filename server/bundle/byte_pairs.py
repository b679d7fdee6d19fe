"""Words into pieces by learned merges (byte-pair encoding on characters), as fastBPE and subword-nmt cut them.

Whoever wrote the merges merged, again and again, the pair of neighbours that comes first in the list, everywhere in the
word from left to right. Here a heap finds it, so that a word of n characters takes n log n steps, not n squared: users
send words of any length.

Source: Sennrich et al., 2016, arXiv:1508.07909.
"""

import heapq
from collections.abc import Sequence

END_OF_WORD = "</w>"  # behind a word's last character


class BytePairs:
    """Cuts words into pieces. May be used from several threads.

    Args:
        merges: pairs of pieces to be joined, the most important first.
        end_is_piece: `END_OF_WORD` is a piece that is merged as any other, as subword-nmt had it before version 0.2.
    """

    def __init__(self, merges: Sequence[tuple[str, str]], *, end_is_piece: bool = False) -> None:
        self._end_is_piece = end_is_piece
        self._ranks: dict[tuple[str, str], int] = {}
        for rank, pair in enumerate(merges):
            self._ranks[pair] = rank  # the last, if it is there twice

    def cut(self, word: str) -> list[str]:
        """Returns the pieces of a word, the last of which ends with `END_OF_WORD`."""
        pieces = [*word, END_OF_WORD] if self._end_is_piece else [*word[:-1], word[-1:] + END_OF_WORD]
        following = [*range(1, len(pieces)), -1]
        preceding = list(range(-1, len(pieces) - 1))
        heap = [(rank, i) for i in range(len(pieces)) if (rank := self._rank(pieces, i, following[i])) is not None]
        heapq.heapify(heap)
        while heap:
            lowest = heap[0][0]
            grown: list[int] = []  # what may be a pair from the next round on
            while heap and heap[0][0] == lowest:
                i = heapq.heappop(heap)[1]
                j = following[i]
                if self._rank(pieces, i, j) != lowest:
                    continue  # one of the two has been merged with another
                pieces[i] += pieces[j]
                pieces[j] = ""
                following[i] = following[j]
                if following[i] >= 0:
                    preceding[following[i]] = i
                grown += [preceding[i], i]
            for i in grown:
                rank = self._rank(pieces, i, following[i])
                if rank is not None:
                    heapq.heappush(heap, (rank, i))
        cut = [piece for piece in pieces if piece]
        if cut[-1] == END_OF_WORD and len(cut) > 1:  # nothing was merged with it
            cut[-2:] = [cut[-2] + END_OF_WORD]
        return cut

    def _rank(self, pieces: list[str], i: int, j: int) -> int | None:
        return self._ranks.get((pieces[i], pieces[j])) if i >= 0 and j >= 0 else None
