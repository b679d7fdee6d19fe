"""A lexical shortlist: which target tokens a sentence may be translated with, by the tokens that it has.

Projecting to these thousand of all entries of the vocabulary spares a CPU half of a step's work with one row; with
forty rows, whose union is larger, a twentieth. The table comes with the bundle, learned by `export.shortlist`. A
sentence's tokens are chosen among its own candidates only, whatever its neighbours' are. Source of the idea: vocabulary
selection (Mi et al. 2016, arXiv:1605.03209), as Marian has it.
"""

import io
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from server.bundle.manifest import SHORTLIST_FILE
from server.errors import BundleError

_MAX_BYTES_PER_TOKEN = 1024  # of both tables together; an archive says how much it unpacks to


@dataclass(frozen=True, slots=True)
class Shortlist:
    """Candidates by source token.

    Attributes:
        by_token: int32 [source_vocab_size, n], target tokens that a source token is translated with; one that has fewer
            repeats its first.
        common: int32 [m], target tokens that any sentence may need, eos among them.
        vocab_size: of the target; None for the source's.
    """

    by_token: NDArray[np.int32]
    common: NDArray[np.int32]
    vocab_size: int | None = None

    @classmethod
    def load(cls, data: bytes, vocab_size: int, source_vocab_size: int | None = None) -> Self:
        """Reads a bundle's table.

        Args:
            data: what `SHORTLIST_FILE` holds.
            vocab_size: of the network's target.
            source_vocab_size: of its source, if that has a vocabulary of its own.

        Raises:
            BundleError: it is not one for this vocabulary.
        """
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                num_bytes = sum(entry.file_size for entry in archive.infolist())
                if num_bytes > _MAX_BYTES_PER_TOKEN * (max(vocab_size, source_vocab_size or 0) + 1):
                    raise ValueError(f"{num_bytes} bytes are too many for a vocabulary of {vocab_size}")
                by_token, common = (_read_array(archive, name) for name in ("by_token", "common"))
        except Exception as error:  # numpy parses headers as Python: a SyntaxError or tokenize.TokenError, anything
            raise BundleError([f"{SHORTLIST_FILE}: cannot be read: {error}"]) from error
        num_rows = vocab_size if source_vocab_size is None else source_vocab_size
        is_table = (by_token.dtype, common.dtype, by_token.shape[:-1]) == (np.int32, np.int32, (num_rows,))
        is_table = is_table and common.ndim == 1
        if not is_table or any(
            ids.min(initial=0) < 0 or ids.max(initial=0) >= vocab_size for ids in (by_token, common)
        ):
            named = f"{vocab_size}" if source_vocab_size is None else f"{vocab_size}, of the source {source_vocab_size}"
            raise BundleError([f"{SHORTLIST_FILE}: is no table for a vocabulary of {named}"])
        return cls(by_token, common, vocab_size)

    def save(self, path: Path) -> None:
        """Writes what `load` reads."""
        np.savez_compressed(path, by_token=self.by_token, common=self.common)

    def candidates(self, source_ids: tuple[int, ...]) -> NDArray[np.int64]:
        """Returns the target tokens that a sentence may need, each once, in order."""
        num_targets = len(self.by_token) if self.vocab_size is None else self.vocab_size
        is_candidate = np.zeros(num_targets, np.bool_)  # to mark them is a third of the time of sorting them
        is_candidate[self.by_token[list(source_ids)]] = is_candidate[self.common] = True
        return is_candidate.nonzero()[0]


def _read_array(archive: zipfile.ZipFile, name: str) -> Any:
    # Not by np.load, which returns the bytes of what is no array.
    with archive.open(f"{name}.npy") as file:
        return np.lib.format.read_array(file, allow_pickle=False)
