import pytest

from model.recipe import AugmentationConfig, TrainingConfig


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
