"""`manifest.json`: what a bundle says of itself; read with every fault reported at once."""

import dataclasses
import hashlib
import json
import logging
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from server.bundle.files import FileFacts, read_file
from server.bundle.graphs import MAX_BEAM_SIZE, StepForm
from server.bundle.parsing import parse, parse_json
from server.bundle.variants import VARIANTS
from server.errors import BundleError

logger = logging.getLogger(__name__)

REVISION = 4  # raised whenever a reader of the previous revision could not read a new bundle
MANIFEST_FILE = "manifest.json"
SEAL_FILE = "manifest.json.sha256"  # what `sha256sum manifest.json` prints
TOKENIZER_FILE = "tokenizer.model"
SHORTLIST_FILE = "shortlist.npz"  # optional: see `server.bundle.shortlist`

# Beyond these a manifest is mistaken; much is allocated by what it says, before any graph could contradict it.
_GREATEST = {
    "vocab_size": 2**20,
    "d_model": 2**14,
    "num_heads": 2**8,
    "head_dim": 2**10,
    "encoder_layers": 2**8,
    "decoder_layers": 2**8,
    "max_source_tokens": 2**13,
    "max_target_tokens": 2**13,
    "max_beam_size": MAX_BEAM_SIZE,
}
_MAX_NAME_CHARACTERS = 128
_MAX_FAULTS = 20  # that are named
_PLAIN_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")


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

    def files(self, variants: Iterable[str]) -> dict[str, FileFacts]:
        """Returns the facts of every file that some variants need, by path in the bundle, and of those they share."""
        files = {TOKENIZER_FILE: self.tokenizer, **self.extra_files}
        for name in variants:
            files |= {f"{name}/{file}": facts for file, facts in self.variants[name].files.items()}
        return files

    def position_bytes(self, variant: str) -> int:
        """Returns what a position of the self- or cross-attention cache takes: a key and a value of all layers."""
        itemsize = np.dtype(self.variants[variant].dtype).itemsize
        return 2 * self.dimensions.decoder_layers * self.dimensions.d_model * itemsize

    def to_json(self) -> str:
        """Returns the text of `manifest.json`."""
        return json.dumps(dataclasses.asdict(self), indent=2, ensure_ascii=False) + "\n"


def seal_manifest(directory: Path) -> None:
    """Seals the manifest that is in a directory: whatever it says, it is what whoever sealed it meant."""
    data = (directory / MANIFEST_FILE).read_bytes()
    (directory / SEAL_FILE).write_bytes(seal(data))


def seal(manifest: bytes) -> bytes:
    """Returns what `SEAL_FILE` must hold for a manifest."""
    return f"{hashlib.sha256(manifest).hexdigest()}  {MANIFEST_FILE}\n".encode()


def read_manifest(directory: Path) -> Manifest:
    """Reads the manifest of a bundle; the files that it names are not looked at.

    Raises:
        BundleError: it or its seal cannot be read, they do not agree, or every fault of it.
    """
    path = directory / MANIFEST_FILE
    data = read_file(directory, MANIFEST_FILE)
    if not os.path.lexists(directory / SEAL_FILE):
        logger.warning("the manifest has no seal, %s, to be checked against: export the bundle again", SEAL_FILE)
    elif read_file(directory, SEAL_FILE) != seal(data):
        raise BundleError([f"{path}: is not what {SEAL_FILE} has sealed, or that is damaged"])
    try:
        return parse_manifest(data)
    except BundleError as error:
        raise BundleError([f"{path}: {fault}" for fault in error.faults]) from error


def parse_manifest(data: bytes) -> Manifest:
    """Reads what `MANIFEST_FILE` holds.

    Raises:
        BundleError: it is no JSON of this revision, or its faults.
    """
    try:
        document = parse_json(data)
    except ValueError as error:
        raise BundleError([f"cannot be read: {error}"]) from error
    revision = document.get("revision") if isinstance(document, dict) else None
    if revision != REVISION:
        raise BundleError([f"revision is {revision!s:.20}; this server reads revision {REVISION}"])
    faults: list[str] = []
    manifest = parse(Manifest, document, "", faults)
    if not faults:
        faults = _check_manifest(manifest)
    if len(faults) > _MAX_FAULTS:
        faults[_MAX_FAULTS:] = [f"and {len(faults) - _MAX_FAULTS} faults more"]
    if faults:
        raise BundleError(faults)
    checked: Manifest = manifest
    return checked


def _check_manifest(manifest: Manifest) -> list[str]:
    dimensions = manifest.dimensions
    faults = _check_sizes(manifest)
    for name, value in dataclasses.asdict(manifest.special_ids).items():
        if not 0 <= value < dimensions.vocab_size:
            faults.append(f"special_ids.{name} must be in 0..{dimensions.vocab_size - 1}, not {value}")
    if not manifest.language_pairs:
        faults.append("language_pairs is empty")
    names = [manifest.name, manifest.version]
    names += [code for pair in manifest.language_pairs for code in (pair.source, pair.target)]
    if not all(name.isprintable() and 0 < len(name) <= _MAX_NAME_CHARACTERS for name in names):
        faults.append(f"name, version and languages must have 1..{_MAX_NAME_CHARACTERS} characters, all printable")
    if not manifest.variants:
        faults.append("variants is empty")
    faults += [f"extra_files: {fault}" for fault in _check_plain(manifest.extra_files)]
    for name, variant in manifest.variants.items():
        faults += [f"variants.{name}{fault}" for fault in _check_variant(name, variant)]
        if variant.has_shortlist and SHORTLIST_FILE not in manifest.extra_files:
            faults.append(f"extra_files lacks {SHORTLIST_FILE}, which steps of variants.{name} need")
        if name not in manifest.golden.outputs:
            faults.append(f"golden.outputs lacks {name}")
    return faults + _check_golden(manifest)


def _check_sizes(manifest: Manifest) -> list[str]:
    dimensions = manifest.dimensions
    sizes = {
        **{f"dimensions.{name}": size for name, size in dataclasses.asdict(dimensions).items()},
        **{f"limits.{name}": size for name, size in dataclasses.asdict(manifest.limits).items()},
    }
    greatest = {name: _GREATEST[name.partition(".")[2]] for name in sizes}
    faults = [
        f"{name} must be in 1..{greatest[name]}, not {size}"
        for name, size in sizes.items()
        if not 1 <= size <= greatest[name]
    ]
    if dimensions.d_model != dimensions.num_heads * dimensions.head_dim:
        faults.append(f"dimensions.d_model {dimensions.d_model} is not num_heads * head_dim")
    return faults


def _check_golden(manifest: Manifest) -> list[str]:
    golden, vocab_size, limits = manifest.golden, manifest.dimensions.vocab_size, manifest.limits
    faults = []
    if not 1 <= golden.beam_size <= limits.max_beam_size:
        faults.append(f"golden.beam_size must be in 1..{limits.max_beam_size}, not {golden.beam_size}")
    if not 1 <= len(golden.source_ids) <= limits.max_source_tokens:
        number = len(golden.source_ids)
        faults.append(f"golden.source_ids must be 1..{limits.max_source_tokens} tokens, not {number}")
    if not all(0 <= token < vocab_size for token in golden.source_ids):
        faults.append(f"golden.source_ids must be in 0..{vocab_size - 1}")
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
    return [f"{name!r} is not a plain file name" for name in names if not _PLAIN_FILE.fullmatch(name)]
