import dataclasses
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from server.bundle import Bundle
from server.errors import BundleError, SettingsError
from server.runner import OrtRunner


@pytest.fixture(scope="module")
def runner(tiny_bundle: Bundle) -> OrtRunner:
    return OrtRunner(tiny_bundle, "cpu-fp32", "cpu")


def encode_one(runner: OrtRunner, length: int) -> list[np.ndarray]:
    source_ids = np.arange(20, 20 + length, dtype=np.int64)[None]
    return runner.encode(source_ids, np.array([length], np.int32))


def test_encoder_returns_a_key_and_a_value_per_layer(runner: OrtRunner) -> None:
    encoded = encode_one(runner, 7)

    assert [tensor.shape for tensor in encoded] == [(1, 4, 7, 8)] * 4


def test_what_pads_a_sentence_does_not_matter(runner: OrtRunner) -> None:
    lengths = np.array([3, 6], np.int32)
    source_ids = np.array([[20, 21, 3, 0, 0, 0], [22, 23, 24, 25, 26, 3]])
    other = source_ids.copy()
    other[0, 3:] = 99

    for a, b in zip(runner.encode(source_ids, lengths), runner.encode(other, lengths), strict=True):
        np.testing.assert_array_equal(a[0, :, :3], b[0, :, :3])


def test_step_takes_another_number_of_candidates_on_the_same_rows(runner: OrtRunner) -> None:
    """A binding keeps the shape of its first output; greedy alone, then a beam alone, once failed."""
    decoder = runner.open_decoder(max_rows=2)
    decoder.cache.admit(0, encode_one(runner, 5), 0, 5)
    past, source = np.zeros(1, np.int32), np.array([5], np.int32)

    ids = [decoder.step(np.array([2]), past, source, top_k)[0] for top_k in (1, 8, 32, 1)]

    assert [chosen.shape for chosen in ids] == [(1, 1), (1, 8), (1, 32), (1, 1)]
    np.testing.assert_array_equal(ids[2][:, :8], ids[1])
    np.testing.assert_array_equal(ids[1][:, :1], ids[0])


def test_step_writes_its_position_of_the_cache_and_no_other(runner: OrtRunner) -> None:
    decoder = runner.open_decoder(max_rows=3)
    for row in range(3):
        decoder.cache.admit(row, encode_one(runner, 5), 0, 5)
    past = np.array([0, 4], np.int32)

    decoder.step(np.array([2, 7]), past, np.array([5, 5], np.int32), 1)

    written = np.abs(decoder.cache.self_attention).sum(axis=(0, 2, 4)) > 0  # [rows, positions]
    assert np.argwhere(written).tolist() == [[0, 0], [1, 4]]


def test_step_follows_the_cache_to_a_new_buffer(runner: OrtRunner) -> None:
    decoder = runner.open_decoder(max_rows=1)
    decoder.cache.admit(0, encode_one(runner, 5), 0, 5)
    source = np.array([5], np.int32)
    first, _ = decoder.step(np.array([2]), np.zeros(1, np.int32), source, 4)
    decoder.cache.reserve(1, 100, 5)

    again, _ = decoder.step(np.array([2]), np.zeros(1, np.int32), source, 4)

    np.testing.assert_array_equal(first, again)


@pytest.mark.skipif("CUDAExecutionProvider" in onnxruntime.get_available_providers(), reason="needs the CPU build")
def test_device_that_this_build_lacks_is_a_settings_error(tiny_bundle: Bundle) -> None:
    with pytest.raises(SettingsError, match=r"has no CUDAExecutionProvider: install babelserve\[gpu\]"):
        OrtRunner(tiny_bundle, "cuda-fp16", "cuda")


def test_graph_that_onnx_runtime_cannot_load_is_a_bundle_error(tiny_bundle: Bundle, tmp_path: Path) -> None:
    (tmp_path / "cpu-fp32").mkdir()
    (tmp_path / "cpu-fp32" / "encoder.onnx").write_bytes(b"no graph")

    with pytest.raises(BundleError, match=r"encoder.onnx: ONNX Runtime cannot load it"):
        OrtRunner(dataclasses.replace(tiny_bundle, directory=tmp_path), "cpu-fp32", "cpu")


def test_graph_with_other_names_is_a_bundle_error(tiny_bundle: Bundle, tmp_path: Path) -> None:
    bundle = dataclasses.replace(tiny_bundle, directory=tmp_path)
    (tmp_path / "cpu-fp32").mkdir()
    for path in (tiny_bundle.directory / "cpu-fp32").iterdir():
        (tmp_path / "cpu-fp32" / path.name).write_bytes(path.read_bytes())
    graph = onnx.load(tmp_path / "cpu-fp32" / "encoder.onnx", load_external_data=False)
    for node in graph.graph.node:
        node.output[:] = ["cross_query.0" if name == "cross_key.0" else name for name in node.output]
    graph.graph.output[0].name = "cross_query.0"
    onnx.save(graph, tmp_path / "cpu-fp32" / "encoder.onnx")

    with pytest.raises(BundleError, match=r"the graph lacks output cross_key.0"):
        OrtRunner(bundle, "cpu-fp32", "cpu")


def test_graph_of_other_dimensions_is_a_bundle_error(tiny_bundle: Bundle) -> None:
    manifest = tiny_bundle.manifest
    wide = dataclasses.replace(manifest.dimensions, num_heads=2, head_dim=16)
    bundle = dataclasses.replace(tiny_bundle, manifest=dataclasses.replace(manifest, dimensions=wide))

    with pytest.raises(BundleError, match=r"self_key.0 has heads x width 4 x 8, the manifest says \(2, 16\)"):
        OrtRunner(bundle, "cpu-fp32", "cpu")
