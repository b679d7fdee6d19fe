from pathlib import Path

import pytest

from server.errors import SettingsError
from server.models.choosing import can_run, check_packages, choose_variant, installed_packages
from server.settings.settings import Settings


@pytest.mark.parametrize(
    ("variant", "device", "has_cuda", "expected"),
    [
        ("auto", "auto", False, "cpu-int8"),
        ("auto", "auto", True, "cuda-fp16"),
        ("auto", "cpu", True, "cpu-int8"),
        ("auto", "cuda", False, "cuda-fp16"),  # the runner says what is missing
        ("cpu-int8", "auto", True, "cpu-int8"),
        ("cuda-fp16", "auto", False, "cuda-fp16"),
    ],
)
def test_auto_takes_the_fastest_that_the_machine_has(
    tmp_path: Path, variant: str, device: str, has_cuda: bool, expected: str
) -> None:
    for name in ("cpu-int8", "cpu-fp32", "cuda-fp16"):
        (tmp_path / name).mkdir()
    settings = Settings(bundle=tmp_path, variant=variant, device=device)

    assert choose_variant(settings, has_cuda=has_cuda) == expected


def test_auto_takes_only_what_the_bundle_has(tmp_path: Path) -> None:
    (tmp_path / "cpu-fp32").mkdir()
    settings = Settings(bundle=tmp_path)

    assert choose_variant(settings, has_cuda=True) == "cpu-fp32"


def test_auto_of_a_bundle_that_cannot_be_looked_at_is_the_one_that_will_be_missed(tmp_path: Path) -> None:
    bundle = tmp_path / ("x" * 300)  # as one that is closed to us is for others than root
    with pytest.raises(OSError, match="File name too long"):
        (bundle / "cpu-int8").is_dir()

    assert choose_variant(Settings(bundle=bundle), has_cuda=False) == "cpu-int8"


def test_auto_of_a_bundle_without_any_is_the_one_that_will_be_missed(tmp_path: Path) -> None:
    settings = Settings(bundle=tmp_path)

    assert choose_variant(settings, has_cuda=False) == "cpu-int8"


def test_this_machine_runs_every_variant_for_its_processor() -> None:
    assert can_run("cpu-fp32")
    assert can_run("cpu-int8")


def test_exactly_one_onnx_runtime_is_accepted() -> None:
    check_packages({"onnxruntime"})
    check_packages({"onnxruntime-gpu"})
    with pytest.raises(SettingsError, match=r"both installed.*babelserve\[cpu\]"):
        check_packages({"onnxruntime", "onnxruntime-gpu"})
    with pytest.raises(SettingsError, match=r"no ONNX Runtime.*babelserve\[gpu\]"):
        check_packages(set())


def test_the_one_that_is_installed_is_found() -> None:
    (package,) = installed_packages()

    assert package in ("onnxruntime", "onnxruntime-gpu")
