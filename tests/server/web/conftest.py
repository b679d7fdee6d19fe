"""The application on a free port of the loopback, in front of an engine that echoes."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from server.access.access import Access
from server.access.keys import hash_key
from server.api.handlers import Api
from server.documents.documents import Documents
from server.fronts.in_process import InProcess
from server.telemetry.metrics import Metrics
from server.translation.calls import Calls
from server.translation.long_messages import LongMessages
from server.translation.running_calls import RunningCalls
from server.translation.translator import Translator
from server.web.app import create_app
from server.web.serving import HttpServer
from tests.server.web.client import Answer, call


@dataclass(frozen=True, slots=True)
class Site:
    """A server of HTTP that listens."""

    port: int
    server: HttpServer
    running: RunningCalls
    calls: Calls
    translator: Translator

    async def call(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Sends one request; a body that is no bytes goes as JSON. "_" in names of headers stands for "-"."""
        return await call(
            self.port, method, path, body, {name.replace("_", "-"): each for name, each in headers.items()}
        )


OpenSite = Callable[..., AbstractAsyncContextManager[Site]]


@pytest.fixture
def opening_http(metrics: Metrics, translator: Translator) -> OpenSite:
    """Opens a server; `max_connections`, `origins` and whom it lets in may be given."""

    @contextlib.asynccontextmanager
    async def opening(
        access: Access | None = None, *, origins: tuple[str, ...] = (), max_connections: int = 100
    ) -> AsyncIterator[Site]:
        access = access or Access(metrics.access)
        running = RunningCalls()
        calls = Calls(metrics, running, 65.0)
        backend = InProcess(Api(translator), calls, access, translator.memory, lambda: not running._is_refusing)
        documents = Documents(backend)
        app = create_app(backend, LongMessages(), documents, origins)
        server = HttpServer(
            app,
            "127.0.0.1",
            0,
            max_connections,
            lambda: not running._is_refusing,
            lambda: access.certificates,
            documents.close,
        )
        await server.start()
        try:
            yield Site(server.port, server, running, calls, translator)
        finally:
            await server.stop()

    return opening


@pytest_asyncio.fixture
async def site(opening_http: OpenSite) -> AsyncIterator[Site]:
    """A server that lets everybody in."""
    async with opening_http() as site:
        yield site


Connect = Callable[[int], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


@pytest_asyncio.fixture
async def connect() -> AsyncIterator[Connect]:
    """Opens connections, and closes them at the end."""
    writers: list[asyncio.StreamWriter] = []

    async def connect(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writers.append(writer)
        return reader, writer

    yield connect
    for writer in writers:
        writer.close()


BILLING, SHIPPING = "billing's key", "shipping's key"


@pytest.fixture
def access_of_two(metrics: Metrics, tmp_path: Path) -> Access:
    """Lets two tenants in, each by its key."""
    keys = tmp_path / "keys.toml"
    tenants = {"billing": BILLING, "shipping": SHIPPING}
    keys.write_text(
        "".join(f'[tenants.{name}]\nkeys = [{{ sha256 = "{hash_key(key).hex()}" }}]\n' for name, key in tenants.items())
    )
    return Access(metrics.access, keys=keys)
