"""One command trains recipes, exports the networks and compares the bundles."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from model.checkpoint import load_checkpoint
from tests.bench.train_networks import RECIPES, dev_files, find_recipes, main

ROOT = Path(__file__).parents[2]
CAPTIONS = ROOT / "tests" / "data" / "multi30k_val_200"
BASE = """
name = "plain"
source_language = "en"
target_language = "de"
train = [{ source = "train.en", target = "train.de" }]
dev = [{ source = "dev.en", target = "dev.de" }]
[model]
vocab_size = 700
d_model = 16
num_heads = 2
encoder_layers = 1
decoder_layers = 1
ffn_dim = 32
max_positions = 128
[training]
batch_tokens = 1000
max_steps = 100
evaluate_every = 100
average_last = 1
bf16 = false
"""
ONE_PASS = 'name = "words"\nvariant_of = "a.toml"\n[model]\nfamily = "one_pass"\noutput_bias = true\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "a.toml").write_text(BASE, encoding="utf-8")
    (tmp_path / "recipes" / "b.toml").write_text(ONE_PASS, encoding="utf-8")
    (tmp_path / "people").mkdir()
    sides = [Path(f"{CAPTIONS}.{language}.txt").read_text(encoding="utf-8") for language in ("en", "de")]
    for language, text in zip(("en", "de"), sides, strict=True):
        (tmp_path / "people" / f"train.{language}").write_text(text, encoding="utf-8")
        short = "".join(f"{' '.join(line.split()[:2])}\n" for line in text.splitlines())  # the proof is quick then
        (tmp_path / "people" / f"dev.{language}").write_text(short, encoding="utf-8")
    pairs = list(zip(*(side.splitlines() for side in sides), strict=True))[:4]
    (tmp_path / "test.tsv").write_text("".join(f"{one}\t{other}\n" for one, other in pairs), encoding="utf-8")
    return tmp_path


def run(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    flags = ["--recipes", folder / "recipes", "--data", folder / "people", "--runs", folder / "runs", *arguments]
    command = [sys.executable, "-m", "tests.bench.train_networks", *map(str, flags)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def test_recipes_are_trained_exported_and_compared_though_one_fails(folder: Path) -> None:
    wide = 'name = "wide"\nvariant_of = "a.toml"\n[model]\nvocab_size = 100000\n'  # more pieces than the text has
    (folder / "recipes" / "c.toml").write_text(wide, encoding="utf-8")
    output = folder / "figures.json"
    flags = ["--updates", 3, "--at-once", 2, "--domain", f"captions={folder / 'test.tsv'}"]
    flags += ["--seconds", 0.5, "--alone", 2, "--output", output]

    done = run(folder, *flags)

    assert done.returncode == 1
    assert done.stderr.endswith("train_networks: without a bundle: c; the same command goes on\n")
    checkpoints = [load_checkpoint(folder / "runs" / name / "final.pt") for name in ("a", "b")]
    assert [checkpoint.facts["steps"] for checkpoint in checkpoints] == [3, 3]
    assert checkpoints[0].tokenizer == checkpoints[1].tokenizer
    found = json.loads(output.read_text(encoding="utf-8"))["networks"]
    assert list(found) == ["a (people)", "b (people)"]
    assert all(each["domains"]["captions"]["scores"]["all"]["sentences"] == 4 for each in found.values())
    assert "| b (people) |" in done.stdout
    assert done.stdout.count("$ ") == 5

    (folder / "recipes" / "c.toml").unlink()
    again = run(folder, *flags)

    assert again.returncode == 0, again.stderr
    assert "$ " not in again.stdout  # nothing is trained or exported anew
    assert json.loads(output.read_text(encoding="utf-8"))["networks"] == found


def test_what_is_wrong_is_said_before_anything_is_trained(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def told(*arguments: object) -> str:
        flags = ["--recipes", folder / "recipes", "--data", folder / "people", "--runs", folder / "runs", *arguments]
        monkeypatch.setattr(sys, "argv", ["train_networks", *map(str, flags)])
        with pytest.raises(SystemExit) as caught:
            main()
        return str(caught.value.code)

    assert told("--only", "a", "c") == f"train_networks: --only c: {folder / 'recipes'} has a, b"
    assert "there is no *.toml in it" in told("--recipes", folder / "people")
    assert "missing.tsv" in told("--domain", f"news={folder / 'missing.tsv'}")
    assert told("--at-once", "0") == told("--updates", "0") == "2"
    (folder / "recipes" / "a.toml").write_text(BASE.replace('source = "dev.en", target = "dev.de"', 'tsv = "dev"'))
    assert "its first [[dev]] corpus must have source and target" in told()
    assert not (folder / "runs").exists()


def test_the_recipes_that_ship_are_found_in_the_order_that_is_asked_for() -> None:
    found = find_recipes(RECIPES, [])

    assert len(found) >= 11
    assert [path.stem for path in find_recipes(RECIPES, ["ssru", "ctc"])] == ["ssru", "ctc"]
    assert {tuple(dev_files(path, Path("data"))) for path in found} == {(Path("data/dev.en"), Path("data/dev.de"))}
