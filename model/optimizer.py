"""How gradients change the weights: Adam, or Muon for the matrices of the layers, and the learning rate of both."""

import itertools
import math
from collections import defaultdict
from typing import Any

import torch
from torch import Tensor

from model.network import Network
from model.recipe import TrainingConfig

MUON_MOMENTUM = 0.95
_POLYNOMIAL = (3.4445, -4.7750, 2.0315)  # five rounds of it bring singular values of 0.01 to 1 near 1


class Optimizer:
    """Changes a model's weights by their gradients.

    With `training.optimizer` "muon" each matrix of the layers moves by its momentum made orthogonal: all directions
    alike, not by how large their gradients are. Embeddings, biases and norms are always Adam's.

    Source: "Muon is Scalable for LLM Training" (arXiv:2502.16982), whose scale lets both share one learning rate.
    """

    def __init__(self, model: Network, training: TrainingConfig) -> None:
        self._training = training
        self._d_model = model.config.d_model
        named = list(model.named_parameters())
        wants_muon = training.optimizer == "muon"
        self._matrices = [
            p for name, p in named if wants_muon and p.dim() == 2 and name.startswith(("encoder.", "decoder."))
        ]
        self._momenta = [torch.zeros_like(p) for p in self._matrices]
        chosen = {id(p) for p in self._matrices}
        others = [p for _, p in named if id(p) not in chosen]
        self._adam = torch.optim.Adam(others, lr=0.0, betas=(0.9, 0.98), eps=1e-9, fused=True)

    @property
    def learning_rate(self) -> float:
        """Rate of the last update."""
        return float(self._adam.param_groups[0]["lr"])

    def update(self, step: int) -> None:
        """Makes update `step` (from 1) and forgets the gradients."""
        rate = learning_rate(self._training, self._d_model, step)
        for group in self._adam.param_groups:
            group["lr"] = rate
        self._adam.step()
        self._adam.zero_grad(set_to_none=True)
        if self._matrices:
            self._muon_update(rate)

    @torch.no_grad()
    def _muon_update(self, rate: float) -> None:
        directions = []
        for matrix, momentum in zip(self._matrices, self._momenta, strict=True):
            assert matrix.grad is not None
            momentum.lerp_(matrix.grad, 1 - MUON_MOMENTUM)
            directions.append(matrix.grad.lerp(momentum, MUON_MOMENTUM))  # Nesterov's
            matrix.grad = None
        for matrix, step in zip(self._matrices, _muon_steps(directions), strict=True):
            matrix.sub_(step, alpha=rate)

    def state_dict(self) -> dict[str, Any]:
        """Returns what `load_state_dict` goes on from."""
        return {"adam": self._adam.state_dict(), "momenta": self._momenta}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on where another optimiser of the same model and recipe stopped."""
        self._adam.load_state_dict(state["adam"])
        for momentum, saved in zip(self._momenta, state["momenta"], strict=True):
            momentum.copy_(saved)


def learning_rate(training: TrainingConfig, d_model: int, step: int) -> float:
    """Returns the rate of update `step` in 1..max_steps: warm-up, inverse square root (section 5.3), cooldown."""
    shape = min(1 / math.sqrt(step), step / training.warmup_steps / math.sqrt(training.warmup_steps))
    cooldown = min(1.0, (training.max_steps + 1 - step) / training.cooldown_steps) if training.cooldown_steps else 1.0
    return training.lr_scale / math.sqrt(d_model) * shape * cooldown


def _muon_steps(directions: list[Tensor]) -> list[Tensor]:
    """Returns the orthogonal steps of matrices [R, C]; projections that stand in one matrix are square blocks of it.

    All blocks of one shape are taken together: a GPU would wait for the launches of one after the other.
    """
    blocks = [d.split(d.shape[1]) if d.shape[0] == 3 * d.shape[1] else (d,) for d in directions]
    by_shape: dict[torch.Size, list[Tensor]] = defaultdict(list)
    for block in itertools.chain(*blocks):
        by_shape[block.shape].append(block)
    scales = {shape: 0.2 * math.sqrt(max(shape)) for shape in by_shape}  # the size of Adam's steps
    steps = {shape: iter(_orthogonal(torch.stack(same)).mul_(scales[shape])) for shape, same in by_shape.items()}
    return [torch.cat([next(steps[block.shape]) for block in of_matrix]) for of_matrix in blocks]


def _orthogonal(matrices: Tensor) -> Tensor:
    """Returns matrices [N, R, C] with all singular values brought near 1, by Newton and Schulz's iteration."""
    is_tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.mT if is_tall else matrices
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    a, b, c = _POLYNOMIAL
    for _ in range(5):
        square = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return x.mT if is_tall else x
