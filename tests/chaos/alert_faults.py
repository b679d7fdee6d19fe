"""For each alert that is shipped, a real fault for which it must fire: a server, and what is done to it."""

import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from server.settings.settings import BUILTIN
from tests.acceptance.model_swaps import put
from tests.acceptance.server_process import BUILTIN_BUNDLE, ServerProcess
from tests.certificates import Authority
from tests.chaos.failpoints import Action, Point
from tests.chaos.servers import BrokenServer, Spec, broken_server, replicas

CALM_RATE = 20.0  # calls a second
_PAUSE_SECONDS = 0.6  # for which a process is stopped, of each second


@dataclass(frozen=True, slots=True)
class Scene:
    """What Prometheus watches and callers call.

    Attributes:
        servers: as they are at the start.
        strike: begins the fault, on a thread of its own; it may last until the event is set.
    """

    servers: Sequence[ServerProcess]
    strike: Callable[[threading.Event], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A fault, and whom it calls.

    Attributes:
        name: what is done.
        expected: the alerts that must fire.
        scene: makes it.
        within: seconds until the server has noticed, and the alerts have lasted, at the scaled pace.
        allowed: alerts that may fire besides.
        rate: calls a second; 0 for none.
    """

    name: str
    expected: frozenset[str]
    scene: Callable[[], AbstractContextManager[Scene]]
    within: float = 5.0
    allowed: frozenset[str] = frozenset()
    rate: float = CALM_RATE


@contextmanager
def _struck(
    strike: Callable[[BrokenServer, threading.Event], None], spec: Spec | None = None, flags: Sequence[str] = ()
) -> Iterator[Scene]:
    with broken_server(spec, flags) as server:
        yield Scene([server.process], partial(strike, server))


def _armed(point: Point, action: Action, times: int, spec: Spec | None = None) -> AbstractContextManager[Scene]:
    return _struck(lambda server, _: server.arm(point, action, times), spec)


def _failing_each(seconds: float) -> AbstractContextManager[Scene]:
    """One reply fails every so many seconds."""

    def strike(server: BrokenServer, over: threading.Event) -> None:
        while not over.wait(seconds):
            server.arm(Point.BEFORE_REPLY, Action.RAISE)

    return _struck(strike)


def _nothing(spec: Spec) -> AbstractContextManager[Scene]:
    """The server itself is the fault."""
    return _struck(lambda *_: None, spec)


def _kill(server: BrokenServer, _: threading.Event) -> None:
    server.process.process.kill()


def _pause(server: BrokenServer, over: threading.Event) -> None:
    while not over.wait(1.0 - _PAUSE_SECONDS):
        os.kill(server.pid, signal.SIGSTOP)
        time.sleep(_PAUSE_SECONDS)
        os.kill(server.pid, signal.SIGCONT)


@contextmanager
def _restarted() -> Iterator[Scene]:
    with replicas(1) as group:

        def strike(_: threading.Event) -> None:
            for _again in range(2):
                group.servers[0].process.kill()
                group.servers[0].process.wait()
                group.start(0).wait_until_serving(service="liveness")  # its metrics are there
                time.sleep(2.0)  # for a scrape

        yield Scene(tuple(group.servers), strike)


@contextmanager
def _certificate(days: int) -> Iterator[Scene]:
    with tempfile.TemporaryDirectory(prefix="babelserve-") as directory:
        issued = Authority().issue(ends=days)
        chain, key = Path(directory, "chain.pem"), Path(directory, "key.pem")
        chain.write_bytes(issued.chain)
        key.write_bytes(issued.key)
        with _struck(lambda *_: None, flags=["--tls-cert", str(chain), "--tls-key", str(key)]) as scene:
            yield scene


@contextmanager
def _bad_file(flag: str, name: str, good: str) -> Iterator[Scene]:
    """A file that a flag names, or the folder of which a flag names, becomes a bad one."""
    with tempfile.TemporaryDirectory(prefix="babelserve-") as directory:
        file = Path(directory, name)
        file.write_text(good, encoding="utf-8")
        path = file if flag == "--keys" else file.parent

        def spoil(*_: object) -> None:
            file.write_text("neither", encoding="utf-8")

        with _struck(spoil, flags=[flag, str(path)]) as scene:
            yield scene


@contextmanager
def _bad_version() -> Iterator[Scene]:
    with tempfile.TemporaryDirectory(prefix="babelserve-") as directory:
        folder = Path(directory, "model")
        folder.mkdir()
        put(BUILTIN_BUNDLE, folder / "1")

        def spoil(bundle: Path) -> None:
            os.truncate(bundle / "manifest.json", 100)

        with _struck(lambda *_: put(BUILTIN_BUNDLE, folder / "2", spoil), flags=["--models", directory]) as scene:
            yield scene


@contextmanager
def _unlike_replicas() -> Iterator[Scene]:
    with ExitStack() as stack:
        servers = []
        for name in ("en-de", "de-en"):
            directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="babelserve-"))
            Path(directory, "model").mkdir()
            put(BUILTIN / name, Path(directory, "model", "1"))
            servers.append(stack.enter_context(broken_server(flags=("--models", directory))).process)
        yield Scene(servers, lambda _: None)


@contextmanager
def _log_without_reader() -> Iterator[Scene]:
    with tempfile.TemporaryDirectory(prefix="babelserve-") as directory:
        pipe = Path(directory, "log")
        os.mkfifo(pipe)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        with broken_server(prefix=["sh", "-c", f'exec "$@" 2>{pipe} >{pipe}', "sh"]) as server:
            yield Scene([server.process], lambda _: os.close(reader))


def _names(words: str) -> frozenset[str]:
    return frozenset(f"Babelserve{word}" for word in words.split())


_ERRORS, _LATE = _names("ErrorsFast ErrorsSteady ErrorsSlow"), _names("LateFast LateSteady LateSlow")
FAULTS = (
    Fault(
        name="kill -9",
        expected=_names("Down"),
        scene=lambda: _struck(_kill),
    ),
    Fault(
        name="every reply fails",
        expected=_ERRORS,
        scene=lambda: _armed(Point.BEFORE_REPLY, Action.RAISE, -1),
    ),
    Fault(
        name="one reply in a hundred fails",
        expected=_names("ErrorsSteady ErrorsSlow"),
        scene=lambda: _failing_each(2.0),
        within=30.0,
        rate=50.0,
    ),
    Fault(
        name="one reply in four hundred fails",
        expected=_names("ErrorsSlow"),
        scene=lambda: _failing_each(8.0),
        within=30.0,
        rate=50.0,
    ),
    Fault(
        name="every other call takes more than 2 s",
        expected=_LATE,
        scene=lambda: _nothing(Spec(step_seconds=0.17)),
        within=15.0,
    ),
    Fault(
        name="one call in eleven takes more than 2 s",
        expected=_names("LateSteady LateSlow"),
        scene=lambda: _nothing(Spec(step_seconds=0.13, habit="is long one time in eleven")),
        within=30.0,
    ),
    Fault(
        name="one call in thirty-one takes more than 2 s",
        expected=_names("LateSlow"),
        scene=lambda: _nothing(Spec(step_seconds=0.13, habit="is long one time in thirty-one")),
        within=30.0,
    ),
    Fault(
        name="overload, three times what the server can do",
        expected=_names("Overloaded"),
        scene=lambda: _nothing(Spec(step_seconds=0.02, row_seconds=0.001)),
        within=10.0,
        rate=150.0,
        allowed=_ERRORS | _LATE,  # an answer that comes too late fails its call
    ),
    Fault(
        name="a lane hangs, and the process ends",
        expected=_names("LaneOut Down"),
        scene=lambda: _armed(Point.BEFORE_STEP, Action.HANG, 1),
        within=35.0,
        rate=100.0,  # so many that it is never quiet, and the process takes all its time to end
        allowed=_ERRORS | _LATE | _names("Overloaded"),
    ),
    Fault(
        name="a lane hangs, and the supervisor does not see it",
        expected=_names("LaneDead"),
        scene=lambda: _armed(Point.BEFORE_STEP, Action.HANG, 1, Spec(sees_hangs=False)),
        within=35.0,
        allowed=_ERRORS | _LATE | _names("Overloaded"),
    ),
    Fault(
        name="an idle lane answers its canary wrong, and its replacement right",
        expected=_names("LaneLies"),
        scene=lambda: _armed(Point.AFTER_STEP, Action.CONSTANT, 1),
        within=15.0,
        rate=0.0,
        allowed=_names("LaneOut"),  # for the moment until it is replaced
    ),
    Fault(
        name="two steps fail",
        expected=_names("StepsFail"),
        scene=lambda: _armed(Point.BEFORE_STEP, Action.RAISE, 2),
        allowed=_ERRORS,
    ),
    Fault(
        name="the server is killed and started twice",
        expected=_names("Restarts"),
        scene=_restarted,
        within=20.0,
        allowed=_ERRORS | _LATE | _names("Down"),
    ),
    Fault(
        name="the process is stopped for 0.6 s of each second",
        expected=_names("EventLoopLate"),
        scene=lambda: _struck(_pause),
        within=20.0,
        allowed=_ERRORS | _LATE | _names("Down Overloaded"),
    ),
    Fault(
        name="the certificate ends in ten days",
        expected=_names("CertificateExpires"),
        scene=lambda: _certificate(10),
        rate=0.0,
    ),
    Fault(
        name="the certificate ends in a day",
        expected=_names("CertificateExpires CertificateExpiresNow"),
        scene=lambda: _certificate(1),
        rate=0.0,
    ),
    Fault(
        name="the file of keys becomes a bad one",
        expected=_names("ReloadFailed"),
        scene=lambda: _bad_file("--keys", "keys.toml", f'[tenants.a]\n[[tenants.a.keys]]\nsha256 = "{"0" * 64}"\n'),
        within=12.0,
        rate=0.0,
    ),
    Fault(
        name="the next version of a model is a bad bundle",
        expected=_names("ModelRefused"),
        scene=_bad_version,
        within=20.0,
    ),
    Fault(
        name="the file of a glossary becomes a bad one",
        expected=_names("GlossaryRefused"),
        scene=lambda: _bad_file("--glossaries", "travel.tsv", "en\tde\nstation\tBahnhof\n"),
        within=15.0,
    ),
    Fault(
        name="what reads the log ends",
        expected=_names("LogLost"),
        scene=_log_without_reader,
        within=15.0,
    ),
    Fault(
        name="two replicas have different files of one version",
        expected=_names("ModelsDiffer"),
        scene=_unlike_replicas,
        within=32.0,
        rate=0.0,
    ),
    Fault(
        name="a model repeats itself",
        expected=_names("Repetitive"),
        scene=lambda: _nothing(Spec(habit="repeats")),
        within=20.0,
        allowed=_names("Truncated"),
    ),
    Fault(
        name="a model writes bytes that are no text",
        expected=_names("Garbled"),
        scene=lambda: _nothing(Spec(habit="writes bytes")),
        within=20.0,
    ),
    Fault(
        name="a model does not end its sentences",
        expected=_names("Truncated"),
        scene=lambda: _nothing(Spec(habit="never ends")),
        within=20.0,
        allowed=_LATE | _names("Repetitive"),
    ),
)
