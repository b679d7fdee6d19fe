"""A command goes on after a part that failed, and says so at its end."""

import json
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from tests.gpu.parts import Context, Part, parser_of, run_parts


def _raises(context: Context) -> None:
    context.figure("before", 1)
    raise ValueError("a fault of the part")


def _misses(context: Context) -> None:
    context.check("speed", 1.0, is_met=False, bar=">= 2")
    context.figure("after", 2)


def _passes(context: Context) -> None:
    context.check("speed", 3.0, is_met=True, bar=">= 2")


def _run(parts: list[Part], out: Path, *flags: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """Returns the exit status, and the results by part."""
    options: Namespace = parser_of("tried", "", parts).parse_args(["--device", "cpu", "--out", str(out), *flags])
    status = run_parts("tried", parts, options)
    document = json.loads((out / "tried.json").read_text(encoding="utf-8"))
    return status, {result["part"]: result for result in document["parts"]}


def test_what_follows_a_part_that_failed_is_run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    status, results = _run(
        [Part("raises", 1, _raises), Part("misses", 1, _misses), Part("passes", 1, _passes)], tmp_path
    )

    assert status == 1
    assert {name: result["status"] for name, result in results.items()} == {
        "adds": "passed",
        "raises": "failed",
        "misses": "failed",
        "passes": "passed",
    }
    assert results["raises"]["figures"] == {"before": 1}
    assert results["misses"]["figures"]["after"] == 2
    assert "ValueError: a fault of the part" in capfd.readouterr().err


def test_a_part_that_would_not_end_in_time_is_left_out(tmp_path: Path) -> None:
    status, results = _run([Part("long", 1000, _raises), Part("short", 1, _passes)], tmp_path, "--budget", "100")

    assert status == 0
    assert [results[name]["status"] for name in ("long", "short")] == ["left out", "passed"]


def test_only_the_parts_that_are_asked_for_are_run(tmp_path: Path) -> None:
    _, results = _run([Part("raises", 1, _raises), Part("passes", 1, _passes)], tmp_path, "--parts", "passes")

    assert list(results) == ["adds", "passes"]


def test_without_a_gpu_nothing_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.models.choosing.has_cuda_device", lambda: False)
    status, results = _run([Part("passes", 1, _passes)], tmp_path, "--device", "cuda")

    assert (status, list(results)) == (1, ["adds"])
    assert "onnxruntime-gpu" in results["adds"]["faults"][0]
