"""Reading recipes: every fault of every table at once."""

import dataclasses
import math
import tomllib
import typing
from pathlib import Path
from typing import Any, Literal

from model.config import TransformerConfig
from model.files import read_whole
from model.recipe import AugmentationConfig, CorpusConfig, Recipe, TokenizerConfig, TrainingConfig

_TABLES: dict[str, type[Any]] = {
    "model": TransformerConfig,
    "training": TrainingConfig,
    "tokenizer": TokenizerConfig,
    "augmentation": AugmentationConfig,
}
_DERIVED = ("variant_of", "reverse_of")  # keys of a recipe that is made of another one
_MAX_BYTES = 1 << 18  # of a recipe; one with a hundred corpora has 10 KB
# Of a line. Dots divide the parts of a key, for which tomllib takes quadratic time. Halved, forty corpora on one line
# are refused; doubled, a file of `_MAX_BYTES` takes 6 s.
_MAX_DOTS = 200
_KINDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}


def load_recipe(path: Path) -> Recipe:
    """Reads a recipe, such as `model/configs/tiny.toml`.

    One with `variant_of` is the recipe of a file beside it, another name and other values in some tables apart; one
    with `reverse_of` is that for the other direction, too.

    Raises:
        OSError: there is no such file, or it cannot be read.
        ValueError: every fault, one a line: a name is unknown or missing, a value is of another kind or out of range;
            each with its file and table. Or the file is no TOML, or too large.
    """
    document = _read(path)
    derived = [key for key in _DERIVED if key in document]
    return _derive(path, document, derived[0]) if derived else _build_recipe(path, document)


def _read(path: Path) -> dict[str, Any]:
    content = read_whole(path, _MAX_BYTES)
    for number, line in enumerate(content.split(b"\n"), 1):
        if line.count(b".") > _MAX_DOTS:
            raise ValueError(f"{path}, line {number}: must have at most {_MAX_DOTS} dots, not {line.count(b'.')}")
    try:
        return tomllib.loads(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        number = content.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{path}, line {number}: is not UTF-8: {error.reason}") from error
    except RecursionError as error:
        raise ValueError(f"{path}: arrays or tables stand too deep in each other") from error
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
        built = [_build(CorpusConfig, corpus, f"[[{name}]] {n}", faults) for n, corpus in enumerate(corpora, 1)]
        document[name] = None if None in built else tuple(built)
    recipe = _build(Recipe, document, "the recipe", faults)
    if faults or recipe is None:
        raise ValueError("\n".join(f"{path}: {fault}" for fault in faults))
    return typing.cast("Recipe", recipe)


def _derive(path: Path, document: dict[str, Any], how: str) -> Recipe:
    names = [document.pop("name", None), document.pop(how)]
    is_table = [name in _TABLES and isinstance(values, dict) for name, values in document.items()]
    if not all(isinstance(name, str) for name in names) or not all(is_table):
        tables = ", ".join(f"[{name}]" for name in _TABLES)
        raise ValueError(f"{path}: a recipe with {how} has name beside it, both texts, and at most {tables}")
    if not names[1].isprintable():
        raise ValueError(f"{path}: {how} must be printable, not {names[1]!r:.80}")
    base = path.parent / names[1]
    original = _read(base)
    if any(key in original for key in _DERIVED):
        raise ValueError(f"{path}: {how} must name a recipe that is not itself one with {' or '.join(_DERIVED)}")
    recipe = _build_recipe(base, dict(original))
    faults: list[str] = []
    own = {
        name: _build(_TABLES[name], {**original.get(name, {}), **values}, f"[{name}]", faults)
        for name, values in document.items()
    }
    if faults:
        raise ValueError("\n".join(f"{path}: {fault}" for fault in faults))
    if how == "reverse_of":
        recipe = _reverse(recipe)
    try:
        return dataclasses.replace(recipe, name=names[0], **own)
    except ValueError as error:  # the name
        raise ValueError(f"{path}: {error}") from error


def _reverse(recipe: Recipe) -> Recipe:
    train, dev = (
        tuple(dataclasses.replace(corpus, reverse=not corpus.reverse) for corpus in corpora)
        for corpora in (recipe.train, recipe.dev)
    )
    source, target = recipe.source_language, recipe.target_language
    return dataclasses.replace(recipe, source_language=target, target_language=source, train=train, dev=dev)


def _build(kind: type[Any], values: Any, where: str, faults: list[str]) -> Any:
    """Returns a `kind`, or None and its faults."""
    if not isinstance(values, dict):
        faults.append(f"{where}: must be a table, not {_shown(values)}")
        return None
    hints = typing.get_type_hints(kind)
    known = {name: value for name, value in values.items() if name in hints}
    missing = [each.name for each in dataclasses.fields(kind) if _is_required(each) and each.name not in known]
    wrong = [fault for name, value in known.items() for fault in _kind_faults(name, value, hints[name])]
    unknown = sorted(values.keys() - known.keys())
    found = [f"unknown name: {name if name.isidentifier() else repr(name):.80}" for name in unknown]
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
        return [] if value in choices else [f"{name} must be {named}, not {_shown(value)}"]
    if hint not in _KINDS:
        return []
    if type(value) is not hint and not (hint is float and type(value) is int):
        return [f"{name} must be {_KINDS[hint]}, not {_shown(value)}"]
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:  # TOML's range
        return [f"{name} must be a number of 64 bits, not {_shown(value)}"]
    if isinstance(value, float) and not math.isfinite(value):
        return [f"{name} must be finite, not {value}"]
    return []


def _shown(value: object) -> str:
    """Returns the beginning of a value as Python writes it; of one that Python cannot write, its kind."""
    try:
        return f"{value!r:.80}"
    except (RecursionError, ValueError):  # tables too deep in each other; a number of thousands of digits
        return f"such a {type(value).__name__}"
