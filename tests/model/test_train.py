import dataclasses
import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from model.recipe import load_recipe
from model.train import main, prepare
from tests.model.runs import CORPUS, DATA, ROOT, SMALL_RECIPE, recipe, small_data


def test_the_tiny_recipe_learns(tmp_path: Path) -> None:
    tiny = load_recipe(DATA / "tiny.toml")
    short = dataclasses.replace(tiny, training=dataclasses.replace(tiny.training, max_steps=60, warmup_steps=40))
    trainer = prepare(short, DATA, tmp_path)

    losses = [trainer.update(batches)[0] for batches in trainer._updates()]

    assert losses[0] > math.log(700) * 0.9  # it begins by guessing
    assert sum(losses[-5:]) / 5 < losses[0] - 1.2


def test_held_out_pairs_are_written_and_the_vocabulary_is_kept(tmp_path: Path) -> None:
    how = recipe()
    how = dataclasses.replace(how, train=(dataclasses.replace(CORPUS, hold_out=20), CORPUS))

    trainer = prepare(how, DATA, tmp_path)

    lines = (tmp_path / "held-out.tsv").read_text(encoding="utf-8").splitlines()
    held_out = {tuple(line.split("\t")) for line in lines}
    assert len(held_out) == 20
    for corpus in trainer.corpora:
        assert len(corpus.pairs) == 180
        assert not held_out & set(corpus.pairs)
    before = (tmp_path / "tokenizer.model").stat().st_mtime_ns
    prepare(how, DATA, tmp_path)
    assert (tmp_path / "tokenizer.model").stat().st_mtime_ns == before


def test_a_recipe_without_a_corpus_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"names no \[\[train\]\] corpus"):
        prepare(dataclasses.replace(recipe(), train=()), DATA, tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "No such file"), ("name = 1\n", "unknown name|missing"), (SMALL_RECIPE.format(training=""), "dev.en")],
)
def test_the_command_ends_with_one_line_when_it_cannot_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | None, message: str
) -> None:
    path = tmp_path / "recipe.toml"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    command = ["babelserve-train", str(path), "--data", str(DATA), "--out", str(tmp_path / "out")]
    monkeypatch.setattr(sys, "argv", command)

    with pytest.raises(SystemExit, match=f"^babelserve-train: .*({message})"):
        main()


@pytest.mark.timeout(240)  # processes of their own, which start slowly on a busy machine
def test_ctrl_c_saves_and_the_same_command_goes_on(tmp_path: Path) -> None:
    data, out, path = small_data(tmp_path), tmp_path / "out", tmp_path / "recipe.toml"
    path.write_text(SMALL_RECIPE.format(training="evaluate_every = 1"), encoding="utf-8")
    command = [sys.executable, "-m", "model.train", str(path), "--data", str(data), "--out", str(out)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}

    with subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "dev BLEU" in line:  # it is at work
                process.send_signal(signal.SIGINT)
                break
        rest = process.stderr.read()

    assert process.returncode == 0
    assert "stopped at step" in rest
    assert "Traceback" not in rest
    assert not list(out.glob("*.tmp"))
    trainer = prepare(load_recipe(path), data, out)
    assert 1 <= trainer.step < 1000
    assert f"stopped at step {trainer.step};" in rest
