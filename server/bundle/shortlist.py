"""A lexical shortlist: which target tokens a sentence may be translated with, by the tokens that it has.

Projecting to these thousand of all entries of the vocabulary spares a CPU half of a step's work with one row; with
forty rows, whose union is larger, a twentieth. The table comes with the bundle, learned by `export.shortlist`. A
sentence's tokens are chosen among its own candidates only, whatever its neighbours' are. Source of the idea: vocabulary
selection (Mi et al. 2016, arXiv:1605.03209), as Marian has it.
"""

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from server.errors import BundleError


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
        except (OSError, EOFError, TypeError, ValueError, KeyError, NotImplementedError, zipfile.BadZipFile) as error:
            raise BundleError([f"{path}: cannot be read: {error}"]) from error
        is_table = (by_token.dtype, common.dtype, by_token.shape[:-1]) == (np.int32, np.int32, (vocab_size,))
        is_table = is_table and common.ndim == 1
        if not is_table or any(
            ids.min(initial=0) < 0 or ids.max(initial=0) >= vocab_size for ids in (by_token, common)
        ):
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
