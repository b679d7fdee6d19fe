"""From settings to a model that serves: variant, bundle, tokenizer, runner, engine, warm-up.

Several models share one processor and one memory. Each has as many lanes as any other. Idle lanes sleep, and
`server.engine.cores` decides which of the busy lanes may step. The caches of all models together have the part of the
memory that the caches of one model would have.
"""

import logging
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from server.allocator import release_freed_memory
from server.bundle.bundle import Bundle, open_bundle
from server.bundle.manifest import Manifest
from server.bundle.tokenizer import Tokenizer
from server.bundle.variants import VARIANTS
from server.engine.cores import Cores
from server.engine.engine import Engine
from server.engine.limits import EngineLimits, LaneLimits
from server.errors import SettingsError, StartupError, TranslationError
from server.models.choosing import choose_variant, idle_gpu
from server.models.device_memory import plan_device_memory
from server.models.golden_sentence import GoldenSentence
from server.models.machine import memory_limit_bytes, usable_cores
from server.models.model import Model, SentenceEngine
from server.models.sentence_cache import SentenceCache
from server.models.supervisor import Supervisor
from server.models.warm_up import warm_up
from server.runtime.cuda_device import find_cuda_device
from server.runtime.processor import has_int8_dot_product
from server.settings.settings import Settings
from server.telemetry.metrics import Metrics
from server.telemetry.model_metrics import ModelMetrics
from server.text.characters import Characters

if TYPE_CHECKING:
    from server.runtime.runner import NetworkRunner

logger = logging.getLogger(__name__)

_CACHE_SHARE = 8  # of the process's memory all lanes' caches have one part, where that is less than the default
_LARGEST_CACHES = 2  # times what is counted, while sentences of different lengths share a batch
# What a loaded model takes, measured on 2026-11-26 with the built-in model and Transformer-base: 3.5 to 4.0 times its
# weights, which stay and are packed into each of its sessions, and some MiB.
_WEIGHTS_COPIES = 4
_OWN_BYTES = 6 << 20
_IDLE_SECONDS = 5.0  # after which lanes of one model among several give back their caches


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A model's part of a process that serves several.

    Attributes:
        num_models: of the process.
        cores: shared by its engines; None for an engine that has them alone.
    """

    num_models: int = 1
    cores: Cores | None = None

    @property
    def idle_seconds(self) -> float:
        """After which lanes give back their caches; a model alone keeps them, as nobody else wants the memory."""
        return _IDLE_SECONDS if self.num_models > 1 else math.inf


_ALONE = Share()


def load_model(
    settings: Settings, metrics: Metrics, share: Share = _ALONE, *, name: str = "", version: str = ""
) -> Model:
    """Opens the bundle, starts the engine, warms it up and has it watched; blocks for a second or two.

    Args:
        settings: `bundle` is the model's.
        metrics: of the server.
        share: of the process; by default all of it.
        name: that it is served by; empty for the manifest's.
        version: the same.

    Raises:
        SettingsError: the settings do not fit the machine, or the model.
        BundleError: the bundle is not what it should be.
    """
    variant = choose_variant(settings)
    bundle = open_bundle(settings.bundle, variant)
    manifest = replace(bundle.manifest, name=name or bundle.manifest.name, version=version or bundle.manifest.version)
    bundle = replace(bundle, manifest=manifest)
    if variant == "cpu-int8" and manifest.variants[variant].has_shortlist and not has_int8_dot_product():
        logger.warning(
            "no int8 dot products on this processor: sums over a shortlist may saturate, a little less exact"
        )
    if words := idle_gpu(settings, variant):
        logger.warning("%s", words)
    runner = open_network(bundle, variant, settings, share)
    model = start_model(bundle, variant, runner, settings, metrics, share)
    if VARIANTS[variant].is_on_device:
        metrics.device.watch(lambda: find_cuda_device().memory)
    model.supervisor.start()
    del bundle  # with its contents, of which the sessions have what they need
    release_freed_memory()
    return model


def bundle_faults(settings: Settings) -> list[str]:
    """Says what keeps the bundle from being opened, for a server that cannot start anyway; loads nothing.

    Of a folder of models it says nothing: which of its bundles would be served is found by loading them.
    """
    if settings.models is not None:
        return []
    try:
        open_bundle(settings.bundle, choose_variant(settings))
    except StartupError as error:
        return error.faults
    return []


def open_network(bundle: Bundle, variant: str, settings: Settings, share: Share = _ALONE) -> "NetworkRunner":
    """Loads the graphs of a variant. Raises as `open_runner` does, and SettingsError for what does not fit."""
    # Only here: without the extra there is no onnxruntime, and `choose_variant` has said so better.
    from server.runtime.providers import check_provider  # noqa: PLC0415
    from server.runtime.runner import open_runner  # noqa: PLC0415

    kind = VARIANTS[variant]
    if not kind.is_on_device:
        return open_runner(bundle, variant, kind.device, num_threads_alone=_num_lanes(variant, settings))
    if settings.lanes > 1:
        raise SettingsError([f"--lanes: {settings.lanes} is more than cuda takes, 1: one thread owns its graphs"])
    check_provider(kind.device)
    memory = plan_device_memory(bundle.manifest, variant, settings, find_cuda_device(), share.num_models)
    max_encode_tokens = engine_limits(bundle.manifest, variant, settings, share).lane.max_encode_tokens
    return open_runner(bundle, variant, kind.device, max_encode_tokens=max_encode_tokens, arena_bytes=memory.arena)


def start_model(
    bundle: Bundle,
    variant: str,
    runner: "NetworkRunner",
    settings: Settings,
    metrics: Metrics,
    share: Share = _ALONE,
) -> Model:
    """Returns a model whose engine runs and has passed its warm-up.

    Raises:
        SettingsError: the settings do not fit the model.
        BundleError: the bundle is not what it should be.
    """
    manifest = bundle.manifest
    widest = manifest.limits.max_beam_size
    if settings.max_rows < widest:
        raise SettingsError([f"--max-rows: {settings.max_rows} is less than the model's widest beam, {widest}"])
    tokenizer = Tokenizer(manifest, bundle.read)
    characters = Characters(tokenizer.knows)
    characters.unknown_in(manifest.golden.source_text)  # has the vocabulary read here, so that no request waits for it
    limits = engine_limits(manifest, variant, settings, share)
    model_metrics = metrics.of_model(manifest.name, manifest.version)
    engine = Engine(
        runner, manifest, model_metrics, limits, cores=share.cores, placeholder_ids=tokenizer.placeholder_ids
    )
    engine.start()
    front = _with_cache(engine, bundle, variant, settings, model_metrics)
    supervisor = Supervisor(
        engine,
        GoldenSentence(manifest, variant),
        model_metrics,
        front.clear if isinstance(front, SentenceCache) else lambda: None,
        num_models=share.num_models,
    )
    model = Model(
        manifest=manifest,
        variant=variant,
        tokenizer=tokenizer,
        characters=characters,
        engine=front,
        supervisor=supervisor,
        metrics=model_metrics,
        num_lanes=limits.num_lanes,
        growth_bytes=growth_bytes(manifest, variant, limits),
    )
    try:
        warm_up(model)
    except BaseException as error:
        engine.stop()
        if VARIANTS[variant].is_on_device:
            _refuse_device(error)
        raise
    return model


def _refuse_device(error: BaseException) -> None:
    """Raises SettingsError if it was the device, not the model, that made the warm-up fail."""
    # Only here, as `open_network` says.
    from server.runtime.onnx_runtime_errors import advice_on_device  # noqa: PLC0415

    answer = error.__cause__
    if isinstance(answer, TranslationError) and (advice := advice_on_device(answer.cause)):
        raise SettingsError([f"device cuda: {advice}"]) from error


def engine_limits(manifest: Manifest, variant: str, settings: Settings, share: Share = _ALONE) -> EngineLimits:
    """Returns what an engine may hold, by the settings, else by the variant's defaults."""
    kind, num_lanes = VARIANTS[variant], _num_lanes(variant, settings)
    cache_bytes = (settings.max_cache_mib or kind.max_cache_mib) << 20
    if not settings.max_cache_mib and not kind.is_on_device:
        cache_bytes = min(cache_bytes, process_memory(settings) // (_CACHE_SHARE * num_lanes * share.num_models))
    state_bytes = settings.max_rows * manifest.state_bytes(variant)
    return EngineLimits(
        num_lanes=num_lanes,
        lane=LaneLimits(
            max_rows=settings.max_rows,
            max_cached_positions=max(1, (cache_bytes - state_bytes) // manifest.position_bytes(variant)),
            max_encode_tokens=settings.max_encode_tokens or kind.max_encode_tokens,
            # On a GPU the memory was taken for good: steps that were captured replay on its addresses.
            idle_seconds=math.inf if kind.is_on_device else share.idle_seconds,
            alone_share=settings.bulk_share,
        ),
        max_waiting_tokens=settings.max_waiting_tokens,
        max_waiting_sentences=settings.max_waiting_sentences,
    )


def process_memory(settings: Settings) -> int:
    """Returns the bytes that the process may take."""
    return settings.memory_mib << 20 or memory_limit_bytes()


def needed_bytes(manifest: Manifest, variant: str) -> int:
    """Returns about what a loaded model takes of memory, all its steps loaded, while it is idle."""
    return _WEIGHTS_COPIES * manifest.variants[variant].weights_bytes + _OWN_BYTES


def growth_bytes(manifest: Manifest, variant: str, limits: EngineLimits) -> int:
    """Returns what steps that are loaded when they are first asked for take of the weights, and full caches."""
    weights_bytes = manifest.variants[variant].weights_bytes
    if VARIANTS[variant].is_on_device:
        return weights_bytes
    lane = limits.lane
    states = lane.max_rows * manifest.state_bytes(variant)
    caches = _LARGEST_CACHES * lane.max_cached_positions * manifest.position_bytes(variant) + states
    return weights_bytes + limits.num_lanes * caches


def _num_lanes(variant: str, settings: Settings) -> int:
    return 1 if VARIANTS[variant].is_on_device else settings.lanes or usable_cores()


def _with_cache(
    engine: Engine, bundle: Bundle, variant: str, settings: Settings, metrics: ModelMetrics
) -> SentenceEngine:
    """Puts a `SentenceCache` before the engine if one was asked for."""
    if not (settings.cache_sentences or settings.single_flight):
        return engine
    manifest = bundle.manifest
    return SentenceCache(
        engine,
        (manifest.name, manifest.version, manifest.variants[variant].sha256),
        metrics,
        max_sentences=settings.cache_sentences,
        is_single_flight=settings.single_flight,
    )
