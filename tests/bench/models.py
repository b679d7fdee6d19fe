"""The models that are compared, made once and kept: each as a checkpoint, our bundle and CTranslate2 models."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import torch

from export.restore import read_checkpoint
from export.subject import weights_hash
from model.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from model.transformer import Transformer
from server.bundle.bundle import Bundle, open_bundle
from server.bundle.manifest import SHORTLIST_FILE, TOKENIZER_FILE
from server.bundle.shortlist import Shortlist
from tests.acceptance.server_process import BUILTIN_BUNDLE
from tests.bench.bundle import write_bundle
from tests.bench.shortlist import own_shortlist, random_shortlist
from tests.bench.text import ROOT, Text, read_text
from tests.bench.weights import SHAPES, random_model

BUILTIN = "builtin"
_QUANTIZATIONS = ("float32", "int8")
MODELS = (*SHAPES, BUILTIN)


@dataclass(frozen=True, slots=True)
class Model:
    """One set of weights in every form, and the text that it translates."""

    name: str
    checkpoint: Checkpoint
    checkpoint_path: Path
    text: Text
    bundle: Bundle
    ctranslate2: dict[str, Path]  # by quantization of the stored weights


def prepare(
    name: str,
    text_path: Path,
    work: Path,
    builtin: Path = BUILTIN_BUNDLE,
    seed: int = 1,
    variant: str = "cpu-int8",
    *,
    with_ctranslate2: bool = True,
) -> Model:
    """Returns a model, made in `work` unless it is there already.

    Args:
        name: one of `MODELS`.
        text_path: sentences to translate; they calibrate the int8 variant too.
        work: directory for what is made, a gigabyte for all models.
        builtin: the checkpoint of `BUILTIN`, or a bundle; the other models take the tokenizer of the built-in bundle.
        seed: of the random weights.
        variant: of our bundle, beside cpu-fp32.
        with_ctranslate2: whether to make CTranslate2's models too, which takes the dependency group `bench`.

    Raises:
        FileNotFoundError: there is no such checkpoint or text.
    """
    trained = read_checkpoint(builtin) if name == BUILTIN else None
    tokenizer = trained.tokenizer if trained else (BUILTIN_BUNDLE / TOKENIZER_FILE).read_bytes()
    facts = f"{name} {seed} {variant} {hashlib.sha256(tokenizer + text_path.read_bytes()).hexdigest()}"
    makers = [path for pattern in _MAKERS for path in sorted(ROOT.glob(pattern))]
    made_by = hashlib.sha256(facts.encode() + b"".join(path.read_bytes() for path in makers))
    if trained:
        made_by.update(weights_hash(trained.weights).encode())
    directory = work / f"{name}-{made_by.hexdigest()[:12]}"
    directory.mkdir(parents=True, exist_ok=True)
    checkpoint_path = directory / "model.pt"
    if not checkpoint_path.exists():
        save_checkpoint(checkpoint_path, trained or _random_checkpoint(name, tokenizer, seed))
    checkpoint = load_checkpoint(checkpoint_path)
    limit = min(200, checkpoint.config.max_positions // 2 - 8)
    text = read_text(text_path, tokenizer, limit)
    model = checkpoint.build_model()
    bundle_path = directory / "bundle"
    if bundle_path.exists():
        bundle = open_bundle(bundle_path)
    else:
        shortlist = own_shortlist(model, text) if name == BUILTIN else random_shortlist(checkpoint.config, seed)
        bundle = write_bundle(model, text, name, bundle_path, shortlist, ("cpu-fp32", variant))
    converted = _convert(model, bundle, directory) if with_ctranslate2 else {}
    return Model(name, checkpoint, checkpoint_path, text, bundle, converted)


_MAKERS = (
    "tests/bench/weights.py",
    "tests/bench/shortlist.py",
    "tests/bench/bundle.py",
    "tests/bench/conversion.py",
    "model/search.py",
    "export/*.py",
    "server/bundle/*.py",
    "server/runtime/slots.py",
)  # a change makes everything anew


def _random_checkpoint(name: str, tokenizer: bytes, seed: int) -> Checkpoint:
    weights: dict[str, torch.Tensor] = random_model(SHAPES[name], seed).state_dict()
    return Checkpoint(config=SHAPES[name], weights=weights, tokenizer=tokenizer, facts={"name": name})


def _convert(model: Transformer, bundle: Bundle, directory: Path) -> dict[str, Path]:
    from tests.bench.conversion import convert  # noqa: PLC0415  # needs the dependency group `bench`

    shortlist = Shortlist.load(bundle.read(SHORTLIST_FILE), model.config.vocab_size)
    paths = {quantization: directory / f"ctranslate2-{quantization}" for quantization in _QUANTIZATIONS}
    for quantization, path in paths.items():
        if not path.exists():
            convert(model, path, quantization, shortlist)
    return paths
