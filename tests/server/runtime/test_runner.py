"""The network of the tiny bundle."""

import numpy as np
import pytest

from server.bundle.bundle import Bundle
from server.bundle.graphs import cache_outputs
from server.errors import BundleError
from server.network import StepInputs, StepKind
from server.runtime.runner import DeviceRunner, HostRunner, open_runner
from tests.server.runtime.conftest import admit, encode_one, with_file


def test_encoder_returns_a_key_and_a_value_per_layer(host_runner: HostRunner) -> None:
    encoded = encode_one(host_runner, 7)

    assert [tensor.shape for tensor in encoded] == [(1, 4, 7, 8)] * 4


def test_what_pads_a_sentence_does_not_matter(host_runner: HostRunner) -> None:
    lengths = np.array([3, 6], np.int32)
    source_ids = np.array([[20, 21, 3, 0, 0, 0], [22, 23, 24, 25, 26, 3]])
    other = source_ids.copy()
    other[0, 3:] = 99

    for a, b in zip(*(host_runner.encode(ids, lengths) for ids in (source_ids, other)), strict=True):
        np.testing.assert_array_equal(a[0, :, :3], b[0, :, :3])


@pytest.mark.parametrize(
    ("variant", "kind"), [("cpu-fp32", HostRunner), ("cpu-int8", HostRunner), ("cuda-fp16", DeviceRunner)]
)
def test_the_variant_says_whose_memory_the_caches_are_in(tiny_bundle: Bundle, variant: str, kind: type) -> None:
    runner = open_runner(tiny_bundle, variant, "cpu")

    assert type(runner) is kind
    assert runner.dimensions == tiny_bundle.manifest.dimensions


def test_a_device_runner_opens_only_with_a_graph_that_copies_rows(tiny_bundle: Bundle) -> None:
    encoder = tiny_bundle.read("cuda-fp16/encoder.onnx")

    with pytest.raises(BundleError, match=r"copy_rows\.onnx: the graph lacks input from\n"):
        open_runner(with_file(tiny_bundle, "cuda-fp16/copy_rows.onnx", encoder), "cuda-fp16", "cpu")


def test_each_decoder_has_a_cache_of_its_own(host_runner: HostRunner) -> None:
    first, second = (host_runner.open_decoder(StepKind.PLAIN, max_rows=1) for _ in range(2))
    admit(host_runner, first, 0, 5)

    assert first.cache.slots.num_rows == 1
    assert second.cache.slots.num_rows == 0
    assert not any(tensor.any() for tensor in second.cache.cross_attention)


def test_logits_for_proofs_are_those_that_the_decoder_chooses_by(host_runner: HostRunner) -> None:
    length = 5
    decoder = host_runner.open_decoder(StepKind.PLAIN, max_rows=1)
    admit(host_runner, decoder, 0, length)
    ids, past, lengths = np.array([2]), np.zeros(1, np.int32), np.array([length], np.int32)
    sizes = host_runner.dimensions
    self_attention = [np.zeros((1, sizes.num_heads, 1, sizes.head_dim), np.float32)] * 2 * sizes.decoder_layers
    caches = dict(
        zip(
            cache_outputs(host_runner.sessions.states, sizes.decoder_layers),
            [*self_attention, *encode_one(host_runner, length)],
            strict=True,
        )
    )

    logits, *written = (output.astype(float) for output in host_runner.step_logits(ids, past, lengths, caches))
    top_ids, values = decoder.step(StepInputs(ids, past, lengths, 8, with_log_probs=False))

    assert logits.shape == (1, sizes.vocab_size)
    assert np.argsort(-logits[0])[:8].tolist() == top_ids[0].tolist()
    np.testing.assert_allclose(np.sort(logits[0])[::-1][:8], values[0], atol=1e-5)  # float32, other buffers
    for tensor, cached in zip(written, decoder.cache.states, strict=True):
        np.testing.assert_allclose(tensor[:, :, :1], cached[:1, :, :1].astype(float), atol=1e-5)
