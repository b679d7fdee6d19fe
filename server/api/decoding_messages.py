"""Reads how translations are searched for."""

import secrets
from typing import Any

from google.protobuf.message import Message

from babelserve.v1 import translation_pb2 as pb
from server.decoding.options import Sampling
from server.translation.request import DecodingRequest
from server.translation.rules import MAX_PHRASES, check_range


def read_decoding(message: pb.DecodingOptions) -> DecodingRequest:
    """Returns what a message asks for. Sampling without a seed gets one.

    Raises:
        InvalidRequest: it has too many phrases.
    """
    check_range("decoding.suppress", len(message.suppress), 0, MAX_PHRASES, " phrases")
    given = _given(message)
    if "sampling" in given:
        given["sampling"] = Sampling(**{"seed": secrets.randbits(64)} | _given(message.sampling))
    return DecodingRequest(**given | {"suppress": tuple(message.suppress)})


def _given(message: Message) -> dict[str, Any]:
    """Returns the fields that a message has, by their names; zeros that are set are among them."""
    return {field.name: value for field, value in message.ListFields()}
