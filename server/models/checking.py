"""`--check`: checks everything about a bundle that can be known before it serves, variant by variant."""

import dataclasses
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from server.bundle.bundle import open_bundle
from server.bundle.graphs import cache_names
from server.bundle.manifest import Manifest
from server.bundle.states import empty_states
from server.bundle.tokenizer import Tokenizer
from server.decoding.options import DecodingOptions
from server.errors import BundleError, TranslationError
from server.models.choosing import can_run
from server.models.loading import open_network, start_model
from server.models.model import Model
from server.models.warm_up import reason_of
from server.network import OutOfMemory
from server.settings.settings import Settings
from server.telemetry.metrics import Metrics

if TYPE_CHECKING:
    from server.runtime.runner import NetworkRunner

logger = logging.getLogger(__name__)

_TIMEOUT_SECONDS = 60.0
_MOST_CHARACTERS = 500  # of what ONNX Runtime says


def check_bundle(directory: Path, settings: Settings, metrics: Metrics, variant: str | None = None) -> Iterator[str]:
    """Checks a bundle, and translates with each variant that this machine can run. Yields what is good.

    Args:
        directory: of the bundle.
        settings: of the engines that translate.
        metrics: of these.
        variant: the only one that is checked; None checks all.

    Raises:
        StartupError: every fault of the files, or the first one of a variant.
    """
    bundle = open_bundle(directory, variant)
    manifest = bundle.manifest
    Tokenizer(manifest, bundle.read)  # finds the faults of the tokenizer, for which no network is needed
    yield f"{manifest.name} {manifest.version}: manifest, files and tokenizer are as they should be"
    for each in manifest.variants if variant is None else [variant]:
        if not can_run(each):
            yield f"{each}: not tried, since there is no CUDA device here"
            continue
        runner = open_network(bundle, each, settings)
        _check_positions(runner, manifest, each)
        model = start_model(bundle, each, runner, settings, metrics)
        try:
            for options in _every_step(model):
                _translate(model, options, manifest.golden.source_ids)
            if manifest.is_one_pass:  # a run of the longest source has all positions that there are
                longest = (manifest.special_ids.eos,) * manifest.limits.max_source_tokens
                _translate(model, manifest.golden_options(), longest)
        finally:
            model.stop()
        yield f"{each}: passes the golden sentence, every kind of step, and the longest sentences"


def _every_step(model: Model) -> Iterator[DecodingOptions]:
    """Yields options that together use every step form of the variant, and its aligner, at least once."""
    for use_shortlist in (False, True) if model.has_shortlist else (False,):
        for beam_size in {1, min(4, model.manifest.limits.max_beam_size)}:
            golden = model.manifest.golden_options(use_shortlist=use_shortlist)
            has_alignment = model.manifest.alignment is not None
            yield dataclasses.replace(golden, beam_size=beam_size, with_alignment=has_alignment)


def _translate(model: Model, options: DecodingOptions, source_ids: tuple[int, ...]) -> None:
    try:
        (future,) = model.engine.submit([source_ids], options)
        future.result(_TIMEOUT_SECONDS)
    except (TranslationError, TimeoutError) as error:
        number = len(source_ids)
        message = f"{model.variant}: translating {number} tokens with {options} failed: {reason_of(error)}"
        raise BundleError([message]) from error


def _check_positions(runner: "NetworkRunner", manifest: Manifest, variant: str) -> None:
    """Encodes the longest source, and takes the last step of the longest target. Beyond the positions both fail."""
    from server.runtime.runner import HostRunner  # noqa: PLC0415  # as in `open_network`

    limits, sizes = manifest.limits, manifest.dimensions
    ids = np.full((1, limits.max_source_tokens), manifest.special_ids.eos, np.int64)
    try:
        runner.encode(ids, np.array([limits.max_source_tokens], np.int32))
    except Exception as error:  # the errors of ONNX Runtime have no common base class
        field = f"limits.max_source_tokens, {limits.max_source_tokens}"
        raise BundleError([f"{variant}: the encoder fails at {field}: {_reason(error)}"]) from error
    if isinstance(runner, HostRunner):
        shape = (1, sizes.num_heads, limits.max_target_tokens, sizes.head_dim)
        dtype, past = manifest.variants[variant].dtype, np.array([limits.max_target_tokens - 1], np.int32)
        try:
            caches = {name: np.zeros(shape, dtype) for name in cache_names("cross", sizes.decoder_layers)}
            caches |= empty_states(manifest.states, 1, limits.max_target_tokens, dtype)
            runner.step_logits(ids[0, :1], past, np.array([1], np.int32), caches)
        except Exception as error:
            field = f"limits.max_target_tokens, {limits.max_target_tokens}"
            raise BundleError([f"{variant}: the decoder step fails at {field}: {_reason(error)}"]) from error


def _reason(error: Exception) -> str:
    if isinstance(error, OutOfMemory | MemoryError):
        return "it takes more memory than there is"
    return f"it may be beyond the model's positions: {str(error)[:_MOST_CHARACTERS]}"
