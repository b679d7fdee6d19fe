"""R15 to R18: a machine with little memory, no room on its disks, no time, and a clock that jumps."""

import asyncio
import os
import shutil
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from tests.acceptance.report import Check
from tests.acceptance.server_process import ServerNotServing, running_server
from tests.chaos.callers import percentile
from tests.chaos.case import Case, Options, Skipped, asynchronous, none, told
from tests.chaos.clients import clients, keyed_load
from tests.chaos.journal import OK
from tests.chaos.observations import metric, watched_health
from tests.chaos.requests import Requests, golden_requests
from tests.chaos.servers import FLAGS, broken_server

_MEMORY = Path("/sys/fs/cgroup/memory")
_CPU = Path("/sys/fs/cgroup/cpu")
_MEMORY_LIMIT = 1 << 30  # as deploy/ ships it
_LARGE_TEXT = f"The old man walks {'slowly ' * 24}over the bridge. " * 9_000  # 1.8 MB
_JUMP_SECONDS = 3600
_CLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
static volatile long *offset;
__attribute__((constructor)) static void map_offset(void) {
  offset = mmap(0, sizeof *offset, PROT_READ, MAP_SHARED, open(getenv("CLOCK_OFFSET"), O_RDONLY), 0);
}
int clock_gettime(clockid_t id, struct timespec *now) {
  int failed = ((int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime"))(id, now);
  if (!failed && id == CLOCK_REALTIME && offset) now->tv_sec += *offset;
  return failed;
}
time_t time(time_t *seconds) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (seconds) *seconds = now.tv_sec;
  return now.tv_sec;
}
int gettimeofday(struct timeval *restrict value, void *restrict zone) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  *value = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
  return 0;
}
"""


@contextmanager
def _group(controller: Path, **values: int) -> Iterator[tuple[Path, Sequence[str]]]:
    """A cgroup (version 1), and the command that runs a command in it."""
    group = controller / f"babelserve-chaos-{os.getpid()}"
    try:
        group.mkdir()
        for name, value in values.items():
            (group / name.replace("_", ".", 1)).write_text(str(value))
    except OSError as error:
        raise Skipped(f"no cgroup can be made in {controller}: {error.strerror}") from error
    try:
        yield group, ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"]
    finally:
        with suppress(OSError):
            group.rmdir()


async def little_memory(options: Options) -> list[Check]:
    """R15: the largest legal requests, many at a time, inside the memory limit that is shipped."""
    num_calls = options.count(24, 8)
    large = Requests([[_LARGE_TEXT] * 2], [[]])
    with ExitStack() as stack:
        group, prefix = stack.enter_context(_group(_MEMORY, memory_limit_in_bytes=_MEMORY_LIMIT))
        server = stack.enter_context(running_server(FLAGS, prefix=prefix))
        before = int((group / "memory.usage_in_bytes").read_text())
        async with clients([server.address], large, beam_size=16) as client:
            await asyncio.gather(*(client.call(timeout=20.0) for _ in range(num_calls)))
            counts, details = client.journal.counts(), client.details
        small = golden_requests(server.address, 5, beam_size=1)
        async with clients([server.address], small) as client:
            after = [await client.call() for _ in range(5)]
        peak = int((group / "memory.max_usage_in_bytes").read_text())
        code = server.process.poll()
    return [
        told("calls", f"{dict(counts)} {sorted(details)}"),
        told("memory", f"{before / 2**20:.0f} MiB idle, peak {peak / 2**20:.0f} of {_MEMORY_LIMIT / 2**20:.0f} MiB"),
        Check("the server", "runs" if code is None else f"ended with {code}", "runs", code is None),
        Check(
            "calls after it", str([entry.outcome for entry in after]), "OK", all(each.outcome == OK for each in after)
        ),
    ]


async def no_room(options: Options) -> list[Check]:
    """R16: nowhere to write: no /tmp, a full disk under the log."""
    checks: list[Check] = []
    for name, environment, log in (("no /tmp", {"TMPDIR": "/nowhere"}, None), ("a full disk", {}, Path("/dev/full"))):
        prefix = ["env", *(f"{key}={value}" for key, value in environment.items())]
        redirect = ["sh", "-c", f'exec "$@" 2>{log} >{log}', "sh"] if log else []
        try:
            with broken_server(prefix=[*prefix, *redirect]) as server:
                client = await keyed_load(server.address, 1.0)
                code = server.process.process.poll()
        except ServerNotServing as error:
            checks.append(Check(f"{name}: start", str(error).splitlines()[0], "SERVING", passed=False))
            continue
        checks += [
            none(f"{name}: journal", client.faults([])),
            told(f"{name}: calls", str(dict(client.journal.counts()))),
            Check(f"{name}: the server", "runs" if code is None else f"ended with {code}", "runs", code is None),
        ]
    return checks


async def no_time(options: Options) -> list[Check]:
    """R17: half a processor, and other programs that want all of it."""
    if not shutil.which("stress-ng"):
        raise Skipped("stress-ng is missing (Debian: package `stress-ng`)")
    seconds = options.count(20, 5)
    cores = str(os.cpu_count())
    with ExitStack() as stack:
        _, prefix = stack.enter_context(_group(_CPU, cpu_cfs_quota_us=50_000))
        server = stack.enter_context(broken_server(prefix=prefix))
        stress = subprocess.Popen(["stress-ng", "--quiet", "--cpu", cores, "--timeout", f"{seconds}s"])
        stack.callback(stress.wait)
        with watched_health(server.process) as health:
            client = await keyed_load(server.address, float(seconds))
    latencies = [entry.latency for entry in client.journal.entries if entry.outcome == OK]
    return [
        none("journal", client.faults(["RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED"])),
        told("calls", f"{dict(client.journal.counts())}, p99 {percentile(latencies, 99):.2f} s"),
        Check("health", f"{health.num_bad} of {health.num_asked} not SERVING within 1 s", "0", not health.num_bad),
    ]


async def jumping_clock(options: Options) -> list[Check]:
    """R18: a wall clock that jumps by an hour. Deadlines and durations are of the monotonic clock.

    A library of our own shifts it for the whole process: faketime makes timed waits a hundred times as long.
    """
    if not shutil.which("cc"):
        raise Skipped("needs a C compiler")
    checks: list[Check] = []
    with tempfile.TemporaryDirectory(prefix="babelserve-") as directory:
        source, library, offset = (Path(directory) / name for name in ("clock.c", "clock.so", "offset"))
        source.write_text(_CLOCK)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
        offset.write_bytes(struct.pack("q", 0))
        with broken_server(prefix=["env", f"LD_PRELOAD={library}", f"CLOCK_OFFSET={offset}"]) as server:
            for seconds in (0, _JUMP_SECONDS, -_JUMP_SECONDS):
                jump = asyncio.get_running_loop().call_later(0.5, _write, offset, struct.pack("q", seconds))
                client = await keyed_load(server.address, 1.5)
                jump.cancel()
                now = time.time() - metric(server.process, "engine_last_step_timestamp_seconds")
                checks.append(none(f"journal, {seconds:+} s", client.faults([]), str(dict(client.journal.counts()))))
                checks.append(told("the server's clock", f"{-now:+.0f} s"))
            total = metric(server.process, "request_duration_seconds_sum")
            num = metric(server.process, "request_duration_seconds_count")
    return [*checks, Check("seconds of a call", f"{total / num:.2f}", "< 10", total / num < 10.0)]


def _write(path: Path, data: bytes) -> None:
    """Changes a file in place: it is mapped."""
    with path.open("r+b") as file:
        file.write(data)


CASES = (
    Case("R15", "little memory", asynchronous(little_memory)),
    Case("R16", "no room", asynchronous(no_room)),
    Case("R17", "no time", asynchronous(no_time)),
    Case("R18", "a clock that jumps", asynchronous(jumping_clock)),
)
