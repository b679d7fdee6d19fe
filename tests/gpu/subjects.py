"""The models that are tried: the built-in one, random ones of real shapes, one with SSRUs, and one with windows.

None needs a checkpoint or the weights of cpu-int8: a machine without a network may have been given neither.
"""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from model.checkpoint import load_checkpoint
from model.config import TransformerConfig
from model.transformer import Transformer
from server.bundle.bundle import Bundle, open_bundle
from server.bundle.graphs import HALVES_FILE
from server.bundle.manifest import MANIFEST_FILE, TOKENIZER_FILE
from server.bundle.manifest_file import read_manifest
from server.bundle.shortlist import Shortlist
from tests.acceptance.server_process import BUILTIN_BUNDLE
from tests.bench.bundle import write_bundle
from tests.bench.models import prepare
from tests.bench.text import DEFAULT_TEXT, ROOT, Text, read_text
from tests.bench.weights import SHAPES

VARIANTS = ("cpu-fp32", "cuda-fp16")
TINY = ROOT / "tests" / "data" / "tiny.pt"


@dataclass(frozen=True, slots=True)
class Subject:
    """A bundle with cpu-fp32 and cuda-fp16, and sentences as it takes them; whether it was trained."""

    name: str
    bundle: Bundle
    sources: list[tuple[int, ...]]
    is_trained: bool = False


def subjects(work: Path, *, is_quick: bool) -> Iterator[Subject]:
    """Yields those to compare, each made in `work` when its turn comes, unless it is there; quick: two tiny ones."""
    if is_quick:
        yield tiny(work)
        yield tiny(work, "ssru")
        return
    if has_weights():
        yield trained()
    yield random("student", work)
    yield random("base", work)
    yield with_ssrus(work)
    yield windowed(work)


def has_weights() -> bool:
    """Whether the weights are there that the built-in model's cpu-fp32 and cuda-fp16 share."""
    return (BUILTIN_BUNDLE / HALVES_FILE).exists()


def trained() -> Subject:
    """Returns the built-in model. Its cpu-int8 is not read."""
    bundle = Bundle(directory=BUILTIN_BUNDLE, manifest=read_manifest(BUILTIN_BUNDLE))
    text = read_text(DEFAULT_TEXT, bundle.read(TOKENIZER_FILE), bundle.manifest.limits.max_source_tokens)
    return Subject("en-de", bundle, text.source_ids, is_trained=True)


def random(name: str, work: Path) -> Subject:
    """Returns one of the benchmark's random models, as `python -m tests.bench --device cuda` makes it."""
    model = prepare(name, DEFAULT_TEXT, work, variant="cuda-fp16", with_ctranslate2=False)
    return Subject(name, model.bundle, model.text.source_ids)


def with_ssrus(work: Path) -> Subject:
    """Returns a random model whose decoder has SSRUs in place of self-attention."""
    config = dataclasses.replace(SHAPES["student"], decoder_mixer="ssru")
    return _student("student with SSRUs", config, work / "student-ssru")


def windowed(work: Path) -> Subject:
    """Returns a random model whose decoder attends to the last eight target tokens alone."""
    return _student(
        "student with windows", dataclasses.replace(SHAPES["student"], self_window=8), work / "student-window"
    )


def tiny(work: Path, mixer: Literal["attention", "ssru"] = "attention") -> Subject:
    """Returns the tests' tiny model, or a random one of its shape with SSRUs."""
    checkpoint = load_checkpoint(TINY)
    config = dataclasses.replace(checkpoint.config, decoder_mixer=mixer)
    torch.manual_seed(1)
    model = checkpoint.build_model() if mixer == checkpoint.config.decoder_mixer else Transformer(config).eval()
    return _written(f"tiny {mixer}", model, _text(config, checkpoint.tokenizer), work / f"tiny-{mixer}")


def _student(name: str, config: TransformerConfig, directory: Path) -> Subject:
    tokenizer = (BUILTIN_BUNDLE / TOKENIZER_FILE).read_bytes()
    torch.manual_seed(1)
    return _written(name, Transformer(config).eval(), _text(config, tokenizer), directory)


def _text(config: TransformerConfig, tokenizer: bytes) -> Text:
    return read_text(DEFAULT_TEXT, tokenizer, config.max_positions // 2 - 8)


def _written(name: str, model: Transformer, text: Text, directory: Path) -> Subject:
    if (directory / MANIFEST_FILE).exists():
        bundle = open_bundle(directory)
    else:
        size = model.config.vocab_size
        shortlist = Shortlist(np.zeros((size, 1), np.int32), np.arange(size, dtype=np.int32))
        bundle = write_bundle(model, text, name.replace(" ", "-"), directory, shortlist, VARIANTS)
    return Subject(name, bundle, text.source_ids)
