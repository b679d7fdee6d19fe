"""Reads how translations are searched for."""

import secrets
from typing import Any

from babelserve.v1 import translation_pb2 as pb
from server.decoding.options import Sampling
from server.translation.request import DecodingRequest

_FIELDS: tuple[Any, ...] = (
    "beam_size",
    "num_hypotheses",
    "length_penalty",
    "max_output_tokens",
    "with_scores",
    "use_shortlist",
    "repetition_penalty",
    "no_repeat_ngram_size",
    "min_output_tokens",
    "patience",
    "end_loops",
    "return_alternatives",
    "min_alternative_expansion_prob",
    "prefix_bias_beta",
    "min_length_ratio",
    "max_length_ratio",
    "coverage_penalty",
    "exact_tokens",
    "ratio",
)
_SAMPLING_FIELDS: tuple[Any, ...] = ("top_k", "top_p", "temperature", "seed")


def read_decoding(message: pb.DecodingOptions) -> DecodingRequest:
    """Returns what a message asks for. Sampling without a seed gets one."""
    given: dict[str, Any] = {name: getattr(message, name) for name in _FIELDS if message.HasField(name)}
    sampling = _read_sampling(message.sampling) if message.HasField("sampling") else None
    return DecodingRequest(**given, sampling=sampling, suppress=tuple(message.suppress))


def _read_sampling(message: pb.Sampling) -> Sampling:
    given = {name: getattr(message, name) for name in _SAMPLING_FIELDS if message.HasField(name)}
    return Sampling(**{"seed": secrets.randbits(64)} | given)
