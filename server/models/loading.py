"""From settings to a running engine: which ONNX Runtime, device and variant, then bundle, tokenizer and engine."""

import contextlib
import importlib.metadata
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from server.bundle.bundle import Bundle, Manifest, open_bundle
from server.bundle.tokenizer import Tokenizer
from server.errors import SettingsError
from server.models.machine import has_cuda_device, has_int8_dot_product, usable_cores
from server.models.sentence_cache import SentenceCache
from server.models.warm_up import warm_up
from server.settings.settings import AUTO, Settings
from server.telemetry.metrics import Metrics
from server.translation.job import SentenceEngine, ServedModel

if TYPE_CHECKING:
    from server.engine.engine import Engine
    from server.runtime.runner import OrtRunner

logger = logging.getLogger(__name__)

_CPU_PACKAGE, _GPU_PACKAGE = "onnxruntime", "onnxruntime-gpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedModel:
    """A model whose engine runs and has passed its warm-up."""

    served: ServedModel
    engine: "Engine"
    runner: "OrtRunner"
    device: str
    num_lanes: int


def load_model(settings: Settings, metrics: Metrics) -> LoadedModel:
    """Opens the bundle, starts the engine and warms it up; blocks for a second or two.

    Raises:
        SettingsError: the settings do not fit the machine, or the model.
        BundleError: the bundle is not what it should be.
    """
    packages = _installed_packages()
    can_use_cuda = _GPU_PACKAGE in packages and has_cuda_device()
    device, variant = choose_variant(settings, can_use_cuda=can_use_cuda)
    bundle = open_bundle(settings.bundle, variant)
    if variant == "cpu-int8" and bundle.manifest.variants[variant].has_shortlist and not has_int8_dot_product():
        logger.warning(
            "no int8 dot products on this processor: sums over a shortlist may saturate, a little less exact"
        )
    loaded = _start_engine(bundle, variant, device, settings, metrics)
    manifest = bundle.manifest
    metrics.set_model_info(model=manifest.name, version=manifest.version, sha256=manifest.variants[variant].sha256)
    return loaded


def check_bundle(directory: Path, settings: Settings, metrics: Metrics) -> Iterator[str]:
    """Checks a whole bundle and translates with each variant that this machine can run; yields what is well.

    Raises:
        StartupError: every fault.
    """
    packages = _installed_packages()
    bundle = open_bundle(directory)
    manifest = bundle.manifest
    yield f"{manifest.name} {manifest.version}: manifest and files are as they should be"
    for variant in manifest.variants:
        device = variant.partition("-")[0]
        if device == "cuda" and not (_GPU_PACKAGE in packages and has_cuda_device()):
            yield f"{variant}: not tried, since there is no CUDA device here"
            continue
        loaded = _start_engine(bundle, variant, device, settings, metrics)
        loaded.engine.stop()
        loaded.runner.load_steps()
        yield f"{variant}: passes the golden sentence"


def choose_variant(settings: Settings, *, can_use_cuda: bool) -> tuple[str, str]:
    """Returns device and variant; `auto` takes the fastest that machine and bundle have.

    Args:
        settings: `variant`, `device` and `bundle` count.
        can_use_cuda: whether there are a CUDA device and the package for it.
    """
    if settings.variant != AUTO:
        return settings.variant.partition("-")[0], settings.variant
    on_cpu = ["cpu-int8", "cpu-fp32"]
    if settings.device == "cuda" or (settings.device == AUTO and can_use_cuda):
        preferred = ["cuda-fp16"] if settings.device == "cuda" else ["cuda-fp16", *on_cpu]
    else:
        preferred = on_cpu
    found = [variant for variant in preferred if (settings.bundle / variant).is_dir()]
    variant = (found or preferred)[0]
    return variant.partition("-")[0], variant


def _start_engine(bundle: Bundle, variant: str, device: str, settings: Settings, metrics: Metrics) -> LoadedModel:
    # Only here: without the extra there is no onnxruntime, and `_installed_packages` has said so better.
    from server.engine.engine import Engine  # noqa: PLC0415
    from server.runtime.runner import OrtRunner  # noqa: PLC0415

    manifest = bundle.manifest
    widest = manifest.limits.max_beam_size
    if settings.max_rows < widest:
        raise SettingsError([f"--max-rows: {settings.max_rows} is less than the model's widest beam, {widest}"])
    if device == "cuda" and settings.lanes > 1:
        raise SettingsError([f"--lanes: {settings.lanes} is more than cuda takes, 1: one thread owns its graphs"])
    tokenizer = Tokenizer(
        bundle.tokenizer_path, vocab_size=manifest.dimensions.vocab_size, eos_id=manifest.special_ids.eos
    )
    num_lanes = settings.lanes or (usable_cores() if device == "cpu" else 1)
    runner = OrtRunner(bundle, variant, device, num_threads_alone=num_lanes if device == "cpu" else 1)
    engine = Engine(
        runner,
        manifest,
        metrics,
        num_lanes=num_lanes,
        batch=settings.batch(variant, manifest.position_bytes(variant)),
        max_waiting_tokens=settings.max_waiting_tokens,
        max_waiting_sentences=settings.max_waiting_sentences,
    )
    engine.start()
    served = ServedModel(
        manifest=manifest,
        variant=variant,
        tokenizer=tokenizer,
        engine=_with_cache(engine, manifest, variant, settings, metrics),
    )
    with _stopped_on_error(engine):
        warm_up(served)
    return LoadedModel(served=served, engine=engine, runner=runner, device=device, num_lanes=num_lanes)


def _with_cache(
    engine: "Engine", manifest: Manifest, variant: str, settings: Settings, metrics: Metrics
) -> SentenceEngine:
    """Puts a `SentenceCache` before the engine if one was asked for."""
    if not (settings.cache_sentences or settings.single_flight):
        return engine
    return SentenceCache(
        engine,
        (manifest.name, manifest.version, manifest.variants[variant].sha256),
        metrics,
        max_sentences=settings.cache_sentences,
        is_single_flight=settings.single_flight,
    )


@contextlib.contextmanager
def _stopped_on_error(engine: "Engine") -> Iterator[None]:
    try:
        yield
    except BaseException:
        engine.stop()
        raise


def _installed_packages() -> set[str]:
    found = set()
    for name in (_CPU_PACKAGE, _GPU_PACKAGE):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            importlib.metadata.version(name)
            found.add(name)
    check_packages(found)
    return found


def check_packages(found: set[str]) -> None:
    """Exactly one distribution of ONNX Runtime is installed; else SettingsError says what to install."""
    if len(found) > 1:
        message = f"{' and '.join(sorted(found))} are both installed and overwrite each other: uninstall both, then"
        raise SettingsError([f"{message} install 'babelserve[cpu]' or 'babelserve[gpu]'"])
    if not found:
        raise SettingsError(["no ONNX Runtime is installed: install 'babelserve[cpu]' or 'babelserve[gpu]'"])
