"""`Model`: a loaded bundle with its engine. `SentenceEngine`: what the translator needs of an engine."""

import math
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol

from server.bundle.manifest import Manifest
from server.bundle.tokenizer import Tokenizer
from server.bundle.variants import VARIANTS
from server.decoding.options import DecodingOptions
from server.decoding.result import Result
from server.engine.flow import ANYONE, Flow
from server.models.supervisor import Supervisor
from server.telemetry.model_metrics import ModelMetrics
from server.text.characters import Characters


class SentenceEngine(Protocol):
    """Answers requests: `server.engine.engine.Engine`, or a cache in front of it."""

    def submit(
        self,
        sources: Sequence[Sequence[int]],
        options: DecodingOptions,
        deadline: float = math.inf,
        flow: Flow = ANYONE,
    ) -> list[Future[Result]]:
        """See `Engine.submit`."""

    def check_room(
        self, lengths: Sequence[int], options: DecodingOptions, deadline: float = math.inf, flow: Flow = ANYONE
    ) -> float:
        """See `Engine.check_room`."""

    def observe_text(self, num_characters: int, source_tokens: int) -> None:
        """See `Engine.observe_text`."""

    def predict_seconds(self, source_tokens: Iterable[int], options: DecodingOptions) -> float:
        """See `Engine.predict_seconds`."""

    def most_sentences(self, options: DecodingOptions) -> int:
        """See `Engine.most_sentences`."""

    def ids_so_far(self, futures: Collection[Future[Result]]) -> dict[Future[Result], list[int]]:
        """See `Engine.ids_so_far`."""

    def stop(self) -> None:
        """See `Engine.stop`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedModel:
    """What is known of a served model, whether it is in memory or not."""

    manifest: Manifest
    variant: str
    metrics: ModelMetrics

    @property
    def device(self) -> str:
        """The device of the variant: "cpu" or "cuda"."""
        return VARIANTS[self.variant].device

    @property
    def sha256(self) -> str:
        """The hash of all files of the variant."""
        variant = self.manifest.variants.get(self.variant)
        return variant.sha256 if variant is not None else ""

    @property
    def has_shortlist(self) -> bool:
        """Whether requests may set `DecodingOptions.use_shortlist`."""
        variant = self.manifest.variants.get(self.variant)
        return variant is not None and variant.has_shortlist


@dataclass(frozen=True, slots=True, kw_only=True)
class Model(ServedModel):
    """A loaded bundle, the engine that runs one of its variants, and the supervisor of that engine.

    Attributes:
        characters: the characters that its network can be shown.
        growth_bytes: what it may take of the host's memory beyond what it has when it begins to serve.
    """

    tokenizer: Tokenizer
    characters: Characters
    engine: SentenceEngine
    supervisor: Supervisor
    num_lanes: int = 1
    growth_bytes: int = 0

    def stop(self) -> None:
        """Ends the supervisor, then the engine. The supervisor would take a stopped engine for a dead one."""
        self.supervisor.stop()
        self.engine.stop()
