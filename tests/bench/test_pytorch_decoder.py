"""That the plain PyTorch decoder is a fair rival: it translates as the oracle does."""

import pytest
import torch

from model.search import default_max_tokens, search
from model.transformer import Transformer
from tests.bench.pytorch_decoder import PyTorchDecoder


@pytest.mark.parametrize("batch_tokens", [32, 100, 2048])
def test_ids_are_the_oracles(tiny_model: Transformer, sources: list[list[int]], batch_tokens: int) -> None:
    few = sources[:30]
    limits = [default_max_tokens(len(ids), tiny_model.config.max_positions) for ids in few]
    oracle = [hypotheses[0].ids for hypotheses in search(tiny_model, few, max_tokens=limits)]

    found = PyTorchDecoder(tiny_model, "cpu", torch.float32, batch_tokens).translate(few)

    assert found == oracle


def test_rows_are_free_for_the_next_batch(tiny_model: Transformer, sources: list[list[int]]) -> None:
    decoder = PyTorchDecoder(tiny_model, "cpu", torch.float32, 64)
    first = decoder.translate(sources[:9])

    assert decoder.translate(sources[20:29]) != first
    assert decoder.translate(sources[:9]) == first
