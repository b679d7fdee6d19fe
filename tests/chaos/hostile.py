"""M1, M2: folders and bundles of people who mean harm, in the folder of models of a server, and before `--check`.

The server serves all the while, and starts among them. "Usual" is the time until a good model is served that is put
into a folder without hostile ones: two looks, the proof and the load.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import grpc

from babelserve.v1.translation_pb2 import ListModelsRequest, TranslateRequest
from tests.acceptance.calls import open_stub
from tests.acceptance.metrics_page import fetch
from tests.acceptance.model_swaps import put, rss_mib
from tests.acceptance.report import Check
from tests.acceptance.server_process import (
    BUILTIN_BUNDLE,
    REPOSITORY,
    ServerNotServing,
    ServerProcess,
    launch_server,
    running_server,
)
from tests.chaos.case import Case, Options, at_most, none, told
from tests.chaos.hostile_bundles import BUNDLES, FOLDERS, VARIANT, alone, make_hostile
from tests.children import children

_FLAGS = ("--variant", VARIANT, "--lanes", "1", "--host", "127.0.0.1")
_EXTRA_SECONDS = 2.0
_STOP_SECONDS = 5.0
_LOG_BYTES = 20_000.0  # a second
_GROWTH_MIB = 200.0  # of the server
_PROOFS_MIB = 1100.0  # of the processes that prove: their bound, and what is shared of it
_CHECK_SECONDS = 40.0  # of `--check`: two variants may take 20 s each before a third is refused
_CLEAR_SECONDS = 30.0
_TIMEOUT_SECONDS = 60.0
_START_SECONDS = 240.0  # among hostile bundles, each of which has its turn first
_PARTS = 3  # good models, put while the hostile ones lie there
_QUICK = ("loop", "doubles-in-another-order", "products", "outer-sum", "deep", "long-key", "manifest-of-a-fifo")


@dataclass(slots=True)
class _Watch:
    """What is seen of a server all the while, by a caller and by a look at its processes."""

    server: ServerProcess
    failures: list[str] = field(default_factory=list)
    num_answers: int = 0
    most_mib: float = 0.0
    most_proofs_mib: float = 0.0

    def call(self, stop: threading.Event) -> None:
        request = TranslateRequest(contents=["A dog runs."], target_language_code="de", model="first")
        with open_stub(self.server.address) as stub:
            while not stop.wait(0.05):
                try:
                    self.num_answers += bool(stub.Translate(request, timeout=_TIMEOUT_SECONDS).translations)
                except grpc.RpcError as error:
                    self.failures.append(f"{error.code().name}: {error.details()}")

    def look(self, stop: threading.Event) -> None:
        while not stop.wait(0.05):
            with suppress(OSError, StopIteration, ValueError):
                self.most_mib = max(self.most_mib, rss_mib(self.server))
            self.most_proofs_mib = max(self.most_proofs_mib, sum(map(_rss_mib, children(self.server.process.pid))))


def _rss_mib(pid: int) -> float:
    with suppress(OSError):
        return (
            int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
        )
    return 0.0


@contextmanager
def _watched(server: ServerProcess) -> Iterator[_Watch]:
    watch, stop = _Watch(server), threading.Event()
    threads = [threading.Thread(target=work, args=(stop,)) for work in (watch.call, watch.look)]
    for thread in threads:
        thread.start()
    try:
        yield watch
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _seconds_to_load(server: ServerProcess, good: Path, directory: Path) -> float:
    """Puts a good model into the folder; returns the seconds until it is served, or infinity."""
    put(good, directory)
    name = directory.name
    started = time.monotonic()
    with open_stub(server.address) as stub:
        while time.monotonic() < started + _TIMEOUT_SECONDS:
            if name in [each.name for each in stub.ListModels(ListModelsRequest(), timeout=_TIMEOUT_SECONDS).models]:
                return time.monotonic() - started
            time.sleep(0.02)
    return float("inf")


def _wait_for(server: ServerProcess, number: int) -> None:
    """Waits until so many models are served."""
    end = time.monotonic() + _TIMEOUT_SECONDS
    with open_stub(server.address) as stub:
        while time.monotonic() < end:
            if len(stub.ListModels(ListModelsRequest(), timeout=_TIMEOUT_SECONDS).models) >= number:
                return
            time.sleep(0.1)


def _kinds(options: Options) -> list[str]:
    return list(_QUICK) if options.is_quick else [*FOLDERS, *BUNDLES]


def _remove(models: Path, kinds: list[str]) -> None:
    """Takes away all but the good models."""
    hostile = [each for each in models.iterdir() if each.name in kinds or each.name.startswith(("bad name", "empty-"))]
    for start in range(0, len(hostile), 1000):
        subprocess.run(["rm", "-rf", "--", *hostile[start : start + 1000]], check=True)


@contextmanager
def _folder() -> Iterator[Path]:
    """A folder that is removed by `rm`: Python's own way ends in RecursionError at a deep folder."""
    directory = Path(tempfile.mkdtemp(prefix="babelserve-"))
    try:
        yield directory
    finally:
        subprocess.run(["rm", "-rf", "--", directory], check=False)


@contextmanager
def _started(log: Path, flags: list[str]) -> Iterator[ServerProcess]:
    """A server that serves, however often its process begins anew, which ends the calls that wait for it."""
    server = launch_server(log, flags)
    try:
        seconds = None
        while seconds is None:
            try:
                seconds = server.wait_until_serving(_START_SECONDS)
            except ServerNotServing:
                if server.process.poll() is not None or time.monotonic() > server.started + _START_SECONDS:
                    raise
        yield replace(server, seconds_to_serving=seconds)
    finally:
        server.stop()


def served_all_the_while(options: Options) -> Iterator[Check]:
    """Puts all kinds beside a served model, then good models; takes them away; starts anew with them; stops."""
    kinds = _kinds(options)
    with _folder() as directory:
        good, models = alone(BUILTIN_BUNDLE, directory / "good"), directory / "models"
        models.mkdir()
        put(good, models / "first")
        flags = [*_FLAGS, "--models", str(models)]
        with running_server(flags) as server:
            empty = rss_mib(server)
            usual = _seconds_to_load(server, good, models / "usual")
            model_mib = rss_mib(server) - empty
            yield told("a good model is served without hostile ones after", f"{usual:.2f} s")
            before, log_before, began = rss_mib(server), len(server.stderr()), time.monotonic()
            with _watched(server) as watch:
                for kind in kinds:
                    make_hostile(models, good, kind)
                for number in range(_PARTS):
                    time.sleep(3.0)
                    extra = _seconds_to_load(server, good, models / f"good-{number}") - usual
                    yield at_most(
                        f"good model {number + 1} beside {len(kinds)} kinds, beyond the usual",
                        extra,
                        _EXTRA_SECONDS,
                        " s",
                    )
                log_bytes = (len(server.stderr()) - log_before) / (time.monotonic() - began)
                _remove(models, kinds)
                yield at_most("metrics are clear after", _seconds_to_clear(server, kinds), _CLEAR_SECONDS, " s")
            yield none("calls of the served model", watch.failures, f"{watch.num_answers} answered")
            yield at_most("log", log_bytes, _LOG_BYTES, " bytes/s")
            growth = watch.most_mib - before - _PARTS * model_mib
            yield at_most("the server's memory grows, beside good models, by", growth, _GROWTH_MIB, " MiB")
            yield at_most("memory of its proofs", watch.most_proofs_mib, _PROOFS_MIB, " MiB")
            yield none("tracebacks", ["in the log"] if "Traceback" in server.stderr() else [])
            for kind in kinds:
                make_hostile(models, good, kind)
            time.sleep(3.0)
            yield _stopped("stopped among hostile bundles", server)
        with _started(directory / "stderr.log", flags) as server:
            yield told("started among hostile bundles, serving after", f"{server.seconds_to_serving:.1f} s")
            yield at_most(
                "a good model then", _seconds_to_load(server, good, models / "last") - usual, _EXTRA_SECONDS, " s"
            )
            yield _stopped("stopped again", server)


def _stopped(name: str, server: ServerProcess) -> Check:
    started = time.monotonic()
    code = server.stop(_TIMEOUT_SECONDS)
    seconds = time.monotonic() - started
    passed = code == 0 and seconds <= _STOP_SECONDS
    return Check(name, f"exit {code} after {seconds:.2f} s", f"exit 0, <= {_STOP_SECONDS:g} s", passed)


def _seconds_to_clear(server: ServerProcess, kinds: list[str]) -> float:
    """Returns the seconds until no series has a hostile model's name, or infinity."""
    started = time.monotonic()
    while time.monotonic() < started + _TIMEOUT_SECONDS:
        page = fetch(server.metrics_url)
        if not any(f'model="{kind}"' in page for kind in kinds):
            return time.monotonic() - started
        time.sleep(0.1)
    return float("inf")


def checked(options: Options) -> Iterator[Check]:
    """Has `--check` look at each hostile bundle."""
    kinds = [kind for kind in _kinds(options) if kind in BUNDLES]
    faults, slowest = [], 0.0
    with _folder() as directory:
        good = alone(BUILTIN_BUNDLE, directory / "good")
        for kind in kinds:
            make_hostile(directory, good, kind)
            started = time.monotonic()
            done = subprocess.run(
                [sys.executable, "-m", "server", "--check", str(directory / kind)],
                capture_output=True,
                text=True,
                check=False,
                cwd=REPOSITORY,
            )
            seconds = time.monotonic() - started
            slowest = max(slowest, seconds)
            is_shown = all(map(str.isprintable, (done.stdout + done.stderr).split("\n")))
            if done.returncode != 2 or "Traceback" in done.stderr or "babelserve: " not in done.stderr or not is_shown:
                faults.append(f"{kind}: exit {done.returncode}: {done.stderr[-300:]}")
            shutil.rmtree(directory / kind)
    yield none(f"{len(kinds)} bundles that --check refuses with words", faults)
    yield at_most("the slowest", slowest, _CHECK_SECONDS, " s")


CASES = (
    Case("M1", "hostile folders and bundles are served beside", served_all_the_while),
    Case("M2", "hostile bundles are checked", checked),
)
