"""A checkpoint: one file with weights, configuration, tokenizer and training facts; loaded without running any code."""

import dataclasses
import pickle
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from model.config import TransformerConfig
from model.transformer import Transformer

FORMAT = 1  # raised whenever a weight is renamed


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A trained model and what is needed to use it.

    Attributes:
        facts: JSON-like training facts (name, languages, recipe, steps, scores), copied into the bundle's manifest.
        tokenizer: the serialised SentencePiece model.
    """

    config: TransformerConfig
    weights: dict[str, Tensor]
    tokenizer: bytes
    facts: dict[str, Any] = field(default_factory=dict)

    def build_model(self) -> Transformer:
        """Returns the model in evaluation mode, float32."""
        model = Transformer(self.config)
        model.load_state_dict({name: weight.float() for name, weight in self.weights.items()})
        return model.eval()


def save_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Writes the file whole or not at all."""
    document = {
        "format": FORMAT,
        "config": dataclasses.asdict(checkpoint.config),
        "weights": checkpoint.weights,
        "tokenizer": checkpoint.tokenizer,
        "facts": checkpoint.facts,
    }
    save_atomically(path, document)


def load_checkpoint(path: Path) -> Checkpoint:
    """Reads a file written by `save_checkpoint`.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is not a checkpoint of this format.
    """
    with path.open("rb") as file:
        if not zipfile.is_zipfile(file):  # foreign or cut off: torch.load may raise anything
            raise ValueError(f"{path} is not a babelserve checkpoint: it is no whole zip archive")
    try:
        document = torch.load(path, map_location="cpu", weights_only=True)
        if not isinstance(document, dict):
            raise TypeError(f"it holds a {type(document).__name__}")
        if document["format"] != FORMAT:
            raise ValueError(f"{path} has checkpoint format {document['format']}; this version reads {FORMAT}")
        return Checkpoint(
            config=TransformerConfig(**document["config"]),
            weights=document["weights"],
            tokenizer=document["tokenizer"],
            facts=document["facts"],
        )
    except (KeyError, TypeError, RuntimeError, pickle.UnpicklingError) as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(f"{path} is not a babelserve checkpoint: {reason}") from error


def average_weights(paths: list[Path]) -> dict[str, Tensor]:
    """Returns the mean of several checkpoints' weights, which translates better than the last alone (section 6.1)."""
    checkpoints = [load_checkpoint(path).weights for path in paths]
    return {
        name: torch.stack([weights[name].double() for weights in checkpoints]).mean(0).to(first.dtype)
        for name, first in checkpoints[0].items()
    }


def save_atomically(path: Path, document: dict[str, Any]) -> None:
    """Writes `document` with torch.save to a temporary sibling, then renames it over `path`. Raises OSError."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        torch.save(document, temporary)
    except RuntimeError as error:  # torch's, for a full disk too
        raise OSError(f"{temporary} cannot be written: {str(error).partition(chr(10))[0]}") from error
    temporary.replace(path)
