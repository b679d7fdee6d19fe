"""What torch.save wrote: unpickled with `weights_only`, which calls nothing but what rebuilds tensors."""

import pickle
import re
import zipfile
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import torch
from torch import Tensor

from export.imports.formats.tensors import (
    DTYPES,
    FormatError,
    LazyTensor,
    bytes_of_strangers,
    check_count,
    num_bytes,
    open_regular,
    region,
)

_REFUSED_NAME = re.compile(r"(?:GLOBAL|Unsupported class|Unsupported global:?) (?:GLOBAL )?([\w.]+)")
# Older checkpoints of OpenNMT-py have 4 MB with their vocabularies. Half of this refuses large ones of them, twice as
# much lets a file of a stranger take 20 s and 1 GB.
_MAX_PICKLE_BYTES = 6 << 20


class StandIn:
    """Takes the place of a class or function of somebody's, by name: it keeps what a file says of it, and does nothing.

    Attributes:
        state: what the instance had.
    """

    def __init__(self, *arguments: Any) -> None:  # noqa: ARG002  # functions are called so
        self.state: Any = {}

    def __setstate__(self, state: Any) -> None:
        self.state = state


def load_torch(path: Path, stand_ins: Sequence[str] = ()) -> Any:
    """Reads a file, but for its tensors where its format allows, so that listing them costs little.

    `argparse.Namespace`, in which older toolkits keep their options, is the only class beside tensors.

    Args:
        path: the file.
        stand_ins: full names of classes and functions that are read as `StandIn`; none of them is imported.

    Raises:
        FormatError: it is no such file, is damaged, or would run code.
    """
    with open_regular(path) as file:
        is_archive = zipfile.is_zipfile(file)
        file.seek(0)
        if is_archive:
            _check_archive(file)
        # Tensors of an archive stay where they are: on the device "meta" they have a place in the file and no data.
        source: Any = file if is_archive else _Counted(file)
        try:
            with (
                bytes_of_strangers("cannot be read"),
                torch.serialization.safe_globals([Namespace, *((StandIn, name) for name in stand_ins)]),
            ):
                return torch.load(source, map_location="meta" if is_archive else "cpu", weights_only=True)
        except FormatError as error:
            cause = error.__cause__
            if not isinstance(cause, pickle.UnpicklingError):
                raise
            refused = _REFUSED_NAME.search(str(cause))
            if refused:
                raise FormatError(f"needs {refused[1]}, which could run code, so it is not read") from cause
            raise FormatError("is no file of tensors that torch.save wrote") from cause


class _Counted:
    """A file whose reads are counted: outside an archive nothing else says how long a pickle is."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._count = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def read(self, size: int = -1) -> bytes:
        self._count += 1
        if self._count > _MAX_PICKLE_BYTES:
            raise FormatError(f"has more than {_MAX_PICKLE_BYTES} parts, which no model has")
        return self._file.read(size)


def list_torch(path: Path) -> dict[str, LazyTensor]:
    """Lists the tensors of a state dict.

    Raises:
        FormatError: as `load_torch`; or it holds none.
    """
    tensors = tensors_of(path, load_torch(path))
    if not tensors:
        raise FormatError("holds no tensors by name")
    return tensors


def tensors_of(path: Path, document: Any) -> dict[str, LazyTensor]:
    """Lists what a mapping that `load_torch` returned of a file has of tensors.

    Raises:
        FormatError: one of them is of a kind that is not read, or claims more than the file holds.
    """
    if not isinstance(document, Mapping):
        return {}
    tensors = {name: value for name, value in document.items() if isinstance(value, Tensor)}
    check_count(len(tensors))
    if not all(isinstance(name, str) for name in tensors):
        raise FormatError("holds a tensor whose name is no text")
    return {name: _entry(path, name, value) for name, value in tensors.items()}


def _entry(path: Path, name: str, tensor: Tensor) -> LazyTensor:
    kind = str(tensor.layout).removeprefix("torch.") if tensor.layout != torch.strided else str(tensor.dtype)
    dtype = next((ours for ours, theirs in DTYPES.items() if theirs == tensor.dtype), kind)
    if tensor.layout != torch.strided or dtype not in DTYPES or tensor.is_neg():
        raise FormatError(f"holds {name} as {kind}, which is not read; {', '.join(DTYPES)} are")
    shape, strides, first = tuple(tensor.shape), tensor.stride(), tensor.storage_offset()
    storage = tensor.untyped_storage()
    # Strides of zero would make a small file large.
    if num_bytes(shape, dtype) > storage.nbytes():
        raise FormatError(f"claims that {name} has the shape {list(shape)}, for which its data are too few")
    if tensor.device.type == "cpu":
        return LazyTensor(path=path, shape=shape, dtype=dtype, loader=tensor.clone)
    offset = getattr(storage, "_checkpoint_offset", None)  # torch's own note of it, as its tutorial on layouts uses it
    if offset is None:
        raise FormatError(f"holds {name} without data: it was saved from the device {tensor.device.type}")
    stored = region(path, offset, (storage.nbytes() // DTYPES[dtype].itemsize,), dtype)
    return replace(stored, shape=shape, loader=lambda: stored.load().as_strided(shape, strides, first).clone())


def _check_archive(file: IO[bytes]) -> None:
    """Refuses archives of which anything is compressed, since torch stores as it is, or whose pickle is huge."""
    with bytes_of_strangers("is a damaged archive"), zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
    file.seek(0)
    for entry in entries:
        if entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size:
            raise FormatError(f"unpacks to {entry.file_size} bytes in {entry.filename}, which torch.save never packs")
        if entry.filename.endswith(".pkl") and entry.file_size > _MAX_PICKLE_BYTES:
            raise FormatError(f"has {entry.file_size} bytes of {entry.filename}, at most {_MAX_PICKLE_BYTES} are read")
