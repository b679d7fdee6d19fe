"""JSON and YAML files of a model's directory: size limited, one meaning only."""

import os
from pathlib import Path
from typing import Any

from export.imports.formats.tensors import FormatError, open_regular
from server.bundle.parsing import parse_json

MAX_BYTES = 64 << 20  # of a tokenizer's file; NLLB's tokenizer.json has 32 MB
MAX_SETTINGS_BYTES = 4 << 20  # of any other JSON: in memory it may take thirty times that


def read_bytes(path: Path, limit: int = MAX_BYTES) -> bytes:
    """Reads a small file whole.

    Raises:
        FormatError: it cannot be read, or is larger than `limit` bytes.
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > limit:
            raise FormatError(f"has {size} bytes, at most {limit} are read")
        return file.read(size)


def read_json(path: Path, limit: int = MAX_BYTES) -> Any:
    """Reads a JSON file of at most `limit` bytes.

    Raises:
        FormatError: it cannot be read, is larger, or is no JSON.
    """
    try:
        return parse_json(read_bytes(path, limit))
    except ValueError as error:
        raise FormatError(f"is no JSON: {error}") from error


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
