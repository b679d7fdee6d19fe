"""What is exported, and what is not."""

from pathlib import Path

import pytest

from export.bundle import export_bundle
from export.shortlist import build_shortlist
from export.subject import DevSet, subject_of
from model.checkpoint import Checkpoint


def test_limits_are_those_that_a_family_can_keep(tiny_checkpoint: Checkpoint, one_pass_checkpoint: Checkpoint) -> None:
    subjects = subject_of(tiny_checkpoint), subject_of(one_pass_checkpoint)

    assert [(each.max_source_tokens, each.max_target_tokens) for each in subjects] == [(64, 128), (64, 128)]


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
