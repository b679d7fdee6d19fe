"""What `babelserve-train` leaves in `--out`, and keeps others from writing there."""

import dataclasses
import logging
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from model.recipe import CorpusConfig
from model.train import prepare
from tests.model.runs import CORPUS, DATA, ROOT, SMALL_RECIPE, recipe, small_data


def test_held_out_texts_with_tabs_and_ends_of_lines_are_two_columns_of_one_line(tmp_path: Path) -> None:
    data = small_data(tmp_path)
    (data / "a.en").write_bytes(b"one\ttwo\nthree\rfour\n")
    (data / "a.de").write_bytes("eins\tzwei\ndrei\u2028\x85vier\n".encode())
    held = CorpusConfig(source="a.en", target="a.de", hold_out=2)

    prepare(dataclasses.replace(recipe(), train=(CORPUS, held), dev=(CORPUS,)), data, tmp_path / "out")

    lines = (tmp_path / "out" / "held-out.tsv").read_text(encoding="utf-8").splitlines()
    assert lines == ["one two\teins zwei", "three four\tdrei vier"]


def test_a_loss_that_is_not_finite_ends_the_run_with_one_line_and_saves_nothing(tmp_path: Path) -> None:
    trainer = prepare(recipe(evaluate_every=1), DATA, tmp_path)
    with torch.no_grad():
        trainer.model.output_weight.fill_(float("nan"))

    with pytest.raises(FloatingPointError, match="the loss of step 1 is nan: lower lr_scale"):
        trainer.run()

    assert not list(tmp_path.glob("*.pt"))


def test_a_second_run_in_one_folder_is_refused_with_one_line(tmp_path: Path) -> None:
    data, path = small_data(tmp_path), tmp_path / "recipe.toml"
    path.write_text(SMALL_RECIPE.format(training=""), encoding="utf-8")
    prepare(recipe(), DATA, tmp_path / "out")  # this process holds the folder
    flags = ["--data", str(data), "--out", str(tmp_path / "out")]

    ended = subprocess.run(
        [sys.executable, "-m", "model.train", str(path), *flags], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert ended.returncode == 1
    assert ended.stderr == (
        f"babelserve-train: {tmp_path}/out: another run writes there; wait for its end, or take another --out\n"
    )


def test_dev_pairs_that_no_network_reads_are_left_out_and_learned_ones_are_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = small_data(tmp_path)
    (data / "long.tsv").write_text("a dog " * 600 + "\tEin Hund.\n", encoding="utf-8")
    long = CorpusConfig(tsv="long.tsv")

    with caplog.at_level(logging.WARNING):
        trainer = prepare(dataclasses.replace(recipe(), dev=(CORPUS, long)), data, tmp_path / "out")

    assert len(trainer.dev) == 200
    assert caplog.messages == [
        "left out 1 [dev] pairs of 512 tokens or more",
        "200 [dev] pairs are in the [[train]] text too: scores on them say little",
    ]
    with pytest.raises(ValueError, match=r"have no source of fewer than 512 tokens, model\.max_positions"):
        prepare(dataclasses.replace(recipe(), dev=(long,)), data, tmp_path / "out")
