"""A decoder with a window from checkpoint to answers: exported and proven, checked, and served."""

import pytest

from export.subject import DevSet
from export.window import with_window
from model.checkpoint import Checkpoint
from server.bundle.bundle import Bundle
from tests.parity.ladder import BundleTests, exported

WINDOW = 3  # tokens; nearly every translation of the dev set is longer


@pytest.fixture(scope="module")
def checkpoint(tiny_checkpoint: Checkpoint) -> Checkpoint:
    return with_window(tiny_checkpoint, WINDOW)


@pytest.fixture(scope="module")
def bundle(checkpoint: Checkpoint, dev_set: DevSet, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """All variants; the proofs of the export have passed."""
    return exported(checkpoint, dev_set, tmp_path_factory)


class TestWindow(BundleTests):
    def test_the_states_are_windows(self, bundle: Bundle) -> None:
        assert {(state.kind, state.shape[1]) for state in bundle.manifest.states} == {("window", WINDOW)}
        assert "copy_states.onnx" not in bundle.manifest.variants["cuda-fp16"].files
