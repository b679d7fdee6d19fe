"""How translations are searched for, from messages."""

import pytest

from babelserve.v1 import translation_pb2 as pb
from server.api.decoding_messages import read_decoding
from server.decoding.options import Sampling
from server.translation.request import DecodingRequest

SINGULAR = [field.name for field in pb.DecodingOptions.DESCRIPTOR.fields if field.name not in ("suppress", "sampling")]


@pytest.mark.parametrize("name", SINGULAR)
def test_a_zero_is_not_what_is_absent(name: str) -> None:
    assert getattr(read_decoding(pb.DecodingOptions(**{name: 0})), name) == 0  # type: ignore[arg-type]
    assert getattr(read_decoding(pb.DecodingOptions()), name) is None


def test_nothing_asks_for_nothing() -> None:
    assert read_decoding(pb.DecodingOptions()) == DecodingRequest()


def test_phrases_and_sampling_are_read() -> None:
    sampling = pb.Sampling(top_k=5, top_p=0.5, temperature=0.25, seed=2**64 - 1)
    message = pb.DecodingOptions(suppress=["a", "b c"], sampling=sampling)

    asked = Sampling(top_k=5, top_p=0.5, temperature=0.25, seed=2**64 - 1)
    assert read_decoding(message) == DecodingRequest(suppress=("a", "b c"), sampling=asked)


def test_zeros_of_sampling_are_not_its_defaults() -> None:
    read = read_decoding(pb.DecodingOptions(sampling=pb.Sampling(top_p=0, temperature=0, seed=0))).sampling

    assert read == Sampling(top_p=0, temperature=0, seed=0)


def test_sampling_without_a_seed_gets_another_one_each_time() -> None:
    seeds = {read_decoding(pb.DecodingOptions(sampling=pb.Sampling())).sampling for _ in range(3)}

    assert len(seeds) == 3
    assert {each.temperature for each in seeds if each} == {1.0}
