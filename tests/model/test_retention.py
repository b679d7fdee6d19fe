import math

import torch

from model.retention import NORM_EPS, Retention, decays


def module() -> Retention:
    torch.manual_seed(0)
    retention = Retention(d_model=12, num_heads=3, head_dim=8)
    for parameter in retention.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return retention


@torch.inference_mode()
def test_all_positions_at_once_are_the_recurrence_step_by_step() -> None:
    retention, x = module(), torch.randn(2, 7, 12)
    expected = []
    state = torch.zeros(2, 3, 8, 8)
    for t in range(7):
        q, k, v = (part.view(2, 3, 8) for part in retention.qkv(x[:, t]).chunk(3, dim=-1))
        state = state * torch.exp(retention.decays)[:, None, None] + k[..., :, None] * v[..., None, :]
        read = (q[..., None, :] @ state).squeeze(-2) / math.sqrt(8)
        variance, mean = torch.var_mean(read, dim=-1, correction=0, keepdim=True)
        normal = ((read - mean) / torch.sqrt(variance + NORM_EPS)).flatten(1)
        gate = retention.gate(x[:, t])
        expected.append(retention.output(normal * gate / (1 + torch.exp(-gate))))

    torch.testing.assert_close(retention(x), torch.stack(expected, dim=1), atol=1e-4, rtol=0)


def test_a_position_depends_on_itself_and_those_before() -> None:
    retention, x = module(), torch.randn(1, 6, 12)
    x.requires_grad_()

    for t in range(6):
        (gradient,) = torch.autograd.grad(retention(x)[0, t].sum(), x)
        assert gradient[0].abs().sum(-1).gt(0).tolist() == [s <= t for s in range(6)]


def test_heads_forget_at_different_rates() -> None:
    kept = torch.exp(decays(4))

    assert kept[0] == 0.5  # after two tokens a quarter is left
    assert kept.diff().gt(0).all()
    assert kept[-1] < 1
    assert torch.equal(decays(1), decays(4)[:1])


def test_it_learns_in_bfloat16_too() -> None:
    retention, x = module(), torch.randn(2, 5, 12)

    with torch.autocast("cpu", dtype=torch.bfloat16):
        result = retention(x)
    result.float().square().sum().backward()

    torch.testing.assert_close(result.float(), retention(x), atol=0.5, rtol=0.05)
    assert all(weight.grad is not None and weight.grad.isfinite().all() for weight in retention.parameters())
