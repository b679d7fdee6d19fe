"""Where a run starts from, and whether it fits the recipe: `state.pt`, with all that goes on, or a trained model."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from model.checkpoint import FOREIGN, Checkpoint, check_archive, first_line, load_checkpoint, save_atomically
from model.files import opened
from model.recipe import Recipe

_MAY_CHANGE = ("dropout", "inner_dropout")  # of a model under way; whatever else shapes it may not

_NOT_OF_ENCODERS = ("family", "decoder_layers", "decoder_mixer", "self_window", "output_bias")


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
        ValueError: it is damaged, the recipe is not that of the run any more (every difference, one a line), or the run
            has made more updates than the recipe's `max_steps`.
    """
    with opened(path) as file:
        try:
            check_archive(file)
            file.seek(0)
            document = torch.load(file, map_location="cpu", weights_only=True)
            before = document.get("recipe", {})  # runs begun by older versions have none
            differences = list(_differences(before, dataclasses.asdict(recipe)))
            step = int(document.get("progress", {}).get("step", 0))
        except FOREIGN as error:
            raise ValueError(f"{path} is damaged: {first_line(error)}") from error
    if differences:
        advice = f"{path.parent} holds a run of another recipe; take that one, or another --out"
        raise ValueError("\n".join([advice, *(f"{path.parent}: {difference}" for difference in differences)]))
    if step > (max_steps := recipe.training.max_steps):
        made = f"{path.parent} holds a run of {step} updates, more than max_steps, {max_steps}"
        raise ValueError(f"{made}: raise it, or take another --out")
    state: dict[str, Any] = document
    return state


def load_pretrained(path: Path, recipe: Recipe) -> Checkpoint:
    """Reads a trained model, of any languages, for a run that begins with its weights and vocabulary.

    A model of another family must have the recipe's encoder, which a recurrent one never has.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no checkpoint, or its network is not the recipe's: every difference, one a line.
    """
    checkpoint = load_checkpoint(path)
    model = dataclasses.asdict(checkpoint.config)
    families = {checkpoint.config.family, recipe.model.family}
    if len(families) > 1 and "recurrent" not in families:
        model = {name: value for name, value in model.items() if name not in _NOT_OF_ENCODERS}
    if differences := list(_differences({"model": model}, dataclasses.asdict(recipe))):
        advice = f"{path} is another network; take its [model], or train without it"
        raise ValueError("\n".join([advice, *(f"{path}: {difference}" for difference in differences)]))
    return checkpoint


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
