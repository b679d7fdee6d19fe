import dataclasses

import pytest

from model.config import FamilyName, TransformerConfig
from model.recipe import AugmentationConfig, Recipe, TrainingConfig


def test_every_fault_of_a_training_is_named_at_once() -> None:
    with pytest.raises(ValueError, match="batch_tokens") as caught:
        TrainingConfig(
            batch_tokens=0, average_last=0, lr_scale=0.0, label_smoothing=1.0, word_dropout=-0.1, glancing=1.5
        )

    faults = str(caught.value).split("; ")
    assert [f.split()[0] for f in faults] == [
        "batch_tokens",
        "average_last",
        "lr_scale",
        "label_smoothing",
        "word_dropout",
        "glancing",
    ]


@pytest.mark.parametrize(
    ("family", "training", "fault"),
    [
        (
            "one_pass",
            TrainingConfig(word_dropout=0.1),
            'word_dropout must be 0 where model.family is "one_pass", not 0.1',
        ),
        (
            "transformer",
            TrainingConfig(glancing=0.5),
            'glancing must be 0 where model.family is "transformer", not 0.5',
        ),
    ],
)
def test_what_a_family_does_not_learn_by_is_refused(family: FamilyName, training: TrainingConfig, fault: str) -> None:
    model = TransformerConfig(family=family, vocab_size=100)

    with pytest.raises(ValueError, match=f"training.{fault}"):
        Recipe(name="x", source_language="en", target_language="de", model=model, training=training)


def test_probabilities_of_rewritings_sum_up_to_at_most_one() -> None:
    AugmentationConfig(upper_case=0.5, copy=0.5)

    with pytest.raises(ValueError, match="sum up to at most 1"):
        AugmentationConfig(upper_case=0.75, copy=0.5)


def test_a_plan_keeps_its_shares_for_another_number_of_updates() -> None:
    plan = TrainingConfig(max_steps=1200, warmup_steps=150, cooldown_steps=450, evaluate_every=600)

    half = plan.with_updates(600)

    assert half == dataclasses.replace(plan, max_steps=600, warmup_steps=75, cooldown_steps=225, evaluate_every=300)
    assert half.with_updates(1200) == plan


def test_a_plan_of_one_update_is_a_plan() -> None:
    short = TrainingConfig(max_steps=1200, warmup_steps=150, cooldown_steps=450, evaluate_every=600).with_updates(1)

    assert (short.max_steps, short.warmup_steps, short.cooldown_steps, short.evaluate_every) == (1, 1, 1, 1)
    assert TrainingConfig(max_steps=1200, cooldown_steps=0).with_updates(7).cooldown_steps == 0
