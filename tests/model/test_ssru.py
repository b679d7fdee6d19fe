import torch

from model.ssru import SimplerSimpleRecurrentUnit


def unit() -> SimplerSimpleRecurrentUnit:
    torch.manual_seed(0)
    module = SimplerSimpleRecurrentUnit(8)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return module


@torch.inference_mode()
def test_the_unit_is_that_of_the_paper_step_by_step() -> None:
    module, x = unit(), torch.randn(3, 5, 8)
    gate, value = module.projection.weight.chunk(2)
    gate_bias, value_bias = module.projection.bias.chunk(2)
    state = torch.zeros(3, 8)
    expected = []
    for t in range(5):
        forget = 1 / (1 + torch.exp(-(x[:, t] @ gate.T + gate_bias)))
        state = forget * state + (1 - forget) * (x[:, t] @ value.T + value_bias)
        expected.append(state.clamp(min=0))

    torch.testing.assert_close(module(x), torch.stack(expected, dim=1), atol=1e-5, rtol=0)


def test_a_position_depends_on_itself_and_those_before() -> None:
    module, x = unit(), torch.randn(1, 6, 8)
    x.requires_grad_()

    for t in range(6):
        (gradient,) = torch.autograd.grad(module(x)[0, t].sum(), x)
        assert gradient[0].abs().sum(-1).gt(0).tolist() == [s <= t for s in range(6)]
