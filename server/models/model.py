"""`Model`: a bundle brought to life, with its engine behind what the translator asks of it, `SentenceEngine`."""

from collections.abc import Iterable, Sequence
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
    """What answers requests: `server.engine.engine.Engine`, or a cache in front of it."""

    def submit(
        self,
        sources: Sequence[Sequence[int]],
        options: DecodingOptions,
        deadline: float | None,
        flow: Flow = ANYONE,
    ) -> list[Future[Result]]:
        """See `Engine.submit`."""

    def check_room(
        self, num_characters: int, options: DecodingOptions, deadline: float | None, flow: Flow = ANYONE
    ) -> float:
        """See `Engine.check_room`."""

    def observe_text(self, num_characters: int, source_tokens: int) -> None:
        """See `Engine.observe_text`."""

    def predict_seconds(self, source_tokens: Iterable[int], options: DecodingOptions) -> float:
        """See `Engine.predict_seconds`."""

    def stop(self) -> None:
        """See `Engine.stop`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedModel:
    """What is known of a model that is served, whether it is in memory or not."""

    manifest: Manifest
    variant: str
    metrics: ModelMetrics

    @property
    def device(self) -> str:
        """The variant's: "cpu" or "cuda"."""
        return VARIANTS[self.variant].device

    @property
    def sha256(self) -> str:
        """Over all files of the variant."""
        variant = self.manifest.variants.get(self.variant)
        return variant.sha256 if variant is not None else ""

    @property
    def has_shortlist(self) -> bool:
        """Whether `DecodingOptions.use_shortlist` may be asked for."""
        variant = self.manifest.variants.get(self.variant)
        return variant is not None and variant.has_shortlist


@dataclass(frozen=True, slots=True, kw_only=True)
class Model(ServedModel):
    """A loaded bundle, and the engine that runs one of its variants, with who watches it.

    Attributes:
        characters: that its network can be shown.
        growth_bytes: of the host's memory that it may take beyond what it has when it begins to serve.
    """

    tokenizer: Tokenizer
    characters: Characters
    engine: SentenceEngine
    supervisor: Supervisor
    num_lanes: int = 1
    growth_bytes: int = 0

    def stop(self) -> None:
        """Ends the engine, after who watches it, who would take it for dead."""
        self.supervisor.stop()
        self.engine.stop()
