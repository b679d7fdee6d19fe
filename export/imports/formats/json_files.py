"""JSON and YAML files of a model's directory: size limited, one meaning only."""

import os
from pathlib import Path
from typing import Any

from export.imports.formats.tensors import FormatError, bytes_of_strangers, open_regular
from server.bundle.parsing import parse_json

MAX_BYTES = 16 << 20  # of a vocabulary or tokenizer; that of M2M100 has 4 MB, the largest SentencePiece model 5 MB
MAX_LISTED_BYTES = 64 << 20  # of a tokenizer.json; NLLB's has 32 MB
MAX_SETTINGS_BYTES = 4 << 20  # of settings
# At least so many bytes of a limit for each value: half of that lets a file take over 1 GB of memory, twice as much
# refuses the vocabularies of 500,000 pieces that fit 16 MB.
_BYTES_PER_VALUE = 24


def read_bytes(path: Path, limit: int = MAX_BYTES) -> bytes:
    """Reads a small file whole.

    Raises:
        FormatError: it cannot be read, or is larger than `limit` bytes.
    """
    with open_regular(path) as file, bytes_of_strangers("cannot be read"):
        size = os.fstat(file.fileno()).st_size
        if size > limit:
            raise FormatError(f"has {size} bytes, at most {limit} are read")
        return file.read(size)


def read_json(path: Path, limit: int = MAX_BYTES) -> Any:
    """Reads a JSON file of at most `limit` bytes.

    Raises:
        FormatError: it cannot be read, is larger, or is no JSON.
    """
    return parse_limited(read_bytes(path, limit), limit)


def parse_limited(data: bytes, limit: int, what: str = "is no JSON") -> Any:
    """Reads JSON of so many bytes that it takes about 1 GB of memory at most where `limit` is 64 MB, and less for less.

    Raises:
        FormatError: it is none, has too many values, or is deep.
    """
    num_values, most = sum(data.count(mark) for mark in b",[{"), limit // _BYTES_PER_VALUE
    if num_values > most:
        raise FormatError(f"holds about {num_values} values, at most {most} are read")
    with bytes_of_strangers(what):
        return parse_json(data)


def read_object(document: Any, key: str = "") -> dict[str, Any]:
    """Returns a document, or what it has under a key, which must be an object.

    Raises:
        FormatError: it is none.
    """
    value = document.get(key) if key and isinstance(document, dict) else document
    if not isinstance(value, dict):
        raise FormatError(f"holds no object{f' {key!r}' if key else ''}")
    return value


def read_vocabulary(document: Any) -> list[str]:
    """Returns the pieces of a vocabulary, by id.

    Args:
        document: {piece: id}, with every id from 0 on once; or a list of pieces.

    Raises:
        FormatError: it is neither.
    """
    if isinstance(document, list) and all(isinstance(piece, str) for piece in document):
        return document
    if not isinstance(document, dict) or not all(type(token) is int for token in document.values()):
        raise FormatError("holds no pieces with ids")
    by_id = {token: piece for piece, token in document.items()}
    if sorted(by_id) != list(range(len(document))):
        raise FormatError(f"has {len(document)} pieces, but not each id from 0 to {len(document) - 1} once")
    return [by_id[token] for token in range(len(by_id))]
