"""A checkpoint: one file with weights, configuration, tokenizer and training facts; loaded without running any code."""

import dataclasses
import json
import math
import pickle
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor

from model.config import TransformerConfig
from model.families import FAMILIES
from model.files import opened, replacing
from model.network import Network
from model.transformer import Transformer
from model.vocabulary import open_vocabulary

FORMAT = 1  # raised whenever a weight is renamed
# Of all facts, of which a recipe of 100 corpora has 20,000. Half would still do. Twice as much makes manifests that are
# too long to be read.
_MAX_CHARACTERS = 1 << 18
# What `torch.load` and a look at its answer raise for files that are damaged, or hold something else.
FOREIGN = (
    *(ArithmeticError, AssertionError, AttributeError, EOFError, LookupError, MemoryError, RuntimeError, TypeError),
    *(ValueError, pickle.UnpicklingError, zipfile.BadZipFile),
)


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

    def build_network(self) -> Network:
        """Returns the model in evaluation mode, float32, of whatever family."""
        network = FAMILIES[self.config.family].network(self.config)
        network.load_state_dict({name: weight.float() for name, weight in self.weights.items()})
        return network.eval()

    def build_model(self) -> Transformer:
        """Returns a model of the family "transformer", as `build_network`. Raises ValueError for one of another."""
        network = self.build_network()
        if not isinstance(network, Transformer):
            raise ValueError(f'the model is of the family "{self.config.family}", not "transformer"')
        return network


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
        OSError: it cannot be read.
        ValueError: the file is not a checkpoint of this format.
    """
    try:
        with opened(path) as file:
            check_archive(file)
        document = torch.load(path, map_location="cpu", weights_only=True)
        if not isinstance(document, dict):
            raise TypeError(f"it holds a {type(document).__name__}")
        if document["format"] != FORMAT:
            raise ValueError(f"it has checkpoint format {document['format']!r:.20}; this version reads {FORMAT}")
        checkpoint = Checkpoint(
            config=TransformerConfig(**document["config"]),
            weights=document["weights"],
            tokenizer=document["tokenizer"],
            facts=document["facts"],
        )
        kinds = (dict, bytes, dict)
        if not all(map(isinstance, (checkpoint.weights, checkpoint.tokenizer, checkpoint.facts), kinds)):
            raise TypeError("weights and facts must be tables, and the tokenizer bytes")
        num_bytes = sum(getattr(weight, "nbytes", 0) for weight in checkpoint.weights.values())
        if num_bytes > (there := path.stat().st_size):  # tensors may have the same numbers, or one again and again
            raise ValueError(f"its weights take {num_bytes} bytes, and it has {there}")
        if bad := [str(name) for name, weight in checkpoint.weights.items() if not _has_numbers(weight)]:
            raise TypeError(f"{bad[0]!r:.80} has NaN or infinity, or is no tensor of numbers")
        _check_facts(checkpoint.facts)
        open_vocabulary(checkpoint.tokenizer)
    except FOREIGN as error:
        raise ValueError(f"{path} is not a babelserve checkpoint: {first_line(error)}") from error
    if fault := _misfit(checkpoint):
        raise ValueError(f"{path} has not the weights of its network: {fault}")
    return checkpoint


def check_archive(file: BinaryIO) -> None:
    """Raises ValueError unless a file is a zip archive that packs nothing, as torch's: few bytes could be gigabytes."""
    if not zipfile.is_zipfile(file):  # foreign or cut off: torch.load may raise anything
        raise ValueError("it is no whole zip archive")
    with zipfile.ZipFile(file) as archive:
        packed = [each.filename for each in archive.infolist() if each.compress_type != zipfile.ZIP_STORED]
    if packed:
        raise ValueError(f"{packed[0]!r:.80} is packed")


def _has_numbers(weight: object) -> bool:
    """Says whether it is a tensor of numbers; -inf is one, with which a bias suppresses a token."""
    kinds = (torch.float16, torch.float32, torch.float64)
    return isinstance(weight, Tensor) and weight.dtype in kinds and bool((weight < math.inf).all())


def _check_facts(facts: dict[str, Any]) -> None:
    """Raises ValueError or TypeError unless facts are what a manifest may have. A file may hold 2^60 lists in 60."""
    num_characters = 0
    for part in json.JSONEncoder(ensure_ascii=False, allow_nan=False).iterencode(facts):
        part.encode()  # raises for half a character
        num_characters += len(part)
        if num_characters > _MAX_CHARACTERS:
            raise ValueError(f"its facts have more than {_MAX_CHARACTERS} characters as JSON")


def _misfit(checkpoint: Checkpoint) -> str:
    """Says which weight is not one of the network, without making the network, which might be larger than the file."""
    with torch.device("meta"):
        network = FAMILIES[checkpoint.config.family].network(checkpoint.config)
    wanted = {name: list(weight.shape) for name, weight in network.state_dict().items()}
    found = {name: list(weight.shape) for name, weight in checkpoint.weights.items()}
    wrong = [name for name in {**wanted, **found} if wanted.get(name) != found.get(name)]
    if not wrong:
        return ""
    shapes = [str(shapes.get(wrong[0], "nothing")) for shapes in (found, wanted)]
    return f"{wrong[0]!r:.80} is {shapes[0]}, and must be {shapes[1]}"


def first_line(error: Exception) -> str:
    """Returns what an error says, or its kind if it says nothing; PyTorch adds lines for its developers."""
    return str(error).partition("\n")[0] or type(error).__name__


def average_weights(paths: list[Path]) -> dict[str, Tensor]:
    """Returns the mean of several checkpoints' weights, which translates better than the last alone (section 6.1)."""
    checkpoints = [load_checkpoint(path).weights for path in paths]
    return {
        name: torch.stack([weights[name].double() for weights in checkpoints]).mean(0).to(first.dtype)
        for name, first in checkpoints[0].items()
    }


def save_atomically(path: Path, document: dict[str, Any]) -> None:
    """Writes `document` with torch.save, whole or not at all. Raises OSError."""
    with replacing(path) as draft:
        torch.save(document, draft)
