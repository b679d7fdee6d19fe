"""The columns of the output projection that a batch with shortlists needs: see `server.bundle.shortlist`."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from server.bundle.graphs import CANDIDATES, COLUMNS
from server.runtime.sizes import fits, round_up

_ZERO_UNSIGNED = 128  # the unsigned byte that stands for 0 in weights of int8


class Columns:
    """The columns of the output projection that the rows of one lane's batch need, and which row may use which.

    A column stays until its place is needed: the next sentences need most of them again. One that no row may use costs
    its share of the projection and nothing else.

    Attributes:
        weight: [n / COLUMNS, COLUMNS, K], of each column its token's row of the embedding; int8 as unsigned bytes, 128
            up, since products of unsigned with signed bytes are the fast ones.
        ids: int64 [n], the columns' tokens, -1 for none yet.
        candidates: int32 [max_rows, m], the columns that each row may use, then -1.
        layout: raised whenever the arrays are replaced.
    """

    def __init__(self, embedding: NDArray[np.generic], max_rows: int) -> None:
        self._embedding = embedding
        self._place = np.full(len(embedding) + 1, -1, np.int32)  # of each token, and of the token -1; -1 for none
        self._num_candidates = np.zeros(max_rows, np.int64)
        self.layout = 0
        self._lay_out(np.zeros(0, np.int64), np.zeros((max_rows, 0), np.int32), COLUMNS, CANDIDATES)

    def admit(self, first_row: int, candidates: Sequence[NDArray[np.integer]]) -> None:
        """Lets each of some rows use its tokens and no others.

        Args:
            first_row: of the sentences that are new, one row each; only the rows before it are in use.
            candidates: of each sentence, each token once.
        """
        end = first_row + len(candidates)
        is_wanted = np.zeros(len(self._embedding), np.bool_)
        for tokens in candidates:
            is_wanted[tokens] = True
        wanted = is_wanted.nonzero()[0]
        places = self._place[wanted]
        is_used = np.zeros(len(self.ids) + 1, np.bool_)  # the last one stands for no column
        is_used[self.candidates[:first_row]] = is_used[places] = True
        used = is_used[:-1].nonzero()[0]
        missing = wanted[places < 0]
        self._num_candidates[first_row:end] = [len(tokens) for tokens in candidates]
        num_columns = round_up(len(used) + len(missing), COLUMNS)
        num_candidates = round_up(self._num_candidates[:end].max(), CANDIDATES)
        if not (fits(num_columns, len(self.ids)) and fits(num_candidates, self.candidates.shape[1])):
            kept = np.full(len(is_used), -1, np.int32)
            kept[used] = np.arange(len(used))
            self._lay_out(self.ids[used], kept[self.candidates[:, :num_candidates]], num_columns, num_candidates)
            self.layout += 1
            free = np.arange(len(used), num_columns)
        else:
            free = np.flatnonzero(~is_used[:-1])
        self._put(free[: len(missing)], missing)
        self.candidates[first_row:end] = -1
        for row, tokens in enumerate(candidates, start=first_row):
            self.candidates[row, : len(tokens)] = self._place[tokens]

    def move(self, to: NDArray[np.int64], from_: NDArray[np.int64]) -> None:
        """Copies rows."""
        self.candidates[to] = self.candidates[from_]
        self._num_candidates[to] = self._num_candidates[from_]

    def _lay_out(
        self, ids: NDArray[np.int64], candidates: NDArray[np.int32], num_columns: int, num_candidates: int
    ) -> None:
        """Makes new arrays that begin with these columns and candidates."""
        shape = num_columns // COLUMNS, COLUMNS, self._embedding.shape[1]
        self.weight = np.zeros(shape, _as_factor(self._embedding[:0]).dtype)
        self.ids = np.full(num_columns, -1, np.int64)
        self.candidates = np.full((len(candidates), num_candidates), -1, np.int32)
        self.candidates[:, : candidates.shape[1]] = candidates
        self._place[:] = -1
        self._put(np.arange(len(ids)), ids)

    def _put(self, places: NDArray[np.int64], tokens: NDArray[np.integer]) -> None:
        """Replaces columns."""
        self._place[self.ids[places]] = -1
        self._place[tokens] = places
        self.ids[places] = tokens
        self.weight.reshape(len(self.ids), -1)[places] = _as_factor(self._embedding[tokens])


def _as_factor(rows: NDArray[np.generic]) -> NDArray[np.generic]:
    return rows.view(np.uint8) ^ np.uint8(_ZERO_UNSIGNED) if rows.dtype == np.int8 else rows
