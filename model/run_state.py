"""`state.pt`: all that a stopped run needs to go on, and whether a recipe is still that of the run."""

import dataclasses
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from model.checkpoint import save_atomically
from model.training import Recipe

_MAY_CHANGE = ("dropout", "inner_dropout")  # of a model under way; whatever else shapes it may not


def save_run(path: Path, recipe: Recipe, state: dict[str, Any]) -> None:
    """Writes a run's state whole or not at all.

    Args:
        path: the file.
        recipe: of the run.
        state: tensors and plain values.

    Raises:
        OSError: it cannot be written.
    """
    save_atomically(path, {**state, "recipe": dataclasses.asdict(recipe)})


def load_run(path: Path, recipe: Recipe) -> dict[str, Any]:
    """Reads what `save_run` wrote.

    Raises:
        OSError: it cannot be read.
        ValueError: it is damaged, or the recipe is not that of the run any more: every difference, one a line.
    """
    try:
        document = torch.load(path, map_location="cpu", weights_only=True)
        before = document.get("recipe", {})  # runs begun by older versions have none
    except (AttributeError, EOFError, RuntimeError, pickle.UnpicklingError) as error:
        raise ValueError(f"{path} is damaged: {str(error).partition(chr(10))[0]}") from error
    if differences := list(_differences(before, dataclasses.asdict(recipe))):
        advice = f"{path.parent} holds a run of another recipe; take that one, or another --out"
        raise ValueError("\n".join([advice, *(f"{path.parent}: {difference}" for difference in differences)]))
    state: dict[str, Any] = document
    return state


def _differences(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    """Yields what decides the weights' shapes or the vocabulary, where it is not what it was."""
    for name in ("source_language", "target_language", "model", "tokenizer", "training"):
        was, wanted = before.get(name, after[name]), after[name]
        if not isinstance(was, dict):
            was, wanted = {"": was}, {"": wanted}
        keys = ["optimizer"] if name == "training" else [key for key in was if key not in _MAY_CHANGE]
        for key in keys:
            if key in was and was[key] != wanted.get(key):
                yield f"{name}{'.' if key else ''}{key} was {was[key]!r}, the recipe says {wanted.get(key)!r}"
