"""numpy's .npz archives, without pickles: what Marian writes."""

import zipfile
from pathlib import Path
from typing import IO

import numpy as np
import torch
from torch import Tensor

from export.imports.formats.tensors import FormatError, LazyTensor, num_bytes, open_regular


def list_npz(path: Path) -> dict[str, LazyTensor]:
    """Lists the arrays of an archive.

    Raises:
        FormatError: it is none, is damaged, or holds what is not a plain array.
    """
    with open_regular(path) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                entries = archive.infolist()
                return {entry.filename.removesuffix(".npy"): _entry(path, archive, entry) for entry in entries}
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError) as error:
            raise FormatError(f"is no whole .npz archive: {error}") from error


def _entry(path: Path, archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> LazyTensor:
    name = entry.filename
    with archive.open(entry) as file:
        shape, dtype = _read_header(name, file)
        header = file.tell()
    if num_bytes(shape, dtype) != entry.file_size - header:
        raise FormatError(f"has {entry.file_size - header} bytes for {name}, which is {dtype} {list(shape)}")

    def load() -> Tensor:
        with zipfile.ZipFile(path) as again, again.open(entry) as file:
            array = np.lib.format.read_array(file, allow_pickle=False)
        return torch.from_numpy(np.ascontiguousarray(array)).reshape(shape)

    return LazyTensor(file=path.name, shape=shape, dtype=dtype, load=load)


def _read_header(name: str, file: IO[bytes]) -> tuple[tuple[int, ...], str]:
    try:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(file)
    except Exception as error:  # numpy parses headers as Python: a SyntaxError or tokenize.TokenError, anything
        raise FormatError(f"holds {name}, which is no array of numpy") from error
    if dtype.kind == "S" and dtype.itemsize == 1:
        return shape, "int8"
    if dtype.hasobject or dtype.byteorder == ">":
        raise FormatError(f"holds {name}, an array of {dtype}, which is not read")
    return shape, dtype.name
