import pytest
import torch
from torch.nn import functional

from model import loss
from model.loss import smoothed_cross_entropy


@pytest.mark.parametrize("chunk_elements", [1, 60, 10**6])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_loss_and_gradients_are_those_of_torch(
    monkeypatch: pytest.MonkeyPatch, chunk_elements: int, smoothing: float
) -> None:
    monkeypatch.setattr(loss, "CHUNK_ELEMENTS", chunk_elements)
    torch.manual_seed(0)
    states, weight, targets = torch.randn(7, 5), torch.randn(11, 5), torch.randint(0, 11, (7,))
    ours = [states.clone().requires_grad_(), weight.clone().requires_grad_()]
    theirs = [states.clone().requires_grad_(), weight.clone().requires_grad_()]

    found = smoothed_cross_entropy(ours[0], ours[1], targets, smoothing)
    expected = functional.cross_entropy(theirs[0] @ theirs[1].t(), targets, label_smoothing=smoothing, reduction="sum")
    (found / 3).backward()
    (expected / 3).backward()

    torch.testing.assert_close(found, expected)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one.grad, other.grad)


def test_a_bias_of_the_projection_is_learned_too() -> None:
    torch.manual_seed(0)
    states, weight, bias, targets = torch.randn(7, 5), torch.randn(11, 5), torch.randn(11), torch.randint(0, 11, (7,))
    ours, theirs = ([t.clone().requires_grad_() for t in (states, weight, bias)] for _ in range(2))

    found = smoothed_cross_entropy(ours[0], ours[1], targets, 0.1, ours[2])
    scores = functional.linear(*theirs)
    expected = functional.cross_entropy(scores, targets, label_smoothing=0.1, reduction="sum")
    found.backward()
    expected.backward()

    torch.testing.assert_close(found, expected)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one.grad, other.grad)


def test_no_positions_have_no_loss() -> None:
    assert smoothed_cross_entropy(torch.zeros(0, 4), torch.zeros(6, 4), torch.zeros(0, dtype=torch.int64), 0.1) == 0
