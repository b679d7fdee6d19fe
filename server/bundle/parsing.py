"""JSON into dataclasses, every fault noted with its place."""

import dataclasses
import json
import types
import typing
from typing import Any

_FIRST_INEXACT = 2**53  # of the whole numbers as fractions


def parse_json(data: bytes) -> Any:
    """Reads JSON that says one thing only: no key twice, no NaN, no text that is not Unicode.

    Raises:
        ValueError: it is no such JSON, or nested too deeply.
    """
    try:
        document = json.loads(data.decode(), object_pairs_hook=_unique, parse_constant=_refuse_constant)
        json.dumps(document, ensure_ascii=False).encode()  # which escaped lone surrogates do not survive
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    return document


def parse(kind: Any, value: Any, where: str, faults: list[str]) -> Any:
    """Builds `kind` (dataclass, tuple, dict or scalar type) from JSON.

    Args:
        kind: what the value must be.
        value: as `json.loads` returns it.
        where: its place in the document, for the faults.
        faults: appended to; if it stays as it is, the result is a `kind`.
    """
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if dataclasses.is_dataclass(kind):
        return _parse_dataclass(kind, value, where, faults)
    if kind is Any:
        return value
    if origin is types.UnionType:  # a kind, or None
        return None if value is None else parse(arguments[0], value, where, faults)
    if origin is tuple and isinstance(value, list):
        return tuple(parse(arguments[0], item, f"{where}[{i}]", faults) for i, item in enumerate(value))
    if origin is dict and isinstance(value, dict):
        return {key: parse(arguments[1], item, f"{where}.{key}", faults) for key, item in value.items()}
    if kind is float and type(value) is int and abs(value) < _FIRST_INEXACT:
        return float(value)
    if origin is None and type(value) is kind:
        return value
    name = kind if isinstance(kind, types.GenericAlias) else kind.__name__
    faults.append(f"{where} must be {name}, not {type(value).__name__}")
    return None


def _parse_dataclass(kind: Any, value: Any, where: str, faults: list[str]) -> Any:
    if not isinstance(value, dict):
        faults.append(f"{where} must be an object, not {type(value).__name__}")
        return None
    hints = typing.get_type_hints(kind)
    prefix = f"{where}." if where else ""
    required = {f.name for f in dataclasses.fields(kind) if f.default is f.default_factory is dataclasses.MISSING}
    before = len(faults)
    faults += [f"{prefix}{name} is missing" for name in sorted(required - value.keys())]
    faults += [f"{prefix}{name} is unknown" for name in sorted(value.keys() - hints.keys())]
    parsed = {name: parse(hints[name], value[name], prefix + name, faults) for name in hints if name in value}
    return kind(**parsed) if len(faults) == before else None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        raise ValueError("an object has a key twice")
    return document


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number")
