import dataclasses
import math
from pathlib import Path

import pytest
import torch

from model.checkpoint import Checkpoint
from model.data import make_batch
from model.optimizer import _muon_steps, _orthogonal, learning_rate
from model.recipe import TrainingConfig
from tests.model.runs import make, recipe


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


def test_each_update_uses_the_learning_rate_of_its_step(tmp_path: Path, tiny_checkpoint: Checkpoint) -> None:
    trainer = make(tmp_path, tiny_checkpoint.tokenizer, recipe())
    batch = make_batch([([10], [20])], trainer.recipe.model)

    for step in (1, 2, 3):
        trainer.update([batch])
        assert trainer.optimizer.learning_rate == pytest.approx(learning_rate(trainer.recipe.training, 16, step))


def test_an_orthogonal_step_has_like_singular_values() -> None:
    torch.manual_seed(0)
    for shape in ((16, 16), (32, 16), (16, 32)):
        step = _orthogonal(torch.randn(3, *shape))[1]

        values = torch.linalg.svdvals(step)
        assert step.shape == shape
        assert float(values.min()) > 0.6
        assert float(values.max()) < 1.3


def test_projections_in_one_matrix_are_made_orthogonal_each() -> None:
    torch.manual_seed(0)
    direction, other = torch.randn(48, 16), torch.randn(16, 32)

    step, step_of_other = _muon_steps([direction, other])

    for whole, block in zip(step.split(16), direction.split(16), strict=True):
        torch.testing.assert_close(whole, 0.2 * 4 * _orthogonal(block[None])[0])
    torch.testing.assert_close(step_of_other, 0.2 * math.sqrt(32) * _orthogonal(other[None])[0])


def test_muon_learns_and_goes_on_from_its_state(tmp_path: Path, tiny_checkpoint: Checkpoint) -> None:
    how = recipe(optimizer="muon", max_steps=12)
    whole = make(tmp_path / "whole", tiny_checkpoint.tokenizer, how)
    whole.run()
    make(tmp_path / "parts", tiny_checkpoint.tokenizer, how, stop_at=5).run()
    second = make(tmp_path / "parts", tiny_checkpoint.tokenizer, how)

    assert second.restore_state()
    second.run()

    assert second.losses == whole.losses[5:]
    assert whole.losses[-1] < whole.losses[0] - 0.3
