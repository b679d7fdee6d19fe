"""Which languages a model translates, as data: pairs, or any of some into any of others, each with its prefix ids.

An encoder's input is a target language's `source_prefix`, the source language's `prefix`, the sentence's own ids, and
eos unless the manifest's `source_eos` is false. A translation begins with the target language's `prefix`, which is
forced upon the search and no part of the text. Codes are BCP-47.
"""

from dataclasses import dataclass, field

Ids = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceLanguage:
    """A language that a model translates from, and the ids that tell its encoder so."""

    prefix: Ids = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetLanguage:
    """A language that a model translates into, and the ids that tell its encoder, or its decoder, so."""

    source_prefix: Ids = ()
    prefix: Ids = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Languages:
    """A model that translates any source language into any target language but itself, by code."""

    source: dict[str, SourceLanguage] = field(default_factory=dict)
    target: dict[str, TargetLanguage] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguagePair:
    """A direction that a model translates.

    Attributes:
        source, target: codes.
        source_prefix: ids that the encoder's input begins with.
        target_prefix: ids that every translation is forced to begin with.
    """

    source: str
    target: str
    source_prefix: Ids = ()
    target_prefix: Ids = ()
