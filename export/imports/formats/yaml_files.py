"""YAML of strangers: plain data only."""

from pathlib import Path
from typing import Any

import yaml

from export.imports.formats.json_files import read_bytes
from export.imports.formats.tensors import FormatError

_MAX_BYTES = 16 << 20  # a vocabulary of OPUS-MT has 1 MB


def read_yaml(path: Path) -> dict[str, Any]:
    """Reads a file that holds an object.

    Raises:
        FormatError: it cannot be read, or holds none.
    """
    return parse_yaml(read_bytes(path, _MAX_BYTES))


def parse_yaml(data: bytes) -> dict[str, Any]:
    """Reads an object, keys made texts.

    Raises:
        FormatError: it is none, or no plain YAML.
    """
    try:
        for event in yaml.parse(data, Loader=_LOADER):
            if isinstance(event, yaml.AliasEvent):
                raise FormatError("has YAML aliases, which nothing here needs")
        document = yaml.load(data, Loader=_LOADER)  # a safe loader
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise FormatError(f"is no YAML: {str(error).partition(chr(10))[0]}") from error
    if not isinstance(document, dict):
        raise FormatError("holds no object")
    return {str(key): value for key, value in document.items()}


_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
