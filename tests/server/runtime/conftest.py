"""The tiny bundle's network with caches in host memory, and sentences for it."""

import dataclasses

import numpy as np
import pytest

from server.bundle.bundle import Bundle
from server.network import Encoded
from server.runtime.host_decoder import HostDecoder
from server.runtime.runner import HostRunner
from tests.runners import open_host_runner


@pytest.fixture(scope="session")
def host_runner(tiny_bundle: Bundle) -> HostRunner:
    """cpu-fp32, for tests that change nothing of it."""
    return open_host_runner(tiny_bundle)


def with_file(bundle: Bundle, name: str, content: bytes) -> Bundle:
    """Returns a bundle that holds another file in the place of its own."""
    return dataclasses.replace(bundle, contents={**bundle.contents, name: content})


def encode_one(runner: HostRunner, length: int) -> Encoded:
    """Encodes a sentence of so many tokens: 20, 21, ..."""
    source_ids = np.arange(20, 20 + length, dtype=np.int64)[None]
    return runner.encode(source_ids, np.array([length], np.int32))


def admit(runner: HostRunner, decoder: HostDecoder, row: int, length: int) -> None:
    """Encodes that sentence and fills a row with it."""
    decoder.admit(row, encode_one(runner, length), [tuple(range(20, 20 + length))])


def field(number: int, content: bytes | int) -> bytes:
    """A field of a message as protobuf writes it: of bytes, or of a number below 128."""
    if isinstance(content, int):
        return bytes([number << 3, content])
    length, size = b"", len(content)
    while size > 127:
        length, size = length + bytes([size & 127 | 128]), size >> 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + content
