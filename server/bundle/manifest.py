"""`manifest.json`: what a bundle says of itself; read with every fault reported at once."""

import dataclasses
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from server.bundle.graphs import MAX_BEAM_SIZE, StepForm
from server.bundle.parsing import parse
from server.bundle.variants import VARIANTS
from server.errors import BundleError

REVISION = 4  # raised whenever a reader of the previous revision could not read a new bundle
MANIFEST_FILE = "manifest.json"
TOKENIZER_FILE = "tokenizer.model"
SHORTLIST_FILE = "shortlist.npz"  # optional: see `server.bundle.shortlist`


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguagePair:
    """BCP-47 codes of a direction that the model translates."""

    source: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimensions:
    """Sizes that tensors are checked against; `d_model` = `num_heads` * `head_dim`."""

    vocab_size: int
    d_model: int
    num_heads: int
    head_dim: int
    encoder_layers: int
    decoder_layers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecialIds:
    """Token ids with a meaning of their own."""

    pad: int
    unk: int
    bos: int
    eos: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Most tokens of a sentence (eos included) and widest beam that the graphs were proved with."""

    max_source_tokens: int
    max_target_tokens: int
    max_beam_size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFacts:
    """What a file must be, to the byte."""

    sha256: str
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """The files of a variant, one of `VARIANTS`."""

    dtype: str  # of the caches and the token embedding, as `VARIANTS` has it
    embedding_offset: int  # in bytes, of the token embedding in `WEIGHTS_FILE`
    opsets: dict[str, int]
    files: dict[str, FileFacts]

    @property
    def has_shortlist(self) -> bool:
        """Whether there are steps with a shortlist."""
        return StepForm(has_shortlist=True).file in self.files

    @property
    def sha256(self) -> str:
        """One hash that stands for all files: of their names and hashes."""
        listing = "".join(f"{name} {facts.sha256}\n" for name, facts in sorted(self.files.items()))
        return hashlib.sha256(listing.encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenOutput:
    """What a variant translated the golden sentence to: ids without bos and eos, and the hypothesis score."""

    ids: tuple[int, ...]
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Golden:
    """A sentence that every start-up translates before the server calls itself SERVING."""

    source_text: str
    source_ids: tuple[int, ...]  # eos included
    beam_size: int
    outputs: dict[str, GoldenOutput]


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """All of `manifest.json`; `training`, `quality` and `parity` are for people and are not interpreted."""

    revision: int
    name: str
    version: str
    language_pairs: tuple[LanguagePair, ...]
    dimensions: Dimensions
    special_ids: SpecialIds
    limits: Limits
    tokenizer: FileFacts
    variants: dict[str, Variant]
    golden: Golden
    extra_files: dict[str, FileFacts] = field(default_factory=dict)  # optional ones, such as `SHORTLIST_FILE`
    training: dict[str, Any] = field(default_factory=dict)
    quality: dict[str, Any] = field(default_factory=dict)
    parity: dict[str, Any] = field(default_factory=dict)

    def position_bytes(self, variant: str) -> int:
        """Returns what a position of the self- or cross-attention cache takes: a key and a value of all layers."""
        itemsize = np.dtype(self.variants[variant].dtype).itemsize
        return 2 * self.dimensions.decoder_layers * self.dimensions.d_model * itemsize

    def to_json(self) -> str:
        """Returns the text of `manifest.json`."""
        return json.dumps(dataclasses.asdict(self), indent=2, ensure_ascii=False) + "\n"


def read_manifest(directory: Path) -> Manifest:
    """Reads the manifest of a bundle; the files that it names are not looked at.

    Raises:
        BundleError: it cannot be read, or every fault of it.
    """
    path = directory / MANIFEST_FILE
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise BundleError([f"{path}: cannot be read: {error}"]) from error
    revision = document.get("revision") if isinstance(document, dict) else None
    if revision != REVISION:
        raise BundleError([f"{path}: revision is {revision}; this server reads revision {REVISION}"])
    faults: list[str] = []
    manifest = parse(Manifest, document, "", faults)
    if not faults:
        faults = _check_manifest(manifest)
    if faults:
        raise BundleError([f"{path}: {fault}" for fault in faults])
    checked: Manifest = manifest
    return checked


def _check_manifest(manifest: Manifest) -> list[str]:
    dimensions, limits = manifest.dimensions, manifest.limits
    sizes = {**dataclasses.asdict(dimensions), **dataclasses.asdict(limits)}
    faults = [f"{name} must be at least 1, not {size}" for name, size in sizes.items() if size < 1]
    if limits.max_beam_size > MAX_BEAM_SIZE:
        faults.append(f"limits.max_beam_size must be at most {MAX_BEAM_SIZE}, not {limits.max_beam_size}")
    if dimensions.d_model != dimensions.num_heads * dimensions.head_dim:
        faults.append(f"dimensions.d_model {dimensions.d_model} is not num_heads * head_dim")
    for name, value in dataclasses.asdict(manifest.special_ids).items():
        if not 0 <= value < dimensions.vocab_size:
            faults.append(f"special_ids.{name} must be in 0..{dimensions.vocab_size - 1}, not {value}")
    if not manifest.language_pairs:
        faults.append("language_pairs is empty")
    if not manifest.variants:
        faults.append("variants is empty")
    faults += [f"extra_files: {fault}" for fault in _check_plain(manifest.extra_files)]
    for name, variant in manifest.variants.items():
        faults += [f"variants.{name}{fault}" for fault in _check_variant(name, variant)]
        if variant.has_shortlist and SHORTLIST_FILE not in manifest.extra_files:
            faults.append(f"extra_files lacks {SHORTLIST_FILE}, which steps of variants.{name} need")
        if name not in manifest.golden.outputs:
            faults.append(f"golden.outputs lacks {name}")
    return faults


def _check_variant(name: str, variant: Variant) -> list[str]:
    if name not in VARIANTS:
        return [f": unknown variant; known are {', '.join(VARIANTS)}"]
    faults = [f".files: {fault}" for fault in _check_plain(variant.files)]
    if variant.dtype != VARIANTS[name].dtype:
        faults.append(f".dtype must be {VARIANTS[name].dtype}, not {variant.dtype}")
    if variant.embedding_offset < 0:
        faults.append(f".embedding_offset must be at least 0, not {variant.embedding_offset}")
    return faults


def _check_plain(names: Iterable[str]) -> list[str]:
    outside = [name for name in names if PurePosixPath(name).parts != (name,) or name == ".."]
    return [f"{name!r} is not a plain file name" for name in outside]
