"""Dataclasses as tables: what a recipe or a manifest may hold is what their fields and docstrings say."""

import dataclasses
import inspect
import re
import sys
import types
import typing
from collections.abc import Callable, Iterator
from typing import Any, Literal

from docs.generate.markdown_text import code, prose, table

_WORDS = {int: "whole number", float: "number", bool: "true or false", str: "text", Any: "anything"}
_CONSTANT = re.compile(r"`([A-Z][A-Z_]+)`")


def summary(kind: type[Any]) -> str:
    """The docstring up to its first section."""
    return prose(_docstring(kind)[0])


def meanings(kind: type[Any]) -> dict[str, str]:
    """What a docstring's section "Attributes" says of each; empty if there is none, as the summary says it all."""
    said: dict[str, str] = {}
    for names, text in re.findall(r"^    (\w+(?:, \w+)*): (.*(?:\n        .*)*)", _docstring(kind)[1], re.MULTILINE):
        said |= dict.fromkeys(names.split(", "), text)
    return said


def _docstring(kind: type[Any]) -> tuple[str, str]:
    """Returns the docstring before "Attributes:", and behind; constants of its module have become their values."""
    values = vars(sys.modules[kind.__module__])
    text = _CONSTANT.sub(lambda found: code(values.get(found[1], found[1])), inspect.getdoc(kind) or "")
    before, _, behind = text.partition("\n\nAttributes:\n")
    return before, behind


def fields_table(kind: type[Any], link: Callable[[type[Any]], str]) -> str:
    """A table of a dataclass' fields.

    Args:
        kind: the dataclass.
        link: names another dataclass, in Markdown.

    Raises:
        LookupError: the docstring's attributes are not the fields, every difference named.
    """
    fields, said, hints = dataclasses.fields(kind), meanings(kind), typing.get_type_hints(kind)
    names = {each.name for each in fields}
    if said and (wrong := sorted(names ^ said.keys())):
        raise LookupError(f"{kind.__qualname__}: its docstring's attributes are not its fields: {', '.join(wrong)}")
    rows = [
        (code(each.name), kind_words(hints[each.name], link), _default(each), prose(said.get(each.name, "")))
        for each in fields
    ]
    return table(("Key", "Value", "Default", "Meaning"), rows)


def kind_words(hint: Any, link: Callable[[type[Any]], str]) -> str:
    """Says in words what a type is, None left out."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return kind_words(next(each for each in arguments if each is not types.NoneType), link)
    if origin is Literal:
        return ", ".join(code(f'"{choice}"') for choice in arguments)
    if origin is tuple:
        return f"list: {kind_words(arguments[0], link)}"
    if origin is dict:
        return f"object: {kind_words(arguments[1], link)}"
    return _WORDS[hint] if hint in _WORDS else link(hint)


def nested(kind: type[Any]) -> Iterator[type[Any]]:
    """Yields a dataclass and all that its fields hold, each once."""
    found: dict[type[Any], None] = {}

    def visit(hint: Any) -> None:
        if isinstance(hint, type) and dataclasses.is_dataclass(hint) and hint not in found:
            found[hint] = None
            for each in typing.get_type_hints(hint).values():
                visit(each)
        for argument in typing.get_args(hint):
            visit(argument)

    visit(kind)
    yield from found


def _default(each: "dataclasses.Field[Any]") -> str:
    if each.default is dataclasses.MISSING:
        if each.default_factory is dataclasses.MISSING:
            return "required"
        return "none" if each.default_factory is dict else "its keys' defaults"
    if each.default is None or each.default == "" or each.default == ():
        return "none"
    text = str(each.default).lower() if isinstance(each.default, bool) else str(each.default)
    return code(f'"{text}"' if isinstance(each.default, str) else text)
