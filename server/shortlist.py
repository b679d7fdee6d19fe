"""A lexical shortlist: which target tokens a sentence may be translated with, by the tokens that it has.

With few rows, projecting to these thousand of all entries of the vocabulary halves a step's work on a CPU. With many,
their union is large, and since its columns change ONNX Runtime packs them anew in every step: no gain then. The table
comes with the bundle, learned by `export.shortlist`. A sentence's tokens are chosen among its own candidates only,
whatever its neighbours' are. Source of the idea: vocabulary selection (Mi et al. 2016, arXiv:1605.03209), as
Marian has it.
"""

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from server.errors import BundleError

COLUMNS = 512  # the projection grows by so many, so that its shape seldom changes


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

    def candidates(self, source_ids: tuple[int, ...]) -> NDArray[np.int32]:
        """Returns the target tokens that a sentence may need, each once, in order."""
        return np.unique(np.concatenate([self.by_token[list(source_ids)].ravel(), self.common]))


class Columns:
    """The columns of the output projection that the rows of one lane's batch need, and which row may use which.

    Columns stay until the space is needed: the next sentences need most of them again. A column that no row may use
    costs its share of the projection and nothing else.

    Attributes:
        weight: [K, n], columns of the projection; those not in use hold what they held.
        ids: int64 [n], their target tokens.
        is_candidate: bool [max_rows, n].
        layout: raised whenever the arrays are replaced.
    """

    def __init__(self, embedding: NDArray[np.generic], max_rows: int) -> None:
        vocab_size, width = embedding.shape
        self._embedding = embedding
        self._place = np.full(vocab_size, -1, np.int64)  # of each token among the columns; -1 for none
        self._num_columns = 0
        self.layout = 0
        self.weight = np.zeros((width, COLUMNS), embedding.dtype)
        self.ids = np.zeros(COLUMNS, np.int64)
        self.is_candidate = np.zeros((max_rows, COLUMNS), np.bool_)

    def admit(self, row: int, candidates: NDArray[np.int32], rows_in_use: list[int]) -> None:
        """Lets a row use these tokens and no others.

        Args:
            row: whose sentence is new.
            candidates: of that sentence, each once.
            rows_in_use: of the other sentences, whose columns must stay.
        """
        missing = candidates[self._place[candidates] < 0]
        if self._num_columns + len(missing) > len(self.ids):
            self._clear(rows_in_use, len(candidates))
            missing = candidates[self._place[candidates] < 0]
        self._add(missing)
        self.is_candidate[row] = False
        self.is_candidate[row, self._place[candidates]] = True

    def move(self, to: NDArray[np.int64], from_: NDArray[np.int64]) -> None:
        """Copies rows."""
        self.is_candidate[to] = self.is_candidate[from_]

    def _add(self, tokens: NDArray[np.generic]) -> None:
        start, end = self._num_columns, self._num_columns + len(tokens)
        self._place[tokens] = np.arange(start, end)
        self.ids[start:end] = tokens
        self.weight[:, start:end] = self._embedding[tokens].T
        self._num_columns = end

    def _clear(self, rows_in_use: list[int], room: int) -> None:
        """Drops the columns that no row in use needs; makes the arrays longer if less than `room` is free then."""
        kept = np.flatnonzero(self.is_candidate[rows_in_use].any(axis=0))
        ids, is_candidate = self.ids[kept], self.is_candidate[:, kept]
        size = max(len(self.ids), -(-(len(kept) + room) // COLUMNS) * COLUMNS)
        if size > len(self.ids):
            self.layout += 1
            self.weight = np.zeros((len(self.weight), size), self.weight.dtype)
            self.ids = np.zeros(size, np.int64)
            self.is_candidate = np.zeros((len(self.is_candidate), size), np.bool_)
        self._place[:] = -1
        self.is_candidate[:] = False
        self.is_candidate[:, : len(kept)] = is_candidate
        self._num_columns = 0
        self._add(ids)
