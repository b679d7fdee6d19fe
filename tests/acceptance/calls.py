"""Calls of a live server through the generated stub, and the sentences that they translate."""

import gzip
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc

from babelserve.v1.translation_pb2 import DecodingOptions, OutputOptions, TranslateRequest, Translation
from babelserve.v1.translation_pb2_grpc import TranslationServiceStub

# 200 lines of Multi30k's English validation set, drawn once.
DEFAULT_SENTENCES = Path(__file__).resolve().parents[1] / "data" / "multi30k_val_200.en.txt"

_CALL_TIMEOUT_SECONDS = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Languages:
    """The language pair that the tools ask for."""

    source: str = "en"
    target: str = "de"


@contextmanager
def open_stub(address: str) -> Iterator[TranslationServiceStub]:
    """Connects to a server without TLS.

    Args:
        address: `host:port`.

    Yields:
        The stub; its connection closes with the block.
    """
    unlimited = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    with grpc.insecure_channel(address, options=unlimited) as channel:
        yield TranslationServiceStub(channel)


def read_sentences(path: Path, limit: int) -> list[str]:
    """Reads lines that are not blank.

    Args:
        path: A UTF-8 text, gzipped if its name ends with .gz.
        limit: Most lines to take.

    Returns:
        The lines without their line breaks.
    """
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    lines = [line.strip() for line in text.decode("utf-8").split("\n")]
    return [line for line in lines if line][:limit]


def translate(
    stub: TranslationServiceStub, contents: Sequence[str], languages: Languages, *, beam_size: int
) -> list[Translation]:
    """Translates texts in one call.

    Args:
        stub: The server.
        contents: The texts.
        languages: From and to.
        beam_size: 1 (greedy search) or more.

    Returns:
        What the server answered, with its sentences.

    Raises:
        grpc.RpcError: It answered with an error.
    """
    request = TranslateRequest(
        contents=contents,
        source_language_code=languages.source,
        target_language_code=languages.target,
        decoding=DecodingOptions(beam_size=beam_size),
        output=OutputOptions(include_sentences=True),
    )
    return list(stub.Translate(request, timeout=_CALL_TIMEOUT_SECONDS).translations)


def translate_concurrently(
    stub: TranslationServiceStub, calls: Sequence[tuple[Sequence[str], int]], languages: Languages, *, callers: int
) -> list[list[Translation] | grpc.RpcError]:
    """Makes calls from several threads, each its next one when its last is answered.

    Args:
        stub: The server.
        calls: Texts and beam size of each.
        languages: From and to.
        callers: Number of threads.

    Returns:
        For each call what came back, or its error.
    """

    def call(contents: Sequence[str], beam_size: int) -> list[Translation] | grpc.RpcError:
        try:
            return translate(stub, contents, languages, beam_size=beam_size)
        except grpc.RpcError as error:
            return error

    with ThreadPoolExecutor(callers) as pool:
        return list(pool.map(lambda arguments: call(*arguments), calls))
