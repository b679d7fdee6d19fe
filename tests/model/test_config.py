import pytest

from model.config import AugmentationConfig, TrainingConfig, TransformerConfig


def test_every_fault_of_a_model_is_named_at_once() -> None:
    with pytest.raises(ValueError, match="vocab_size") as caught:
        TransformerConfig(vocab_size=0, encoder_layers=-1, dropout=1.0, norm="none", positions="none")  # type: ignore[arg-type]

    faults = str(caught.value).split("; ")
    assert [fault.split()[0] for fault in faults] == ["vocab_size", "encoder_layers", "dropout", "norm", "positions"]


@pytest.mark.parametrize(("d_model", "num_heads"), [(100, 3), (36, 4), (16, 4)])
def test_heads_that_the_graphs_cannot_hold_are_refused(d_model: int, num_heads: int) -> None:
    with pytest.raises(ValueError, match=f"must be a multiple of 8, not {d_model} / {num_heads}"):
        TransformerConfig(vocab_size=10, d_model=d_model, num_heads=num_heads)


def test_every_fault_of_a_training_is_named_at_once() -> None:
    with pytest.raises(ValueError, match="batch_tokens") as caught:
        TrainingConfig(batch_tokens=0, average_last=0, lr_scale=0.0, label_smoothing=1.0, word_dropout=-0.1)

    faults = str(caught.value).split("; ")
    assert [f.split()[0] for f in faults] == [
        "batch_tokens",
        "average_last",
        "lr_scale",
        "label_smoothing",
        "word_dropout",
    ]


def test_probabilities_of_rewritings_sum_up_to_at_most_one() -> None:
    AugmentationConfig(upper_case=0.5, copy=0.5)

    with pytest.raises(ValueError, match="sum up to at most 1"):
        AugmentationConfig(upper_case=0.75, copy=0.5)
