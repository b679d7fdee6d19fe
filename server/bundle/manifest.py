"""`manifest.json`: what a bundle says of itself. `server.bundle.manifest_file` reads it."""

import dataclasses
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from server.bundle.alignment import Alignment
from server.bundle.confidence import Confidence
from server.bundle.files import FileFacts
from server.bundle.graphs import HALVES_FILE, ONE_PASS, TRANSFORMER
from server.bundle.languages import Ids, LanguagePair, Languages
from server.bundle.masking import Masking
from server.bundle.states import State
from server.bundle.variant_files import Variant
from server.decoding.options import DecodingOptions, SearchRules

REVISION = 12  # raised whenever a reader of the previous revision could not read a new bundle
MANIFEST_FILE = "manifest.json"
SEAL_FILE = "manifest.json.sha256"  # what `sha256sum manifest.json` prints
SHORTLIST_FILE = "shortlist.npz"  # optional: see `server.bundle.shortlist`

# A bundle's tokenizer is the first of these alone, or some of the others: see `server.bundle.tokenizer`.
TOKENIZER_FILE = "tokenizer.model"
SOURCE_MODEL_FILE, TARGET_MODEL_FILE = "source.spm", "target.spm"
SOURCE_PIECES_FILE, TARGET_PIECES_FILE = "source_pieces.json", "target_pieces.json"
MOSES_FILE = "moses.json"  # with tables of pieces, in the place of SentencePiece models


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimensions:
    """Sizes that tensors are checked against.

    Attributes:
        vocab_size: of the target, and of the source unless `source_vocab_size` says otherwise.
        d_model: width of every layer.
        num_heads, head_dim: of the decoder, whose caches have them.
        encoder_layers: all layers of the encoder.
        decoder_layers: the layers of the decoder that attend to the source.
        source_vocab_size: of the source; by default `vocab_size`.
    """

    vocab_size: int
    d_model: int
    num_heads: int
    head_dim: int
    encoder_layers: int
    decoder_layers: int
    source_vocab_size: int | None = None

    @property
    def encoder_vocab_size(self) -> int:
        """Ids that the encoder knows."""
        return self.vocab_size if self.source_vocab_size is None else self.source_vocab_size


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecialIds:
    """Token ids with a meaning of their own; `bos` starts every translation, whatever the model's makers call it."""

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
class SearchDefaults:
    """How a model's makers search, for requests that leave it open, and by which rules.

    Attributes:
        beam_size: by default the server's.
        length_penalty: exponent of the length in a hypothesis' score.
        early_stopping: whether beam search ends when it has as many hypotheses as its beam is wide.
        forced_eos: whether a beam that comes to the limit on output tokens ends with eos.
    """

    beam_size: int | None = None
    length_penalty: float = 1.0
    early_stopping: bool = True
    forced_eos: bool = False

    @property
    def rules(self) -> SearchRules:
        """What no request can change."""
        return SearchRules(early_stopping=self.early_stopping, forced_eos=self.forced_eos)


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenOutput:
    """What a variant translated the golden sentence to: ids without bos, prefix and eos, and the hypothesis score."""

    ids: tuple[int, ...]
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Golden:
    """A sentence that every start-up translates before the server calls itself SERVING.

    Attributes:
        source_text: the sentence.
        source_ids: all that the encoder is fed: prefixes and eos included.
        beam_size: of its search.
        outputs: by variant.
        source_language, target_language: codes as the manifest has them; empty for the first of `language_pairs`.
    """

    source_text: str
    source_ids: tuple[int, ...]
    beam_size: int
    outputs: dict[str, GoldenOutput]
    source_language: str = ""
    target_language: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """All of `manifest.json`; `origin`, `training`, `quality` and `parity` are for people and are not interpreted.

    Attributes:
        revision: of the format, `REVISION` for what is exported.
        name, version: of the model, unless the folders of `--models` have others.
        family: of the network: "transformer" or "recurrent", which write a token at a time, or "one_pass", all at once.
        language_pairs, languages: what it translates; exactly one of them says so.
        dimensions, special_ids, limits: facts of the network.
        states: what a decoder step keeps of each row.
        source_eos: whether eos ends the encoder's input.
        search: for requests that leave it open.
        masking: what sentences are shown to the network as.
        alignment: how translations are aligned; None if nobody has found out. Every variant has an `ALIGNER_FILE` then.
        confidence: how sure the model is of a translation; None if nobody has measured it with references.
        tokenizer: facts of `TOKENIZER_FILE`, unless other tokenizer files are among `extra_files`.
        variants: by name.
        golden: what a start is proved by.
        extra_files: optional ones, such as `SHORTLIST_FILE`, by name.
        origin: where the model comes from, and its licence.
        training: how it was trained, as far as that is known.
        quality: what each variant scores, and loses to float32.
        parity: how the export proved the graphs equal to the model.
    """

    revision: int
    name: str
    version: str
    family: str = TRANSFORMER
    language_pairs: tuple[LanguagePair, ...] = ()
    languages: Languages | None = None
    dimensions: Dimensions
    special_ids: SpecialIds
    source_eos: bool = True
    limits: Limits
    states: tuple[State, ...]
    search: SearchDefaults = field(default_factory=SearchDefaults)
    masking: Masking = field(default_factory=Masking)
    alignment: Alignment | None = None
    confidence: Confidence | None = None
    tokenizer: FileFacts | None = None
    variants: dict[str, Variant]
    golden: Golden
    extra_files: dict[str, FileFacts] = field(default_factory=dict)
    origin: dict[str, Any] = field(default_factory=dict)
    training: dict[str, Any] = field(default_factory=dict)
    quality: dict[str, Any] = field(default_factory=dict)
    parity: dict[str, Any] = field(default_factory=dict)

    @property
    def is_one_pass(self) -> bool:
        """Whether the network writes all words of a translation at once."""
        return self.family == ONE_PASS

    @property
    def source_codes(self) -> tuple[str, ...]:
        """Codes of all languages that it translates from, each once."""
        if self.languages is not None:
            return tuple(self.languages.source)
        return tuple(dict.fromkeys(pair.source for pair in self.language_pairs))

    @property
    def target_codes(self) -> tuple[str, ...]:
        """Codes of all languages that it translates into, each once."""
        if self.languages is not None:
            return tuple(self.languages.target)
        return tuple(dict.fromkeys(pair.target for pair in self.language_pairs))

    def sources_of(self, target: str) -> tuple[str, ...]:
        """Returns the codes of the languages that it translates into one; codes are as the manifest has them."""
        if self.languages is not None:
            return tuple(code for code in self.languages.source if code != target)
        return tuple(pair.source for pair in self.language_pairs if pair.target == target)

    def find_pair(self, source: str, target: str) -> LanguagePair | None:
        """Returns a direction by codes as the manifest has them; None if it does not translate it."""
        if self.languages is None:
            return next((pair for pair in self.language_pairs if (pair.source, pair.target) == (source, target)), None)
        from_, into = self.languages.source.get(source), self.languages.target.get(target)
        if from_ is None or into is None or source == target:
            return None
        return LanguagePair(
            source=source,
            target=target,
            source_prefix=into.source_prefix + from_.prefix,
            target_prefix=into.prefix,
        )

    def prefixes(self) -> tuple[list[Ids], list[Ids]]:
        """Returns all prefixes that an encoder's input may have, in parts, and all that translations may have."""
        pairs, languages = self.language_pairs, self.languages or Languages()
        source = [each.prefix for each in languages.source.values()]
        source += [each.source_prefix for each in languages.target.values()]
        source += [pair.source_prefix for pair in pairs]
        return source, [each.prefix for each in languages.target.values()] + [pair.target_prefix for pair in pairs]

    def control_ids(self) -> tuple[frozenset[int], frozenset[int]]:
        """Returns the ids that a tokenizer must not make of a source, and the ids that a translation must not show."""
        special = self.special_ids
        control = {special.pad, special.bos, special.eos} - {special.unk}
        # Of two vocabularies the source's need not have all of them.
        own = control if self.dimensions.source_vocab_size is None or self.source_eos else {special.pad}
        source_prefixes, target_prefixes = self.prefixes()
        source, target = frozenset(own.union(*source_prefixes)), frozenset(control.union(*target_prefixes))
        if self.dimensions.source_vocab_size is None:
            source = target = source | target
        return source, target

    @property
    def golden_pair(self) -> LanguagePair:
        """The direction of the golden sentence. Raises LookupError if it is none, which no checked manifest has."""
        if not self.golden.target_language and self.language_pairs:
            return self.language_pairs[0]
        pair = self.find_pair(self.golden.source_language, self.golden.target_language)
        if pair is None:
            raise LookupError(
                "golden.source_language and golden.target_language must be a direction that is translated"
            )
        return pair

    def golden_options(self, *, use_shortlist: bool = False) -> DecodingOptions:
        """Returns how the golden sentence is searched for."""
        return DecodingOptions(
            beam_size=self.golden.beam_size,
            use_shortlist=use_shortlist,
            forced_prefix=self.golden_pair.target_prefix,
        )

    def files(self, variants: Iterable[str]) -> dict[str, FileFacts]:
        """Returns the facts of every file that some variants need, by path in the bundle, and of those they share."""
        files = {TOKENIZER_FILE: self.tokenizer} if self.tokenizer is not None else {}
        files |= self.extra_files
        for name in variants:
            variant = self.variants[name]
            files |= {f"{name}/{file}": facts for file, facts in variant.files.items()}
            files |= {} if variant.halves is None else {HALVES_FILE: variant.halves}
        return files

    def position_bytes(self, variant: str) -> int:
        """Returns what a position takes that `LaneLimits` count, in bytes, on average over source and target.

        One of the source takes a key and a value of each layer; at least every other one is of the target. One of a
        window counts as if there were no bound. A one-pass network has no caches: it counts as if it had some, which
        stand for what its runs take.
        """
        sizes, dtype = self.dimensions, self.variants[variant].dtype
        of_source = 2 * sizes.decoder_layers * sizes.num_heads * sizes.head_dim * np.dtype(dtype).itemsize
        of_target = sum(state.num_bytes(dtype, 1) - state.num_bytes(dtype, 0) for state in self.states)
        return (of_source + of_target) // 2

    def state_bytes(self, variant: str) -> int:
        """Returns what a row takes of a variant's states however few tokens it has."""
        return sum(state.num_bytes(self.variants[variant].dtype, 0) for state in self.states)

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
