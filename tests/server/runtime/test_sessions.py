"""The sessions of the tiny bundle on ONNX Runtime: which are loaded, when, and what is said if one cannot be."""

import dataclasses
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from server.bundle.bundle import Bundle
from server.bundle.graphs import PLAIN_STEP, StepForm
from server.bundle.variants import VARIANTS
from server.errors import BundleError, SettingsError
from server.network import RowMoves, StepInputs, StepKind
from server.runtime.runner import HostRunner, open_runner
from server.runtime.sessions import Sessions
from tests.runners import open_host_runner
from tests.server.runtime.conftest import admit, encode_one


def test_one_session_serves_where_a_lane_alone_has_no_more_threads(host_runner: HostRunner) -> None:
    assert host_runner.sessions.step_session(PLAIN_STEP, is_alone=True) is host_runner.sessions.step_session(PLAIN_STEP)


def test_lanes_that_need_a_step_at_once_load_it_once(tiny_bundle: Bundle) -> None:
    runner, form = open_host_runner(tiny_bundle), StepForm(shares_slots=True)

    with ThreadPoolExecutor(4) as lanes:
        sessions = list(lanes.map(runner.sessions.step_session, [form] * 4))

    assert len(set(map(id, sessions))) == 1


def test_a_step_that_was_never_needed_is_not_loaded(copied: Bundle, tmp_path: Path) -> None:
    (tmp_path / "cpu-fp32" / StepForm(shares_slots=True).file).write_bytes(b"no graph")
    runner = open_host_runner(copied)
    decoder = runner.open_decoder(StepKind.PLAIN, max_rows=2)
    admit(runner, decoder, 0, 5)
    decoder.step(StepInputs(np.array([2]), np.zeros(1, np.int32), np.array([5], np.int32), 1))

    decoder.move(RowMoves([1], [0], [0]), 1)
    decoder.reserve(2, 1, 5)
    with pytest.raises(BundleError, match=r"decoder_step_shared.onnx: ONNX Runtime cannot load it"):
        decoder.step(StepInputs(np.array([2, 2]), np.zeros(2, np.int32), np.array([5, 5], np.int32), 1))
    with pytest.raises(BundleError, match=r"decoder_step_shared.onnx: ONNX Runtime cannot load it"):
        runner.sessions.load_steps()


@pytest.mark.skipif("CUDAExecutionProvider" in onnxruntime.get_available_providers(), reason="needs the CPU build")
def test_device_that_this_build_lacks_is_a_settings_error(tiny_bundle: Bundle) -> None:
    with pytest.raises(SettingsError, match=r"has no CUDAExecutionProvider: install babelserve\[gpu\]"):
        open_runner(tiny_bundle, "cuda-fp16", "cuda")


def test_graph_that_onnx_runtime_cannot_load_is_a_bundle_error(copied: Bundle, tmp_path: Path) -> None:
    (tmp_path / "cpu-fp32" / "encoder.onnx").write_bytes(b"no graph")

    with pytest.raises(BundleError, match=r"encoder.onnx: ONNX Runtime cannot load it"):
        open_host_runner(copied)


@pytest.mark.parametrize("offset", [-1, 10**9])
def test_an_embedding_that_is_not_there_is_a_bundle_error(tiny_bundle: Bundle, offset: int) -> None:
    variant = dataclasses.replace(tiny_bundle.manifest.variants["cpu-fp32"], embedding_offset=offset)
    manifest = dataclasses.replace(tiny_bundle.manifest, variants={"cpu-fp32": variant})

    with pytest.raises(BundleError, match=rf"weights\.bin: has no token embedding \(700, 32\) at {offset}"):
        open_host_runner(dataclasses.replace(tiny_bundle, manifest=manifest))


def test_the_embedding_that_the_server_maps_is_the_one_that_counts(copied: Bundle, tmp_path: Path) -> None:
    facts, sizes = copied.manifest.variants["cpu-fp32"], copied.manifest.dimensions
    shape = (sizes.vocab_size, sizes.d_model)
    table = np.memmap(tmp_path / "cpu-fp32" / "weights.bin", facts.dtype, "r+", facts.embedding_offset, shape)
    runner = open_host_runner(copied)
    before = encode_one(runner, 4)

    table[20] = -table[20]  # the first token of the sentence

    assert not np.allclose(encode_one(runner, 4)[0], before[0], atol=0.01)


@pytest.mark.parametrize("variant", ["cpu-fp32", "cpu-int8", "cuda-fp16"])
def test_the_embedding_is_mapped_not_read(tiny_bundle: Bundle, variant: str) -> None:
    sessions, sizes = Sessions(tiny_bundle, variant, "cpu", 1, 1), tiny_bundle.manifest.dimensions

    assert isinstance(sessions.embedding, np.memmap)
    assert sessions.embedding.shape == (sizes.vocab_size, sizes.d_model)
    assert sessions.embedding.dtype == VARIANTS[variant].dtype


def test_a_step_is_loaded_once_for_each_number_of_threads(tiny_bundle: Bundle) -> None:
    sessions = Sessions(tiny_bundle, "cpu-fp32", "cpu", 1, 2)

    beside, alone = (sessions.step_session(PLAIN_STEP, is_alone) for is_alone in (False, True))

    assert beside is sessions.step_session(PLAIN_STEP)
    assert alone is sessions.step_session(PLAIN_STEP, is_alone=True)
    assert [session.get_session_options().intra_op_num_threads for session in (beside, alone)] == [1, 2]


def test_a_graph_that_is_neither_encoder_nor_step_is_loaded_as_it_is(copied: Bundle, tmp_path: Path) -> None:
    sessions = Sessions(copied, "cpu-fp32", "cpu", 1, 1)
    (tmp_path / "cpu-fp32" / "other.onnx").write_bytes((tmp_path / "cpu-fp32" / "encoder.onnx").read_bytes())

    assert [tensor.name for tensor in sessions.load("other.onnx").get_inputs()] == ["source_ids", "source_lengths"]
    with pytest.raises(BundleError, match=r"missing.onnx: ONNX Runtime cannot load it"):
        sessions.load("missing.onnx")
