"""How a server starts, refuses to start, and leaves."""

import json
import os
import pty
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from babelserve.v1 import translation_pb2 as pb
from export.subject import DevSet
from server.bundle.bundle import Bundle
from tests.acceptance.bad_bundles import BadBundle, bad_bundles
from tests.acceptance.calls import open_stub
from tests.acceptance.server_process import REPOSITORY, ServerProcess, free_ports
from tests.e2e.conftest import Start, metric, wait_for_metric

TIMEOUT = 200.0
NUM_CALLERS = 8


def request(*contents: str) -> pb.TranslateRequest:
    return pb.TranslateRequest(contents=contents, target_language_code="de")


class Caller(threading.Thread):
    """Sends one sentence after the other until the server is gone, and keeps what came back."""

    def __init__(self, server: ServerProcess, sentence: str, answered: threading.Semaphore) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.code: grpc.StatusCode | None = None
        self._server, self._sentence, self._answered = server, sentence, answered

    def run(self) -> None:
        with open_stub(self._server.address) as stub:
            while self.code is None:
                try:
                    response = stub.Translate(request(self._sentence), timeout=TIMEOUT)
                    self.texts.append(response.translations[0].text)
                    self._answered.release()
                except grpc.RpcError as error:
                    known: Any = error
                    self.code = known.code()


@pytest.mark.parametrize("drain_delay", ["0", "0.3"])
def test_sigterm_under_load_loses_no_answer(start: Start, dev_set: DevSet, drain_delay: str) -> None:
    server = start("--drain-delay", drain_delay)
    with open_stub(server.address) as stub:
        expected = [
            translation.text
            for translation in stub.Translate(request(*dev_set.sources[:NUM_CALLERS]), timeout=TIMEOUT).translations
        ]
    answered = threading.Semaphore(0)
    callers = [Caller(server, sentence, answered) for sentence in dev_set.sources[:NUM_CALLERS]]
    for caller in callers:
        caller.start()
    for _ in range(50):
        answered.acquire()

    exit_code = server.stop()
    for caller in callers:
        caller.join()

    assert exit_code == 0
    assert [set(caller.texts) for caller in callers] == [{text} for text in expected]
    assert {caller.code for caller in callers} == {grpc.StatusCode.UNAVAILABLE}
    lines = [json.loads(line) for line in server.stderr().splitlines() if line.startswith("{")]
    codes = [line["code"] for line in lines if line["event"] == "request"]
    assert codes.count("OK") == sum(len(caller.texts) for caller in callers) + 1
    assert set(codes) <= {"OK", "UNAVAILABLE"}


def test_running_streams_end_well_after_sigterm(start: Start, dev_set: DevSet) -> None:
    server = start("--drain-delay", "0")
    with open_stub(server.address) as stub:
        call = stub.TranslateStream(pb.TranslateStreamRequest(request=request(*dev_set.sources)), timeout=TIMEOUT)
        received = [next(call)]
        server.process.send_signal(signal.SIGTERM)
        received.extend(call)

    assert len(received) == len(dev_set.sources)
    assert server.process.wait() == 0


def test_what_outlasts_the_drain_is_answered_unavailable(start: Start, dev_set: DevSet) -> None:
    server = start("--drain-delay", "0", "--drain-timeout", "0", "--max-request-seconds", "3600")
    with open_stub(server.address) as stub:
        call = stub.TranslateStream(pb.TranslateStreamRequest(request=request(" ".join(dev_set.sources * 20))))
        next(call)
        server.process.send_signal(signal.SIGTERM)
        with pytest.raises(grpc.RpcError) as caught:
            list(call)

    error: Any = caught.value
    assert error.code() == grpc.StatusCode.UNAVAILABLE
    assert server.process.wait() == 0


def test_during_the_drain_delay_requests_are_answered_and_health_says_no(start: Start, dev_set: DevSet) -> None:
    server = start("--drain-delay", "3600")
    with grpc.insecure_channel(server.health_address) as channel, open_stub(server.address) as stub:
        watch = HealthStub(channel).Watch(HealthCheckRequest(service="readiness"), timeout=TIMEOUT)
        seen = [next(watch).status]
        server.process.send_signal(signal.SIGTERM)
        seen.append(next(watch).status)
        alive = HealthStub(channel).Check(HealthCheckRequest(service="liveness"), timeout=TIMEOUT)
        response = stub.Translate(request(dev_set.sources[0]), timeout=TIMEOUT)
        server.process.send_signal(signal.SIGTERM)
        exit_code = server.process.wait()

    assert seen == [HealthCheckResponse.SERVING, HealthCheckResponse.NOT_SERVING]
    assert alive.status == HealthCheckResponse.SERVING
    assert response.translations[0].text
    assert exit_code == 128 + signal.SIGTERM  # the second signal leaves at once


def test_ctrl_c_while_nobody_calls_ends_the_server_at_once(start: Start) -> None:
    server = start("--drain-delay", "3600")

    server.process.send_signal(signal.SIGINT)

    assert server.process.wait(TIMEOUT) == 0
    assert "babelserve: stopping; Ctrl-C again ends it at once" in server.stderr()


def test_ctrl_c_while_somebody_calls_waits_and_a_second_one_does_not(start: Start, dev_set: DevSet) -> None:
    server = start("--drain-delay", "3600", "--max-request-seconds", "3600")  # so long that no forecast is late
    with open_stub(server.address) as stub:
        call = stub.TranslateStream(pb.TranslateStreamRequest(request=request(" ".join(dev_set.sources * 20))))
        next(call)
        server.process.send_signal(signal.SIGINT)
        wait_for_metric(server, 1, "draining")
        ready = metric(server, "ready")
        response = stub.Translate(request(dev_set.sources[0]), timeout=TIMEOUT)
        server.process.send_signal(signal.SIGINT)
        exit_code = server.process.wait(TIMEOUT)

    assert ready == 0
    assert response.translations[0].text
    assert exit_code == 128 + signal.SIGINT
    assert (
        "babelserve: stopping when nobody has called for 1 s, at the latest in 3600 s, and what runs then in 30 s; "
        "Ctrl-C again ends it at once" in server.stderr()
    )


def test_ctrl_c_right_after_a_call_waits_no_longer_than_for_others_to_come(start: Start, dev_set: DevSet) -> None:
    server = start("--drain-delay", "3600")
    with open_stub(server.address) as stub:
        stub.Translate(request(dev_set.sources[0]), timeout=TIMEOUT)
        server.process.send_signal(signal.SIGINT)

        assert server.process.wait(TIMEOUT) == 0


def test_a_start_leaves_the_collector_of_cycles_nothing_to_do() -> None:
    script = "import gc, server.__main__, server.runtime.runner; print(*gc.get_count()[:1], *gc.get_threshold()[:1])"

    done = subprocess.run([sys.executable, "-c", script], cwd=REPOSITORY, capture_output=True, text=True, check=True)

    containers, threshold = map(int, done.stdout.split())
    assert 20_000 < 2 * containers < threshold  # loading a model makes more


def test_on_a_terminal_a_server_says_what_may_be_done_next(tiny_bundle: Bundle) -> None:
    ours, theirs = pty.openpty()
    flags = ["--port", "0", "--health-port", "0", "--admin-port", "0", "--metrics-port", "0", "--lanes", "1"]
    command = [sys.executable, "-m", "server", "--bundle", str(tiny_bundle.directory), "--variant", "cpu-fp32", *flags]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.DEVNULL, stderr=theirs) as server:
        os.close(theirs)
        with os.fdopen(ours, encoding="utf-8") as terminal:
            lines = [terminal.readline().rstrip() for _ in range(4)]
        server.send_signal(signal.SIGINT)

    port = lines[0].partition("127.0.0.1:")[2].split()[0]
    assert lines[1].startswith(f"  try:      babelserve-translate --address 127.0.0.1:{port} --source en --target de ")
    assert lines[2].startswith("  metrics:  http://127.0.0.1:")
    assert lines[3] == "  stop:     Ctrl-C"


def test_someone_who_watches_health_does_not_keep_the_server(start: Start) -> None:
    server = start("--drain-delay", "0")
    with grpc.insecure_channel(server.address) as channel:
        watch = HealthStub(channel).Watch(HealthCheckRequest(), timeout=TIMEOUT)
        next(watch)
        server.process.send_signal(signal.SIGTERM)

        assert server.process.wait() == 0
    assert '"level": "error"' not in server.stderr()  # such as that the engine, which was stopped, makes no progress


@pytest.mark.parametrize("case", bad_bundles("cpu-fp32"), ids=lambda case: case.name)
def test_a_bad_bundle_keeps_the_server_from_starting(
    launch: Start, tiny_bundle: Bundle, tmp_path: Path, case: BadBundle
) -> None:
    copy = tmp_path / "bundle"
    shutil.copytree(tiny_bundle.directory, copy)
    case.spoil(copy)

    server = launch("--bundle", str(copy))

    assert server.process.wait() == 2
    assert [word for word in case.mentions if word.lower() not in server.stderr().lower()] == []
    assert "Traceback" not in server.stderr()


def test_all_faults_of_the_settings_are_listed(launch: Start) -> None:
    server = launch("--max-rows", "-1", "--no-such-flag", "--variant", "cuda-fp16", "--device", "cpu")

    assert server.process.wait() == 2
    lines = [line for line in server.stderr().splitlines() if line.startswith("babelserve: --")]
    assert [line.split(":")[1].strip() for line in lines] == ["--no-such-flag", "--max-rows", "--variant"]


def test_a_port_that_is_taken_is_a_fault(server: ServerProcess, launch: Start) -> None:
    flags = ["--port", str(server.port), "--metrics-port", str(server.metrics_port)]

    second = launch(*flags, "--admin-port", str(server.admin_port), "--health-port", str(server.health_port))

    assert second.process.wait() == 2
    assert "Traceback" not in second.stderr()
    for flag in ("--port", "--metrics-port", "--admin-port", "--health-port"):
        assert f"babelserve: {flag}: cannot listen on 127.0.0.1" in second.stderr()
    assert "native code" not in second.stderr()


@pytest.mark.parametrize("redirections", ["<&- >&- 2>&-", ">/dev/full 2>/dev/full"])
def test_a_server_needs_no_stdout_and_no_stderr(tiny_bundle: Bundle, redirections: str) -> None:
    port = free_ports(1)[0]
    flags = f"--port {port} --health-port 0 --admin-port 0 --metrics-port 0 --drain-delay 0 --lanes 1"
    command = f'exec "$0" -m server --bundle "$1" --variant cpu-fp32 {flags} {redirections}'
    server = subprocess.Popen(["sh", "-c", command, sys.executable, str(tiny_bundle.directory)], cwd=REPOSITORY)
    try:
        with open_stub(f"127.0.0.1:{port}") as stub:
            answer = None
            while answer is None:
                try:
                    answer = stub.Translate(request("A dog runs."), timeout=TIMEOUT, wait_for_ready=True)
                except grpc.RpcError as error:  # it listens before it has loaded
                    if error.code() is not grpc.StatusCode.UNAVAILABLE or server.poll() is not None:
                        raise
        server.terminate()

        assert answer.model == "tiny"
        assert server.wait(TIMEOUT) == 0
    finally:
        server.kill()
        server.wait()


def test_peers_write_no_lines_of_the_log(start: Start) -> None:
    server = start()
    words = b'\n{"level": "error", "event": "forged"}\n'
    goaway = struct.pack(">I", 8 + len(words))[1:] + bytes((7, 0)) + bytes(4) + struct.pack(">II", 0, 11) + words
    settings = bytes((0, 0, 0, 4, 0)) + bytes(4)
    with socket.create_connection((server.host, server.port)) as peer:
        peer.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + settings + goaway)
        wait_for_metric(server, 3, "native_log_lines_total")

    assert server.stop() == 0
    lines = [json.loads(line) for line in server.stderr().splitlines() if line.startswith("{")]
    assert "forged" not in {line["event"] for line in lines}
    assert [line["text"] for line in lines if "forged" in str(line)] == [words.decode().strip()]


@pytest.mark.parametrize("spoiled", ["cert.pem", "key.pem"])
def test_a_certificate_that_is_none_is_a_fault_of_its_own(launch: Start, tmp_path: Path, spoiled: str) -> None:
    folder = tmp_path / "tls"
    shutil.copytree(Path(__file__).parents[1] / "babelserve" / "tls", folder)
    (folder / spoiled).write_text("no PEM")

    server = launch("--tls-cert", str(folder / "cert.pem"), "--tls-key", str(folder / "key.pem"))

    assert server.process.wait() == 2
    assert "babelserve: --tls-cert, --tls-key: " in server.stderr()
    assert "cannot listen" not in server.stderr()


def test_free_ports_are_found_and_told(launch: Start) -> None:
    server = launch("--port", "0", "--metrics-port", "0", "--admin-port", "0")

    server.wait_until_serving()

    (line,) = [line for line in server.stderr().splitlines() if "SERVING" in line]
    port = line.partition("127.0.0.1:")[2].split()[0]
    assert int(port) > 0
    with open_stub(f"127.0.0.1:{port}") as stub:
        assert stub.ListModels(pb.ListModelsRequest(), timeout=TIMEOUT).models[0].name == "tiny"


def test_a_device_that_is_not_there_is_a_clear_fault(launch: Start) -> None:
    server = launch("--variant", "cuda-fp16", "--device", "cuda")

    assert server.process.wait() == 2
    assert "cuda" in server.stderr().lower()
    assert "Traceback" not in server.stderr()
