"""SSRUs step by step: against torch's loop over positions, whatever rows did before, and however often."""

import numpy as np
import pytest
import torch

from model.data import pad
from model.transformer import Transformer
from tests.export.conftest import build_model
from tests.export.test_retention import ATOL, SOURCES, STEPS, TARGETS, run


@pytest.fixture(scope="module")
def model() -> Transformer:
    return build_model(vocab_size=50, decoder_mixer="ssru")


@torch.inference_mode()
def test_steps_give_the_logits_of_the_whole(model: Transformer) -> None:
    expected = model(pad(SOURCES, 0), torch.from_numpy(TARGETS))[:, : STEPS - 3]

    np.testing.assert_allclose(run(model), expected.numpy(), atol=ATOL)


def test_a_step_that_is_taken_three_times_is_the_same_whatever_the_row_held(model: Transformer) -> None:
    assert np.array_equal(run(model, times=3, before=1e3), run(model))
