"""What torch.save wrote: unpickled with `weights_only`, which calls nothing but what rebuilds tensors."""

import pickle
import re
import zipfile
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from export.imports.formats.tensors import DTYPES, FormatError, LazyTensor, num_bytes, open_regular

_REFUSED_NAME = re.compile(r"(?:GLOBAL|Unsupported class|Unsupported global:?) (?:GLOBAL )?([\w.]+)")


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
    """Reads a file; the tensors in it are mapped to it where its format allows, so that listing them costs little.

    `argparse.Namespace`, in which older toolkits keep their options, is the only class beside tensors.

    Args:
        path: the file.
        stand_ins: full names of classes and functions that are read as `StandIn`; none of them is imported.

    Raises:
        FormatError: it is no such file, is damaged, or would run code.
    """
    with open_regular(path) as file:
        is_archive = zipfile.is_zipfile(file)
        size = path.stat().st_size
        if is_archive:
            _check_archive(path, size)
    try:
        with torch.serialization.safe_globals([Namespace, *((StandIn, name) for name in stand_ins)]):
            return torch.load(path, map_location="cpu", weights_only=True, mmap=is_archive)
    except pickle.UnpicklingError as error:
        refused = _REFUSED_NAME.search(str(error))
        if refused:
            raise FormatError(f"needs {refused[1]}, which could run code, so it is not read") from error
        raise FormatError("is no file of tensors that torch.save wrote") from error
    except Exception as error:  # pickles of strangers: torch raises nearly anything
        reason = str(error).partition("\n")[0][:200]
        raise FormatError(f"cannot be read: {reason or type(error).__name__}") from error


def list_torch(path: Path) -> dict[str, LazyTensor]:
    """Lists the tensors of a state dict.

    Raises:
        FormatError: as `load_torch`; or it holds none.
    """
    document = load_torch(path)
    tensors = tensors_of(path.name, document)
    if not tensors:
        raise FormatError("holds no tensors by name")
    return tensors


def tensors_of(file: str, document: Any) -> dict[str, LazyTensor]:
    """Lists what a mapping that `load_torch` returned has of tensors.

    Raises:
        FormatError: one of them claims more than its file holds.
    """
    if not isinstance(document, Mapping):
        return {}
    return {str(name): _entry(file, name, value) for name, value in document.items() if isinstance(value, Tensor)}


def _entry(file: str, name: str, tensor: Tensor) -> LazyTensor:
    dtype = next((ours for ours, theirs in DTYPES.items() if theirs == tensor.dtype), str(tensor.dtype))
    shape = tuple(tensor.shape)
    # Strides of zero would make a small file large.
    if num_bytes(shape, dtype) > tensor.untyped_storage().nbytes():
        raise FormatError(f"claims that {name} has the shape {list(shape)}, for which its data are too few")
    return LazyTensor(file=file, shape=shape, dtype=dtype, load=tensor.clone)


def _check_archive(path: Path, size: int) -> None:
    """Refuses archives that unpack to more than they are: torch stores, it does not compress."""
    try:
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
    except (zipfile.BadZipFile, ValueError) as error:
        raise FormatError("is a damaged archive") from error
    if unpacked > size:
        raise FormatError(f"unpacks to {unpacked} bytes, more than the {size} that it has")
