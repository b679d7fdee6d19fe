import pytest
import torch
from torch import Tensor
from torch.nn import functional

from model import loss
from model.ctc import columns_of, ctc_loss

BLANK = 2
NUM_POSITIONS = torch.tensor([8, 6, 5, 8])
TARGETS = torch.tensor([[4, 4, 5, 6], [7, 9, 9, 9], [5, 5, 5, 5], [8, 0, 0, 0]])
NUM_TARGETS = torch.tensor([4, 1, 4, 1])  # the third has no path: it would take seven positions


def torch_loss(states: Tensor, weight: Tensor, bias: Tensor | None, smoothing: float, sentences: list[int]) -> Tensor:
    """The loss by torch, of the scores of all tokens."""
    log_probs = functional.linear(states, weight, bias).log_softmax(-1)[sentences]
    counts, targets, lengths = NUM_POSITIONS[sentences], TARGETS[sentences], NUM_TARGETS[sentences]
    paths = functional.ctc_loss(log_probs.transpose(0, 1), targets, counts, lengths, blank=BLANK, reduction="sum")
    surprise = sum((-log_probs[i, :n].mean(-1)).sum() for i, n in enumerate(counts.tolist()))
    return (1 - smoothing) * paths + smoothing * surprise


@pytest.mark.parametrize("chunk_elements", [1, 180, 10**6])
@pytest.mark.parametrize(("smoothing", "has_bias"), [(0.0, False), (0.1, True)])
def test_loss_and_gradients_are_those_of_torch(
    monkeypatch: pytest.MonkeyPatch, chunk_elements: int, smoothing: float, has_bias: bool
) -> None:
    monkeypatch.setattr(loss, "CHUNK_ELEMENTS", chunk_elements)
    torch.manual_seed(0)
    values = [torch.randn(4, 8, 5), torch.randn(11, 5), *([torch.randn(11)] if has_bias else [])]
    ours, theirs = ([value.clone().requires_grad_() for value in values] for _ in range(2))

    found = ctc_loss(
        ours[0],
        ours[1],
        NUM_POSITIONS,
        TARGETS,
        NUM_TARGETS,
        blank=BLANK,
        smoothing=smoothing,
        bias=ours[2] if has_bias else None,
    )
    expected = torch_loss(theirs[0], theirs[1], theirs[2] if has_bias else None, smoothing, [0, 1, 3])
    (found / 3).backward()
    (expected / 3).backward()

    torch.testing.assert_close(found, expected)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one.grad, other.grad, atol=1e-5, rtol=1e-4)
    assert ours[0].grad is not None
    assert not ours[0].grad[2].any()  # no path, no gradient
    assert not ours[0].grad[1, 6:].any()  # nor behind a sentence's end


def test_columns_are_the_blank_and_the_targets_tokens() -> None:
    assert columns_of(TARGETS[:1], BLANK).tolist() == [[2, 4, 4, 5, 6]]
