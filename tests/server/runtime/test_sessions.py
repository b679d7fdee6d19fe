"""The sessions of the tiny bundle on ONNX Runtime: which are loaded, when, and what is said if one cannot be."""

import ctypes
import dataclasses
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from server.bundle.bundle import Bundle, open_bundle
from server.bundle.graphs import EMBEDDING, PLAIN_STEP, StepForm
from server.bundle.variants import VARIANTS
from server.errors import BundleError, SettingsError
from server.runtime.runner import HostRunner, open_runner
from server.runtime.sessions import Sessions
from tests.runners import open_host_runner
from tests.server.runtime.conftest import encode_one, with_file

SHARED_STEP = StepForm(shares_slots=True)


def copy_of(content: bytes) -> bytes:
    """The same bytes at another place, which nobody else holds."""
    return bytes(bytearray(content))


def test_one_session_serves_where_a_lane_alone_has_no_more_threads(host_runner: HostRunner) -> None:
    assert host_runner.sessions.step_session(PLAIN_STEP, is_alone=True) is host_runner.sessions.step_session(PLAIN_STEP)


@pytest.mark.parametrize("has_dot_product", [True, False])
def test_weights_are_taken_as_unsigned_only_without_int8_dot_products(
    tiny_bundle: Bundle, monkeypatch: pytest.MonkeyPatch, has_dot_product: bool
) -> None:
    monkeypatch.setattr("server.runtime.sessions.has_int8_dot_product", lambda: has_dot_product)
    options = open_host_runner(tiny_bundle).sessions.encoder.get_session_options()

    if has_dot_product:  # there it would double the time of every product
        with pytest.raises(RuntimeError):
            options.get_session_config_entry("session.x64quantprecision")
    else:
        assert options.get_session_config_entry("session.x64quantprecision") == "1"


@pytest.mark.parametrize("file", ["encoder.onnx", "decoder_step.onnx"])
def test_a_graph_that_every_search_needs_is_loaded_at_once(tiny_bundle: Bundle, file: str) -> None:
    with pytest.raises(BundleError, match=f"{file}: it is no ONNX graph"):
        open_host_runner(with_file(tiny_bundle, f"cpu-fp32/{file}", b"no graph"))


def test_a_step_that_cannot_be_loaded_is_a_fault_when_it_is_needed(tiny_bundle: Bundle) -> None:
    sessions = open_host_runner(with_file(tiny_bundle, f"cpu-fp32/{SHARED_STEP.file}", b"no graph")).sessions

    with pytest.raises(BundleError, match=rf"{SHARED_STEP.file}: it is no ONNX graph"):
        sessions.step_session(SHARED_STEP)


def test_lanes_that_need_a_step_at_once_load_it_once(tiny_bundle: Bundle) -> None:
    runner = open_host_runner(tiny_bundle)

    with ThreadPoolExecutor(4) as lanes:
        sessions = list(lanes.map(runner.sessions.step_session, [SHARED_STEP] * 4))

    assert len(set(map(id, sessions))) == 1


def test_weights_stay_for_as_long_as_sessions_read_them_and_no_longer(tiny_bundle: Bundle) -> None:
    weights = copy_of(tiny_bundle.read("cpu-fp32/weights.bin"))
    num_holders = sys.getrefcount(weights)
    sessions = Sessions(with_file(tiny_bundle, "cpu-fp32/weights.bin", weights), "cpu-fp32", "cpu", 1, 1)
    sessions.step_session(SHARED_STEP)

    assert sys.getrefcount(weights) > num_holders
    del sessions
    assert sys.getrefcount(weights) == num_holders


def test_a_graph_has_no_weights_but_those_that_were_verified(tiny_bundle: Bundle, tmp_path: Path) -> None:
    graph = onnx.load_from_string(tiny_bundle.read("cpu-fp32/encoder.onnx"))
    for entry in (entry for tensor in graph.graph.initializer for entry in tensor.external_data):
        if entry.key == "location":
            entry.value = str(tmp_path / "weights.bin")
    (tmp_path / "weights.bin").write_bytes(tiny_bundle.read("cpu-fp32/weights.bin"))

    with pytest.raises(BundleError, match=r"encoder.onnx: .* is in another file than weights.bin"):
        open_host_runner(with_file(tiny_bundle, "cpu-fp32/encoder.onnx", graph.SerializeToString()))


def test_sessions_depend_on_no_file_once_the_bundle_is_open(tiny_bundle: Bundle, tmp_path: Path) -> None:
    copy = shutil.copytree(tiny_bundle.directory, tmp_path / "copy")
    runner = open_host_runner(open_bundle(copy, "cpu-fp32"))
    before = encode_one(runner, 4)
    for path in (copy / "cpu-fp32").iterdir():
        path.write_bytes(b"")

    np.testing.assert_array_equal(encode_one(runner, 4)[0], before[0])
    assert runner.sessions.step_session(SHARED_STEP)


@pytest.mark.skipif("CUDAExecutionProvider" in onnxruntime.get_available_providers(), reason="needs the CPU build")
def test_device_that_this_build_lacks_is_a_settings_error(tiny_bundle: Bundle) -> None:
    with pytest.raises(SettingsError, match=r"has no CUDAExecutionProvider: install babelserve\[gpu\]"):
        open_runner(tiny_bundle, "cuda-fp16", "cuda")


@pytest.mark.parametrize("offset", [-1, 10**9])
def test_an_embedding_that_is_not_there_is_a_bundle_error(tiny_bundle: Bundle, offset: int) -> None:
    variant = dataclasses.replace(tiny_bundle.manifest.variants["cpu-fp32"], embedding_offset=offset)
    manifest = dataclasses.replace(tiny_bundle.manifest, variants={"cpu-fp32": variant})

    with pytest.raises(BundleError, match=rf"weights\.bin: has no token embedding \(700, 32\) at {offset}"):
        open_host_runner(dataclasses.replace(tiny_bundle, manifest=manifest))


def test_sessions_read_the_embedding_where_it_was_verified(tiny_bundle: Bundle) -> None:
    weights = copy_of(tiny_bundle.read("cpu-fp32/weights.bin"))
    runner = open_host_runner(with_file(tiny_bundle, "cpu-fp32/weights.bin", weights))
    before = encode_one(runner, 4)

    first_token = runner.sessions.embedding[20]
    ctypes.memset(first_token.ctypes.data, 0, first_token.nbytes)

    assert not np.allclose(encode_one(runner, 4)[0], before[0], atol=0.01)


@pytest.mark.parametrize("file", ["encoder.onnx", "decoder_step.onnx"])
@pytest.mark.parametrize(
    "change",
    [
        {"dims": (701, 32)},
        {"length": 4},
        {"offset": -4096},
        {"offset": 10**9},
        {"offset": 2**63 - 4096},
    ],
)
def test_a_graph_that_would_read_what_is_not_its_weights_is_not_loaded(
    tiny_bundle: Bundle, file: str, change: dict[str, Any]
) -> None:
    graph = onnx.load_from_string(tiny_bundle.read(f"cpu-fp32/{file}"))
    (tensor,) = (tensor for tensor in graph.graph.initializer if tensor.name == EMBEDDING)
    for name, value in change.items():
        if name == "dims":
            tensor.dims[:] = value
        else:
            (entry,) = (entry for entry in tensor.external_data if entry.key == name)
            entry.value = str(value)

    with pytest.raises(BundleError, match=rf"{file}: '{EMBEDDING}' (is|ends)"):
        open_host_runner(with_file(tiny_bundle, f"cpu-fp32/{file}", graph.SerializeToString()))


@pytest.mark.parametrize("variant", ["cpu-fp32", "cpu-int8", "cuda-fp16"])
def test_the_embedding_is_the_part_of_the_weights_that_the_manifest_says(tiny_bundle: Bundle, variant: str) -> None:
    sessions, sizes = Sessions(tiny_bundle, variant, "cpu", 1, 1), tiny_bundle.manifest.dimensions
    offset = tiny_bundle.manifest.variants[variant].embedding_offset

    table = sessions.embedding
    assert table.shape == (sizes.vocab_size, sizes.d_model)
    assert table.dtype == VARIANTS[variant].dtype
    assert tiny_bundle.read(f"{variant}/weights.bin")[offset : offset + table.nbytes] == table.tobytes()


def test_a_step_is_loaded_once_for_each_number_of_threads(tiny_bundle: Bundle) -> None:
    sessions = Sessions(tiny_bundle, "cpu-fp32", "cpu", 1, 2)

    beside, alone = (sessions.step_session(PLAIN_STEP, is_alone) for is_alone in (False, True))

    assert beside is sessions.step_session(PLAIN_STEP)
    assert alone is sessions.step_session(PLAIN_STEP, is_alone=True)
    assert [session.get_session_options().intra_op_num_threads for session in (beside, alone)] == [1, 2]
