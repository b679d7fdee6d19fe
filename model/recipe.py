"""Reading recipes: every fault of every table at once."""

import dataclasses
import tomllib
import typing
from pathlib import Path
from typing import Any, Literal

from model.config import TransformerConfig
from model.training import AugmentationConfig, CorpusConfig, Recipe, TokenizerConfig, TrainingConfig

_TABLES: dict[str, type[Any]] = {
    "model": TransformerConfig,
    "training": TrainingConfig,
    "tokenizer": TokenizerConfig,
    "augmentation": AugmentationConfig,
}
_KINDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}


def load_recipe(path: Path) -> Recipe:
    """Reads a recipe, such as `model/configs/tiny.toml`.

    One with `reverse_of`, a file beside it, is that recipe for the other direction; its tables, if it has any, change
    some values of that one's.

    Raises:
        OSError: there is no such file.
        ValueError: every fault, one a line: a name is unknown or missing, a value is of another kind or out of range;
            each with its table.
    """
    document = _read(path)
    return _reverse(path, document) if "reverse_of" in document else _build_recipe(path, document)


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _build_recipe(path: Path, document: dict[str, Any]) -> Recipe:
    faults: list[str] = []
    for name, kind in _TABLES.items():
        if name in document:
            document[name] = _build(kind, document[name], f"[{name}]", faults)
    for name in ("train", "dev"):
        corpora = document.get(name, [])
        corpora = corpora if isinstance(corpora, list) else [corpora]
        document[name] = tuple(
            _build(CorpusConfig, corpus, f"[[{name}]] {number}", faults) for number, corpus in enumerate(corpora, 1)
        )
    recipe = _build(Recipe, document, "the recipe", faults)
    if faults or recipe is None:
        raise ValueError("\n".join(f"{path}: {fault}" for fault in faults))
    return typing.cast("Recipe", recipe)


def _reverse(path: Path, document: dict[str, Any]) -> Recipe:
    names = [document.pop("name", None), document.pop("reverse_of")]
    is_table = [name in _TABLES and isinstance(values, dict) for name, values in document.items()]
    if not all(isinstance(name, str) for name in names) or not all(is_table):
        tables = ", ".join(f"[{name}]" for name in _TABLES)
        raise ValueError(f"{path}: a recipe with reverse_of has name beside it, both texts, and at most {tables}")
    base = path.parent / names[1]
    original = _read(base)
    if "reverse_of" in original:
        raise ValueError(f"{path}: reverse_of must name a recipe that is not itself the reverse of one")
    recipe = _build_recipe(base, dict(original))
    faults: list[str] = []
    own = {
        name: _build(_TABLES[name], {**original.get(name, {}), **values}, f"[{name}]", faults)
        for name, values in document.items()
    }
    if faults:
        raise ValueError("\n".join(f"{path}: {fault}" for fault in faults))
    train, dev = (
        tuple(dataclasses.replace(corpus, reverse=not corpus.reverse) for corpus in corpora)
        for corpora in (recipe.train, recipe.dev)
    )
    source, target = recipe.source_language, recipe.target_language
    try:
        return dataclasses.replace(
            recipe, name=names[0], source_language=target, target_language=source, train=train, dev=dev, **own
        )
    except ValueError as error:  # the name
        raise ValueError(f"{path}: {error}") from error


def _build(kind: type[Any], values: Any, where: str, faults: list[str]) -> Any:
    """Returns a `kind`, or None and its faults."""
    if not isinstance(values, dict):
        faults.append(f"{where}: must be a table, not {values!r}")
        return None
    hints = typing.get_type_hints(kind)
    known = {name: value for name, value in values.items() if name in hints}
    missing = [each.name for each in dataclasses.fields(kind) if _is_required(each) and each.name not in known]
    wrong = [fault for name, value in known.items() for fault in _kind_faults(name, value, hints[name])]
    found = [f"unknown name: {name}" for name in sorted(values.keys() - known.keys())]
    found += [f"{name} is missing" for name in missing] + wrong
    built = None
    if not missing and not wrong and None not in known.values():  # None is a table with faults of its own
        try:
            built = kind(**known)
        except ValueError as error:
            found += str(error).split("; ")
    faults += [f"{where}: {fault}" for fault in found]
    return None if found else built


def _is_required(field: "dataclasses.Field[Any]") -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _kind_faults(name: str, value: Any, hint: Any) -> list[str]:
    """Says whether a value is of the kind that its field wants; tables have been built already."""
    if type(None) in typing.get_args(hint):
        hint = typing.get_args(hint)[0]
    if typing.get_origin(hint) is Literal:
        choices = typing.get_args(hint)
        named = " or ".join(f'"{choice}"' for choice in choices)
        return [] if value in choices else [f"{name} must be {named}, not {value!r}"]
    if hint not in _KINDS or type(value) is hint or (hint is float and type(value) is int):
        return []
    return [f"{name} must be {_KINDS[hint]}, not {value!r}"]
