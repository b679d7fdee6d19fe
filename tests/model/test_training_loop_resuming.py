"""Runs that were stopped, and go on."""

import dataclasses
from pathlib import Path

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # type: ignore[import-untyped]

import model.training_loop
from model.checkpoint import load_checkpoint
from model.optimizer import learning_rate
from model.recipe import Recipe, TrainingConfig
from tests.model.runs import make, one_pass_recipe, recipe, recurrent_recipe


@pytest.mark.parametrize(
    ("how", "stop_at"), [(recipe(), 1), (recipe(), 4), (recipe(), 7), (one_pass_recipe(), 4), (recurrent_recipe(), 4)]
)
def test_a_run_that_was_interrupted_goes_on_to_the_very_same_losses(
    tmp_path: Path, tokenizer: bytes, how: Recipe, stop_at: int
) -> None:
    whole = make(tmp_path / "whole", tokenizer, how)
    whole.run()
    first = make(tmp_path / "parts", tokenizer, how, stop_at=stop_at)
    first.run()
    torch.rand(100)  # what a new process has done with its generator must not matter
    second = make(tmp_path / "parts", tokenizer, how)

    assert second.restore_state()
    second.run()

    assert len(first.losses) == stop_at
    assert first.losses + second.losses == whole.losses
    assert len(whole.losses) == 12
    assert whole.epoch >= 1  # the end of an epoch lies within
    ours, theirs = (load_checkpoint(tmp_path / name / "final.pt") for name in ("parts", "whole"))
    assert all(torch.equal(ours.weights[name], theirs.weights[name]) for name in theirs.weights)
    assert ours.facts["target_tokens"] == theirs.facts["target_tokens"] > 0


def test_the_cooldown_can_begin_wherever_a_run_was_stopped(tmp_path: Path, tokenizer: bytes) -> None:
    whole = make(tmp_path / "whole", tokenizer, recipe(max_steps=50, cooldown_steps=4), stop_at=8)
    whole.run()
    make(tmp_path / "parts", tokenizer, recipe(max_steps=50, cooldown_steps=4), stop_at=5).run()
    second = make(tmp_path / "parts", tokenizer, recipe(max_steps=9, cooldown_steps=4))

    assert second.restore_state()
    second.run()

    assert second.losses[0] == whole.losses[5]  # made from the same weights
    assert second.losses[2] != whole.losses[7]
    assert second.step == 9
    assert second.optimizer.learning_rate == pytest.approx(learning_rate(TrainingConfig(warmup_steps=5), 16, 9) / 4)
    assert load_checkpoint(tmp_path / "parts" / "final.pt").facts["steps"] == 9


def test_the_command_of_a_finished_run_makes_no_update(tmp_path: Path, tokenizer: bytes) -> None:
    make(tmp_path, tokenizer, recipe()).run()
    before = {path: path.read_bytes() for path in tmp_path.glob("*.pt")}

    again = make(tmp_path, tokenizer, recipe())
    assert again.restore_state()
    again.run()

    assert (again.losses, again.step) == ([], 12)
    assert {path: path.read_bytes() for path in tmp_path.glob("*.pt")} == before
    scores = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert [event.step for event in scores.Scalars("dev/bleu")] == [12]


def test_a_run_that_is_stopped_in_its_last_update_has_a_final_model(tmp_path: Path, tokenizer: bytes) -> None:
    make(tmp_path, tokenizer, recipe(), stop_at=12).run()

    assert load_checkpoint(tmp_path / "final.pt").facts["steps"] == 12


def test_a_run_that_ends_where_it_was_stopped_leaves_no_earlier_final_model(tmp_path: Path, tokenizer: bytes) -> None:
    make(tmp_path, tokenizer, recipe(max_steps=3)).run()
    longer = make(tmp_path, tokenizer, recipe(evaluate_every=1), stop_at=5)
    assert longer.restore_state()
    longer.run()
    ended = make(tmp_path, tokenizer, recipe(max_steps=5, average_last=1))
    assert ended.restore_state()
    ended.best_bleu = 0.0  # the average is the final model

    ended.run()

    assert ended.losses == []
    assert load_checkpoint(tmp_path / "final.pt").facts["steps"] == 5


def test_a_recipe_that_ends_before_the_run_is_refused(tmp_path: Path, tokenizer: bytes) -> None:
    make(tmp_path, tokenizer, recipe(), stop_at=6).run()

    with pytest.raises(ValueError, match=r"holds a run of 6 updates, more than max_steps, 5: raise it, or take"):
        make(tmp_path, tokenizer, recipe(max_steps=5)).restore_state()


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


def test_the_state_is_saved_between_evaluations(
    tmp_path: Path, tokenizer: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model.training_loop, "SAVE_EVERY", 4)
    lost = make(tmp_path, tokenizer, recipe())
    updates = []
    monkeypatch.setattr(lost, "save_state", lambda: updates.append(lost.step))

    lost.run()

    assert updates == [4, 8, 12]  # the last by the evaluation


def test_without_a_state_there_is_nothing_to_restore(tmp_path: Path, tokenizer: bytes) -> None:
    assert not make(tmp_path, tokenizer, recipe()).restore_state()


def test_a_final_model_is_written_though_the_checkpoints_are_gone(tmp_path: Path, tokenizer: bytes) -> None:
    make(tmp_path, tokenizer, recipe(max_steps=4, evaluate_every=2)).run()
    for path in (*tmp_path.glob("step-*.pt"), tmp_path / "final.pt"):
        path.unlink()
    again = make(tmp_path, tokenizer, recipe(max_steps=4, evaluate_every=2))
    assert again.restore_state()

    again.run()

    final = load_checkpoint(tmp_path / "final.pt").weights
    assert all(torch.equal(weight.half(), final[name]) for name, weight in again.model.state_dict().items())


def test_a_state_without_a_recipe_and_of_another_model_is_refused(tmp_path: Path, tokenizer: bytes) -> None:
    make(tmp_path, tokenizer, recipe(), stop_at=2).run()
    document = torch.load(tmp_path / "state.pt", weights_only=True)
    del document["recipe"]
    torch.save(document, tmp_path / "state.pt")
    how = dataclasses.replace(recipe(), model=dataclasses.replace(recipe().model, d_model=32))

    assert make(tmp_path, tokenizer, recipe()).restore_state()
    with pytest.raises(ValueError, match=r"state\.pt is of another model or optimizer than the recipe's$"):
        make(tmp_path, tokenizer, how).restore_state()


def test_a_run_draws_its_curve_and_goes_on_with_it(
    tmp_path: Path, tokenizer: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(model.training_loop, "_LOG_EVERY", 2)
    make(tmp_path, tokenizer, recipe(max_steps=8, evaluate_every=4), stop_at=4).run()
    (tmp_path / "curve.png").unlink()
    again = make(tmp_path, tokenizer, recipe(max_steps=8, evaluate_every=4))
    assert again.restore_state()

    again.run()

    assert [step for step, _ in again.loss_curve] == [2, 4, 6, 8]
    assert again.loss_curve[-1][1] == pytest.approx(sum(again.losses[-2:]) / 2)
    assert [step for step, *_ in again.score_curve] == [4, 8]
    assert (tmp_path / "curve.png").exists()
