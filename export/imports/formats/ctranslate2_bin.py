"""CTranslate2's model.bin, versions 1 to 6.

Source of the layout: CTranslate2, python/ctranslate2/specs/model_spec.py and src/models/model.cc.
"""

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from torch import Tensor

from export.imports.formats.tensors import (
    MAX_RANK,
    FormatError,
    LazyTensor,
    bytes_of_strangers,
    check_count,
    num_bytes,
    open_regular,
    region,
)

VERSIONS = range(1, 7)
_DTYPES = ("float32", "int8", "int16", "int32", "float16", "bfloat16")
_BY_WIDTH = {4: "float32", 2: "int16", 1: "int8"}  # all that versions before 4 say


@dataclass(frozen=True, slots=True, kw_only=True)
class Variables:
    """What a model.bin holds: the name and revision of its specification, and its variables, aliases among them."""

    spec: str
    revision: int
    tensors: dict[str, LazyTensor]


def list_variables(path: Path) -> Variables:
    """Lists the variables of a file.

    Raises:
        FormatError: it is none, is damaged, or of a later version.
    """
    with open_regular(path) as file, bytes_of_strangers("cannot be read"):
        version = _number(file, "<I")
        if version not in VERSIONS:
            raise FormatError(f"is no model.bin of CTranslate2, or of version {version}; up to {VERSIONS[-1]} are read")
        spec, revision = (_string(file), _number(file, "<I")) if version >= 2 else ("", 1)
        tensors = dict(_variable(path, file, version) for _ in range(_count(file)))
        aliases = {_string(file): _string(file) for _ in range(_count(file))} if version >= 3 else {}
    for alias, name in aliases.items():
        if name not in tensors:
            raise FormatError(f"calls {name} {alias} too, but does not hold it")
        tensors[alias] = tensors[name]
        if f"{name}_scale" in tensors:
            tensors[f"{alias}_scale"] = tensors[f"{name}_scale"]
    return Variables(spec=spec, revision=revision, tensors=tensors)


def dequantised(variables: Variables) -> dict[str, LazyTensor]:
    """Lists the variables with int8 and int16 weights as the float32 ones that they stand for, without their scales.

    Raises:
        FormatError: the scales of one do not fit it.
    """
    tensors, made, found = variables.tensors, {}, {}
    for name, tensor in tensors.items():
        scale = tensors.get(f"{name}_scale")
        if scale is None or name.endswith("_scale"):
            if not name.endswith("_scale") or name.removesuffix("_scale") not in tensors:
                found[name] = tensor
            continue
        if scale.shape not in ((), (1,), tensor.shape[:1]):
            raise FormatError(f"has scales of shape {list(scale.shape)} for {name}, which is {list(tensor.shape)}")
        if id(tensor) not in made:  # an alias is the same tensor
            made[id(tensor)] = _floats(tensor, scale)
        found[name] = made[id(tensor)]
    return found


def _floats(tensor: LazyTensor, scale: LazyTensor) -> LazyTensor:
    def load() -> Tensor:
        return tensor.load().float() / scale.load().float().reshape(-1, *[1] * (len(tensor.shape) - 1))

    return LazyTensor(path=tensor.path, shape=tensor.shape, dtype="float32", loader=load)


def _variable(path: Path, file: IO[bytes], version: int) -> tuple[str, LazyTensor]:
    name = _string(file)
    rank = _number(file, "<B")
    if rank > MAX_RANK:
        raise FormatError(f"claims that {name} has {rank} axes")
    shape = tuple(_number(file, "<I") for _ in range(rank))
    kind, size = _number(file, "<B"), _number(file, "<I")
    if version >= 4:
        dtype = _DTYPES[kind] if kind < len(_DTYPES) else f"type {kind}"
    else:
        dtype, size = _BY_WIDTH.get(kind, f"width {kind}"), size * kind
    if num_bytes(shape, dtype) != size:
        raise FormatError(f"has {size} bytes for {name}, which is {dtype} {list(shape)}")
    tensor = region(path, file.tell(), shape, dtype)
    file.seek(size, 1)
    return name, tensor


def _count(file: IO[bytes]) -> int:
    count = _number(file, "<I")
    check_count(count)
    return count


def _number(file: IO[bytes], layout: str) -> int:
    size = struct.calcsize(layout)
    data = file.read(size)
    if len(data) < size:
        raise FormatError("ends within its header: it is cut off, or of another format")
    number: int = struct.unpack(layout, data)[0]
    return number


def _string(file: IO[bytes]) -> str:
    length = _number(file, "<H")
    data = file.read(length)
    if len(data) < length:
        raise FormatError("ends within a name: it is cut off")
    return data.rstrip(b"\0").decode(errors="replace")
