"""Faults put into a running server from outside: the launcher wraps its parts in the child's process.

The server's code has no hooks. SIGUSR1 makes the process read from a file which fault is to strike, and how often;
SIGUSR2 ends it.
"""

import enum
import itertools
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from server.api import handlers
from server.engine.dispatch import Dispatch
from server.engine.engine import Engine
from server.models.catalogue import Catalogue
from server.network import Encoded, StepInputs, StepKind
from server.runtime.onnx_runtime_errors import telling_failures_apart


class Point(enum.Enum):
    """Where a fault strikes."""

    ADMIT = "admit"  # the event loop gives a request to the engine
    SCHEDULE = "schedule"  # the lane takes who enters
    BEFORE_ENCODE = "before_encode"
    AFTER_ENCODE = "after_encode"
    BEFORE_STEP = "before_step"
    AFTER_STEP = "after_step"
    BEFORE_REPLY = "before_reply"  # the event loop puts the answer together
    SWAP_COMMIT = "swap_commit"  # the event loop has a version that is warm take over


class Action(enum.Enum):
    """What it does there."""

    RAISE = "raise"
    SLEEP = "sleep"  # for SLEEP_SECONDS
    KILL = "kill"  # kill -9 of the process
    CUDA = "cuda"  # the error after which a CUDA context is lost
    OOM = "oom"  # the error after which it is not
    NAN = "nan"  # in what the network returns, or before a step in its caches
    HANG = "hang"  # for ever
    PANIC = "panic"  # an exception that is no Exception, as of an extension in Rust
    CONSTANT = "constant"  # the same token for every row, with finite scores


SLEEP_SECONDS = 2.0
_ONNX_RUNTIME = "[ONNXRuntimeError] : 1 : FAIL : "
CUDA_MESSAGE = (
    f"{_ONNX_RUNTIME}Non-zero status code returned while running MatMul node. CUDA failure 700: an illegal"
    " memory access was encountered ; GPU=0 ; hostname=failpoint ; file=cuda_call.cc ; expr=cudaStreamSynchronize"
)
OOM_MESSAGE = (
    f"{_ONNX_RUNTIME}CUDA failure 2: out of memory ; GPU=0 ; hostname=failpoint ; file=cuda_call.cc ; expr=cudaMalloc"
)
VALUED = (Point.AFTER_ENCODE, Point.BEFORE_STEP, Point.AFTER_STEP)  # elsewhere integers, text and models go by
_CONSTANT_ID = 1000


class Panic(BaseException):
    """No Exception."""


class Faults:
    """The faults of a process: at most one at a time.

    Args:
        path: of the file that says which: a point, an action, how often, negative for without end, and a number N:
            the fault strikes the first of each N passes of its point.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._point: Point | None = None
        self.action = Action.RAISE
        self._left = 0
        self._passes = itertools.cycle([True])  # whether the fault strikes at the next pass

    def obey_signals(self) -> None:
        """Listens to SIGUSR1 and SIGUSR2."""
        signal.signal(signal.SIGUSR1, lambda *_: self._arm())
        signal.signal(signal.SIGUSR2, lambda *_: self._disarm())

    def strikes(self, point: Point) -> bool:
        """Says whether the fault strikes here and now, and counts it."""
        if point is not self._point or not self._left or not next(self._passes):
            return False
        self._left -= 1
        return True

    def hit(self, point: Point) -> None:
        """Does what is to be done at a point, unless it concerns values."""
        if self.action in _ACTIONS and self.strikes(point):
            _ACTIONS[self.action]()

    def _arm(self) -> None:
        point, action, times, every = self._path.read_text(encoding="utf-8").split()
        self._point, self.action, self._left = Point(point), Action(action), int(times)
        self._passes = itertools.cycle([True, *[False] * (int(every) - 1)])

    def _disarm(self) -> None:
        self._left = 0


class FaultyRunner:
    """A runner with the faults of `encode`, whose decoders have those of `step`."""

    def __init__(self, runner: Any, faults: Faults) -> None:
        self._runner = runner
        self._faults = faults

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runner, name)

    @telling_failures_apart  # as the runtime's own does: the failpoint stands in for ONNX Runtime
    def encode(self, *inputs: Any) -> Encoded:
        self._faults.hit(Point.BEFORE_ENCODE)
        encoded: Encoded = self._runner.encode(*inputs)
        self._faults.hit(Point.AFTER_ENCODE)
        if self._faults.action is Action.NAN and self._faults.strikes(Point.AFTER_ENCODE):
            return [np.full_like(tensor, np.nan) for tensor in encoded]
        return encoded

    def open_decoder(self, kind: StepKind, max_rows: int) -> "FaultyDecoder":
        return FaultyDecoder(self._runner.open_decoder(kind, max_rows), self._faults)


class FaultyDecoder:
    """A decoder with the faults of `step`."""

    def __init__(self, decoder: Any, faults: Faults) -> None:
        self._decoder = decoder
        self._faults = faults

    def __getattr__(self, name: str) -> Any:
        return getattr(self._decoder, name)

    @telling_failures_apart
    def step(self, inputs: StepInputs) -> Any:
        self._faults.hit(Point.BEFORE_STEP)
        if self._faults.action is Action.NAN and self._faults.strikes(Point.BEFORE_STEP):
            for tensor in self._decoder.cache.cross_attention:
                tensor[:] = np.nan
        ids, values = self._decoder.step(inputs)
        self._faults.hit(Point.AFTER_STEP)
        if self._faults.action is Action.NAN and self._faults.strikes(Point.AFTER_STEP):
            return ids, np.full_like(values, np.nan)
        if self._faults.action is Action.CONSTANT and self._faults.strikes(Point.AFTER_STEP):
            return _CONSTANT_ID + np.broadcast_to(np.arange(ids.shape[1]), ids.shape), values
        return ids, values


def install(faults: Faults) -> None:
    """Wraps what the launcher does not make itself, in this process."""
    _wrap(Engine, "submit", Point.ADMIT, faults)
    _wrap(Dispatch, "take", Point.SCHEDULE, faults)
    _wrap(handlers, "assemble", Point.BEFORE_REPLY, faults)
    _wrap(Catalogue, "put", Point.SWAP_COMMIT, faults)
    faults.obey_signals()


def _wrap(owner: object, name: str, point: Point, faults: Faults) -> None:
    inner = getattr(owner, name)

    def wrapped(*args: Any, **more: Any) -> Any:
        faults.hit(point)
        return inner(*args, **more)

    setattr(owner, name, wrapped)


def _raise(error: BaseException) -> None:
    raise error


_ACTIONS: dict[Action, Callable[[], object]] = {
    Action.RAISE: lambda: _raise(RuntimeError("a failpoint, with words that no client may read")),
    Action.SLEEP: lambda: time.sleep(SLEEP_SECONDS),
    Action.KILL: lambda: os.kill(os.getpid(), signal.SIGKILL),
    Action.CUDA: lambda: _raise(RuntimeError(CUDA_MESSAGE)),
    Action.OOM: lambda: _raise(RuntimeError(OOM_MESSAGE)),
    Action.HANG: lambda: threading.Event().wait(),
    Action.PANIC: lambda: _raise(Panic("a failpoint")),
}
