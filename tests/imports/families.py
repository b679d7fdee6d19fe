"""What the tiny models have in common: a directory as on the hub, and what to learn and to ask."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MODELS = Path(__file__).parent / "models"
EXPECTED = Path(__file__).parent / "expected"


@dataclass(frozen=True, slots=True)
class Direction:
    """From a language of `Pair.in_language` to another, with the model's own names, None where it has but one."""

    source: str
    target: str
    source_name: str | None = None
    target_name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A tiny model to be made.

    Attributes:
        name: of the directory in `models`.
        write: writes config, generation config and tokenizer into the directory, as the hub has them.
        directions: what it learns; the sentences take turns in them.
        encode: (the tokenizer of `transformers`, text, direction) to source ids.
        labels: likewise, to target ids as the decoder must give them: with language token and eos.
        forced_bos: the id that `generate` is to force first, if any.
        half: the weights are stored in 16 bits.
        pickled: as pytorch_model.bin instead of model.safetensors.
        absent: parts of names that the hub's file does not have.
        duplicated: names of tied tensors that the hub's file has nevertheless.
        steps: of training.
        max_tokens: length limit of the expected translations, forced first token and eos included.
    """

    name: str
    write: Callable[[Path], None]
    directions: tuple[Direction, ...]
    encode: Callable[[Any, str, Direction], list[int]]
    labels: Callable[[Any, str, Direction], list[int]]
    forced_bos: Callable[[Any, Direction], int | None] = lambda tokenizer, direction: None
    half: bool = False
    pickled: bool = False
    absent: tuple[str, ...] = ()
    duplicated: tuple[str, ...] = ()
    steps: int = 400
    max_tokens: int = 24


def write_json(path: Path, content: Any, indent: int | None = 2) -> None:
    """Writes a JSON file as `transformers` does: sorted by no one, not escaped, with a newline at the end."""
    path.write_text(json.dumps(content, indent=indent, ensure_ascii=False) + "\n", encoding="utf-8")
