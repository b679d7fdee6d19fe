"""When a processor's autocast is used."""

from collections.abc import Iterator

import pytest
import torch

from model import precision
from model.precision import is_bfloat16_faster


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    is_bfloat16_faster.cache_clear()
    yield
    is_bfloat16_faster.cache_clear()


@pytest.mark.parametrize(("in_bfloat16", "expected"), [(0.5, True), (0.9, False), (1.7, False)])
def test_bfloat16_must_be_clearly_faster(in_bfloat16: float, expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = {torch.float32: 1.0, torch.bfloat16: in_bfloat16}
    monkeypatch.setattr(precision, "_seconds", seconds.__getitem__)

    assert is_bfloat16_faster() is expected


def test_it_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found = is_bfloat16_faster()
    monkeypatch.setattr(precision, "_seconds", lambda _: pytest.fail("measured again"))

    assert is_bfloat16_faster() is found
