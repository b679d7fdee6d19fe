"""A bundle: the directory that `export` writes and the server serves; this file is their contract.

`manifest.json` says what the bundle holds; every fault of it and of the files it names is collected and reported at
once. A bundle is data only: JSON, SentencePiece and ONNX, no pickle.
"""

import dataclasses
import hashlib
import itertools
import json
import types
import typing
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np

from server.errors import BundleError

REVISION = 4  # raised whenever a reader of the previous revision could not read a new bundle
MANIFEST_FILE = "manifest.json"
TOKENIZER_FILE = "tokenizer.model"
ENCODER_FILE = "encoder.onnx"
SHORTLIST_FILE = "shortlist.npz"  # optional: see `server.bundle.shortlist`
COPY_ROWS_FILE = "copy_rows.onnx"  # for variants whose caches are on the device: see `server.runtime.device_decoder`
WEIGHTS_FILE = "weights.bin"  # external data of a variant's graphs
EMBEDDING = "embedding"  # the token embedding [vocab_size, d_model] in every graph
CACHE_DTYPES = {"cpu-fp32": "float32", "cpu-int8": "int8", "cuda-fp16": "float16"}  # the token embedding's too
VARIANTS = tuple(CACHE_DTYPES)
MAX_BEAM_SIZE = 16  # of any bundle: a step returns at most twice as many best tokens


class StepForm(NamedTuple):
    """One of the decoder-step graphs of a variant, which compute the same in different ways.

    Attributes:
        has_shortlist: it projects to `server.bundle.shortlist.Columns` instead of the vocabulary.
        shares_slots: rows share cross-attention caches, as `server.runtime.slots` says; if not, each row has its own.
    """

    has_shortlist: bool = False
    shares_slots: bool = False

    @property
    def file(self) -> str:
        """Name of the graph's file."""
        return f"decoder_step{'_shortlist' * self.has_shortlist}{'_shared' * self.shares_slots}.onnx"


PLAIN_STEP = StepForm()  # every variant has it


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
    """One precision of the graphs, for one device."""

    dtype: str  # of the caches and the token embedding, as in `CACHE_DTYPES`
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """A directory whose manifest and files have been checked."""

    directory: Path
    manifest: Manifest

    @property
    def tokenizer_path(self) -> Path:
        """The SentencePiece model."""
        return self.directory / TOKENIZER_FILE

    @property
    def shortlist_path(self) -> Path:
        """The lexical shortlist of variants that have one."""
        return self.directory / SHORTLIST_FILE

    def graph_path(self, variant: str, file: str) -> Path:
        """Path of a graph, or of the weights, of a variant."""
        return self.directory / variant / file


def cache_names(kind: str, num_layers: int) -> list[str]:
    """Returns the names of a graph's cache tensors, key and value of each decoder layer in turn.

    Args:
        kind: "self" or "cross" for what a step reads; "new_self" for what it has written, and "new_cross" for what it
            hands back as it was.
        num_layers: of the decoder.
    """
    return [f"{kind}_{part}.{layer}" for layer in range(num_layers) for part in ("key", "value")]


def is_on_device(variant: str) -> bool:
    """Whether a variant's caches stay in the memory of its device, or are the host's."""
    return variant.startswith("cuda")


def step_forms(variant: str, has_shortlist: bool) -> list[StepForm]:
    """Returns the steps that a variant has; shortlists and slots are for caches of the host's."""
    if is_on_device(variant):
        return [PLAIN_STEP]
    return [StepForm(*form) for form in itertools.product([False, True][: 1 + has_shortlist], [False, True])]


def open_bundle(directory: Path, variant: str | None = None) -> Bundle:
    """Opens a bundle and checks it against its manifest.

    Args:
        directory: what `babelserve-export` wrote.
        variant: check the files of this variant only; None checks all.

    Raises:
        BundleError: every fault found, such as a file with another hash.
    """
    manifest = _read_manifest(directory)
    if variant is not None and variant not in manifest.variants:
        raise BundleError([f"{directory}: has no variant {variant}; it has {', '.join(manifest.variants)}"])
    faults = _check_file(directory, TOKENIZER_FILE, manifest.tokenizer)
    for file, facts in manifest.extra_files.items():
        faults += _check_file(directory, file, facts)
    for name in manifest.variants if variant is None else (variant,):
        files = manifest.variants[name].files
        steps = step_forms(name, manifest.variants[name].has_shortlist)
        needed = {ENCODER_FILE, WEIGHTS_FILE, *(form.file for form in steps)}
        if is_on_device(name):
            needed.add(COPY_ROWS_FILE)
        missing = needed - files.keys()
        faults += [f"{directory / MANIFEST_FILE}: variants.{name}.files lacks {file}" for file in sorted(missing)]
        for file, facts in files.items():
            faults += _check_file(directory, f"{name}/{file}", facts)
    if faults:
        raise BundleError(faults)
    return Bundle(directory=directory, manifest=manifest)


def describe_file(path: Path) -> FileFacts:
    """Returns the facts that a manifest holds of a file."""
    with path.open("rb") as file:
        return FileFacts(sha256=hashlib.file_digest(file, "sha256").hexdigest(), bytes=path.stat().st_size)


def _read_manifest(directory: Path) -> Manifest:
    path = directory / MANIFEST_FILE
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BundleError([f"{path}: cannot be read: {error}"]) from error
    revision = document.get("revision") if isinstance(document, dict) else None
    if revision != REVISION:
        raise BundleError([f"{path}: revision is {revision}; this server reads revision {REVISION}"])
    faults: list[str] = []
    manifest = _parse(Manifest, document, "", faults)
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
    if variant.dtype != CACHE_DTYPES[name]:
        faults.append(f".dtype must be {CACHE_DTYPES[name]}, not {variant.dtype}")
    if variant.embedding_offset < 0:
        faults.append(f".embedding_offset must be at least 0, not {variant.embedding_offset}")
    return faults


def _check_plain(names: Iterable[str]) -> list[str]:
    outside = [name for name in names if PurePosixPath(name).parts != (name,) or name == ".."]
    return [f"{name!r} is not a plain file name" for name in outside]


def _check_file(directory: Path, name: str, expected: FileFacts) -> list[str]:
    path = directory / name
    try:
        if not path.resolve().is_relative_to(directory.resolve()):
            return [f"{path}: leads out of the bundle"]
        found = describe_file(path)
    except OSError as error:
        return [f"{path}: cannot be read: {error.strerror}"]
    if found.bytes != expected.bytes:
        return [f"{path}: has {found.bytes} bytes, the manifest says {expected.bytes}"]
    if found.sha256 != expected.sha256:
        return [f"{path}: sha256 is {found.sha256}, the manifest says {expected.sha256}"]
    return []


def _parse(kind: Any, value: Any, where: str, faults: list[str]) -> Any:
    """Builds `kind` (dataclass, tuple, dict or scalar type) from JSON; notes each fault with its place."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if dataclasses.is_dataclass(kind):
        return _parse_dataclass(kind, value, where, faults)
    if kind is Any:
        return value
    if origin is tuple and isinstance(value, list):
        return tuple(_parse(arguments[0], item, f"{where}[{i}]", faults) for i, item in enumerate(value))
    if origin is dict and isinstance(value, dict):
        return {key: _parse(arguments[1], item, f"{where}.{key}", faults) for key, item in value.items()}
    if kind is float and type(value) is int:
        return float(value)
    if origin is None and type(value) is kind:
        return value
    name = kind if isinstance(kind, types.GenericAlias) else kind.__name__
    faults.append(f"{where} must be {name}, not {type(value).__name__}")
    return None


def _parse_dataclass(kind: Any, value: Any, where: str, faults: list[str]) -> Any:
    if not isinstance(value, dict):
        faults.append(f"{where} must be an object, not {type(value).__name__}")
        return None
    hints = typing.get_type_hints(kind)
    prefix = f"{where}." if where else ""
    required = {f.name for f in dataclasses.fields(kind) if f.default_factory is dataclasses.MISSING}
    before = len(faults)
    faults += [f"{prefix}{name} is missing" for name in sorted(required - value.keys())]
    faults += [f"{prefix}{name} is unknown" for name in sorted(value.keys() - hints.keys())]
    parsed = {name: _parse(hints[name], value[name], prefix + name, faults) for name in hints if name in value}
    return kind(**parsed) if len(faults) == before else None
