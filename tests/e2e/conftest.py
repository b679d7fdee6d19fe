"""Real server processes that serve the tiny bundle."""

import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from server.bundle.bundle import Bundle
from tests.acceptance.server_process import ServerProcess, launch_server, running_server
from tests.samples import total

Start = Callable[..., ServerProcess]
_BETWEEN_SECONDS = 0.02  # readings of the metrics page: without a pause they take two processors


@pytest.fixture(scope="session")
def server(tiny_bundle: Bundle) -> Iterator[ServerProcess]:
    """One server for all tests that leave it as it was."""
    flags = ["--bundle", str(tiny_bundle.directory), "--variant", "cpu-fp32", "--reflection"]
    with running_server(flags) as server:
        yield server


@pytest.fixture
def launch(tiny_bundle: Bundle, tmp_path: Path) -> Iterator[Start]:
    """Starts a server with more flags, without waiting for it; it is stopped at the end."""
    with ExitStack() as stack:

        def launch(*flags: str) -> ServerProcess:
            common = ["--bundle", str(tiny_bundle.directory), "--variant", "cpu-fp32", "--lanes", "1"]
            server = launch_server(tmp_path / f"log-{len(list(tmp_path.iterdir()))}", [*common, *flags])
            stack.callback(server.process.wait)
            stack.callback(server.process.kill)
            return server

        yield launch


@pytest.fixture
def start(launch: Start) -> Start:
    """Starts a server with more flags and waits until it serves."""

    def start(*flags: str) -> ServerProcess:
        server = launch(*flags)
        return replace(server, seconds_to_serving=server.wait_until_serving())

    return start


def metric(server: ServerProcess, name: str, **labels: str) -> float:
    """Reads a sample, summed up over its other labels, off the server's metrics page."""
    with urllib.request.urlopen(server.metrics_url) as page:
        text = page.read().decode()
    return total(list(text_string_to_metric_families(text)), f"babelserve_{name}", **labels)


def wait_for_metric(server: ServerProcess, expected: float, name: str, **labels: str) -> None:
    """Reads the page until the sample is as expected."""
    wait_until(lambda: metric(server, name, **labels) == expected)


def wait_until(is_so: Callable[[], bool]) -> None:
    """Looks until it is so, now and then; the test's own time-out bounds it."""
    while not is_so():
        time.sleep(_BETWEEN_SECONDS)
