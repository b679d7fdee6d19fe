"""What the client gives back: small frozen dataclasses, not the protobuf messages.

Weighed: messages need no second definition, but they are mutable, cannot be hashed, show absent fields as 0 or "", and
would tie callers' code to a protobuf version. The fields here carry the names and meanings of translation.proto.
"""

import enum
from dataclasses import dataclass

import grpc

from babelserve.terms import UsedGlossary, UsedTerm


class FinishReason(enum.Enum):
    """Why a translation ended."""

    UNSPECIFIED = "unspecified"
    STOP = "stop"
    LENGTH = "length"
    COPIED = "copied"
    REPETITION = "repetition"


class Placement(enum.Enum):
    """How a part that the model was not shown came to its place; MISSING is a number that may be wrong or absent."""

    UNSPECIFIED = "unspecified"
    BY_MODEL = "by_model"
    BY_POSITION = "by_position"
    MISSING = "missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptPart:
    """A part of a source that stands in the translation as it was written."""

    text: str
    placement: Placement


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A word of a sentence and the word of its translation that stands for it; positions count code points.

    Attributes:
        source_begin: Where the word begins in `Sentence.source_text`.
        source_end: Where it ends there.
        target_begin: Where the word of the translation begins in `Sentence.text`.
        target_end: Where it ends there.
        weight: How much of its attention the model gave to the word of the source, over 0 to 1.
    """

    source_begin: int
    source_end: int
    target_begin: int
    target_end: int
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token of a translation, or of one that was given to be scored; positions count code points.

    Attributes:
        text: As the vocabulary has it, with U+2581 for a blank; empty for the end of the sentence.
        begin: Where what it writes begins in `Sentence.text`, or in the given target; 0 if it writes nothing.
        end: Where it ends there.
        log_prob: Natural logarithm of its probability after the tokens before it.
    """

    text: str
    begin: int
    end: int
    log_prob: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchNode:
    """A token of a beam that the search has kept.

    `parent` is the index in `Sentence.search` of the token before, None for a first one; `log_prob` is of the beam up
    to here. `score` and `finish_reason` are those of the hypothesis that ends here; `score` is None if none does.
    """

    parent: int | None
    text: str
    log_prob: float
    score: float | None
    finish_reason: FinishReason
    is_chosen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TextError:
    """Why one text of an answered request has no translation."""

    code: grpc.StatusCode
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypothesis:
    """One of the best translations of a text; `score` is log-probability / length^length_penalty, higher is better."""

    text: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """A sentence of a text and its translation.

    Attributes:
        separator: The white space that follows it in the source.
        links: Which words belong together, if that was asked for.
        source_begin: Where it begins in its text, in code points.
        source_end: Where it ends there.
        begin: Where its translation begins in `Translation.text`; 0 in a stream.
        end: Where it ends there; 0 in a stream.
        tokens: Of its translation, the end of the sentence last, if that was asked for.
        confidence: 0 to 1, if that was asked for and it was translated: it ranks, see `docs/guides/translate.md`.
        terms: Of the glossary, in the sentence's order.
        search: What the search for its translation kept, each node behind its parent, if that was asked for.
    """

    source_text: str
    text: str
    separator: str
    score: float
    finish_reason: FinishReason
    source_tokens: int
    target_tokens: int
    kept: tuple[KeptPart, ...] = ()
    links: tuple[Link, ...] = ()
    source_begin: int = 0
    source_end: int = 0
    begin: int = 0
    end: int = 0
    tokens: tuple[Token, ...] = ()
    confidence: float | None = None
    terms: tuple[UsedTerm, ...] = ()
    search: tuple[SearchNode, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteLeg:
    """One model's part of a text's route."""

    model: str
    model_version: str
    source: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectedLanguage:
    """The language that the server found a text to be in, with its probability among those served, 0 to 1."""

    code: str
    confidence: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """The translation of one text: `text`, or, when this text alone failed, `error` and an empty `text`.

    `detected` is None unless the request left the source language open, and there were several. `route` is empty where
    the result's `model` translated the text alone; two models over a pivot are two legs. `confidence` is None unless it
    was asked for and a sentence was translated. `terms` are those of the glossary that the text has, in its order.
    """

    text: str
    score: float
    finish_reason: FinishReason
    hypotheses: tuple[Hypothesis, ...]
    sentences: tuple[Sentence, ...]
    source_tokens: int
    target_tokens: int
    error: TextError | None
    detected: DetectedLanguage | None = None
    route: tuple[RouteLeg, ...] = ()
    kept: tuple[KeptPart, ...] = ()
    confidence: float | None = None
    terms: tuple[UsedTerm, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """Where the server spent the call's time, in seconds; the largest over its sentences."""

    total_seconds: float
    queue_seconds: float
    encode_seconds: float
    decode_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslateResult:
    """The answer to `translate`: one translation for each text, in their order.

    `source` and `target` are the models' own codes of the languages that were meant; an older server leaves them
    empty. `model` is the last of the texts' route; it and `source` are empty where texts had different routes.
    `glossaries` are those of the server that the request named, in that order.
    """

    translations: tuple[Translation, ...]
    model: str
    model_version: str
    timings: Timings
    source: str = ""
    target: str = ""
    glossaries: tuple[UsedGlossary, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkTranslation:
    """The translation of one text of `translate_bulk`.

    Attributes:
        index: Which text it is, from 0 in the order in which they were given.
        model: The last of the text's route.
        glossaries: Those of the server that were named, as they were when this text was translated.
    """

    index: int
    translation: Translation
    model: str
    model_version: str
    glossaries: tuple[UsedGlossary, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamedSentence:
    """One sentence of a streamed answer, as soon as it is done; the indices place it.

    A text without any sentence comes as one item with `sentence_count` 0, `sentence` None, and the whole text in
    `leading`; a text that failed, as one item with `error`. `detected`, `route` and `glossaries` come with the sentence
    of index 0. An older server leaves the model's names empty. An item with `partial_text` has what the translation of
    an unfinished sentence has so far, and beside it the three numbers alone: the sentence's next item replaces it.
    """

    content_index: int
    sentence_index: int
    sentence_count: int
    leading: str
    sentence: Sentence | None
    error: TextError | None
    model: str = ""
    model_version: str = ""
    detected: DetectedLanguage | None = None
    route: tuple[RouteLeg, ...] = ()
    glossaries: tuple[UsedGlossary, ...] = ()
    partial_text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How likely a model finds one given translation: or, when this pair alone failed, `error` and no tokens.

    `score` is log-probability / length^length_penalty; `tokens` are the target's, the end of the sentence last.
    """

    score: float
    tokens: tuple[Token, ...]
    error: TextError | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreResult:
    """The answer to `score`: one score for each pair, in their order, and the model that has scored them."""

    scores: tuple[Score, ...]
    model: str
    model_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInfo:
    """A model that the server has.

    `language_pairs` are (source, target) codes; without any, it translates each of `source_languages` into each other
    of `target_languages`. A `family` other than "one_pass", which writes all words at once, writes a token at a time.
    """

    name: str
    version: str
    variant: str
    language_pairs: tuple[tuple[str, str], ...]
    max_beam_size: int
    max_source_tokens: int
    max_target_tokens: int
    has_shortlist: bool
    has_alignment: bool = False
    has_confidence: bool = False
    family: str = "transformer"
    has_length_control: bool = False
    max_length_ratio: float = 0.0
    source_languages: tuple[str, ...] = ()
    target_languages: tuple[str, ...] = ()
