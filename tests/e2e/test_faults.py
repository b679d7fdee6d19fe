"""What callers, health checks and process managers see of a server whose lanes go wrong."""

import contextlib
import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from babelserve.v1 import translation_pb2 as pb
from export.subject import DevSet
from server.app import EXIT_ENGINE_LOST
from server.bundle.bundle import Bundle
from tests.acceptance.calls import open_stub
from tests.acceptance.server_process import ServerProcess, launch_server
from tests.e2e.conftest import metric, wait_for_metric, wait_until

TIMEOUT = 200.0
NUM_CALLERS = 8
SERVING, NOT_SERVING = HealthCheckResponse.SERVING, HealthCheckResponse.NOT_SERVING
Start = Callable[[str, str], ServerProcess]


@pytest.fixture
def start(tiny_bundle: Bundle, tmp_path: Path) -> Iterator[Start]:
    """Starts a server of two lanes, whose steps go wrong once it is told to, and waits until it serves."""
    with ExitStack() as stack:

        def start(fault: str, whose: str) -> ServerProcess:
            flags = ["--bundle", str(tiny_bundle.directory), "--variant", "cpu-fp32", "--lanes", "2"]
            module = ("tests.e2e.faulty_server", fault, whose)
            server = launch_server(tmp_path / "log", flags, module=module)
            stack.callback(server.process.wait)
            stack.callback(server.process.kill)
            return replace(server, seconds_to_serving=server.wait_until_serving())

        yield start


def request(text: str) -> pb.TranslateRequest:
    return pb.TranslateRequest(contents=[text], target_language_code="de")


class Caller(threading.Thread):
    """Sends one sentence after the other, and keeps what came back, until there is no server or it is told to stop."""

    def __init__(self, server: ServerProcess, sentence: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.codes: list[grpc.StatusCode] = []
        self.is_stopped = False
        self._server, self._sentence = server, sentence
        self.start()

    def run(self) -> None:
        with open_stub(self._server.address) as stub:
            while self._server.process.poll() is None and not self.is_stopped:
                try:
                    self.texts.append(stub.Translate(request(self._sentence), timeout=TIMEOUT).translations[0].text)
                except grpc.RpcError as error:
                    known: Any = error
                    self.codes.append(known.code())


class Watcher(threading.Thread):
    """Keeps what the health service says of a name, until the server is gone."""

    def __init__(self, server: ServerProcess, name: str) -> None:
        super().__init__()
        self.statuses: list[int] = []
        self._server, self._name = server, name
        self.start()

    def run(self) -> None:
        with grpc.insecure_channel(self._server.health_address) as channel, contextlib.suppress(grpc.RpcError):
            for answer in HealthStub(channel).Watch(HealthCheckRequest(service=self._name), timeout=TIMEOUT):
                self.statuses.append(answer.status)


def codes_of(server: ServerProcess) -> set[str]:
    """Returns how calls ended, as the log has it: a caller cannot tell an answer from a connection that broke."""
    lines = [json.loads(line) for line in server.stderr().splitlines() if line.startswith("{")]
    return {line["code"] for line in lines if line["event"] == "request"}


@pytest.mark.parametrize("fault", ["lose_device", "hang"])
def test_a_server_that_cannot_recover_answers_everybody_and_ends(start: Start, dev_set: DevSet, fault: str) -> None:
    server = start(fault, "all")
    watchers = [Watcher(server, name) for name in ("", "readiness", "liveness")]
    callers = [Caller(server, sentence) for sentence in dev_set.sources[:NUM_CALLERS]]
    wait_for_answers(callers)
    wait_until(lambda: all(each.statuses for each in watchers))

    began = time.monotonic()
    server.process.send_signal(signal.SIGUSR1)
    exit_code = server.process.wait()
    seconds = time.monotonic() - began
    for thread in (*callers, *watchers):
        thread.join()

    assert exit_code == EXIT_ENGINE_LOST
    assert seconds < 20  # with the times that the launcher sets
    assert codes_of(server) == {"OK", "UNAVAILABLE"}
    assert [(each.statuses[0], each.statuses[-1]) for each in watchers] == [(SERVING, NOT_SERVING)] * 3
    assert len([line for line in server.stderr().splitlines() if '"level": "error"' in line]) <= 100
    assert "Traceback" not in server.stderr()


@pytest.mark.parametrize("fault", ["die", "lie"])
def test_a_bad_lane_is_replaced_and_the_server_goes_on(start: Start, dev_set: DevSet, fault: str) -> None:
    server = start(fault, "one")
    sources = dev_set.sources[:NUM_CALLERS]
    with open_stub(server.address) as stub:

        def texts() -> list[str]:
            return [stub.Translate(request(each), timeout=TIMEOUT).translations[0].text for each in sources]

        right = texts()
        callers = [Caller(server, sentence) for sentence in sources]
        wait_for_answers(callers)
        server.process.send_signal(signal.SIGUSR1)
        wait_for_metric(server, 1, "lane_rebuilds_total")
        wait_for_metric(server, 2, "lanes", state="serving")
        for caller in callers:
            caller.is_stopped = True
            caller.join()
        after = texts()

    assert after == right
    assert metric(server, "canaries_total", result="wrong") == (fault == "lie")
    assert {code for caller in callers for code in caller.codes} <= {grpc.StatusCode.UNAVAILABLE}
    assert server.stop() == 0


def wait_for_answers(callers: list[Caller]) -> None:
    wait_until(lambda: all(caller.texts for caller in callers))
