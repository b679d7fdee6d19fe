"""safetensors files, and directories of several with an index.

Read here rather than by the library of that name: its format is a length, a JSON object and the data, the other formats
need the same listing of regions in any case, and the export keeps one dependency less.
"""

import os
from pathlib import Path
from typing import Any

from export.imports.formats.json_files import MAX_BYTES, MAX_SETTINGS_BYTES, parse_limited, read_json, read_object
from export.imports.formats.tensors import (
    FormatError,
    LazyTensor,
    bytes_of_strangers,
    check_count,
    num_bytes,
    open_regular,
    region,
)

_DTYPES = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "I16": "int16",
    "I32": "int32",
    "I64": "int64",
    "F16": "float16",
    "BF16": "bfloat16",
    "F32": "float32",
    "F64": "float64",
}
_LENGTH_BYTES = 8
_MAX_SHARDS = 1024  # files of an index; the largest models have some 200


def list_safetensors(path: Path) -> dict[str, LazyTensor]:
    """Lists the tensors of a file.

    Raises:
        FormatError: it is no safetensors file, or damaged.
    """
    with open_regular(path) as file, bytes_of_strangers("cannot be read"):
        size = int.from_bytes(file.read(_LENGTH_BYTES), "little")
        if not 2 <= size <= MAX_BYTES:
            raise FormatError(f"is no safetensors file: its header has {size} bytes, not 2 to {MAX_BYTES}")
        header = file.read(size)
    if len(header) < size:
        raise FormatError("ends within its header: it is cut off")
    entries = parse_limited(header, MAX_BYTES, "is no safetensors file")
    if not isinstance(entries, dict):
        raise FormatError("is no safetensors file: its header is no object")
    check_count(len(entries))
    start = _LENGTH_BYTES + size
    return {name: _entry(path, start, name, entry) for name, entry in entries.items() if name != "__metadata__"}


def list_sharded(index: Path, list_file: Any) -> dict[str, LazyTensor]:
    """Lists the tensors of all files that an index names (`*.index.json`).

    Args:
        index: the file; those that it names lie beside it.
        list_file: lists one of them.

    Raises:
        FormatError: any of them is damaged, or names a file elsewhere, or one file twice.
    """
    weight_map = read_object(read_json(index, MAX_SETTINGS_BYTES), "weight_map")
    check_count(len(weight_map))
    found: dict[str, LazyTensor] = {}
    files = {name for name in weight_map.values() if isinstance(name, str)}
    if len(files) > _MAX_SHARDS:
        raise FormatError(f"names {len(files)} files, at most {_MAX_SHARDS} are read")
    seen: set[tuple[int, int]] = set()  # a directory may have a thousand names for one file, each of which takes time
    for file in sorted(files):
        if not file or Path(file).name != file:
            raise FormatError(f"names {file!r}, which is no plain file name")
        try:
            with open_regular(index.with_name(file)) as opened:
                status = os.fstat(opened.fileno())
            if (status.st_dev, status.st_ino) in seen:
                raise FormatError("is another of its files by a second name")
            seen.add((status.st_dev, status.st_ino))
            found |= list_file(index.with_name(file))
        except FormatError as error:
            raise FormatError(f"names {file}, which {error}") from error
    missing = [name for name in weight_map if name not in found]
    if missing:
        raise FormatError(f"names {len(missing)} tensors that its files lack, such as {missing[0]}")
    return found


def _entry(path: Path, start: int, name: str, entry: Any) -> LazyTensor:
    try:
        dtype, shape, (begin, end) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
        is_valid = all(type(number) is int and number >= 0 for number in (*shape, begin, end)) and type(dtype) is str
    except (KeyError, TypeError, ValueError):
        is_valid = False
    if not is_valid:
        raise FormatError(f"describes {name} in no way that is known")
    dtype = _DTYPES.get(dtype, dtype)
    if num_bytes(shape, dtype) != end - begin:
        raise FormatError(f"has {end - begin} bytes for {name}, which is {dtype} {list(shape)}")
    return region(path, start + begin, shape, dtype)
