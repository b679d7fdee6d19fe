"""Tensors that have been listed but not loaded: what every format here makes of its file."""

import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import torch
from torch import Tensor

MAX_ELEMENTS = 2**33  # of one tensor; the largest known embedding, of NLLB-54B, has 2**29
MAX_RANK = 8

DTYPES = {
    "bool": torch.bool,
    "uint8": torch.uint8,
    "int8": torch.int8,
    "int16": torch.int16,
    "int32": torch.int32,
    "int64": torch.int64,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float32": torch.float32,
    "float64": torch.float64,
}


class FormatError(Exception):
    """A file is not what its name says; `str()` names the fault, without the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LazyTensor:
    """A tensor in somebody's file.

    Attributes:
        file: its name, for messages.
        shape: as stored.
        dtype: one of `DTYPES`.
        load: returns it, of that shape and dtype, in memory of its own.
    """

    file: str
    shape: tuple[int, ...]
    dtype: str
    load: Callable[[], Tensor]

    @property
    def num_elements(self) -> int:
        """How many numbers it has."""
        return num_elements(self.shape)


Tensors = Mapping[str, LazyTensor]


def num_elements(shape: tuple[int, ...]) -> int:
    """Returns the product of a shape, in whole numbers of any size."""
    product = 1
    for length in shape:
        product *= length
    return product


def num_bytes(shape: tuple[int, ...], dtype: str) -> int:
    """Returns what a tensor takes.

    Raises:
        FormatError: it has an unknown type, or more numbers or axes than any model's.
    """
    if dtype not in DTYPES:
        raise FormatError(f"holds {dtype}, which is not read; {', '.join(DTYPES)} are")
    count = num_elements(shape)
    if len(shape) > MAX_RANK or min(shape, default=0) < 0 or count > MAX_ELEMENTS:
        raise FormatError(f"has the shape {list(shape)[: MAX_RANK + 1]}, which is none of a model's")
    return count * DTYPES[dtype].itemsize


def region(path: Path, offset: int, shape: tuple[int, ...], dtype: str) -> LazyTensor:
    """Describes a tensor stored as it is, little-endian, from `offset` of a file on.

    Raises:
        FormatError: see `num_bytes`; or the file ends before it.
    """
    size = num_bytes(shape, dtype)
    if offset < 0 or offset + size > path.stat().st_size:
        raise FormatError("ends before its data does: it is cut off or damaged")

    def load() -> Tensor:
        with path.open("rb") as file:
            file.seek(offset)
            data = np.fromfile(file, np.uint8, size)
        if len(data) != size:
            raise FormatError("changed while it was read")
        return torch.from_numpy(data).view(DTYPES[dtype]).reshape(shape)

    return LazyTensor(file=path.name, shape=shape, dtype=dtype, load=load)


def open_regular(path: Path) -> IO[bytes]:
    """Opens a file that is one: no pipe to wait for, no device.

    Raises:
        FormatError: it is none, or cannot be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
        file = os.fdopen(descriptor, "rb")
    except OSError as error:
        raise FormatError(f"cannot be read: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise FormatError("is no regular file")
    return file
