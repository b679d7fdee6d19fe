"""A recurrent unit in place of a decoder's self-attention: a state of fixed size instead of a cache that grows."""

import torch
from torch import Tensor, nn
from torch.nn import functional


class SimplerSimpleRecurrentUnit(nn.Module):
    """The SSRU: c = f * c + (1 - f) * (W x), with f = sigmoid(Wf x + bf), c = 0 at first; its output is ReLU(c).

    Source: "From Research to Production and Back: Ludicrously Fast Neural Machine Translation" (D19-5632), whose
    authors' Marian trains such decoders.
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.projection = nn.Linear(d_model, 2 * d_model)  # rows: forget gate, value

    def forward(self, x: Tensor) -> Tensor:
        """Maps [B, T, M] to [B, T, M]; a position depends on itself and on those before."""
        gates, values = self.projection(x).chunk(2, dim=-1)
        forget = torch.sigmoid(gates)
        added = (1 - forget) * values
        state = torch.zeros_like(added[:, 0])
        states = []
        for kept, new in zip(forget.unbind(1), added.unbind(1), strict=True):
            state = kept * state + new
            states.append(state)
        return functional.relu(torch.stack(states, dim=1))
