from pathlib import Path

import pytest

from server.errors import SettingsError
from server.models.choosing import can_run, check_packages, choose_variant, idle_gpu, installed_packages
from server.settings.settings import Settings


def with_cuda(monkeypatch: pytest.MonkeyPatch, has_cuda: bool) -> None:
    monkeypatch.setattr("server.models.choosing.can_use_cuda", lambda: has_cuda)


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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variant: str, device: str, has_cuda: bool, expected: str
) -> None:
    with_cuda(monkeypatch, has_cuda)
    for name in ("cpu-int8", "cpu-fp32", "cuda-fp16"):
        (tmp_path / name).mkdir()
    settings = Settings(bundle=tmp_path, variant=variant, device=device)

    assert choose_variant(settings) == expected


def test_auto_takes_only_what_the_bundle_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_cuda(monkeypatch, True)
    (tmp_path / "cpu-fp32").mkdir()
    settings = Settings(bundle=tmp_path)

    assert choose_variant(settings) == "cpu-fp32"


def test_auto_of_a_bundle_that_cannot_be_looked_at_is_the_one_that_will_be_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_cuda(monkeypatch, False)
    bundle = tmp_path / ("x" * 300)  # as one that is closed to us is for others than root
    with pytest.raises(OSError, match="File name too long"):
        (bundle / "cpu-int8").is_dir()

    assert choose_variant(Settings(bundle=bundle)) == "cpu-int8"


def test_auto_of_a_bundle_without_any_is_the_one_that_will_be_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_cuda(monkeypatch, False)
    settings = Settings(bundle=tmp_path)

    assert choose_variant(settings) == "cpu-int8"


def test_this_machine_runs_every_variant_for_its_processor() -> None:
    assert can_run("cpu-fp32")
    assert can_run("cpu-int8")


def test_exactly_one_onnx_runtime_is_accepted() -> None:
    check_packages({"onnxruntime": "/image"})
    check_packages({"onnxruntime-gpu": "/site"})
    both = r"onnxruntime \(in /image\) and onnxruntime-gpu \(in /site\) are both installed.*babelserve\[cpu\]"
    with pytest.raises(SettingsError, match=both):
        check_packages({"onnxruntime": "/image", "onnxruntime-gpu": "/site"})
    with pytest.raises(SettingsError, match=r"no ONNX Runtime.*babelserve\[gpu\]"):
        check_packages({})


def test_the_one_that_is_installed_is_found() -> None:
    (package,) = installed_packages()

    assert package in ("onnxruntime", "onnxruntime-gpu")


def with_packages(monkeypatch: pytest.MonkeyPatch, *packages: str) -> None:
    monkeypatch.setattr("server.models.choosing.installed_packages", lambda: set(packages))


def test_a_server_for_a_gpu_says_when_it_serves_on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    with_packages(monkeypatch, "onnxruntime-gpu")
    monkeypatch.setattr("server.models.choosing.has_cuda_device", lambda: False)
    expected = "onnxruntime-gpu is installed, but cpu-int8 is served on the CPU: no NVIDIA driver offers a device"

    assert idle_gpu(Settings(), "cpu-int8").startswith(expected)


def test_a_gpu_that_the_bundle_has_nothing_for_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with_packages(monkeypatch, "onnxruntime-gpu")
    monkeypatch.setattr("server.models.choosing.has_cuda_device", lambda: True)

    assert "on the CPU: the bundle has no variant cuda-fp16;" in idle_gpu(Settings(), "cpu-int8")


@pytest.mark.parametrize(
    ("package", "settings", "variant"),
    [
        ("onnxruntime", Settings(), "cpu-int8"),
        ("onnxruntime-gpu", Settings(device="cpu"), "cpu-int8"),
        ("onnxruntime-gpu", Settings(variant="cpu-int8"), "cpu-int8"),
        ("onnxruntime-gpu", Settings(), "cuda-fp16"),
    ],
)
def test_what_was_asked_for_or_cannot_be_otherwise_is_not_told(
    monkeypatch: pytest.MonkeyPatch, package: str, settings: Settings, variant: str
) -> None:
    with_packages(monkeypatch, package)

    assert idle_gpu(settings, variant) == ""
