"""A decoder with a window from checkpoint to answers: exported and proven, checked, and served."""

import pytest

from export.bundle import export_bundle
from export.subject import DevSet, subject_of
from export.window import with_window
from model.checkpoint import Checkpoint
from server.bundle.bundle import Bundle
from tests.parity.served import check_lines, golden_texts

WINDOW = 3  # tokens; nearly every translation of the dev set is longer


@pytest.fixture(scope="module")
def bundle(tiny_checkpoint: Checkpoint, dev_set: DevSet, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """All variants; the proofs of the export have passed."""
    out = tmp_path_factory.mktemp("bundles") / "windowed"
    subject = subject_of(with_window(tiny_checkpoint, WINDOW))
    return export_bundle(subject, out, dev_set, version="0", max_bleu_loss=5.0)


def test_the_export_proves_steps_and_ids_equal(bundle: Bundle) -> None:
    parity = bundle.manifest.parity

    assert {(state.kind, state.shape[1]) for state in bundle.manifest.states} == {("window", WINDOW)}
    assert 0 < parity["step_logits"]["largest_difference"] < 1e-4
    for search in ("greedy_ids", "beam_4_ids"):
        assert parity[search]["equal"] + len(parity[search]["near_ties"]) == 200
    assert parity["int8_rows_apart"]["same_alone"] >= 198
    assert "copy_states.onnx" not in bundle.manifest.variants["cuda-fp16"].files


def test_a_bundle_with_a_window_passes_its_check(bundle: Bundle) -> None:
    assert sum("passes the golden sentence" in line for line in check_lines(bundle)) >= 2


@pytest.mark.parametrize("variant", ["cpu-fp32", "cpu-int8"])
def test_a_server_answers_with_the_translations_of_the_bundle(
    tiny_checkpoint: Checkpoint, bundle: Bundle, variant: str
) -> None:
    expected, texts = golden_texts(bundle, variant, tiny_checkpoint.tokenizer)

    assert texts == [expected] * 3
