import dataclasses
import math
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from model.checkpoint import load_checkpoint, save_checkpoint
from model.recipe import AugmentationConfig, CorpusConfig, Recipe, TokenizerConfig
from model.recipe_file import load_recipe
from model.starter import write_starter
from model.train import _export_command, main, prepare
from model.vocabulary import learn_vocabulary
from tests.model.runs import CORPUS, DATA, ROOT, SMALL_RECIPE, one_pass_recipe, recipe, recurrent_recipe, small_data

REVERSED = dataclasses.replace(CORPUS, reverse=True)


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


def test_without_text_the_command_ends_with_one_line_and_makes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "recipe.toml").write_text(SMALL_RECIPE.format(training=""), encoding="utf-8")
    flags = ["--data", str(tmp_path / "data"), "--out", str(tmp_path / "out")]
    monkeypatch.setattr(sys, "argv", ["babelserve-train", str(tmp_path / "recipe.toml"), *flags])

    with pytest.raises(
        SystemExit, match=r"^babelserve-train: --data .*/data: there is no such folder; put there [^\n]*$"
    ):
        main()

    assert [path.name for path in tmp_path.iterdir()] == ["recipe.toml"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"dev": ()}, r"names no \[dev\] corpus"),
        ({"train": (dataclasses.replace(CORPUS, weight=0.0),)}, "no pair of fewer than 128 tokens"),
        ({"train": (dataclasses.replace(CORPUS, hold_out=1000),)}, "no pair that is not held out: lower hold_out"),
        ({"training": dataclasses.replace(recipe().training, max_tokens=1)}, "no pair of fewer than 1 tokens"),
        ({"model": dataclasses.replace(recipe().model, vocab_size=50_000)}, "vocab_size must be at most"),
    ],
)
def test_what_could_never_be_trained_is_refused(tmp_path: Path, changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        prepare(dataclasses.replace(recipe(), **changed), DATA, tmp_path)


def test_a_foreign_vocabulary_is_refused_with_all_that_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.model").write_bytes(learn_vocabulary(["A dog.", "Ein Hund."] * 99, foreign_recipe()))

    with pytest.raises(
        ValueError, match=r"tokenizer\.model: has 271 pieces; the recipe's model.vocab_size is 700"
    ) as caught:
        prepare(recipe(), DATA, tmp_path)

    assert "its eos id is 5; the recipe's model.eos_id is 3" in str(caught.value)


def foreign_recipe() -> Recipe:
    model = dataclasses.replace(recipe().model, vocab_size=271, eos_id=5)
    return dataclasses.replace(
        recipe(), model=model, tokenizer=TokenizerConfig(num_placeholders=0), augmentation=AugmentationConfig()
    )


def test_a_run_of_another_recipe_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    prepare(recipe(), DATA, tmp_path).save_state()
    (tmp_path / "empty").mkdir()

    with pytest.raises(ValueError, match="another recipe") as caught:
        prepare(dataclasses.replace(recipe(), target_language="fr"), tmp_path / "empty", tmp_path)

    assert "target_language was 'de', the recipe says 'fr'" in str(caught.value)


def pretrained(folder: Path) -> Path:
    trainer = prepare(recipe(), DATA, folder)
    with torch.no_grad():
        for weight in trainer.model.parameters():
            weight.add_(0.25)
    path = folder / "final.pt"
    save_checkpoint(path, trainer._checkpoint(trainer.model.state_dict(), 0.0))
    return path


def test_a_run_begins_with_a_trained_model_and_goes_on_with_its_own(tmp_path: Path) -> None:
    path = pretrained(tmp_path / "first")
    other_way = dataclasses.replace(
        recipe(), name="back", source_language="de", target_language="en", train=(REVERSED,), dev=(REVERSED,)
    )

    trainer = prepare(other_way, DATA, tmp_path / "second", path)

    for name, weight in load_checkpoint(path).weights.items():
        assert torch.equal(trainer.model.state_dict()[name], weight)
    assert trainer.tokenizer_bytes == load_checkpoint(path).tokenizer
    assert trainer._checkpoint({}, 0.0).facts["pretrained"] == "test"
    trainer.step = 7
    trainer.model.output_weight.data.fill_(0.5)
    trainer.save_state()
    again = prepare(other_way, DATA, tmp_path / "second", path)
    assert (again.step, again.pretrained) == (7, "test")
    assert (again.model.output_weight == 0.5).all()


def test_the_name_of_a_trained_model_is_shown_without_what_a_terminal_obeys(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = pretrained(tmp_path / "first")
    trained = load_checkpoint(path)
    save_checkpoint(path, dataclasses.replace(trained, facts={**trained.facts, "name": "x\x1b[2J\nproven"}))

    with caplog.at_level("INFO"):
        trainer = prepare(recipe(), DATA, tmp_path / "second", path)

    assert trainer.pretrained == r"x\x1b[2J\nproven"
    assert all(record.getMessage().isprintable() for record in caplog.records)


def test_a_network_of_another_family_begins_with_the_encoder_of_a_trained_model(tmp_path: Path) -> None:
    path = pretrained(tmp_path / "first")
    how = one_pass_recipe()

    trainer = prepare(how, DATA, tmp_path / "second", path)

    weights, theirs = trainer.model.state_dict(), load_checkpoint(path).weights
    shared = [name for name in theirs if name.startswith(("embedding.", "encoder"))]
    assert len(shared) > 10
    assert all(torch.equal(weights[name], theirs[name]) for name in shared)
    first = "decoder.0.self_attention.qkv.weight"
    assert not torch.equal(weights[first], theirs[first])
    deep = dataclasses.replace(how, model=dataclasses.replace(how.model, encoder_layers=2))
    with pytest.raises(ValueError, match=r"model.encoder_layers was 1, the recipe says 2"):
        prepare(deep, DATA, tmp_path / "third", path)
    with pytest.raises(ValueError, match=r"model.family was 'transformer', the recipe says 'recurrent'"):
        prepare(recurrent_recipe(), DATA, tmp_path / "fourth", path)


def test_a_trained_model_of_another_network_or_vocabulary_is_refused(tmp_path: Path) -> None:
    path = pretrained(tmp_path / "first")
    wide = dataclasses.replace(recipe(), model=dataclasses.replace(recipe().model, d_model=32, dropout=0.0))
    (tmp_path / "third").mkdir()
    english = (DATA / CORPUS.source).read_text(encoding="utf-8").splitlines()
    (tmp_path / "third" / "tokenizer.model").write_bytes(learn_vocabulary(english, recipe()))

    with pytest.raises(ValueError, match="another network") as caught:
        prepare(wide, DATA, tmp_path / "second", path)
    assert str(caught.value).splitlines()[1:] == [f"{path}: model.d_model was 16, the recipe says 32"]
    with pytest.raises(ValueError, match=r"third.tokenizer.model is not the vocabulary of .*final.pt"):
        prepare(recipe(), DATA, tmp_path / "third", path)
    many = dataclasses.replace(recipe(), tokenizer=TokenizerConfig(num_placeholders=32))
    with pytest.raises(ValueError, match=r"final.pt: lacks U\+E010 and others of the recipe's"):
        prepare(many, DATA, tmp_path / "fourth", path)


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> None:
    monkeypatch.setattr(sys, "argv", ["babelserve-train", *map(str, arguments)])
    main()


def test_init_writes_a_recipe_and_says_what_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(monkeypatch, "--init", tmp_path / "fr-en", "--source", "fr", "--target", "en")

    assert load_recipe(tmp_path / "fr-en" / "recipe.toml").source_language == "fr"
    assert f"babelserve-train {tmp_path}/fr-en/recipe.toml" in capsys.readouterr().out
    with pytest.raises(SystemExit, match=r"^babelserve-train: .*recipe\.toml exists already$"):
        run(monkeypatch, "--init", tmp_path / "fr-en", "--source", "fr", "--target", "en")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "RECIPE, --data, --out must be given, or --init with --source and --target"),
        (["a.toml", "--data", "d"], "--out must be given"),
        (["--init", "d", "--source", "fr"], "--target must be given"),
        (["--init", "d", "--source", "fr", "--target", "en", "--out", "o"], "--out: not with --init"),
        (["a.toml", "--data", "d", "--out", "o", "--source", "fr"], "--source: only with --init"),
        (["a.toml", "--data", "d", "--out", "o", "--updates", "0"], "--updates: must be at least 1, not 0"),
    ],
)
def test_wrong_arguments_end_with_two(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    with pytest.raises(SystemExit) as caught:
        run(monkeypatch, *arguments)

    assert caught.value.code == 2
    assert message in capsys.readouterr().err


def test_where_stderr_is_a_file_loss_speed_and_end_are_told_and_the_next_command(tmp_path: Path) -> None:
    data, out, path = small_data(tmp_path), tmp_path / "run", tmp_path / "recipe.toml"
    path.write_text(SMALL_RECIPE.format(training="evaluate_every = 500"), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "model.train",
        str(path),
        "--data",
        str(data),
        "--out",
        str(out),
        "--updates",
        "20",
    ]

    with (tmp_path / "log").open("wb") as log:
        subprocess.run(command, cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"}, stderr=log, check=True)

    lines = [line.split(" ", 2)[2] for line in (tmp_path / "log").read_text(encoding="utf-8").splitlines()]
    told = [line for line in lines if " of 20, epoch " in line]
    assert told[0].startswith("step 1 of 20, epoch 0: loss ")
    assert told[-1].startswith("step 20 of 20, epoch ")
    assert " tokens/s, ends at about " in told[-1]
    assert lines[-1] == f"next: babelserve-export {out}/final.pt {tmp_path}/bundle --dev {data}/dev.en {data}/dev.de"


def test_the_next_command_is_that_which_init_printed(tmp_path: Path) -> None:
    folder = tmp_path / "fr-en"
    said = write_starter(folder, "fr", "en")

    command = _export_command(load_recipe(folder / "recipe.toml"), folder / "data", folder / "run")

    assert command in said.split("\n  ")


def test_corpora_that_ship_are_read_and_a_run_keeps_their_names(tmp_path: Path) -> None:
    shipped = CorpusConfig(tsv="./copying.en-de.tsv")

    trainer = prepare(dataclasses.replace(recipe(), train=(shipped, CORPUS)), DATA, tmp_path)

    assert len(trainer.corpora[0].pairs) > 100
    assert trainer.recipe.train[0] == shipped


def test_a_full_disk_ends_with_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, out, path = small_data(tmp_path), tmp_path / "out", tmp_path / "recipe.toml"
    path.write_text(SMALL_RECIPE.format(training="evaluate_every = 1"), encoding="utf-8")
    (out / "step-1.pt.tmp").mkdir(parents=True)  # what cannot be written, whoever asks
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with pytest.raises(SystemExit, match=r"^babelserve-train: .*step-1\.pt cannot be written: .*step-1\.pt\.tmp"):
            run(monkeypatch, path, "--data", data, "--out", out)
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


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
