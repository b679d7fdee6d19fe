import socket
from collections.abc import Iterator

import pytest

from babelserve import Client
from tests.babelserve.scripted_server import ScriptedServer, ScriptedService


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    server = ScriptedServer()
    yield server
    server.close()


@pytest.fixture
def service(server: ScriptedServer) -> ScriptedService:
    return server.service


@pytest.fixture
def client(server: ScriptedServer) -> Iterator[Client]:
    with Client(server.address, deadline_seconds=20) as client:
        yield client


@pytest.fixture
def dead_address() -> Iterator[str]:
    """An address that refuses connections: the port is taken, and nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"
