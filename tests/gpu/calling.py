"""Calls of a live server by many callers at once, some of which lose interest, counted by how they ended."""

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

import grpc

from babelserve.v1.translation_pb2 import DecodingOptions, TranslateRequest
from babelserve.v1.translation_pb2_grpc import TranslationServiceStub
from tests.acceptance.calls import open_stub
from tests.acceptance.server_process import BUILTIN_BUNDLE, ServerProcess

CALLERS = 32
_ROUND = 4 * CALLERS  # calls over one connection
_BEAM_SIZES = (1, 1, 1, 4)
_TIMEOUT_SECONDS = 30.0  # after which a server that hangs has ended itself
_PATIENCE_SECONDS = 0.005  # before a call is cancelled: some steps on a GPU
BAD_ANSWER = "bad answer"


def server_flags(device: str) -> list[str]:
    """Returns how the built-in model is served: as cuda-fp16, or on a CPU as cpu-int8."""
    return ["--bundle", str(BUILTIN_BUNDLE), "--variant", {"cuda": "cuda-fp16", "cpu": "cpu-int8"}[device]]


def call(server: ServerProcess, sentences: Sequence[str], count: int, cancel_every: int = 0) -> Counter[str]:
    """Makes so many calls of a sentence each, by `CALLERS` at once; returns how many ended with each status.

    Args:
        server: to call.
        sentences: taken in turn.
        count: of the calls.
        cancel_every: calls of which one is cancelled, soon after it has begun; 0 for none.
    """
    return _call(server, sentences, range(count), cancel_every)


def call_for(server: ServerProcess, sentences: Sequence[str], seconds: float, cancel_every: int = 0) -> Counter[str]:
    """The same for so many seconds, however many calls it takes."""
    end = time.monotonic() + seconds
    found = Counter[str]()
    rounds = 0
    while time.monotonic() < end:
        first = rounds * _ROUND
        found += _call(server, sentences, range(first, first + _ROUND), cancel_every)
        rounds += 1
    return found


def _call(server: ServerProcess, sentences: Sequence[str], indices: Iterable[int], cancel_every: int) -> Counter[str]:
    with open_stub(server.address) as stub, ThreadPoolExecutor(CALLERS) as pool:

        def one(index: int) -> str:
            is_cancelled = bool(cancel_every) and index % cancel_every == 0
            beam_size = _BEAM_SIZES[index % len(_BEAM_SIZES)]
            return _status(stub, sentences[index % len(sentences)], beam_size, is_cancelled)

        return Counter(pool.map(one, indices))


def _status(stub: TranslationServiceStub, sentence: str, beam_size: int, is_cancelled: bool) -> str:
    request = TranslateRequest(
        contents=[sentence],
        source_language_code="en",
        target_language_code="de",
        decoding=DecodingOptions(beam_size=beam_size),
    )
    answer = stub.Translate.future(request, timeout=_TIMEOUT_SECONDS)
    try:
        [translation] = answer.result(_PATIENCE_SECONDS if is_cancelled else None).translations
    except grpc.FutureTimeoutError:
        answer.cancel()
        return str(answer.code().name)
    except grpc.RpcError as error:
        return str(error.code().name)
    return "OK" if translation.text and not translation.status.code else BAD_ANSWER
