"""Weights that sessions read where they are mapped."""

import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest

from export.mapped import MappedWeights
from server.bundle.bundle import Bundle
from server.bundle.graphs import EMBEDDING, ENCODER_FILE, PLAIN_STEP, WEIGHTS_FILE, StepForm
from server.bundle.variants import VARIANTS
from server.runtime.runner import open_runner
from tests.export.memory import resident_bytes
from tests.runners import open_host_runner


def drafted(bundle: Bundle, variant: str, directory: Path) -> Bundle:
    """Returns a variant as it is while it is proved: with all of its weights in its own file."""
    shutil.copytree(bundle.directory / variant, directory / variant)
    (directory / variant / WEIGHTS_FILE).write_bytes(bundle.read(f"{variant}/{WEIGHTS_FILE}"))
    return Bundle(directory=directory, manifest=bundle.manifest)


@pytest.mark.parametrize("file", [ENCODER_FILE, PLAIN_STEP.file])
def test_they_are_those_that_onnx_reads(tiny_bundle: Bundle, file: str) -> None:
    directory = tiny_bundle.directory / "cpu-int8"

    found = MappedWeights(directory)(tiny_bundle.read(f"cpu-int8/{file}"))

    expected = {tensor.name: tensor for tensor in onnx.load(directory / file).graph.initializer}
    assert len(found) > 4
    for name, weight in found.items():
        exact = onnx.numpy_helper.to_array(expected[name])
        assert weight.dtype == exact.dtype
        assert np.array_equal(weight, exact), name


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_runner_encodes_the_same_with_them(tiny_bundle: Bundle, variant: str, tmp_path: Path) -> None:
    ids, lengths = np.array([[5, 9, 12, 7, 3]]), np.array([5], np.int32)
    draft = drafted(tiny_bundle, variant, tmp_path)
    borrowing = open_runner(draft, variant, "cpu", lend=MappedWeights(draft.directory / variant))

    found, expected = (
        [np.asarray(each if isinstance(each, np.ndarray) else each.numpy()) for each in runner.encode(ids, lengths)]
        for runner in (borrowing, open_runner(tiny_bundle, variant, "cpu"))
    )

    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.astype(np.float32), other.astype(np.float32), atol=1e-3)


def test_sessions_have_no_copy_of_them(tiny_bundle: Bundle, tmp_path: Path) -> None:
    draft = drafted(tiny_bundle, "cpu-fp32", tmp_path)
    mapped = MappedWeights(draft.directory / "cpu-fp32")
    sessions = open_host_runner(draft, lend=mapped).sessions
    sessions.step_session(StepForm(shares_slots=True))

    weights = mapped(tiny_bundle.read(f"cpu-fp32/{PLAIN_STEP.file}"))

    assert np.shares_memory(sessions.embedding, weights[EMBEDDING])


def test_what_is_dropped_is_in_memory_no_more_and_comes_back(tmp_path: Path) -> None:
    weight = onnx.numpy_helper.from_array(np.ones(2**24, np.float32), "weight")  # 64 MiB
    graph = onnx.helper.make_graph([], "empty", [], [], [weight])
    onnx.save(onnx.helper.make_model(graph), tmp_path / "g.onnx", save_as_external_data=True, location=WEIGHTS_FILE)
    mapped = MappedWeights(tmp_path)
    found = mapped((tmp_path / "g.onnx").read_bytes())["weight"]
    assert found.sum() == 2**24
    before = resident_bytes()

    mapped.drop()

    assert before - resident_bytes() > 2**25
    assert found.sum() == 2**24
