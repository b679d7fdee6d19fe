"""The three commands run to their end on a CPU, which leaves only the capture of CUDA graphs to a GPU."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from server.bundle.graphs import HALVES_FILE
from server.runtime.runner import open_runner
from tests.acceptance.server_process import BUILTIN_BUNDLE
from tests.gpu import faults, graphs, live, subjects
from tests.gpu.subjects import VARIANTS


def _figures(out: Path, command: str) -> dict[str, Any]:
    """Returns the figures of all parts; every part has passed."""
    parts = json.loads((out / f"{command}.json").read_text(encoding="utf-8"))["parts"]
    assert {part["part"]: part["faults"] for part in parts if part["status"] != "passed"} == {}
    return {name: value for part in parts for name, value in part["figures"].items()}


def _flags(folder: Path, *parts: str) -> list[str]:
    flags = ["--device", "cpu", "--quick", "--out", str(folder / "out"), "--work", str(folder / "work")]
    return [*flags, "--parts", *parts] if parts else flags


def test_graphs(tmp_path: Path) -> None:
    assert graphs.main(_flags(tmp_path)) == 0

    found = _figures(tmp_path / "out", "graphs")
    halves = [value for name, value in found.items() if "encoder" in name]
    assert all(0 < value < 0.01 for value in halves)  # they are halves, and of the same network
    assert len(halves) == 2


def test_live_server(tmp_path: Path) -> None:
    parts = "start", "golden", "sentences", "asked", "calls", "cancels", "ends", "steps", "kernels"
    assert live.main(_flags(tmp_path, *parts)) == 0

    found = _figures(tmp_path / "out", "live")
    assert found["equal alone and among others"] == 1
    assert found["cancelled"] > 0
    assert found["tiny attention, 8 rows, eager, us"] > 0


def test_faults(tmp_path: Path) -> None:
    assert faults.main(_flags(tmp_path, "memory-taken", "trap-within", "soak")) == 0

    assert _figures(tmp_path / "out", "faults")["words"] == "['trapped: ']"


def test_the_built_in_model_is_compared_without_its_int8(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    carried = tmp_path / "en-de"
    shutil.copytree(BUILTIN_BUNDLE, carried, ignore=shutil.ignore_patterns("cpu-int8"))
    monkeypatch.setattr(subjects, "BUILTIN_BUNDLE", carried)

    assert subjects.has_weights()
    exact, halves = (open_runner(subjects.trained().bundle, name, "cpu").sessions.embedding for name in VARIANTS)
    np.testing.assert_array_equal(exact, halves.astype(np.float32))

    (carried / HALVES_FILE).unlink()
    assert not subjects.has_weights()


def test_a_difference_that_is_no_number_is_the_largest() -> None:
    assert np.isnan(graphs._largest([0.0, float("nan"), 1.0]))
    assert graphs._largest([0.0, 2.0]) == pytest.approx(2.0)
