import contextlib
import gzip
import socket
import threading
import time
import urllib.request

import pytest

from server.telemetry import page
from server.telemetry.metrics import Metrics
from server.telemetry.page import MAX_CONNECTIONS, serve_page

HOST = "127.0.0.1"
SECONDS = 100.0


def read(port: int, accept: str = "*/*", encoding: str = "identity") -> tuple[str, bytes]:
    request = urllib.request.Request(
        f"http://{HOST}:{port}/metrics", headers={"Accept": accept, "Accept-Encoding": encoding}
    )
    with urllib.request.urlopen(request, timeout=SECONDS) as response:
        return response.headers["Content-Type"], response.read()


def num_page_threads() -> int:
    return sum("process_request_thread" in thread.name for thread in threading.enumerate())


def test_the_page_comes_in_both_formats_and_compressed(metrics: Metrics) -> None:
    with serve_page(HOST, 0, metrics.registry) as port:
        plain_type, plain = read(port)
        open_type, open_metrics = read(port, accept="application/openmetrics-text; version=1.0.0")
        _, compressed = read(port, encoding="gzip")

    assert plain_type.startswith("text/plain; version=0.0.4")
    assert open_type.startswith("application/openmetrics-text; version=1.0.0")
    assert open_metrics.endswith(b"# EOF\n")
    assert b"babelserve_requests_total{" in plain
    assert b"babelserve_requests_total{" in gzip.decompress(compressed)


def test_a_port_that_is_taken_is_an_error(metrics: Metrics) -> None:
    with serve_page(HOST, 0, metrics.registry) as port, pytest.raises(OSError, match="in use"):
        serve_page(HOST, port, metrics.registry).__enter__()


def test_peers_who_send_nothing_keep_no_scraper_out(metrics: Metrics) -> None:
    with serve_page(HOST, 0, metrics.registry) as port, contextlib.ExitStack() as stack:
        for _ in range(200):
            stack.enter_context(socket.create_connection((HOST, port), SECONDS))
        _, scraped = read(port)
        num_threads = num_page_threads()

    assert b"babelserve_requests_total{" in scraped
    assert num_threads <= MAX_CONNECTIONS + 1  # one may be on its way out


def test_a_peer_who_does_not_send_or_read_is_let_go(metrics: Metrics, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page._Handler, "timeout", 0.05)
    with serve_page(HOST, 0, metrics.registry) as port:
        with socket.create_connection((HOST, port), SECONDS) as silent:
            assert silent.recv(1) == b""  # the server has closed it
        deaf = socket.create_connection((HOST, port), SECONDS)
        deaf.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        deaf.close()
        monkeypatch.undo()
        _, scraped = read(port)

    assert scraped


def test_the_page_is_gone_after_its_block_and_its_port_free(metrics: Metrics) -> None:
    with serve_page(HOST, 0, metrics.registry) as port:
        pass

    with socket.create_server((HOST, port)):
        pass


def test_without_file_descriptors_the_page_waits_for_one(metrics: Metrics, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve_page(HOST, 0, metrics.registry) as port:
        accept = socket.socket.accept
        failures = iter([OSError(24, "Too many open files")] * 2)

        def accept_later(listening: socket.socket) -> object:
            for failure in failures:
                raise failure
            return accept(listening)

        monkeypatch.setattr(socket.socket, "accept", accept_later)
        started = time.monotonic()
        _, scraped = read(port)

    assert scraped
    assert time.monotonic() - started >= page._PAUSE_SECONDS
