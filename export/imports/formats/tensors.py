"""Tensors that have been listed but not loaded: what every format here makes of its file."""

import contextlib
import errno
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import torch
from torch import Tensor

MAX_ELEMENTS = 2**33  # of one tensor; the largest known embedding, of NLLB-54B, has 2**29
MAX_RANK = 8
MAX_TENSORS = 2**15  # of a file; 256 layers on both sides, as many as are read, have 2**14

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
_POINTER = b"version https://git-lfs"
_PAGE = re.compile(rb"\s*(?:<!--.*?-->\s*)?<(?:!doctype html|html|\?xml)\b", re.IGNORECASE | re.DOTALL)
_BEGINNING = 512  # bytes in which a pointer or a page shows
_HOLES_FROM = 1 << 20  # bytes of a file: smaller ones cost nothing, and some file systems report holes for them


class FormatError(Exception):
    """A file is not what its name says; `str()` names the fault, without the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LazyTensor:
    """A tensor in somebody's file.

    Attributes:
        path: the file.
        shape: as stored.
        dtype: one of `DTYPES`.
        loader: returns it, of that shape and dtype, in memory of its own.
    """

    path: Path
    shape: tuple[int, ...]
    dtype: str
    loader: Callable[[], Tensor]

    def load(self) -> Tensor:
        """Returns it. Raises FormatError if the file is damaged, or has changed since it was listed."""
        with bytes_of_strangers("cannot be read"):
            return self.loader()

    @property
    def file(self) -> str:
        """The file's name, for messages."""
        return self.path.name

    @property
    def num_elements(self) -> int:
        """How many numbers it has."""
        return num_elements(self.shape)


Tensors = Mapping[str, LazyTensor]


@contextlib.contextmanager
def bytes_of_strangers(what: str) -> Iterator[None]:
    """Makes a FormatError of whatever a library raises that reads what a stranger has written.

    numpy parses headers as Python, zipfile unpacks by four other libraries, and torch calls half of itself: the
    errors that each raises are in no list.

    Args:
        what: the beginning of the message, such as "cannot be read".
    """
    try:
        yield
    except FormatError:
        raise
    except Exception as error:
        reason = (
            error.strerror if isinstance(error, OSError) and error.strerror else str(error).partition("\n")[0][:200]
        )
        raise FormatError(f"{what}: {reason or type(error).__name__}") from error


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
        raise FormatError(f"holds {dtype[:_BEGINNING]}, which is not read; {', '.join(DTYPES)} are")
    if len(shape) > MAX_RANK or min(shape, default=0) < 0 or num_elements(shape) > MAX_ELEMENTS:
        raise FormatError(f"has the shape {list(shape[: MAX_RANK + 1])}, which is none of a model's")
    return num_elements(shape) * DTYPES[dtype].itemsize


def check_count(count: int) -> None:
    """Raises FormatError if a file has more tensors than any model."""
    if count > MAX_TENSORS:
        raise FormatError(f"claims to hold {count} tensors, at most {MAX_TENSORS} are read")


def region(path: Path, offset: int, shape: tuple[int, ...], dtype: str) -> LazyTensor:
    """Describes a tensor stored as it is, little-endian, from `offset` of a file on.

    Raises:
        FormatError: see `num_bytes`; or the file ends before it.
    """
    size = num_bytes(shape, dtype)
    reopen = reopener(path)
    if offset < 0 or offset + size > path.stat().st_size:
        raise FormatError("ends before its data does: it is cut off or damaged")

    def load() -> Tensor:
        with reopen() as file:
            file.seek(offset)
            data = np.fromfile(file, np.uint8, size)
        if len(data) != size:
            raise FormatError("changed while it was read")
        return torch.from_numpy(data).view(DTYPES[dtype]).reshape(shape)

    return LazyTensor(path=path, shape=shape, dtype=dtype, loader=load)


def reopener(path: Path) -> Callable[[], IO[bytes]]:
    """Returns what opens a file again, and raises FormatError if it is not the one that it is now.

    Nothing is mapped into memory: a mapped file that gets shorter would end this process with SIGBUS.
    """
    before = _state(path.stat())

    def reopen() -> IO[bytes]:
        file = open_regular(path)
        if _state(os.fstat(file.fileno())) != before:
            file.close()
            raise FormatError("changed while it was read")
        return file

    return reopen


def _state(found: os.stat_result) -> tuple[int, int, int, int]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def open_regular(path: Path) -> IO[bytes]:
    """Opens a file that is one and is there: no pipe to wait for, no device, and nothing in place of a download.

    Raises:
        FormatError: it is none, cannot be read, is a pointer of git-lfs or a web page, or most of it is holes.
    """
    with bytes_of_strangers("cannot be read"):
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
        file = os.fdopen(descriptor, "rb")
    try:
        _check_there(file)
    except BaseException:
        file.close()
        raise
    return file


def _check_there(file: IO[bytes]) -> None:
    facts = os.fstat(file.fileno())
    if not stat.S_ISREG(facts.st_mode):
        raise FormatError("is no regular file")
    if facts.st_size > _HOLES_FROM and _is_hollow(file.fileno(), facts.st_size):
        raise FormatError("is mostly holes: its download has not ended, so download it again")
    beginning = file.read(_BEGINNING)
    file.seek(0)
    if beginning.startswith(_POINTER):
        raise FormatError(
            "is a pointer of git-lfs, not the file itself: run `git lfs install` and `git lfs pull` there"
        )
    if _PAGE.match(beginning.removeprefix(b"\xef\xbb\xbf")):
        raise FormatError("is a web page, not the file itself: download the file that the page is about")


def _is_hollow(descriptor: int, size: int) -> bool:
    """Whether less than half of a file has been written: its holes take no disk, but they would take memory."""
    held = end = 0
    try:
        while end < size and 2 * held < size:
            begin = os.lseek(descriptor, end, os.SEEK_DATA)
            end = os.lseek(descriptor, begin, os.SEEK_HOLE)
            held += end - begin
    except OSError as error:
        if error.errno != errno.ENXIO:  # ENXIO: no data behind `end`; another one: the file system knows no holes
            held = size
    os.lseek(descriptor, 0, os.SEEK_SET)
    return 2 * held < size
