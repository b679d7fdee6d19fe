import dataclasses
from pathlib import Path

import pytest
import sentencepiece
import torch
from torch.utils.tensorboard import SummaryWriter

from model.checkpoint import Checkpoint, load_checkpoint
from model.data import make_batch, read_corpus
from tests.model.runs import CORPUS, DATA, make, recipe


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
        gradients = [t.optimizer._adam.state[p]["exp_avg"] for t, p in ((one, ours), (two, theirs))]
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


def test_others_files_are_no_checkpoints_of_the_run(tmp_path: Path, tokenizer: bytes) -> None:
    others = ["step-x.pt", "step-.pt", "step-900.pt", f"step-{'9' * 200}.pt"]
    for name in others:
        (tmp_path / name).write_bytes(b"of somebody else")

    make(tmp_path, tokenizer, recipe(max_steps=3, evaluate_every=1, average_last=1)).run()

    assert load_checkpoint(tmp_path / "final.pt").facts["steps"] == 3
    assert {path.name for path in tmp_path.glob("step-*.pt")} == {*others, "step-3.pt"}


def test_the_best_checkpoint_is_that_of_the_highest_dev_bleu(tmp_path: Path, tokenizer: bytes) -> None:
    trainer = make(tmp_path, tokenizer, recipe(max_steps=2, evaluate_every=1))
    trainer.best_bleu = 101.0  # of an earlier part of the run
    trainer.run()
    assert not (tmp_path / "best.pt").exists()

    trainer = make(tmp_path, tokenizer, recipe(max_steps=2, evaluate_every=1))
    trainer.best_bleu = -1.0
    trainer.run()
    assert (tmp_path / "best.pt").exists()


def test_the_best_checkpoint_becomes_the_final_one_where_the_average_scores_less(
    tmp_path: Path, tiny_checkpoint: Checkpoint, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "model.training_loop")
    trainer = make(tmp_path, tiny_checkpoint.tokenizer, dataclasses.replace(recipe(), model=tiny_checkpoint.config))
    trainer.dev = read_corpus(CORPUS, DATA).pairs[:20]
    start = {name: weight.clone() for name, weight in trainer.model.state_dict().items()}
    trained = {name: weight.float() for name, weight in tiny_checkpoint.weights.items()}
    with SummaryWriter(str(tmp_path / "tensorboard")) as writer:
        for trainer.step, weights in ((1, trained), (2, start)):  # it unlearns
            trainer.model.load_state_dict(weights)
            trainer._evaluate_and_save(writer)

    trainer._write_final()

    final, best = (load_checkpoint(tmp_path / name) for name in ("final.pt", "best.pt"))
    assert final.facts == best.facts
    assert final.facts["steps"] == 1
    assert final.facts["dev_bleu_greedy"] > 60
    assert all(torch.equal(final.weights[name], best.weights[name].half()) for name in best.weights)
    assert caplog.messages[-2].startswith("average of the last 2 checkpoints: dev BLEU 1.")
    assert caplog.messages[-1] == (
        f"{tmp_path / 'final.pt'}: that of step 1, the best, with dev BLEU {final.facts['dev_bleu_greedy']:.2f}"
    )


def test_the_average_is_the_final_one_where_no_checkpoint_scores_more(
    tmp_path: Path, tokenizer: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "model.training_loop")

    make(tmp_path, tokenizer, recipe(max_steps=4, evaluate_every=2, average_last=2)).run()

    assert caplog.messages[-1].startswith(f"{tmp_path / 'final.pt'}: the average with dev BLEU ")
    assert load_checkpoint(tmp_path / "final.pt").facts["steps"] == 4


@pytest.mark.parametrize("seed", [20_261_122, -1, 2**40])
def test_any_seed_will_do(tmp_path: Path, tokenizer: bytes, seed: int) -> None:
    trainer = make(tmp_path, tokenizer, recipe(seed=seed, max_steps=1))

    trainer.run()

    assert trainer.step == 1


def test_dev_bleu_of_a_trained_model_is_high(tmp_path: Path, tiny_checkpoint: Checkpoint) -> None:
    how = dataclasses.replace(recipe(), model=tiny_checkpoint.config)
    trainer = make(tmp_path, tiny_checkpoint.tokenizer, how)
    trainer.dev = read_corpus(CORPUS, DATA).pairs[:60]
    assert trainer.dev_scores()[0] < 5

    trainer.model.load_state_dict({name: weight.float() for name, weight in tiny_checkpoint.weights.items()})

    bleu, chrf = trainer.dev_scores()
    assert bleu > 60
    assert chrf > 70
