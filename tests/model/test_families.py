from typing import get_args

import pytest
import torch

from model.config import AttentionScore, FamilyName, TransformerConfig
from model.data import Batch, pad
from model.families import FAMILIES, Family
from model.network import Network
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


def learned(kind: Family, config: TransformerConfig, batch: Batch, training: TrainingConfig) -> Network:
    """A network after 150 updates, in evaluation mode."""
    model = kind.network(config)
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(150):
        optimizer.param_groups[0]["lr"] = 5e-3 * (1 - step / 150)
        optimizer.zero_grad()
        kind.loss(model.train(), batch, training).backward()
        optimizer.step()
    return model.eval()


@pytest.mark.parametrize(
    ("family", "glancing", "score"),
    [
        ("transformer", 0.0, "none"),
        ("one_pass", 0.0, "none"),
        ("one_pass", 0.4, "none"),
        ("recurrent", 0.0, "dot"),
    ],
)
def test_a_network_of_each_family_learns_by_its_loss_what_it_then_translates(
    family: FamilyName, glancing: float, score: AttentionScore
) -> None:
    torch.manual_seed(0)
    kind, batch = FAMILIES[family], reversed_sentences()
    config = TransformerConfig(
        family=family,
        vocab_size=20,
        d_model=32,
        num_heads=1 if family == "recurrent" else 2,
        attention_score=score,
        encoder_layers=1,
        decoder_layers=1,
        ffn_dim=64,
        norm="pre",
        dropout=0.0,
        max_positions=16,
    )
    model = learned(kind, config, batch, TrainingConfig(label_smoothing=0.0, glancing=glancing))

    sources = [[*row[row > 3].tolist(), 3] for row in batch.source]
    for beam_size in (1, 3):
        assert kind.translate(model, sources, beam_size) == [source[-2::-1] for source in sources]


def test_every_name_has_its_family() -> None:
    assert set(FAMILIES) == set(get_args(FamilyName))
