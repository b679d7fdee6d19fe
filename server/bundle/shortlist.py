"""A lexical shortlist: which target tokens a sentence may be translated with, by the tokens that it has.

Projecting to these thousand of all entries of the vocabulary spares a CPU half of a step's work with one row; with
forty rows, whose union is larger, a twentieth. The table comes with the bundle, learned by `export.shortlist`. A
sentence's tokens are chosen among its own candidates only, whatever its neighbours' are. Source of the idea: vocabulary
selection (Mi et al. 2016, arXiv:1605.03209), as Marian has it.
"""

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from server.errors import BundleError

COLUMNS = 1024  # a block of them: sums of more would not stay in a processor's cache
CANDIDATES = 512  # a row's places for them grow by so many, so that shapes seldom change
_MOST_SPARE = 1.5  # times what is needed that the projection may have
_ZERO_UNSIGNED = 128  # the unsigned byte that stands for 0 in weights of int8


@dataclass(frozen=True, slots=True)
class Shortlist:
    """Candidates by source token.

    Attributes:
        by_token: int32 [vocab_size, n], target tokens that a source token is translated with; one that has fewer
            repeats its first.
        common: int32 [m], target tokens that any sentence may need, eos among them.
    """

    by_token: NDArray[np.int32]
    common: NDArray[np.int32]

    @classmethod
    def load(cls, path: Path, vocab_size: int) -> Self:
        """Reads a bundle's table.

        Raises:
            BundleError: it is not one for this vocabulary.
        """
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                by_token, common = arrays["by_token"], arrays["common"]
        except (OSError, EOFError, TypeError, ValueError, KeyError, zipfile.BadZipFile) as error:
            raise BundleError([f"{path}: cannot be read: {error}"]) from error
        tokens = np.concatenate([by_token.ravel(), common.ravel()])
        is_table = (by_token.dtype, common.dtype, by_token.shape[:-1]) == (np.int32, np.int32, (vocab_size,))
        if not is_table or common.ndim != 1 or tokens.min(initial=0) < 0 or tokens.max(initial=0) >= vocab_size:
            raise BundleError([f"{path}: is no table for a vocabulary of {vocab_size}"])
        return cls(by_token, common)

    def save(self, path: Path) -> None:
        """Writes what `load` reads."""
        np.savez_compressed(path, by_token=self.by_token, common=self.common)

    def candidates(self, source_ids: tuple[int, ...]) -> NDArray[np.int64]:
        """Returns the target tokens that a sentence may need, each once, in order."""
        is_candidate = np.zeros(len(self.by_token), np.bool_)  # to mark them is a third of the time of sorting them
        is_candidate[self.by_token[list(source_ids)]] = is_candidate[self.common] = True
        return is_candidate.nonzero()[0]


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
        num_columns = _round_up(len(used) + len(missing), COLUMNS)
        num_candidates = _round_up(self._num_candidates[:end].max(), CANDIDATES)
        if not (_fits(num_columns, len(self.ids)) and _fits(num_candidates, self.candidates.shape[1])):
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


def _round_up(needed: int, unit: int) -> int:
    return max(1, -(-needed // unit)) * unit


def _fits(needed: int, size: int) -> bool:
    return needed <= size <= _MOST_SPARE * needed
