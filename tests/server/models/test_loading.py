import dataclasses
import json
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from server.bundle.bundle import Bundle, open_bundle
from server.bundle.graphs import PLAIN_STEP
from server.bundle.manifest import MANIFEST_FILE, Manifest, seal_manifest
from server.bundle.states import attention_states
from server.bundle.variants import VARIANTS
from server.decoding.options import DecodingOptions
from server.errors import BundleError, SettingsError
from server.models.loading import Share, engine_limits, load_model, open_network, start_model
from server.runtime.onnx_runtime_errors import telling_failures_apart
from server.runtime.runner import HostRunner, NetworkRunner, open_runner
from server.settings.settings import BUILTIN_BUNDLE, Settings
from server.telemetry.metrics import Metrics

Harm = Callable[[Path], None]


def test_a_bundle_becomes_an_engine_that_translates(tiny_bundle: Bundle, metrics: Metrics) -> None:
    model = load_model(Settings(bundle=tiny_bundle.directory, variant="cpu-fp32", lanes=1), metrics)
    try:
        assert (model.device, model.variant, model.num_lanes) == ("cpu", "cpu-fp32", 1)
        assert model.supervisor.is_ready()
        assert model.supervisor.is_alive()
    finally:
        model.stop()


@pytest.mark.parametrize("lanes", [1, 3])
def test_a_lane_alone_at_work_has_the_threads_of_all(tiny_bundle: Bundle, lanes: int) -> None:
    runner = open_network(tiny_bundle, "cpu-fp32", Settings(lanes=lanes))

    assert isinstance(runner, HostRunner)
    sessions = [runner.sessions.step_session(PLAIN_STEP, is_alone) for is_alone in (False, True)]
    assert [session.get_session_options().intra_op_num_threads for session in sessions] == [1, lanes]


def copied(tiny_bundle: Bundle, directory: Path, **golden: object) -> Path:
    """A copy of the bundle, with other golden facts."""
    copy = directory / "bundle"
    shutil.copytree(tiny_bundle.directory, copy)
    document = json.loads((copy / MANIFEST_FILE).read_text(encoding="utf-8"))
    document["golden"] |= golden
    (copy / MANIFEST_FILE).write_text(json.dumps(document), encoding="utf-8")
    seal_manifest(copy)
    return copy


def test_a_model_that_translates_otherwise_than_at_export_is_refused_and_stopped(
    tiny_bundle: Bundle, tmp_path: Path, metrics: Metrics
) -> None:
    outputs = {name: dataclasses.asdict(o) | {"ids": [5]} for name, o in tiny_bundle.manifest.golden.outputs.items()}
    bundle = copied(tiny_bundle, tmp_path, outputs=outputs)
    before = threading.active_count()

    with pytest.raises(BundleError, match="golden sentence"):
        load_model(Settings(bundle=bundle, variant="cpu-fp32"), metrics)

    assert threading.active_count() == before


def test_a_batch_too_narrow_for_the_models_widest_beam_is_refused(tiny_bundle: Bundle, metrics: Metrics) -> None:
    with pytest.raises(SettingsError, match="--max-rows: 8"):
        load_model(Settings(bundle=tiny_bundle.directory, max_rows=8), metrics)


def test_cuda_takes_one_lane(tiny_bundle: Bundle, metrics: Metrics) -> None:
    with pytest.raises(SettingsError, match="--lanes: 2 is more than cuda takes, 1"):
        load_model(Settings(bundle=tiny_bundle.directory, variant="cuda-fp16", lanes=2), metrics)


@pytest.fixture(scope="module")
def base() -> Manifest:
    """The built-in model's manifest, with the dimensions of Transformer-base."""
    small = open_bundle(BUILTIN_BUNDLE).manifest
    return dataclasses.replace(
        small,
        dimensions=dataclasses.replace(small.dimensions, num_heads=8, head_dim=64, decoder_layers=6),
        states=attention_states(6, 8, 64),
    )


@pytest.mark.parametrize(("variant", "source_tokens"), [("cpu-int8", 2048), ("cpu-fp32", 2730), ("cuda-fp16", 65536)])
def test_by_default_so_many_source_tokens_of_transformer_base_run(
    base: Manifest, variant: str, source_tokens: int
) -> None:
    batch = engine_limits(base, variant, Settings()).lane

    assert batch.max_cached_positions // 2 == source_tokens
    assert batch.max_encode_tokens == VARIANTS[variant].max_encode_tokens


@pytest.mark.parametrize("variant", VARIANTS)
def test_what_is_set_wins_over_the_variants_defaults(base: Manifest, variant: str) -> None:
    settings = Settings(max_rows=7, max_cache_mib=2 * VARIANTS[variant].max_cache_mib, max_encode_tokens=100)
    doubled, default = (engine_limits(base, variant, each).lane for each in (settings, Settings()))

    assert (doubled.max_rows, doubled.max_encode_tokens) == (7, 100)
    assert doubled.max_cached_positions // 2 == default.max_cached_positions


def test_the_same_memory_holds_more_of_a_smaller_model(base: Manifest) -> None:
    small = open_bundle(BUILTIN_BUNDLE).manifest

    def positions(manifest: Manifest, variant: str) -> int:
        return engine_limits(manifest, variant, Settings(max_cache_mib=48)).lane.max_cached_positions

    assert positions(base, "cpu-fp32") == 2048
    assert positions(base, "cpu-int8") == 4 * 2048
    sizes = small.dimensions
    factor = 6 * 512 / (sizes.decoder_layers * sizes.num_heads * sizes.head_dim)
    assert positions(small, "cpu-fp32") == int(factor * 2048)


def test_a_position_larger_than_the_cache_is_one(base: Manifest) -> None:
    wide = dataclasses.replace(base, dimensions=dataclasses.replace(base.dimensions, head_dim=2**18))

    assert engine_limits(wide, "cpu-int8", Settings(max_cache_mib=1)).lane.max_cached_positions == 1


def overwrite(path: Path) -> None:
    """Turns every byte of a file around, in place."""
    with path.open("r+b") as file:
        data = file.read()
        file.seek(0)
        file.write(bytes(255 - byte for byte in data))


def cut(path: Path) -> None:
    """Takes everything from a file, in place."""
    os.truncate(path, 0)


@pytest.mark.parametrize("harm", [overwrite, cut, Path.unlink], ids=["overwritten", "cut", "deleted"])
@pytest.mark.parametrize("variant", ["cpu-fp32", "cpu-int8"])
def test_a_model_that_serves_needs_nothing_of_its_bundle(
    tiny_bundle: Bundle, sources: list[list[int]], tmp_path: Path, metrics: Metrics, variant: str, harm: Harm
) -> None:
    copy = shutil.copytree(tiny_bundle.directory, tmp_path / "bundle")
    expected = load_model(Settings(bundle=tiny_bundle.directory, variant=variant, lanes=2), metrics)
    model = load_model(Settings(bundle=copy, variant=variant, lanes=2), metrics)
    try:
        for path in copy.rglob("*"):
            if path.is_file():
                harm(path)

        for beam_size in (1, 4):  # of which none has been asked for before
            options = DecodingOptions(beam_size=beam_size)
            answers, right = (each.engine.submit(sources[:20], options) for each in (model, expected))
            assert [a.result(30).hypotheses[0].ids for a in answers] == [r.result(30).hypotheses[0].ids for r in right]
    finally:
        model.engine.stop()
        expected.engine.stop()


def test_a_model_is_served_by_the_name_and_version_that_it_is_given(tiny_bundle: Bundle, metrics: Metrics) -> None:
    settings = Settings(bundle=tiny_bundle.directory, variant="cpu-fp32", lanes=1)
    model = load_model(settings, metrics, name="other", version="7")
    model.stop()

    assert (model.manifest.name, model.manifest.version) == ("other", "7")
    labels = {"model": "other", "version": "7"}
    assert (metrics.registry.get_sample_value("babelserve_generated_tokens_total", labels) or 0) > 0  # to warm up


def test_bulk_calls_have_the_part_of_a_lane_that_the_settings_say(base: Manifest) -> None:
    assert engine_limits(base, "cpu-fp32", Settings(bulk_share=0.5)).lane.alone_share == 0.5


def test_models_share_the_memory_of_one_and_give_it_back_when_idle(base: Manifest) -> None:
    settings = Settings(lanes=2, memory_mib=256)
    alone, one_of_four = (
        engine_limits(base, "cpu-fp32", settings, share).lane for share in (Share(), Share(num_models=4))
    )

    assert alone == engine_limits(base, "cpu-fp32", settings).lane
    assert (
        one_of_four.max_cached_positions * 4 <= alone.max_cached_positions < (one_of_four.max_cached_positions + 1) * 4
    )
    assert alone.idle_seconds == float("inf")
    assert one_of_four.idle_seconds < 60
    # On a GPU captured steps replay on the addresses of their caches.
    assert engine_limits(base, "cuda-fp16", settings, Share(num_models=4)).lane.idle_seconds == float("inf")


class BrokenDevice:
    """The runner of a device whose first run fails with given words."""

    def __init__(self, runner: NetworkRunner, words: str) -> None:
        self._runner, self._words = runner, words

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runner, name)

    @telling_failures_apart
    def encode(self, source_ids: object, source_lengths: object) -> None:
        raise RuntimeError(self._words)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("CUDA failure 209: no kernel image is available ; GPU=0", "device cuda: this onnxruntime-gpu has no code for"),
        (
            "Failed to allocate memory for requested buffer",
            "device cuda: its memory does not suffice: lower --max-rows",
        ),
    ],
)
def test_a_device_that_fails_in_the_warm_up_is_told_instead_of_the_bundle(
    tiny_bundle: Bundle, metrics: Metrics, words: str, expected: str
) -> None:
    runner: Any = BrokenDevice(open_runner(tiny_bundle, "cuda-fp16", "cpu"), words)

    with pytest.raises(SettingsError, match=expected):
        start_model(tiny_bundle, "cuda-fp16", runner, Settings(), metrics)


def test_what_else_fails_in_the_warm_up_is_the_bundles_fault(tiny_bundle: Bundle, metrics: Metrics) -> None:
    runner: Any = BrokenDevice(open_runner(tiny_bundle, "cuda-fp16", "cpu"), "Invalid input shape")

    with pytest.raises(BundleError, match="golden sentence: translating it failed"):
        start_model(tiny_bundle, "cuda-fp16", runner, Settings(), metrics)
