"""The restated search on tables of log-probabilities where one can see by hand what must come out."""

import math

import torch
from torch import Tensor

from tests.imports.expected import Run
from tests.imports.hf_search import Prefixes, search

EOS, A, B, C = range(4)


def run(beam_size: int, *, early: bool = False, forced_eos: bool = False, penalty: float = 1.0, limit: int = 6) -> Run:
    return Run(beam_size, early, forced_eos, penalty, limit)


class Table:
    """A model whose next token depends on the last one only."""

    def __init__(self, rows: dict[int | None, dict[int, float]]) -> None:
        self.rows = rows
        self.num_steps = 0

    def __call__(self, prefixes: Prefixes) -> Tensor:
        self.num_steps += 1
        rows = [self.rows.get(prefix[-1] if prefix else None, {}) for prefix in prefixes]
        return torch.tensor([[math.log(row.get(token, 1e-9)) for token in range(4)] for row in rows])


# Greedy takes A (0.6), whose best end is 0.6 x 0.35; by B it is 0.4 x 0.9.
FORK = {
    None: {A: 0.6, B: 0.4},
    A: {EOS: 0.35, C: 0.33, A: 0.32},
    B: {EOS: 0.9, C: 0.1},
    C: {EOS: 0.5, C: 0.5},
}


def test_greedy_takes_the_best_token_and_a_beam_sees_further() -> None:
    assert search(Table(FORK), run(1), EOS) == [A, EOS]
    assert search(Table(FORK), run(2), EOS) == [B, EOS]


def test_early_stopping_is_content_with_as_many_as_the_beam_has() -> None:
    # [eos] scores log(.35) = -1.05, [A, eos] log(.195) / 2 = -0.82; [A, C] lives on with log(.455) / 2 = -0.39.
    rows = {None: {EOS: 0.35, A: 0.65}, A: {EOS: 0.3, C: 0.7}, C: {EOS: 0.95, B: 0.05}}
    content, patient = Table(rows), Table(rows)

    assert search(content, run(2, early=True), EOS) == [A, EOS]
    assert search(patient, run(2, early=False), EOS) == [A, C, EOS]
    assert (content.num_steps, patient.num_steps) == (2, 3)


def test_at_the_limit_eos_is_forced_and_costs_nothing() -> None:
    endless = {None: {A: 1.0}, A: {A: 0.9, B: 0.1}, B: {B: 1.0}}

    assert search(Table(endless), run(1, limit=3), EOS) == [A, A, A]
    assert search(Table(endless), run(1, forced_eos=True, limit=3), EOS) == [A, A, EOS]
    assert search(Table(endless), run(2, forced_eos=True, limit=3), EOS) == [A, A, EOS]


def test_a_forced_first_token_is_free_and_counts_in_the_length() -> None:
    rows = FORK | {C: {A: 0.6, B: 0.4}}

    assert search(Table(rows), run(1), EOS, forced_bos=C) == [C, A, EOS]
    assert search(Table(rows), run(2), EOS, forced_bos=C) == [C, B, EOS]


def test_the_length_penalty_decides_between_short_and_long() -> None:
    rows = {None: {EOS: 0.5, A: 0.5}, A: {A: 0.8, EOS: 0.2}}

    assert search(Table(rows), run(2, penalty=0.0), EOS) == [EOS]
    assert len(search(Table(rows), run(2, penalty=2.0), EOS)) > 1
