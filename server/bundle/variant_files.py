"""The files of a variant, and the weights that they are put together to.

Checkpoints are in half precision, so nearly all float32 weights are exact in float16. The bundle stores these once, in
`HALVES_FILE`, for every variant of floats. The weights of such a variant are its own `WEIGHTS_FILE`, which has what is
inexact, followed by the halves, widened to its type. A variant without halves has all of its weights in its own file.
"""

import hashlib
import io
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike, NDArray

from server.bundle.files import FileFacts
from server.bundle.graphs import HALVES_FILE, WEIGHTS_FILE, StepForm

_CHUNK = 1 << 18  # values that are widened at a time, so that nothing large is in memory twice


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """The files of a variant, such as `cpu-int8`.

    Attributes:
        dtype: of the caches and the token embedding.
        embedding_offset: in bytes, of the token embedding in the weights.
        opsets: of ONNX, by domain.
        files: by name in the variant's folder.
        halves: of the file in float16 that goes on where the variant's own weights end; variants share it.
    """

    dtype: str
    embedding_offset: int
    opsets: dict[str, int]
    files: dict[str, FileFacts]
    halves: FileFacts | None = None

    @property
    def has_shortlist(self) -> bool:
        """Whether there are steps with a shortlist."""
        return StepForm(has_shortlist=True).file in self.files

    @property
    def weights_bytes(self) -> int:
        """Size of the weights as the graphs take them."""
        shared = 0 if self.halves is None else self.halves.bytes // 2 * np.dtype(self.dtype).itemsize
        return self.files[WEIGHTS_FILE].bytes + shared

    @property
    def sha256(self) -> str:
        """One hash that stands for all files: of their names and hashes."""
        files = self.files if self.halves is None else {**self.files, HALVES_FILE: self.halves}
        listing = "".join(f"{name} {facts.sha256}\n" for name, facts in sorted(files.items()))
        return hashlib.sha256(listing.encode()).hexdigest()


def join_weights(own: bytes, halves: bytes, dtype: DTypeLike) -> bytes:
    """Returns a variant's weights: what its own file holds, and then the halves, widened."""
    whole = io.BytesIO(own)
    whole.seek(0, io.SEEK_END)
    for chunk in widened(np.frombuffer(halves, np.float16), dtype):
        whole.write(chunk)
    return whole.getvalue()


def widened(halves: NDArray[np.float16], dtype: DTypeLike) -> Iterator[memoryview]:
    """Yields halves as another type of floats, some at a time."""
    for start in range(0, len(halves), _CHUNK):
        yield halves[start : start + _CHUNK].astype(dtype).data
