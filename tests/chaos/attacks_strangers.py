"""Honest callers beside an attack: how long they wait, how their calls end, and how much memory the server takes."""

import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import grpc

from babelserve.v1.translation_pb2 import DecodingOptions, TranslateRequest
from babelserve.v1.translation_pb2_grpc import TranslationServiceStub
from tests.chaos.observations import resident_mib

_CALLERS = 4
_DEADLINE_SECONDS = 10.0
_PAUSE_SECONDS = 0.02
_REQUEST = TranslateRequest(
    contents=["A dog runs through the grass."], target_language_code="de", decoding=DecodingOptions(beam_size=1)
)


@dataclass(slots=True)
class Figures:
    """What honest callers met.

    Attributes:
        seconds: of each call.
        codes: how calls ended.
        peak_mib: most resident memory of the server at any moment.
    """

    seconds: list[float] = field(default_factory=list)
    codes: Counter[str] = field(default_factory=Counter)
    peak_mib: float = 0.0

    @property
    def p95_ms(self) -> float:
        """95th percentile of the calls' milliseconds, failed ones included."""
        return 1000 * statistics.quantiles(self.seconds, n=20)[-1] if len(self.seconds) > 1 else float("nan")


def measure(address: str, pid: int, is_over: Callable[[], bool]) -> Figures:
    """Calls with short pauses from a few connections until `is_over`.

    Args:
        address: of the service, or its front.
        pid: of the server.
        is_over: asked again and again.
    """
    figures, end = Figures(), threading.Event()
    callers = [threading.Thread(target=_call, args=(address, figures, end)) for _ in range(_CALLERS)]
    for caller in callers:
        caller.start()
    while not is_over():
        figures.peak_mib = max(figures.peak_mib, resident_mib(pid))
        time.sleep(_PAUSE_SECONDS)
    end.set()
    for caller in callers:
        caller.join()
    return figures


def _call(address: str, figures: Figures, end: threading.Event) -> None:
    own = [("grpc.use_local_subchannel_pool", 1)]  # a connection of its own
    with grpc.insecure_channel(address, options=own) as channel:
        stub = TranslationServiceStub(channel)
        while not end.is_set():
            began = time.monotonic()
            code = "OK"
            try:
                stub.Translate(_REQUEST, timeout=_DEADLINE_SECONDS)
            except grpc.RpcError as error:
                code = error.code().name
            figures.seconds.append(time.monotonic() - began)
            figures.codes[code] += 1
            end.wait(_PAUSE_SECONDS)
