from typing import get_args

import pytest
import torch

from model.config import FamilyName, TransformerConfig
from model.data import Batch, pad
from model.families import FAMILIES
from model.recipe import TrainingConfig


def reversed_sentences() -> Batch:
    """Sixteen sources of two to six tokens, and as targets the same tokens from the last to the first."""
    generator = torch.Generator().manual_seed(0)
    tokens = [torch.randint(4, 20, (2 + i % 5,), generator=generator).tolist() for i in range(16)]
    return Batch(
        source=pad([[*ids, 3] for ids in tokens], 0),
        target_in=pad([[2, *ids[::-1]] for ids in tokens], 0),
        target_out=pad([[*ids[::-1], 3] for ids in tokens], 0),
    )


@pytest.mark.parametrize(("family", "glancing"), [("transformer", 0.0), ("one_pass", 0.0), ("one_pass", 0.4)])
def test_a_network_of_each_family_learns_by_its_loss_what_it_then_translates(
    family: FamilyName, glancing: float
) -> None:
    torch.manual_seed(0)
    kind, batch = FAMILIES[family], reversed_sentences()
    config = TransformerConfig(
        family=family,
        vocab_size=20,
        d_model=32,
        num_heads=2,
        encoder_layers=1,
        decoder_layers=1,
        ffn_dim=64,
        norm="pre",
        dropout=0.0,
        max_positions=16,
    )
    model = kind.network(config)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    training = TrainingConfig(label_smoothing=0.0, glancing=glancing)
    for _ in range(150):
        optimizer.zero_grad()
        kind.loss(model.train(), batch, training).backward()
        optimizer.step()

    sources = [[*row[row > 3].tolist(), 3] for row in batch.source]
    for beam_size in (1, 3):
        assert kind.translate(model.eval(), sources, beam_size) == [source[-2::-1] for source in sources]


def test_every_name_has_its_family() -> None:
    assert set(FAMILIES) == set(get_args(FamilyName))
