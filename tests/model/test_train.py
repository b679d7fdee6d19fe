import dataclasses
import json
import math
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import sentencepiece
import torch

from model.checkpoint import Checkpoint, load_checkpoint
from model.config import AugmentationConfig, CorpusConfig, Recipe, TrainingConfig, TransformerConfig, load_recipe
from model.data import Batch, make_batch, read_corpus
from model.train import Trainer, learning_rate, main, prepare, replace_words

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
CORPUS = CorpusConfig(source="multi30k_val_200.en.txt", target="multi30k_val_200.de.txt")
SMALL_RECIPE = """
name = "small"
source_language = "en"
target_language = "de"
[model]
vocab_size = 700
d_model = 16
num_heads = 2
encoder_layers = 1
decoder_layers = 1
ffn_dim = 32
dropout = 0.0
[training]
batch_tokens = 4000
warmup_steps = 10
max_steps = 1000
bf16 = false
{training}
[[train]]
source = "multi30k_val_200.en.txt"
target = "multi30k_val_200.de.txt"
[dev]
source = "dev.en"
target = "dev.de"
"""


def recipe(**training: float) -> Recipe:
    return Recipe(
        name="test",
        source_language="en",
        target_language="de",
        model=TransformerConfig(
            vocab_size=700, d_model=16, num_heads=2, encoder_layers=1, decoder_layers=1, ffn_dim=32, dropout=0.2
        ),
        training=dataclasses.replace(
            TrainingConfig(
                batch_tokens=2000, warmup_steps=5, max_steps=12, evaluate_every=100, word_dropout=0.1, bf16=False
            ),
            **training,  # type: ignore[arg-type]
        ),
        augmentation=AugmentationConfig(copy=0.2, placeholder=0.2, upper_case=0.1),
        train=(CORPUS,),
        dev=CORPUS,
    )


class RecordingTrainer(Trainer):
    """Notes each loss and stops after `stop_at` updates, as if Ctrl-C came."""

    losses: list[float]
    stop_at: int | None

    def update(self, batches: list[Batch]) -> tuple[float, int]:
        self.stop_requested = self.step + 1 == self.stop_at
        loss, tokens = super().update(batches)
        self.losses.append(loss)
        return loss, tokens


def make(out: Path, tokenizer: bytes, how: Recipe, stop_at: int | None = None) -> RecordingTrainer:
    out.mkdir(exist_ok=True)
    dev = read_corpus(CORPUS, DATA)
    few = dataclasses.replace(dev, pairs=dev.pairs[:2])
    trainer = RecordingTrainer(how, [read_corpus(CORPUS, DATA)], few, tokenizer, out)
    trainer.losses, trainer.stop_at = [], stop_at
    return trainer


@pytest.fixture
def tokenizer(tiny_checkpoint: Checkpoint) -> bytes:
    return tiny_checkpoint.tokenizer


def small_data(folder: Path) -> Path:
    data = folder / "data"
    data.mkdir()
    for language in ("en", "de"):
        name = f"multi30k_val_200.{language}.txt"
        shutil.copy(DATA / name, data)
        first = (DATA / name).read_text(encoding="utf-8").splitlines()[0]
        (data / f"dev.{language}").write_text(f"{first}\n", encoding="utf-8")
    return data


@pytest.mark.parametrize("stop_at", [1, 4, 7])
def test_a_run_that_was_interrupted_goes_on_to_the_very_same_losses(
    tmp_path: Path, tokenizer: bytes, stop_at: int
) -> None:
    whole = make(tmp_path / "whole", tokenizer, recipe())
    whole.run()
    first = make(tmp_path / "parts", tokenizer, recipe(), stop_at=stop_at)
    first.run()
    torch.rand(100)  # what a new process has done with its generator must not matter
    second = make(tmp_path / "parts", tokenizer, recipe())

    assert second.restore_state()
    second.run()

    assert len(first.losses) == stop_at
    assert first.losses + second.losses == whole.losses
    assert len(whole.losses) == 12
    assert whole.epoch >= 1  # the end of an epoch lies within
    ours, theirs = (load_checkpoint(tmp_path / name / "final.pt").weights for name in ("parts", "whole"))
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


def test_a_run_that_was_killed_goes_on_from_its_last_evaluation(tmp_path: Path, tokenizer: bytes) -> None:
    whole = make(tmp_path / "whole", tokenizer, recipe(evaluate_every=3, max_steps=8))
    whole.run()
    killed = make(tmp_path / "killed", tokenizer, recipe(evaluate_every=3, max_steps=8), stop_at=3)
    killed.run()
    for path in (tmp_path / "killed").glob("step-*.pt"):
        path.unlink()

    again = make(tmp_path / "killed", tokenizer, recipe(evaluate_every=3, max_steps=8))
    assert again.restore_state()
    again.run()

    assert again.losses == whole.losses[3:]


def test_without_a_state_there_is_nothing_to_restore(tmp_path: Path, tokenizer: bytes) -> None:
    assert not make(tmp_path, tokenizer, recipe()).restore_state()


def test_the_same_seed_gives_the_same_losses_and_another_seed_others(tmp_path: Path, tokenizer: bytes) -> None:
    runs = [make(tmp_path / str(i), tokenizer, recipe(max_steps=3, seed=seed)) for i, seed in enumerate((1, 1, 2))]
    losses = []
    for trainer in runs:
        torch.manual_seed(trainer.recipe.training.seed)
        trainer.run()
        losses.append(trainer.losses)

    assert losses[0] == losses[1]
    assert losses[0] != losses[2]


def test_two_half_batches_make_the_update_of_one(tmp_path: Path, tokenizer: bytes) -> None:
    quiet = recipe(word_dropout=0.0)
    quiet = dataclasses.replace(quiet, model=dataclasses.replace(quiet.model, dropout=0.0))
    one, two = (make(tmp_path / name, tokenizer, quiet) for name in ("one", "two"))
    encode = sentencepiece.SentencePieceProcessor(model_proto=tokenizer).encode
    examples = [(encode(source), encode(target)) for source, target in one.corpora[0].pairs[:12]]
    whole = make_batch(examples, quiet.model)
    halves = [make_batch(examples[:5], quiet.model), make_batch(examples[5:], quiet.model)]

    (loss, tokens), (other_loss, other_tokens) = one.update([whole]), two.update(halves)

    assert tokens == other_tokens == sum(len(target) + 1 for _, target in examples)
    assert loss == pytest.approx(other_loss, abs=1e-5)
    for ours, theirs in zip(one.model.parameters(), two.model.parameters(), strict=True):
        gradients = [t.optimizer.state[p]["exp_avg"] for t, p in ((one, ours), (two, theirs))]
        torch.testing.assert_close(*gradients, atol=1e-6, rtol=0)
    assert one.update([whole])[0] == pytest.approx(two.update(halves)[0], abs=1e-4)


def test_the_loss_is_the_label_smoothed_cross_entropy_per_target_token(tmp_path: Path, tokenizer: bytes) -> None:
    quiet = recipe(word_dropout=0.0, label_smoothing=0.2)
    trainer = make(tmp_path, tokenizer, dataclasses.replace(quiet, model=dataclasses.replace(quiet.model, dropout=0.0)))
    batch = make_batch([([10, 11], [20, 21, 22]), ([12], [23])], quiet.model)
    with torch.inference_mode():
        log_probs = trainer.model(batch.source, batch.target_in).log_softmax(-1)
    real = batch.target_out != 0
    hits = log_probs.gather(-1, batch.target_out[..., None])[..., 0][real]
    expected = -(0.8 * hits + 0.2 * log_probs.mean(-1)[real]).mean()

    loss, tokens = trainer.update([batch])

    assert tokens == 6
    assert loss == pytest.approx(float(expected), abs=1e-5)


def test_gradients_do_not_pile_up_over_updates(tmp_path: Path, tokenizer: bytes) -> None:
    trainer = make(tmp_path, tokenizer, recipe())

    trainer.update([make_batch([([10, 11], [20, 21])], trainer.recipe.model)])

    assert all(parameter.grad is None for parameter in trainer.model.parameters())


@pytest.mark.parametrize("step", [1, 100, 3999, 4000, 4001, 100_000])
def test_the_learning_rate_is_that_of_the_paper(step: int) -> None:
    training = TrainingConfig(warmup_steps=4000, lr_scale=2.0)

    expected = 2.0 * 512**-0.5 * min(step**-0.5, step * 4000**-1.5)

    assert learning_rate(training, 512, step) == pytest.approx(expected)


def test_the_learning_rate_cools_down_in_a_straight_line_at_the_end() -> None:
    without = TrainingConfig(warmup_steps=10, max_steps=100)
    training = dataclasses.replace(without, cooldown_steps=20)

    shares = {s: learning_rate(training, 64, s) / learning_rate(without, 64, s) for s in (1, 80, 81, 91, 100)}

    assert shares == pytest.approx({1: 1.0, 80: 1.0, 81: 1.0, 91: 0.5, 100: 0.05})


def test_each_update_uses_the_learning_rate_of_its_step(tmp_path: Path, tokenizer: bytes) -> None:
    trainer = make(tmp_path, tokenizer, recipe())
    batch = make_batch([([10], [20])], trainer.recipe.model)

    for step in (1, 2, 3):
        trainer.update([batch])
        rate = trainer.optimizer.param_groups[0]["lr"]
        assert rate == pytest.approx(learning_rate(trainer.recipe.training, 16, step))


def test_word_dropout_replaces_its_share_and_leaves_special_tokens_alone() -> None:
    torch.manual_seed(0)
    ids = torch.randint(4, 1000, (50, 400))
    ids[:, 0] = 2
    ids[:, 300:] = 0
    ids[:, 299] = 3

    replaced = replace_words(ids, 0.3, last_special_id=3, vocab_size=1000)

    special = ids <= 3
    assert torch.equal(replaced[special], ids[special])
    assert replaced[~special].min() >= 4
    assert replaced.max() < 1000
    assert float((replaced != ids)[~special].float().mean()) == pytest.approx(0.3, abs=0.02)


def test_no_word_dropout_changes_nothing_and_draws_nothing() -> None:
    state = torch.get_rng_state()
    ids = torch.tensor([[2, 5, 6]])

    assert replace_words(ids, 0.0, 3, 10) is ids
    assert torch.equal(torch.get_rng_state(), state)


def test_the_tiny_recipe_learns(tmp_path: Path) -> None:
    tiny = load_recipe(DATA / "tiny.toml")
    short = dataclasses.replace(tiny, training=dataclasses.replace(tiny.training, max_steps=60, warmup_steps=40))
    trainer = prepare(short, DATA, tmp_path)

    losses = [trainer.update(batches)[0] for batches in trainer._updates()]

    assert losses[0] > math.log(700) * 0.9  # it begins by guessing
    assert sum(losses[-5:]) / 5 < losses[0] - 1.2


def test_a_run_leaves_its_checkpoints_and_facts(tmp_path: Path, tokenizer: bytes) -> None:
    trainer = make(tmp_path, tokenizer, recipe(max_steps=7, evaluate_every=2, average_last=2))

    trainer.run()

    assert sorted(path.name for path in tmp_path.glob("step-*.pt")) == ["step-6.pt", "step-7.pt"]
    final = load_checkpoint(tmp_path / "final.pt")
    assert final.tokenizer == tokenizer
    assert {weight.dtype for weight in final.weights.values()} == {torch.float16}
    assert final.facts["steps"] == 7
    assert (final.facts["name"], final.facts["source_language"], final.facts["target_language"]) == ("test", "en", "de")
    assert final.facts["recipe"]["training"]["max_steps"] == 7
    last = [load_checkpoint(tmp_path / f"step-{step}.pt").weights for step in (6, 7)]
    for name, weight in final.weights.items():
        torch.testing.assert_close(weight, ((last[0][name] + last[1][name]) / 2).half(), atol=1e-3, rtol=1e-3)
    assert list((tmp_path / "tensorboard").iterdir())


def test_the_best_checkpoint_is_that_of_the_highest_dev_bleu(tmp_path: Path, tokenizer: bytes) -> None:
    trainer = make(tmp_path, tokenizer, recipe(max_steps=2, evaluate_every=1))
    trainer.best_bleu = 101.0  # of an earlier part of the run
    trainer.run()
    assert not (tmp_path / "best.pt").exists()

    trainer = make(tmp_path, tokenizer, recipe(max_steps=2, evaluate_every=1))
    trainer.best_bleu = -1.0
    trainer.run()
    assert (tmp_path / "best.pt").exists()


def test_dev_bleu_of_a_trained_model_is_high(tmp_path: Path, tiny_checkpoint: Checkpoint) -> None:
    how = dataclasses.replace(recipe(), model=tiny_checkpoint.config)
    trainer = make(tmp_path, tiny_checkpoint.tokenizer, how)
    trainer.dev = dataclasses.replace(trainer.dev, pairs=read_corpus(CORPUS, DATA).pairs[:60])
    assert trainer.dev_bleu() < 5

    trainer.model.load_state_dict({name: weight.float() for name, weight in tiny_checkpoint.weights.items()})

    assert trainer.dev_bleu() > 60


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


@pytest.mark.timeout(240)  # processes of their own, which start slowly on a busy machine
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
