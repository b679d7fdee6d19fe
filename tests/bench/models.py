"""The models that are compared, made once and kept: each as a checkpoint, our bundle and CTranslate2 models."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import torch

from model.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from server.bundle import Bundle, open_bundle
from tests.bench.bundle import write_bundle
from tests.bench.conversion import QUANTIZATIONS, convert
from tests.bench.text import Text, read_text
from tests.bench.weights import SHAPES, random_model

BUILTIN = "builtin"
MODELS = (*SHAPES, BUILTIN)


@dataclass(frozen=True, slots=True)
class Model:
    """One set of weights in every form, and the text that it translates."""

    name: str
    checkpoint: Checkpoint
    text: Text
    bundle: Bundle
    ctranslate2: dict[str, Path]  # by quantization of the stored weights


def prepare(name: str, text_path: Path, work: Path, builtin_checkpoint: Path, seed: int = 1) -> Model:
    """Returns a model, made in `work` unless it is there already.

    Args:
        name: one of `MODELS`.
        text_path: sentences to translate; they calibrate the int8 variant too.
        work: directory for what is made, a gigabyte for all models.
        builtin_checkpoint: of the built-in model, whose tokenizer the random models take too.
        seed: of the random weights.

    Raises:
        FileNotFoundError: there is no such checkpoint or text.
    """
    trained = load_checkpoint(builtin_checkpoint)
    facts = f"{name} {seed} {hashlib.sha256(trained.tokenizer + text_path.read_bytes()).hexdigest()}"
    sources = sorted([*Path(__file__).parent.glob("*.py"), *(Path(__file__).parents[2] / "export").glob("*.py")])
    made_by = hashlib.sha256(facts.encode() + b"".join(p.read_bytes() for p in sources if p.name in _MAKERS))
    if name == BUILTIN:
        made_by.update(builtin_checkpoint.read_bytes())
    directory = work / f"{name}-{made_by.hexdigest()[:12]}"
    directory.mkdir(parents=True, exist_ok=True)
    checkpoint = (
        trained if name == BUILTIN else _random_checkpoint(name, trained.tokenizer, seed, directory / "model.pt")
    )
    limit = min(200, checkpoint.config.max_positions // 2 - 8)
    text = read_text(text_path, trained.tokenizer, limit)
    model = checkpoint.build_model()
    bundle_path = directory / "bundle"
    bundle = open_bundle(bundle_path) if bundle_path.exists() else write_bundle(model, text, name, bundle_path)
    converted = {quantization: directory / f"ctranslate2-{quantization}" for quantization in QUANTIZATIONS}
    for quantization, path in converted.items():
        if not path.exists():
            convert(model, path, quantization)
    return Model(name, checkpoint, text, bundle, converted)


_MAKERS = (
    "weights.py",
    "bundle.py",
    "conversion.py",
    "graphs.py",
    "quantize.py",
    "calibrate.py",
)  # a change makes everything anew


def _random_checkpoint(name: str, tokenizer: bytes, seed: int, path: Path) -> Checkpoint:
    if not path.exists():
        config = SHAPES[name]
        weights: dict[str, torch.Tensor] = random_model(config, seed).state_dict()
        save_checkpoint(path, Checkpoint(config=config, weights=weights, tokenizer=tokenizer, facts={"name": name}))
    return load_checkpoint(path)
