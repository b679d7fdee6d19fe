"""What is exported, and what is not."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from export.bundle import export_bundle
from export.shortlist import build_shortlist
from export.subject import DevSet, subject_of
from model.checkpoint import Checkpoint


def test_limits_are_those_that_a_family_can_keep(tiny_checkpoint: Checkpoint, one_pass_checkpoint: Checkpoint) -> None:
    subjects = subject_of(tiny_checkpoint), subject_of(one_pass_checkpoint)

    assert [(each.max_source_tokens, each.max_target_tokens) for each in subjects] == [(64, 128), (64, 128)]


@pytest.mark.parametrize(
    ("facts", "fault"),
    [
        ({"name": None}, "the checkpoint's name must be 1 to 128 printable characters, not None"),
        ({"name": "x\x1b[2J"}, r"the checkpoint's name must be .* not 'x\\x1b\[2J'"),
        ({"target_language": 5}, "the checkpoint's target_language must be .* not 5"),
        ({"recipe": 5}, "the checkpoint's recipe.training must be a table"),
        (
            {"recipe": {"training": {"max_tokens": float("nan")}}},
            r"recipe.training.max_tokens must be in 1\.\..* not nan",
        ),
        ({"recipe": {"tokenizer": {"num_placeholders": 6401}}}, r"num_placeholders must be in 0\.\.6400, not 6401"),
    ],
)
def test_what_no_bundle_may_say_of_itself_is_refused(
    tiny_checkpoint: Checkpoint, facts: dict[str, Any], fault: str
) -> None:
    with pytest.raises(ValueError, match=fault):
        subject_of(dataclasses.replace(tiny_checkpoint, facts={**tiny_checkpoint.facts, **facts}))


def test_a_one_pass_network_has_no_shortlist(one_pass_checkpoint: Checkpoint) -> None:
    with pytest.raises(ValueError, match="has no shortlist"):
        subject_of(one_pass_checkpoint, build_shortlist([([5, 3], [6, 3])], 700, always=[3]))


def test_a_one_pass_network_is_for_cpus(one_pass_checkpoint: Checkpoint, dev_set: DevSet, tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"must be some of cpu-fp32, cpu-int8 for the family one_pass, not cpu-fp32, cuda-fp16"
    ):
        export_bundle(
            subject_of(one_pass_checkpoint), tmp_path / "out", dev_set, version="1", variants=("cpu-fp32", "cuda-fp16")
        )
