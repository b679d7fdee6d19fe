"""YAML of strangers: plain data only, of which keys are what is written, and values are numbers where they look it.

The parser's events are read one by one: what PyYAML builds of them by itself it builds by recursion in C, which deep
files end with a segmentation fault. It also takes plain keys such as `no` and `12:30` for no texts, as YAML 1.1 has it.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from export.imports.formats.json_files import read_bytes
from export.imports.formats.tensors import FormatError, bytes_of_strangers

_MAX_BYTES = 8 << 20  # a vocabulary of OPUS-MT has 1 MB
# Of a vocabulary of 500,000 pieces. Twice as many take 2 s and 200 MB; half as many refuse what JSON may have.
_MAX_EVENTS = 2**20
_MAX_DEPTH = 8  # settings of Marian have 2
_MAX_PROBLEM = 200  # characters of a message
_WHOLE = re.compile(r"0|[-+]?[1-9][0-9]{0,17}")
_FRACTION = re.compile(r"[-+]?[0-9]{1,20}(?:\.[0-9]{0,40}(?:[eE][-+]?[0-9]{1,3})?|[eE][-+]?[0-9]{1,3})")
_FLAGS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_NOTHING = ("", "~", "null")
# A parser reads each of its directives again for every other; none of Marian's files has any.
_DIRECTIVE = re.compile("(?:^|[\n\r\x85\u2028\u2029])%")
_LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


def read_yaml(path: Path) -> dict[str, Any]:
    """Reads a file that holds an object.

    Raises:
        FormatError: it cannot be read, or holds none.
    """
    return parse_yaml(read_bytes(path, _MAX_BYTES))


def parse_yaml(data: bytes) -> dict[str, Any]:
    """Reads an object of texts, numbers, flags, None, lists and objects; keys are texts.

    Raises:
        FormatError: it is none, is deep, has a key twice, or anchors, tags or directives.
    """
    with bytes_of_strangers("is no YAML"):
        text = data.decode().removeprefix("\ufeff")
        if _DIRECTIVE.search(text):
            raise FormatError("has YAML directives, which nothing here needs")
        events = _limited(yaml.parse(text, Loader=_LOADER))
        documents = [_read(events, 0, event) for event in events if isinstance(event, yaml.NodeEvent)]
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise FormatError("holds no object" if documents else "is empty")
    return documents[0]


def _limited(events: Iterator[Any]) -> Iterator[Any]:
    for count, event in enumerate(events):
        if count == _MAX_EVENTS:
            raise FormatError(f"holds more than {_MAX_EVENTS // 2} keys and values")
        yield event


def _read(events: Iterator[Any], depth: int, event: Any) -> Any:
    """Returns what an event begins, and takes its events."""
    if isinstance(event, yaml.AliasEvent) or event.anchor is not None or event.tag not in (None, "!"):
        raise FormatError("has YAML aliases, anchors or tags, which nothing here needs")
    if isinstance(event, yaml.ScalarEvent):
        return _value(event.value) if event.implicit[0] and event.tag is None else event.value
    if depth == _MAX_DEPTH:
        raise FormatError(f"is nested more than {_MAX_DEPTH} deep")
    if isinstance(event, yaml.SequenceStartEvent):
        return [_read(events, depth + 1, each) for each in _until(events, yaml.SequenceEndEvent)]
    found: dict[str, Any] = {}
    for key in _until(events, yaml.MappingEndEvent):
        if not isinstance(key, yaml.ScalarEvent) or key.anchor is not None or key.tag not in (None, "!"):
            raise FormatError("has a key that is no plain text")
        if key.value in found:
            raise FormatError(f"has the key {key.value[:_MAX_PROBLEM]!r} twice")
        found[key.value] = _read(events, depth + 1, next(events))
    return found


def _until(events: Iterator[Any], end: type[Any]) -> Iterator[Any]:
    for event in events:
        if isinstance(event, end):
            return
        yield event


def _value(text: str) -> Any:
    """Returns what a plain value means: as YAML 1.2 has it, and flags as 1.1 has them too."""
    if _WHOLE.fullmatch(text):
        return int(text)
    if _FRACTION.fullmatch(text):
        return float(text)
    if text.lower() in _NOTHING:
        return None
    return _FLAGS.get(text.lower(), text)
