"""The systems as a worker process holds them: token ids in, token ids out, timed.

Each is used as its makers mean it to be: CTranslate2 by `translate_batch` over the whole text with batches by tokens,
ours by one `Engine.submit` of the whole text, longest sentences first, as CTranslate2 sorts them itself.
"""

import dataclasses
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tests.bench.text import ROOT

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from server.engine.engine import Engine

NO_LIMIT = 10**9  # of a queue

Ids = Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a system runs.

    Attributes:
        system: "ours", "ctranslate2" or "pytorch".
        path: our bundle, a CTranslate2 model, or a checkpoint.
        precision: our variant, CTranslate2's compute type, or torch's dtype.
        device: "cpu" or "cuda".
        workers: lanes, or parallel translators.
        threads: of each of these.
        batch: ours: rows of a lane, 0 for the server's default; the others: padded source tokens of a batch.
        shortlist: whether each sentence's shortlist alone is searched.
        max_tokens: target tokens at which every sentence ends; 0 for twice the source plus 16, which CTranslate2 takes
            from the longest sentence.
        forced_prefix: ids that every translation begins with and that are no part of what comes back.
        environment: variables set before the process starts, such as CT2_FORCE_CPU_ISA.
        checkout: of this repository, whose code runs.
    """

    system: str
    path: str
    precision: str
    device: str = "cpu"
    workers: int = 2
    threads: int = 1
    batch: int = 2048
    shortlist: bool = False
    max_tokens: int = 0
    forced_prefix: tuple[int, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    checkout: str = str(ROOT)

    def __str__(self) -> str:
        unit = "rows" if self.system == "ours" else "tokens"
        parts = [] if self.device == "cpu" else [self.device]
        parts += [self.precision, f"{self.workers} x {self.threads} threads"]
        parts += [f"batches of {self.batch} {unit}"] if self.batch else []
        parts += ["shortlist"] if self.shortlist else []
        parts += [f"at most {self.max_tokens} tokens"] if self.max_tokens else []
        return ", ".join([*parts, *(f"{name}={value}" for name, value in self.environment.items())])


class System(Protocol):
    """A loaded system."""

    def translate(self, sources: Sequence[Ids], beam_size: int) -> list[list[int]]:
        """Translates all, by whatever batches; returns target ids without bos and eos, in the sources' order."""

    def padding_share(self, sources: Sequence[Ids]) -> float:
        """Returns which share of the encoder's input has been padding since it was last asked: these, once or more."""

    def close(self) -> None:
        """Ends its threads."""


class CTranslate2System:
    """CTranslate2's Translator of a model with one vocabulary."""

    def __init__(self, settings: Settings) -> None:
        import ctranslate2  # noqa: PLC0415  # each worker loads its own system only

        self._translator = ctranslate2.Translator(
            settings.path,
            device=settings.device,
            compute_type=settings.precision,
            inter_threads=settings.workers,
            intra_threads=settings.threads,
        )
        self._batch = settings.batch
        self._use_vmap = settings.shortlist
        self._max_tokens = settings.max_tokens
        directory = Path(settings.path)
        # Its API takes and gives strings.
        self._tokens: list[str] = json.loads((directory / "shared_vocabulary.json").read_text(encoding="utf-8"))
        self._ids = {token: i for i, token in enumerate(self._tokens)}
        self._prefix = [self._tokens[token] for token in settings.forced_prefix]
        self._end: str = json.loads((directory / "config.json").read_text(encoding="utf-8"))["eos_token"]

    def translate(self, sources: Sequence[Ids], beam_size: int) -> list[list[int]]:
        longest = max(map(len, sources))
        results = self._translator.translate_batch(
            [[self._tokens[token] for token in source] for source in sources],
            [self._prefix] * len(sources) if self._prefix else None,
            batch_type="tokens",
            max_batch_size=self._batch,
            beam_size=beam_size,
            # The end token counts in a hypothesis' length only if it is returned; ours counts it, as fairseq does.
            return_end_token=beam_size > 1,
            max_input_length=0,
            max_decoding_length=self._max_tokens or 2 * longest + 16,
            use_vmap=self._use_vmap,
        )
        found = [result.hypotheses[0][len(self._prefix) :] for result in results]
        return [[self._ids[token] for token in tokens if token != self._end] for tokens in found]

    def padding_share(self, sources: Sequence[Ids]) -> float:
        # CTranslate2 does not report it; this is how `rebatch_input` of its batch_reader.cc forms batches.
        lengths = sorted(map(len, sources), reverse=True)
        padded, start = 0, 0
        while start < len(lengths):
            rows = max(1, self._batch // lengths[start])
            padded += lengths[start] * len(lengths[start : start + rows])
            start += rows
        return 1 - sum(lengths) / padded

    def close(self) -> None:
        self._translator.unload_model()


class PyTorchSystem:
    """The plain PyTorch decoder, which searches greedily only."""

    def __init__(self, settings: Settings) -> None:
        import torch  # noqa: PLC0415

        from model.checkpoint import load_checkpoint  # noqa: PLC0415
        from tests.bench.pytorch_decoder import PyTorchDecoder  # noqa: PLC0415

        model = load_checkpoint(Path(settings.path)).build_model()
        self._decoder = PyTorchDecoder(model, settings.device, getattr(torch, settings.precision), settings.batch)

    def translate(self, sources: Sequence[Ids], beam_size: int) -> list[list[int]]:
        if beam_size != 1:
            raise ValueError(f"beam_size: the PyTorch decoder has no beam of {beam_size}, only 1")
        return self._decoder.translate(sources)

    def padding_share(self, sources: Sequence[Ids]) -> float:
        return 1 - sum(map(len, sources)) / self._decoder.padded_source_tokens

    def close(self) -> None:
        pass


class OurSystem:
    """The server's engine."""

    def __init__(self, settings: Settings) -> None:
        from prometheus_client import CollectorRegistry  # noqa: PLC0415

        self._registry = CollectorRegistry()
        self._engine = open_engine(settings, self._registry)
        self._engine.start()
        self._use_shortlist = settings.shortlist
        self._max_tokens = settings.max_tokens or None
        self._forced_prefix = tuple(settings.forced_prefix)
        self._counted = (0.0, 0.0)

    def translate(self, sources: Sequence[Ids], beam_size: int) -> list[list[int]]:
        from server.decoding.options import DecodingOptions  # noqa: PLC0415

        order = sorted(range(len(sources)), key=lambda i: -len(sources[i]))
        options = DecodingOptions(
            beam_size=beam_size,
            with_scores=False,
            use_shortlist=self._use_shortlist,
            max_output_tokens=self._max_tokens,
            forced_prefix=self._forced_prefix,
        )
        futures = self._engine.submit([sources[i] for i in order], options)
        results: list[list[int]] = [[]] * len(sources)
        for i, future in zip(order, futures, strict=True):
            results[i] = list(future.result().hypotheses[0].ids)
        return results

    def padding_share(self, sources: Sequence[Ids]) -> float:
        before, self._counted = self._counted, self._counts()
        real, padded = (now - then for now, then in zip(self._counted, before, strict=True))
        return 1 - real / padded

    def close(self) -> None:
        self._engine.stop()

    def _counts(self) -> tuple[float, float]:
        from tests.samples import total  # noqa: PLC0415

        names = ("babelserve_source_tokens_total", "babelserve_padded_source_tokens_total")
        real, padded = (total(self._registry, name) for name in names)
        return real, padded


def open_engine(
    settings: Settings,
    registry: "CollectorRegistry",
    max_waiting_tokens: int = NO_LIMIT,
    max_waiting_sentences: int = NO_LIMIT,
) -> "Engine":
    """Returns our engine, still to be started, with its metrics on the registry."""
    from server.bundle.bundle import open_bundle  # noqa: PLC0415
    from server.engine.engine import Engine  # noqa: PLC0415
    from server.models.loading import engine_limits  # noqa: PLC0415
    from server.runtime.runner import open_runner  # noqa: PLC0415
    from server.settings.settings import Settings as ServerSettings  # noqa: PLC0415
    from server.telemetry.metrics import Metrics  # noqa: PLC0415

    bundle = open_bundle(Path(settings.path), settings.precision)
    limits = engine_limits(
        bundle.manifest, settings.precision, ServerSettings(lanes=settings.workers, max_rows=settings.batch)
    )
    runner = open_runner(
        bundle,
        settings.precision,
        settings.device,
        settings.threads,
        num_threads_alone=settings.workers,
        max_encode_tokens=limits.lane.max_encode_tokens,  # whose memory is taken at the start, as in the server
    )
    return Engine(
        runner,
        bundle.manifest,
        Metrics(registry).of_model(bundle.manifest.name, bundle.manifest.version),
        dataclasses.replace(limits, max_waiting_tokens=max_waiting_tokens, max_waiting_sentences=max_waiting_sentences),
    )


def open_system(settings: Settings) -> System:
    """Loads a system into this process."""
    systems: dict[str, Callable[[Settings], System]] = {
        "ours": OurSystem,
        "ctranslate2": CTranslate2System,
        "pytorch": PyTorchSystem,
    }
    return systems[settings.system](settings)


def has_ctranslate2(device: str) -> bool:
    """Says whether CTranslate2 is installed, and can use a CUDA device if that is asked for."""
    try:
        import ctranslate2  # noqa: PLC0415

        return device == "cpu" or bool(ctranslate2.get_cuda_device_count())
    except (ImportError, RuntimeError):  # its libraries do not load
        return False


def peak_resident_bytes(pid: int | None = None) -> int:
    """Returns VmHWM of a process, this one by default: the most memory that it ever had resident."""
    return _status_bytes("VmHWM", pid)


def resident_bytes(pid: int | None = None) -> int:
    """Returns VmRSS: the memory that a process, this one by default, has resident at this moment."""
    return _status_bytes("VmRSS", pid)


def _status_bytes(name: str, pid: int | None) -> int:
    for line in Path(f"/proc/{pid or os.getpid()}/status").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise ValueError(f"/proc/PID/status has no {name}")
