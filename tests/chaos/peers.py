"""R10, R11, R12: peers that read slowly, send slowly, say nothing, or sit behind a network that loses packets."""

import asyncio
import os
import resource
import shutil
import socket
import struct
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress

import grpc

from babelserve.v1.translation_pb2 import TranslateStreamRequest
from babelserve.v1.translation_pb2_grpc import TranslationServiceStub
from tests.acceptance.report import Check
from tests.chaos.callers import percentile
from tests.chaos.case import Case, Options, Skipped, asynchronous, at_most, none, told
from tests.chaos.clients import Clients, clients
from tests.chaos.http2 import PREFACE, SETTINGS, frame, literal
from tests.chaos.journal import OK
from tests.chaos.observations import left_behind, metric, resources
from tests.chaos.requests import keyed_requests
from tests.chaos.servers import BrokenServer, broken_server

_HONEST_RATE = 20.0  # calls a second
_SECONDS, _QUICK_SECONDS = 20.0, 4.0  # of calm and of each trouble alike: a p99 of few calls says little
_SLOW_PEERS = 10
_MOST_BUSY_SECONDS, _QUIET_SECONDS = 30.0, 1.0
_MOST_GROWTH_BYTES = 32 << 20
_KIB_A_CONNECTION = 32.0
_FILES_PER_PROCESS = 9000  # a server's limit is often 10,240
_CHURN_RATE = 500.0
_LOSS = 0.2


async def slow(options: Options) -> list[Check]:
    """R10: readers that never read their stream, senders of a byte a second, and sockets that say nothing."""
    seconds = _QUICK_SECONDS if options.is_quick else _SECONDS
    with broken_server() as server:
        async with clients([server.address], keyed_requests(500)) as honest:
            await honest.open(_HONEST_RATE, seconds)
            calm_p99, first = _p99(honest, 0), len(honest.journal.entries)
            before = resources(server.pid)
            async with _lazy_readers(server), _lazy_writers(server):
                await _until_idle(server)  # what their texts cost is no matter of how they read
                await honest.open(_HONEST_RATE, seconds)
                during = resources(server.pid)
        left = await asyncio.to_thread(left_behind, server.process, before, 5.0)
    p99 = _p99(honest, first)
    growth = (during.resident_bytes - before.resident_bytes) / 2**20
    return [
        none("journal of honest callers", honest.faults([])),
        at_most("memory taken", growth, _MOST_GROWTH_BYTES / 2**20, " MiB"),
        _of_honest(p99, calm_p99, 1.5, options),
        none("left behind, 5 s after they left", left, "nothing"),
    ]


async def _until_idle(server: BrokenServer) -> None:
    """Waits until nothing is left to translate of what the readers asked for, or what they don't read holds it up."""
    deadline, before = time.monotonic() + _MOST_BUSY_SECONDS, -1.0
    while before != (before := metric(server.process, "generated_tokens_total")) and time.monotonic() < deadline:
        await asyncio.sleep(_QUIET_SECONDS)


@asynccontextmanager
async def _lazy_readers(server: BrokenServer) -> AsyncIterator[None]:
    """Streams of many sentences that nobody reads."""
    options = [("grpc.http2.lookahead_bytes", 1024)]
    async with grpc.aio.insecure_channel(server.address, options=options) as channel:
        stub = TranslationServiceStub(channel)
        request = TranslateStreamRequest(request=keyed_requests(1, 200).message(0))
        calls = [stub.TranslateStream(request) for _ in range(_SLOW_PEERS)]
        try:
            yield
        finally:
            for call in calls:
                call.cancel()


@asynccontextmanager
async def _lazy_writers(server: BrokenServer) -> AsyncIterator[None]:
    """Calls whose message comes byte by byte, and connections on which nothing ever comes."""
    host, port = server.process.host, server.process.port
    silent = [socket.create_connection((host, port)) for _ in range(_SLOW_PEERS)]
    writers = [(await asyncio.open_connection(host, port))[1] for _ in range(_SLOW_PEERS)]
    path = b"/babelserve.v1.TranslationService/Translate"
    fields = ((b":path", path), (b":authority", b"x"), (b"te", b"trailers"), (b"content-type", b"application/grpc"))
    headers = b"\x83\x86" + b"".join(literal(*each) for each in fields)

    async def drip() -> None:
        for writer in writers:
            writer.write(PREFACE + frame(SETTINGS, 0, 0) + frame(1, 4, 1, headers))
            writer.write(frame(0, 0, 1, struct.pack(">BI", 0, 1000)))
        while True:
            for writer in writers:
                writer.write(frame(0, 0, 1, b"x"))
            await asyncio.sleep(1.0)

    dripping = asyncio.create_task(drip())
    try:
        yield
    finally:
        dripping.cancel()
        for writer in writers:
            writer.close()
        for each in silent:
            each.close()


async def crowded(options: Options) -> list[Check]:
    """R11: thousands of idle connections, then hundreds that come and go every second."""
    num_idle = min(options.count(_FILES_PER_PROCESS, 500), _spare_files())
    seconds = _QUICK_SECONDS if options.is_quick else _SECONDS
    with broken_server() as server:
        async with clients([server.address], keyed_requests(500)) as honest:
            await honest.open(_HONEST_RATE, seconds)
            calm_p99 = _p99(honest, 0)
            before = resources(server.pid)
            idle = [await _idle_connection(server) for _ in range(num_idle)]
            during = resources(server.pid)
            first = len(honest.journal.entries)
            await honest.open(_HONEST_RATE, seconds)
            idle_p99 = _p99(honest, first)
            for writer in idle:
                writer.close()
            first = len(honest.journal.entries)
            churning = asyncio.create_task(_churn(server, seconds))
            await honest.open(_HONEST_RATE, seconds)
            num_churned = await churning
            churn_p99 = _p99(honest, first)
        left = await asyncio.to_thread(left_behind, server.process, before, 5.0)
    kib = (during.resident_bytes - before.resident_bytes) / 1024 / num_idle
    return [
        none("journal of honest callers", honest.faults([])),
        told("idle connections", str(num_idle)),
        at_most("memory of one", kib, _KIB_A_CONNECTION, " KiB"),
        _of_honest(idle_p99, calm_p99, 1.5, options),
        told("connections that came and went", f"{num_churned / seconds:.0f} a second"),
        _of_honest(churn_p99, calm_p99, 2.0 if options.is_quick else 1.5, options),
        none("left behind, 5 s after they left", left, "nothing"),
    ]


def _spare_files() -> int:
    """Returns how many connections this process may open, and the server take."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(100, soft - 500)


async def _idle_connection(server: BrokenServer) -> asyncio.StreamWriter:
    reader, writer = await asyncio.open_connection(server.process.host, server.process.port)
    writer.write(PREFACE + frame(SETTINGS, 0, 0))
    await reader.readexactly(9)  # the server's own settings: it has taken the connection
    return writer


async def _churn(server: BrokenServer, seconds: float) -> int:
    started = time.perf_counter()
    num = 0
    while time.perf_counter() - started < seconds:
        with suppress(OSError, asyncio.IncompleteReadError):
            (await _idle_connection(server)).close()
        num += 1
        await asyncio.sleep(max(0.0, num / _CHURN_RATE - (time.perf_counter() - started)))
    return num


async def lossy(options: Options) -> list[Check]:
    """R12: packets that are lost, connections that are reset, and a network that goes away."""
    if os.geteuid() != 0 or not shutil.which("iptables"):
        raise Skipped("needs root and iptables")
    num_calls = options.count(100, 20)
    with broken_server() as server:
        keepalive = [("grpc.keepalive_time_ms", 2000), ("grpc.keepalive_timeout_ms", 1000)]
        async with clients([server.address], keyed_requests(200), max_attempts=4, options=keepalive) as client:
            await client.call()
            with _rule(server, "-m", "statistic", "--mode", "random", "--probability", str(_LOSS), "-j", "DROP"):
                lossy = [await client.call(timeout=20.0) for _ in range(num_calls)]
            with _rule(server, "-j", "REJECT", "--reject-with", "tcp-reset"):
                reset = await client.call(timeout=3.0)
            await asyncio.sleep(1.0)
            with _rule(server, "-j", "DROP"):
                gone = await client.call(timeout=10.0)
            await asyncio.sleep(1.0)
            back = await client.call(timeout=10.0)
    num_lost = sum(entry.outcome != OK for entry in lossy)
    lost_p99 = percentile([entry.latency for entry in lossy if entry.outcome == OK], 99)
    return [
        none("journal", client.faults(["UNAVAILABLE", "DEADLINE_EXCEEDED"])),
        Check(
            f"{_LOSS:.0%} of packets lost",
            f"{num_lost} of {num_calls} failed, p99 {lost_p99:.2f} s",
            "0",
            num_lost == 0,
        ),
        told("reset", f"{reset.outcome} after {reset.latency:.2f} s"),
        told("gone", f"{gone.outcome} after {gone.latency:.2f} s"),
        Check("back again", f"{back.outcome} after {back.latency:.2f} s", "OK", back.outcome == OK),
    ]


@contextmanager
def _rule(server: BrokenServer, *words: str) -> Iterator[None]:
    """A rule for all packets from and to the server's port; it ends with the block."""
    with ExitStack() as stack:
        for side in ("--dport", "--sport"):
            rule = ["INPUT", "-i", "lo", "-p", "tcp", side, str(server.process.port), *words]
            try:
                subprocess.run(["iptables", "-I", *rule], check=True, capture_output=True, text=True)
            except subprocess.CalledProcessError as error:
                raise Skipped(f"iptables: {error.stderr.strip()}") from error
            stack.callback(subprocess.run, ["iptables", "-D", *rule], check=True, capture_output=True)
        yield


def _p99(client: Clients, first: int) -> float:
    return percentile([entry.latency for entry in client.journal.entries[first:] if entry.outcome == OK], 99)


def _of_honest(p99: float, calm_p99: float, bar: float, options: Options) -> Check:
    """Returns a check of honest callers' latency; in the quick part, on busy machines, it only informs."""
    measured = f"{1000 * p99:.0f} ms, {p99 / calm_p99:.2f} of calm"
    return Check("p99 of honest callers", measured, f"<= {bar:g}", None if options.is_quick else p99 <= bar * calm_p99)


CASES = (
    Case("R10", "slow and silent peers", asynchronous(slow)),
    Case("R11", "idle connections, and ones that come and go", asynchronous(crowded)),
    Case("R12", "a network that loses packets", asynchronous(lossy)),
)
