"""Marian's own .bin files: float32, or int8 as intgemm wants it, and the lexical shortlists beside them.

Source of the layout: marian-dev, src/common/binary.cpp and src/data/shortlist.cpp.
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from export.imports.formats.tensors import (
    FormatError,
    LazyTensor,
    bytes_of_strangers,
    check_count,
    num_bytes,
    open_regular,
    region,
)

_VERSION = 1
_MAX_NAME_BYTES = 2**12
_PLAIN = {0x101: "int8", 0x104: "int32", 0x108: "int64", 0x402: "float16", 0x404: "float32", 0x408: "float64"}
_INTGEMM8 = 0x4101  # in no processor's own order; others are
_LEXICAL_MAGIC = 0xF11A48D5013417F5
_LEXICAL_HEADER = 6  # numbers
MAX_CANDIDATES = 192  # of a token: what a bundle's table may hold


def list_marian(path: Path) -> dict[str, LazyTensor]:
    """Lists the tensors of a .bin file. int8 matrices are listed as the float32 ones that they stand for.

    Raises:
        FormatError: it is none, is damaged, or packed for one kind of processor.
    """
    with open_regular(path) as file, bytes_of_strangers("cannot be read"):
        version, count = _numbers(file, "<QQ")
        if version != _VERSION:
            raise FormatError(f"is no .bin file of Marian, or of version {version}; {_VERSION} is read")
        check_count(count)
        headers = [_numbers(file, "<QQQQ") for _ in range(count)]
        names = [_name(file, length) for length, _, _, _ in headers]
        shapes = [_numbers(file, f"<{min(rank, 64)}i") for _, _, rank, _ in headers]
        (padding,) = _numbers(file, "<Q")
        offset = file.tell() + padding
    tensors = {}
    for name, shape, (_, kind, _, size) in zip(names, shapes, headers, strict=True):
        tensors[name] = _tensor(path, name, shape, kind, offset, size)
        offset += size
    return tensors


def _tensor(path: Path, name: str, shape: tuple[int, ...], kind: int, offset: int, size: int) -> LazyTensor:
    dtype = "int8" if kind == _INTGEMM8 else _PLAIN.get(kind)
    if dtype is None:
        raise FormatError(
            f"holds {name} as type {kind:#x}, packed for one kind of processor; the .npz it was made of can be read"
        )
    needed = num_bytes(shape, dtype) + (4 if kind == _INTGEMM8 else 0)
    if needed > size:
        raise FormatError(f"has {size} bytes for {name}, which is {dtype} {list(shape)}")
    stored = region(path, offset, shape, dtype)
    if kind != _INTGEMM8:
        return stored
    multiplier = region(path, offset + needed - 4, (), "float32")
    # Rows of what multiplies are columns in memory, but for embeddings, whose rows are looked up.
    is_transposed = not name.endswith("Wemb")

    def load() -> Tensor:
        quantized = stored.load()
        if is_transposed:
            quantized = quantized.reshape(shape[::-1]).T
        return quantized.float() / multiplier.load()

    return LazyTensor(path=path, shape=shape, dtype="float32", loader=load)


def read_lexical(path: Path, vocab_size: int) -> tuple[int, list[NDArray[np.uint32]]]:
    """Reads a binary lexical shortlist (lex.*.s2t.bin).

    Args:
        path: the file.
        vocab_size: of the source; ids beyond the target's are for the caller to check.

    Returns:
        How many of the first target ids every sentence may use, and the target ids of each source id.

    Raises:
        FormatError: it is none, or not of this vocabulary.
    """
    with open_regular(path) as file, bytes_of_strangers("cannot be read"):
        magic, _, first, _, num_offsets, num_ids = _numbers(file, f"<{_LEXICAL_HEADER}Q")
        if magic != _LEXICAL_MAGIC:
            raise FormatError("is no binary lexical shortlist")
        if num_offsets != vocab_size + 1:
            raise FormatError(f"is a shortlist of {num_offsets - 1} source tokens; the model has {vocab_size}")
        if num_ids > vocab_size * MAX_CANDIDATES:
            raise FormatError(f"has {num_ids} candidates, at most {MAX_CANDIDATES} for each token are read")
        expected = 8 * (_LEXICAL_HEADER + num_offsets) + 4 * num_ids
        if expected != path.stat().st_size:
            raise FormatError(f"has {path.stat().st_size} bytes, its header says {expected}")
        offsets = np.frombuffer(file.read(8 * num_offsets), "<u8")
        ids = np.frombuffer(file.read(4 * num_ids), "<u4")
    if offsets[0] != 0 or offsets[-1] != num_ids or (np.diff(offsets.astype(np.int64)) < 0).any():
        raise FormatError("has a table of offsets in no order")
    return first, list(_slices(ids, offsets))


def _slices(ids: NDArray[np.uint32], offsets: NDArray[np.uint64]) -> Iterator[NDArray[np.uint32]]:
    for begin, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        yield ids[begin:end]


def _numbers(file: IO[bytes], layout: str) -> tuple[int, ...]:
    size = struct.calcsize(layout)
    data = file.read(size)
    if len(data) < size:
        raise FormatError("ends within its header: it is cut off, or of another format")
    return struct.unpack(layout, data)


def _name(file: IO[bytes], length: int) -> str:
    if length > _MAX_NAME_BYTES:
        raise FormatError(f"claims a name of {length} bytes")
    data = file.read(length)
    if len(data) < length:
        raise FormatError("ends within a name: it is cut off")
    return data.rstrip(b"\0").decode(errors="replace")
