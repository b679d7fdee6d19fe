"""Writes the formats that `export.imports.formats` reads, from their descriptions."""

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_SAFETENSORS = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64"}
_MARIAN = {np.dtype(np.float32): 0x404, np.dtype(np.int8): 0x101}
CTRANSLATE2 = (np.float32, np.int8, np.int16, np.int32, np.float16)


def write_safetensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Writes a safetensors file."""
    header, data = {}, b""
    for name, tensor in tensors.items():
        raw = tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        facts = {"dtype": _SAFETENSORS[tensor.dtype], "shape": list(tensor.shape)}
        header[name] = {**facts, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps({"__metadata__": {"format": "pt"}, **header}).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def write_marian(path: Path, arrays: Mapping[str, NDArray[Any]], int8: Mapping[str, float] | None = None) -> None:
    """Writes a .bin file of Marian; the arrays named in `int8` as intgemm's, with that multiplier."""
    int8 = int8 or {}
    headers, names, shapes, data = b"", b"", b"", b""
    for name, array in arrays.items():
        raw = array.tobytes()
        kind = _MARIAN[array.dtype]
        if name in int8:
            quantized = np.rint(array * int8[name]).astype(np.int8)
            stored = quantized if name.endswith("Wemb") else quantized.T
            raw, kind = np.ascontiguousarray(stored).tobytes() + struct.pack("<f", int8[name]), 0x4101
        raw += b"\0" * (-len(raw) % 256)
        headers += struct.pack("<QQQQ", len(name) + 1, kind, array.ndim, len(raw))
        names += name.encode() + b"\0"
        shapes += struct.pack(f"<{array.ndim}i", *array.shape)
        data += raw
    head = struct.pack("<QQ", 1, len(arrays)) + headers + names + shapes
    padding = -(len(head) + 8) % 256
    path.write_bytes(head + struct.pack("<Q", padding) + b"\0" * padding + data)


def write_lexical(path: Path, first: int, candidates: list[list[int]]) -> None:
    """Writes a binary lexical shortlist."""
    offsets = np.cumsum([0, *map(len, candidates)]).astype("<u8")
    ids = np.array([each for ids in candidates for each in ids], "<u4")
    header = struct.pack("<6Q", 0xF11A48D5013417F5, 0, first, 50, len(offsets), len(ids))
    path.write_bytes(header + offsets.tobytes() + ids.tobytes())


def write_ctranslate2(
    path: Path, arrays: Mapping[str, NDArray[np.generic]], *, version: int = 6, aliases: Mapping[str, str] | None = None
) -> None:
    """Writes a model.bin of CTranslate2."""

    def text(value: str) -> bytes:
        return struct.pack("<H", len(value) + 1) + value.encode() + b"\0"

    data = struct.pack("<I", version)
    if version >= 2:
        data += text("TransformerSpec") + struct.pack("<I", 7)
    data += struct.pack("<I", len(arrays))
    for name, array in arrays.items():
        data += text(name) + struct.pack(f"<B{array.ndim}I", array.ndim, *array.shape)
        if version >= 4:
            data += struct.pack("<BI", CTRANSLATE2.index(array.dtype.type), array.nbytes)
        else:
            data += struct.pack("<BI", array.itemsize, array.size)
        data += array.tobytes()
    if version >= 3:
        data += struct.pack("<I", len(aliases or {}))
        data += b"".join(text(alias) + text(name) for alias, name in (aliases or {}).items())
    path.write_bytes(data)
