"""Scenes of faults for which alerts must fire: what Prometheus watches, and what is done to it."""

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


@contextmanager
def struck(
    strike: Callable[[BrokenServer, threading.Event], None], spec: Spec | None = None, flags: Sequence[str] = ()
) -> Iterator[Scene]:
    with broken_server(spec, flags) as server:
        yield Scene([server.process], partial(strike, server))


def armed(point: Point, action: Action, times: int, spec: Spec | None = None) -> AbstractContextManager[Scene]:
    return struck(lambda server, _: server.arm(point, action, times), spec)


def failing_each(every: int) -> AbstractContextManager[Scene]:
    """One reply of so many fails."""
    return struck(lambda server, _: server.arm(Point.BEFORE_REPLY, Action.RAISE, -1, every=every))


def nothing(spec: Spec) -> AbstractContextManager[Scene]:
    """The server itself is the fault."""
    return struck(lambda *_: None, spec)


def kill(server: BrokenServer, _: threading.Event) -> None:
    server.process.process.kill()


def terminate(server: BrokenServer, _: threading.Event) -> None:
    server.process.process.terminate()


def pause(server: BrokenServer, over: threading.Event) -> None:
    while not over.wait(1.0 - _PAUSE_SECONDS):
        os.kill(server.pid, signal.SIGSTOP)
        time.sleep(_PAUSE_SECONDS)
        os.kill(server.pid, signal.SIGCONT)


@contextmanager
def restarted() -> Iterator[Scene]:
    with replicas(1) as group:

        def strike(_: threading.Event) -> None:
            for _again in range(2):
                group.servers[0].process.kill()
                group.servers[0].process.wait()
                group.start(0).wait_until_serving(service="liveness")  # its metrics are there
                time.sleep(2.0)  # for a scrape

        yield Scene(tuple(group.servers), strike)


@contextmanager
def certificate(days: int) -> Iterator[Scene]:
    with tempfile.TemporaryDirectory(prefix="babelserve-") as directory:
        issued = Authority().issue(ends=days)
        chain, key = Path(directory, "chain.pem"), Path(directory, "key.pem")
        chain.write_bytes(issued.chain)
        key.write_bytes(issued.key)
        with struck(lambda *_: None, flags=["--tls-cert", str(chain), "--tls-key", str(key)]) as scene:
            yield scene


@contextmanager
def bad_file(flag: str, name: str, good: str) -> Iterator[Scene]:
    """A file that a flag names, or the folder of which a flag names, becomes a bad one."""
    with tempfile.TemporaryDirectory(prefix="babelserve-") as directory:
        file = Path(directory, name)
        file.write_text(good, encoding="utf-8")
        path = file if flag == "--keys" else file.parent

        def spoil(*_: object) -> None:
            file.write_text("neither", encoding="utf-8")

        with struck(spoil, flags=[flag, str(path)]) as scene:
            yield scene


@contextmanager
def bad_version() -> Iterator[Scene]:
    with tempfile.TemporaryDirectory(prefix="babelserve-") as directory:
        folder = Path(directory, "model")
        folder.mkdir()
        put(BUILTIN_BUNDLE, folder / "1")

        def spoil(bundle: Path) -> None:
            os.truncate(bundle / "manifest.json", 100)

        with struck(lambda *_: put(BUILTIN_BUNDLE, folder / "2", spoil), flags=["--models", directory]) as scene:
            yield scene


@contextmanager
def unlike_replicas() -> Iterator[Scene]:
    with ExitStack() as stack:
        servers = []
        for name in ("en-de", "de-en"):
            directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="babelserve-"))
            Path(directory, "model").mkdir()
            put(BUILTIN / name, Path(directory, "model", "1"))
            servers.append(stack.enter_context(broken_server(flags=("--models", directory))).process)
        yield Scene(servers, lambda _: None)


@contextmanager
def log_without_reader() -> Iterator[Scene]:
    with tempfile.TemporaryDirectory(prefix="babelserve-") as directory:
        pipe = Path(directory, "log")
        os.mkfifo(pipe)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        with broken_server(prefix=["sh", "-c", f'exec "$@" 2>{pipe} >{pipe}', "sh"]) as server:
            yield Scene([server.process], lambda _: os.close(reader))
