import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from model.recipe_file import load_recipe
from model.train import prepare
from tests.model.runs import ROOT, SMALL_RECIPE, small_data


def test_two_processes_make_the_updates_of_one_and_stop_together(tmp_path: Path) -> None:
    data, out, path = small_data(tmp_path), tmp_path / "out", tmp_path / "recipe.toml"
    path.write_text(SMALL_RECIPE.format(training="accumulate = 1"), encoding="utf-8")
    out.mkdir()
    script = [sys.executable, "-m", "tests.model.two_processes", str(path), str(data), str(out)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    ranks = ([*script, rank] for rank in ("0", "1"))
    first, second = (
        subprocess.Popen(one, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) for one in ranks
    )
    with first, second:
        reports = [json.loads(process.communicate()[0]) for process in (first, second)]
    assert (first.returncode, second.returncode) == (0, 0)

    two_batches = load_recipe(path)
    two_batches = dataclasses.replace(two_batches, training=dataclasses.replace(two_batches.training, accumulate=2))
    alone = prepare(two_batches, data, tmp_path / "alone")
    updates = alone._updates()
    groups = [next(updates) for _ in range(3)]
    losses = [alone.update(batches)[0] for batches in groups]
    sums = {name: weight.double().sum().item() for name, weight in alone.model.state_dict().items()}

    assert 1 in [len(batches) for batches in groups]  # the second process had no batch then
    assert [report["step"] for report in reports] == [3, 3]
    assert reports[0]["losses"] == reports[1]["losses"] == pytest.approx(losses, abs=1e-5)
    assert reports[0]["weights"] == reports[1]["weights"]
    for name, total in sums.items():
        if not name.endswith("qkv.bias"):  # biases of keys have gradients of rounding errors only
            assert reports[0]["weights"][name] == pytest.approx(total, abs=1e-3)
