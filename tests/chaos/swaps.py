"""A broken server of one model, into whose folder versions are put: for faults at the moment when one takes over."""

import asyncio
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from babelserve.v1.translation_pb2 import ListModelsRequest
from tests.acceptance.calls import open_stub
from tests.acceptance.model_swaps import put
from tests.acceptance.server_process import BUILTIN_BUNDLE
from tests.chaos.clients import Clients
from tests.chaos.servers import BrokenServer, broken_server

_NUM_CALLERS = 8
_TIMEOUT_SECONDS = 30.0
_FAILED = "the folder could not be followed"


@dataclass(frozen=True, slots=True)
class Versions:
    """A server, and the folder of its model."""

    server: BrokenServer
    folder: Path

    def put_next(self) -> str:
        """Puts a version into place that is to take over, and returns its name."""
        version = str(1 + max(int(each.name) for each in self.folder.iterdir()))
        put(BUILTIN_BUNDLE, self.folder / version)
        return version

    def num_failures(self) -> int:
        """How often the log has said that a version could not take over."""
        return self.server.process.stderr().count(_FAILED)

    def is_served(self, version: str) -> bool:
        """Asks the server."""
        with open_stub(self.server.address) as stub:
            listed = stub.ListModels(ListModelsRequest(), timeout=_TIMEOUT_SECONDS)
        return version in [each.version for each in listed.models]


@contextmanager
def server_of_versions() -> Iterator[Versions]:
    """A server with a keyed network, in whose folder there is version 1."""
    with tempfile.TemporaryDirectory(prefix="babelserve-") as directory:
        folder = Path(directory, "model")
        folder.mkdir()
        put(BUILTIN_BUNDLE, folder / "1")
        with broken_server(flags=("--models", directory)) as server:
            yield Versions(server, folder)


async def swap_faults(versions: Versions, client: Clients, *, is_failure: bool) -> list[str]:
    """Puts a version into the folder whose takeover a fault strikes, while calls come in.

    Args:
        versions: of a server whose fault is armed.
        client: that calls.
        is_failure: whether the version must fail to take over, which the log has to tell; the next one must succeed.
    """
    took_over, is_told = await _swap(versions, client)
    faults = []
    if (took_over, is_told) != (not is_failure, is_failure):
        faults.append(f"took over: {took_over}, told that it could not: {is_told}")
    if not took_over and await _swap(versions, client) != (True, False):
        faults.append("the next version did not take over")
    return faults


async def _swap(versions: Versions, client: Clients) -> tuple[bool, bool]:
    """Puts a version into the folder; returns whether it has taken over, and whether the log says that it could not."""
    num_failures = versions.num_failures()
    version = await asyncio.to_thread(versions.put_next)
    took_over = is_told = False
    end = time.monotonic() + _TIMEOUT_SECONDS
    while not (took_over or is_told) and time.monotonic() < end:
        await client.closed(_NUM_CALLERS, 0.5)
        took_over = await asyncio.to_thread(versions.is_served, version)
        is_told = versions.num_failures() > num_failures
    return took_over, is_told
