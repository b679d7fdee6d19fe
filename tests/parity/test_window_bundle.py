"""A decoder with a window from checkpoint to answers: exported and proven, checked, and served."""

import pytest

from export.bundle import export_bundle
from export.subject import DevSet, subject_of
from export.window import with_window
from model.checkpoint import Checkpoint
from server.bundle.bundle import Bundle
from tests.parity import ladder
from tests.parity.served import check_lines

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


@pytest.mark.parametrize("beam_size", [1, 4])
def test_torch_steps_batches_and_a_server_say_the_same(
    tiny_checkpoint: Checkpoint, bundle: Bundle, beam_size: int
) -> None:
    limits, checkpoint = bundle.manifest.limits, with_window(tiny_checkpoint, WINDOW)
    texts, sources = ladder.captions(checkpoint, limits.max_source_tokens)

    expected = ladder.of_torch(checkpoint, sources, beam_size, limits.max_target_tokens)

    assert len(sources) == ladder.NUM_SENTENCES
    assert ladder.alone(bundle, "cpu-fp32", sources, beam_size) == expected
    assert ladder.together(bundle, "cpu-fp32", sources, beam_size) == expected
    assert ladder.served(bundle, "cpu-fp32", texts, beam_size) == ladder.spelled(checkpoint, expected)


def test_int8_keeps_sentences_apart_and_is_served(tiny_checkpoint: Checkpoint, bundle: Bundle) -> None:
    texts, sources = ladder.captions(tiny_checkpoint, bundle.manifest.limits.max_source_tokens)

    expected = ladder.alone(bundle, "cpu-int8", sources, 4)

    assert ladder.together(bundle, "cpu-int8", sources, 4) == expected
    assert ladder.served(bundle, "cpu-int8", texts, 4) == ladder.spelled(tiny_checkpoint, expected)
