import dataclasses
import json
import shutil
import threading
from pathlib import Path

import onnxruntime
import pytest

from server.bundle.bundle import MANIFEST_FILE, PLAIN_STEP, Bundle, StepForm
from server.errors import BundleError, SettingsError
from server.models.loading import check_bundle, check_packages, choose_variant, load_model
from server.runtime.runner import OrtRunner
from server.settings.settings import Settings
from server.telemetry.metrics import Metrics


@pytest.mark.parametrize(
    ("variant", "device", "can_use_cuda", "expected"),
    [
        ("auto", "auto", False, ("cpu", "cpu-int8")),
        ("auto", "auto", True, ("cuda", "cuda-fp16")),
        ("auto", "cpu", True, ("cpu", "cpu-int8")),
        ("auto", "cuda", False, ("cuda", "cuda-fp16")),  # the runner says what is missing
        ("cpu-int8", "auto", True, ("cpu", "cpu-int8")),
        ("cuda-fp16", "auto", False, ("cuda", "cuda-fp16")),
    ],
)
def test_auto_takes_the_fastest_that_the_machine_has(
    tmp_path: Path, variant: str, device: str, can_use_cuda: bool, expected: tuple[str, str]
) -> None:
    for name in ("cpu-int8", "cpu-fp32", "cuda-fp16"):
        (tmp_path / name).mkdir()
    settings = Settings(bundle=tmp_path, variant=variant, device=device)

    assert choose_variant(settings, can_use_cuda=can_use_cuda) == expected


def test_auto_takes_only_what_the_bundle_has(tmp_path: Path) -> None:
    (tmp_path / "cpu-fp32").mkdir()
    settings = Settings(bundle=tmp_path)

    assert choose_variant(settings, can_use_cuda=True) == ("cpu", "cpu-fp32")


def test_exactly_one_onnx_runtime_is_accepted() -> None:
    check_packages({"onnxruntime"})
    check_packages({"onnxruntime-gpu"})
    with pytest.raises(SettingsError, match=r"both installed.*babelserve\[cpu\]"):
        check_packages({"onnxruntime", "onnxruntime-gpu"})
    with pytest.raises(SettingsError, match=r"no ONNX Runtime.*babelserve\[gpu\]"):
        check_packages(set())


def test_a_bundle_becomes_an_engine_that_translates(tiny_bundle: Bundle, metrics: Metrics) -> None:
    loaded = load_model(Settings(bundle=tiny_bundle.directory, variant="cpu-fp32", lanes=1), metrics)
    try:
        assert (loaded.device, loaded.served.variant, loaded.num_lanes) == ("cpu", "cpu-fp32", 1)
        assert loaded.engine.is_alive()
    finally:
        loaded.engine.stop()


@pytest.mark.parametrize("lanes", [1, 3])
def test_a_lane_alone_at_work_has_the_threads_of_all(tiny_bundle: Bundle, metrics: Metrics, lanes: int) -> None:
    loaded = load_model(Settings(bundle=tiny_bundle.directory, variant="cpu-fp32", lanes=lanes), metrics)
    loaded.engine.stop()

    sessions = [loaded.runner.step_session(PLAIN_STEP, is_alone) for is_alone in (False, True)]
    assert [session.get_session_options().intra_op_num_threads for session in sessions] == [1, lanes]


def copied(tiny_bundle: Bundle, directory: Path, **golden: object) -> Path:
    """A copy of the bundle, with other golden facts."""
    copy = directory / "bundle"
    shutil.copytree(tiny_bundle.directory, copy)
    document = json.loads((copy / MANIFEST_FILE).read_text(encoding="utf-8"))
    document["golden"] |= golden
    (copy / MANIFEST_FILE).write_text(json.dumps(document), encoding="utf-8")
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


def test_a_whole_bundle_is_checked_variant_by_variant(tiny_bundle: Bundle, metrics: Metrics) -> None:
    lines = list(check_bundle(tiny_bundle.directory, Settings(), metrics))

    assert [line.split(":")[0] for line in lines] == ["tiny 0", *tiny_bundle.manifest.variants]


def test_the_check_loads_steps_that_the_golden_sentence_does_not_take(
    tiny_bundle: Bundle, metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[tuple[str, bool]] = []
    load = OrtRunner._load

    def noted(runner: OrtRunner, file: str, num_threads: int, **options: str) -> onnxruntime.InferenceSession:
        taken.append((file, num_threads > 1))
        return load(runner, file, num_threads, **options)

    monkeypatch.setattr(OrtRunner, "_load", noted)
    lines = list(check_bundle(tiny_bundle.directory, Settings(lanes=2), metrics))

    assert len(lines) == 1 + len(tiny_bundle.manifest.variants)
    for is_alone in (False, True):
        assert taken.count((StepForm(shares_slots=True).file, is_alone)) == 2  # of each variant for a CPU
    assert taken.count((PLAIN_STEP.file, False)) == 2


def test_a_faulty_bundle_does_not_pass_the_check(tiny_bundle: Bundle, tmp_path: Path, metrics: Metrics) -> None:
    bundle = copied(tiny_bundle, tmp_path)
    (bundle / "cpu-int8" / "encoder.onnx").write_bytes(b"")

    with pytest.raises(BundleError, match=r"cpu-int8/encoder\.onnx"):
        list(check_bundle(bundle, Settings(), metrics))
