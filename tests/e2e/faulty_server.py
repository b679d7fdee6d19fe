"""A real server whose decoder steps go wrong on SIGUSR1: `python -m tests.e2e.faulty_server FAULT WHOSE FLAG...`.

FAULT is one of `FAULTS`; WHOSE is "all", or "one" for the lane that steps next alone, which its replacement is not.
What the supervisor waits for is made short.
"""

import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from server.__main__ import main
from server.models import supervisor
from server.runtime import host_decoder
from tests.server.engine.parts import Stepped

HANG_SECONDS = 2.0
CANARY_SECONDS = 1.0
LOST = (
    "[ONNXRuntimeError] : 1 : FAIL : CUDA failure 700: an illegal memory access was encountered ; GPU=0 ; hostname=host"
)


def lose_device(_: Stepped) -> NoReturn:
    raise RuntimeError(LOST)


def die(_: Stepped) -> NoReturn:
    raise SystemExit


def hang(_: Stepped) -> NoReturn:
    while True:
        time.sleep(3600)


def lie(stepped: Stepped) -> Stepped:
    """As constant logits do: whatever was asked, the same tokens are the best ones."""
    ids, log_probs = stepped
    ids[:] = np.arange(42, 42 + ids.shape[1])
    return ids, log_probs


FAULTS: dict[str, Callable[[Stepped], Stepped]] = {each.__name__: each for each in (lose_device, die, hang, lie)}


def spoil(fault: Callable[[Stepped], Stepped], *, is_for_all: bool) -> None:
    """Makes steps go wrong from the signal on."""
    is_on, victims = threading.Event(), list[threading.Thread]()
    step: Any = host_decoder._BoundStep.run

    def run(self: object, controls: dict[str, Any]) -> Stepped:
        stepped: Stepped = step(self, controls)
        thread = threading.current_thread()
        if is_on.is_set() and not victims:
            victims.append(thread)
        is_victim = is_for_all or thread in victims
        return fault(stepped) if is_on.is_set() and is_victim else stepped

    host_decoder._BoundStep.run = run  # type: ignore[method-assign]
    signal.signal(signal.SIGUSR1, lambda *_: is_on.set())


if __name__ == "__main__":
    name, whose, *flags = sys.argv[1:]
    supervisor._HANG_SECONDS = HANG_SECONDS
    supervisor._CANARY_SECONDS = supervisor._IDLE_CANARY_SECONDS = CANARY_SECONDS
    spoil(FAULTS[name], is_for_all=whose == "all")
    sys.exit(main(flags))
