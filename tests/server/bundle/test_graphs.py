import numpy as np
import pytest

from server.bundle.graphs import (
    CONTROL_NAMES,
    ENCODER_FILE,
    PLAIN_STEP,
    SLOT_NAMES,
    WEIGHTS_FILE,
    StepForm,
    cache_names,
    cache_outputs,
    copy_rows_names,
    needed_files,
    step_controls,
    step_forms,
)
from server.bundle.states import attention_states, ssru_states

ATTENTION, SSRU = attention_states(3, 2, 8), ssru_states(3, 48)
NUM_ROWS = 5
TOKENS, PAST = np.arange(20, 25), np.array([0, 4, 2, 4, 1], np.int32)
SOURCE = np.array([6, 9, 6, 6, 3], np.int32)


def test_cache_names_are_key_and_value_of_each_layer() -> None:
    assert cache_names("cross", 2) == ["cross_key.0", "cross_value.0", "cross_key.1", "cross_value.1"]


def test_a_step_reads_self_attention_then_cross_attention() -> None:
    own = [f"self_{part}.{layer}" for layer in range(3) for part in ("key", "value")]

    for states, names in ((ATTENTION, own), (SSRU, ["self_state"])):
        outputs = cache_outputs(states, 3)
        assert list(outputs) == [*names, *cache_names("cross", 3)]
        assert all(found == [f"new_{name}"] for name, found in outputs.items())


def test_a_window_is_written_and_then_read() -> None:
    outputs = cache_outputs(attention_states(1, 2, 8, window=4), 1)

    assert outputs["self_value.0"] == ["written_self_value.0", "new_self_value.0"]
    assert outputs["cross_value.0"] == ["new_cross_value.0"]


def test_copying_rows_takes_a_source_and_a_cache_for_each_tensor() -> None:
    inputs, outputs = copy_rows_names(2)

    assert inputs == ["from", "to", "source.0", "source.1", "cache.0", "cache.1"]
    assert outputs == ["new_cache.0", "new_cache.1"]


def test_each_form_of_a_step_has_a_file_of_its_own() -> None:
    forms = [StepForm(*flags) for flags in ((False, False), (False, True), (True, False), (True, True))]

    assert [form.file for form in forms] == [
        "decoder_step.onnx",
        "decoder_step_shared.onnx",
        "decoder_step_shortlist.onnx",
        "decoder_step_shortlist_shared.onnx",
    ]
    assert [form.projected for form in forms] == ["logits", "logits", "products", "products"]


@pytest.mark.parametrize(
    ("form", "more"),
    [
        (PLAIN_STEP, ()),
        (StepForm(shares_slots=True), SLOT_NAMES),
        (StepForm(has_shortlist=True), ("shortlist_weight", "shortlist_ids", "candidates")),
    ],
)
def test_a_step_is_fed_what_its_form_needs(form: StepForm, more: tuple[str, ...]) -> None:
    assert form.input_names == [*CONTROL_NAMES, *more]


@pytest.mark.parametrize("variant", ["cpu-fp32", "cpu-int8"])
@pytest.mark.parametrize(("has_shortlist", "num_forms"), [(False, 2), (True, 4)])
def test_a_cpu_has_every_form_of_the_step(variant: str, has_shortlist: bool, num_forms: int) -> None:
    forms = step_forms(variant, has_shortlist)

    assert len(set(forms)) == num_forms
    assert any(form.has_shortlist for form in forms) is has_shortlist
    assert needed_files(variant, has_shortlist, ATTENTION) == {
        ENCODER_FILE,
        WEIGHTS_FILE,
        *(form.file for form in forms),
    }


@pytest.mark.parametrize("has_shortlist", [False, True])
def test_a_gpu_has_the_plain_step_and_copies_rows(has_shortlist: bool) -> None:
    assert step_forms("cuda-fp16", has_shortlist) == [PLAIN_STEP]
    assert needed_files("cuda-fp16", has_shortlist, ATTENTION) == {
        ENCODER_FILE,
        WEIGHTS_FILE,
        "decoder_step.onnx",
        "copy_rows.onnx",
    }
    more = needed_files("cuda-fp16", has_shortlist, SSRU) - needed_files("cuda-fp16", has_shortlist, ATTENTION)
    assert more == {"copy_states.onnx"}


def test_controls_of_a_step_are_those_that_it_names() -> None:
    controls = step_controls(TOKENS, PAST, SOURCE, top_k=8, with_log_probs=True)

    assert tuple(controls) == CONTROL_NAMES
    assert (controls["self_total"].tolist(), controls["source_total"].tolist()) == ([5], [9])
    assert (controls["top_k"].tolist(), controls["with_log_probs"].tolist()) == ([8], [True])
    assert {name: array.dtype.name for name, array in controls.items()} == {
        "input_ids": "int64",
        "past_lengths": "int32",
        "source_lengths": "int32",
        "self_total": "int32",
        "source_total": "int32",
        "top_k": "int64",
        "with_log_probs": "bool",
    }


def test_controls_are_no_views_of_what_the_next_step_changes() -> None:
    tokens, past, source = TOKENS.copy(), PAST.copy(), SOURCE.copy()
    controls = step_controls(tokens, past, source)

    tokens[:], past[:], source[:] = 99, 99, 99

    for name, before in zip(("input_ids", "past_lengths", "source_lengths"), (TOKENS, PAST, SOURCE), strict=True):
        np.testing.assert_array_equal(controls[name], before)


def test_rows_that_share_slots_find_their_places_and_lengths_go_by_slot() -> None:
    slot_rows = np.array([[0, 2, 3, 0], [1, 1, 1, 1], [4, 4, 4, 4]])

    controls = step_controls(TOKENS, PAST, SOURCE, slot_rows=slot_rows)

    assert tuple(controls) == (*CONTROL_NAMES, *SLOT_NAMES)
    assert controls["source_lengths"].tolist() == [6, 9, 3]
    assert controls["source_total"].tolist() == [9]
    places = np.asarray(controls["row_places"])
    assert slot_rows.ravel()[places].tolist() == list(range(NUM_ROWS))
