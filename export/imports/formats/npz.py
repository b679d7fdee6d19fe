"""numpy's .npz archives, without pickles: what Marian writes."""

import io
import zipfile
from pathlib import Path
from typing import IO

import numpy as np
import torch
from torch import Tensor

from export.imports.formats.tensors import (
    FormatError,
    LazyTensor,
    bytes_of_strangers,
    check_count,
    num_bytes,
    open_regular,
    reopener,
)

_WHAT = "is no whole .npz archive"
_MAX_HEADER_BYTES = 4096  # of an array's; numpy's own are a hundred or two


def list_npz(path: Path) -> dict[str, LazyTensor]:
    """Lists the arrays of an archive.

    Raises:
        FormatError: it is none, is damaged, or holds what is not a plain array.
    """
    with open_regular(path) as file, bytes_of_strangers(_WHAT), zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
        check_count(len(entries))
        return {entry.filename.removesuffix(".npy"): _entry(path, archive, entry) for entry in entries}


def _entry(path: Path, archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> LazyTensor:
    name = entry.filename
    reopen = reopener(path)
    with archive.open(entry) as file:
        # A header claims its own length, and what is packed small may unpack to that.
        beginning = io.BytesIO(file.read(_MAX_HEADER_BYTES))
    shape, dtype = _read_header(name, beginning)
    header = beginning.tell()
    if num_bytes(shape, dtype) != entry.file_size - header:
        raise FormatError(f"has {entry.file_size - header} bytes for {name}, which is {dtype} {list(shape)}")

    def load() -> Tensor:
        with reopen() as whole, bytes_of_strangers(_WHAT), zipfile.ZipFile(whole) as again, again.open(entry) as file:
            array = np.lib.format.read_array(file, allow_pickle=False)
        return torch.from_numpy(np.ascontiguousarray(array)).reshape(shape)

    return LazyTensor(path=path, shape=shape, dtype=dtype, loader=load)


def _read_header(name: str, file: IO[bytes]) -> tuple[tuple[int, ...], str]:
    with bytes_of_strangers(f"holds {name}, which is no array of numpy"):
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(file)
    if dtype.kind == "S" and dtype.itemsize == 1:
        return shape, "int8"
    if dtype.hasobject or dtype.byteorder == ">":
        raise FormatError(f"holds {name}, an array of {dtype}, which is not read")
    return shape, dtype.name
