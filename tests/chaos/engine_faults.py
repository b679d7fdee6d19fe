"""R6, R7, R19: faults of the engine, struck by the launcher's failpoints while calls come in."""

import asyncio
import subprocess
import time
from collections.abc import Iterator, Sequence

from tests.acceptance.report import Check
from tests.chaos.case import Case, Options, asynchronous, none, told
from tests.chaos.clients import Clients, clients, keyed_load
from tests.chaos.failpoints import VALUED, Action, Point
from tests.chaos.journal import OK, WRONG
from tests.chaos.observations import Resources, is_serving, left_behind, resources
from tests.chaos.requests import keyed_requests
from tests.chaos.servers import BrokenServer, broken_server
from tests.chaos.swaps import Versions, server_of_versions, swap_faults

POINTS = (
    Point.ADMIT,
    Point.BEFORE_ENCODE,
    Point.AFTER_ENCODE,
    Point.BEFORE_STEP,
    Point.AFTER_STEP,
    Point.BEFORE_REPLY,
    Point.SWAP_COMMIT,
)
ACTIONS = (Action.RAISE, Action.SLEEP, Action.KILL, Action.CUDA, Action.NAN)
_ALLOWED = ["INTERNAL", "UNAVAILABLE", "RESOURCE_EXHAUSTED"]
_CALLERS = 8
_RECOVERY_SECONDS = 10.0
_SWAP_SECONDS = 5.0  # in which a version in the folder has been seen twice, and loaded, and takes over
_NOTICE_SECONDS = 30.0  # in which a server that cannot go on has to end, or to say so
_POINTS_IN_QUICK = (Point.AFTER_ENCODE, Point.BEFORE_STEP, Point.BEFORE_REPLY)


def struck_once(options: Options) -> Iterator[Check]:
    """R7: every point with every action that there can be, 31: no call hangs, is lost, or says UNKNOWN."""
    pairs = [(point, action) for point in POINTS for action in ACTIONS if action is not Action.NAN or point in VALUED]
    if options.is_quick:
        pairs = [pair for pair in pairs if pair[0] in _POINTS_IN_QUICK and pair[1] is not Action.SLEEP]
    # One server takes all the faults that it has to survive, one after another.
    fatal = [pair for pair in pairs if _ends_process(*pair)]
    num_passed = 0
    with server_of_versions() as versions:
        before = None
        for point, action in [pair for pair in pairs if pair not in fatal]:
            before = before or _warmed(versions.server)
            faults = asyncio.run(_survives(versions, point, action)) + left_behind(versions.server.process, before)
            num_passed += not faults
            yield none(f"{point.value}, {action.value}", faults, "as promised")
    for point, action in fatal:
        with server_of_versions() as versions:
            faults = asyncio.run(_ends(versions, point, action))
        num_passed += not faults
        yield none(f"{point.value}, {action.value}", faults, "as promised")
    yield Check("points and actions", f"{num_passed} of {len(pairs)}", f"{len(pairs)}", num_passed == len(pairs))
    yield told(
        "not there, of the plan's 35",
        "NaN at admit, before_encode, before_reply and swap_commit, 4: integers, text and models go by there",
    )


def _ends_process(point: Point, action: Action) -> bool:
    """Says whether a fault must end the process: after such an error of the network every CUDA context is lost."""
    is_in_network = point in (Point.BEFORE_ENCODE, Point.AFTER_ENCODE, Point.BEFORE_STEP, Point.AFTER_STEP)
    return action is Action.KILL or (action is Action.CUDA and is_in_network)


def _warmed(server: BrokenServer) -> Resources:
    asyncio.run(keyed_load(server.address, 1.0))
    return resources(server.pid)


async def _survives(versions: Versions, point: Point, action: Action) -> list[str]:
    server = versions.server
    async with clients([server.address], keyed_requests(200)) as client:
        load = asyncio.create_task(client.closed(_CALLERS, 0.6, timeout=10.0))
        await asyncio.sleep(0.2)
        await asyncio.to_thread(server.arm, point, action)
        await load
        is_swap = point is Point.SWAP_COMMIT
        faults = await swap_faults(versions, client, is_failure=action is not Action.SLEEP) if is_swap else []
        faults += client.faults(_ALLOWED)
        if not await _recovers(server, client):
            faults.append(f"no call is answered, or not SERVING, {_RECOVERY_SECONDS:g} s after it")
    return faults


async def _recovers(server: BrokenServer, client: Clients) -> bool:
    """Waits until calls are answered and health says so (P6): a lane that failed has to prove itself first."""
    end = time.monotonic() + _RECOVERY_SECONDS
    while time.monotonic() < end:
        entry = await client.call()
        if entry.outcome == OK and await asyncio.to_thread(is_serving, server.process.health_address):
            return True
        await asyncio.sleep(0.1)
    return False


async def _ends(versions: Versions, point: Point, action: Action) -> list[str]:
    server, is_swap = versions.server, point is Point.SWAP_COMMIT
    async with clients([server.address], keyed_requests(200)) as client:
        load = asyncio.create_task(client.closed(_CALLERS, _SWAP_SECONDS if is_swap else 1.0, timeout=60.0))
        await asyncio.sleep(0.2)
        await asyncio.to_thread(server.arm, point, action)
        if is_swap:
            await asyncio.to_thread(versions.put_next)
        try:
            code = await asyncio.to_thread(server.process.process.wait, _NOTICE_SECONDS)
        except subprocess.TimeoutExpired:
            code = None
        await load
        faults = client.faults(["UNAVAILABLE"])
    if code is None:
        faults.append(f"the process goes on {_NOTICE_SECONDS:g} s later")
    elif code == 0:
        faults.append("exit code 0")
    return faults


async def stuck(options: Options) -> list[Check]:
    """R6: a lane that hangs, and one that dies: calls under way are answered, and somebody is told."""
    checks: list[Check] = []
    for action in (Action.HANG, Action.PANIC):
        with broken_server() as server:
            async with clients([server.address], keyed_requests(200)) as client:
                await client.call()
                await asyncio.to_thread(server.arm, Point.BEFORE_STEP, action)
                started = time.perf_counter()
                calls = [asyncio.create_task(client.call(timeout=60.0)) for _ in range(_CALLERS)]
                noticed = asyncio.create_task(_verdict(server, ["readiness", "liveness"], may_recover=True))
                await asyncio.gather(*calls)
                answered_seconds = time.perf_counter() - started
                state, seconds = await noticed
        name = action.value
        checks += [
            none(f"{name}: journal", client.faults(_ALLOWED)),
            told(f"{name}: calls", str(dict(client.journal.counts()))),
            Check(f"{name}: all answered after", f"{answered_seconds:.1f} s", "<= 35 s", answered_seconds <= 35.0),
            Check(f"{name}: {state}", f"after {seconds:.1f} s", "<= 35 s", seconds <= 35.0),
        ]
    return checks


async def _verdict(server: BrokenServer, services: Sequence[str], *, may_recover: bool) -> tuple[str, float]:
    """Waits until a broken server ends, says that it is broken, or is whole again; returns which, and after how long.

    Args:
        server: with its fault.
        services: of health, all of which must say so.
        may_recover: whether an answered call is the end of it.
    """
    started, process = time.monotonic(), server.process.process
    while (passed := time.monotonic() - started) < _NOTICE_SECONDS + 10.0:
        if process.poll() is not None:
            return f"ended with {process.returncode}", passed
        serving = [await asyncio.to_thread(is_serving, server.process.health_address, name) for name in services]
        if not any(serving) and process.poll() is None:
            return f"{' and '.join(services)} NOT_SERVING", passed
        if may_recover and await _is_whole(server):
            return "whole again", passed
        await asyncio.sleep(0.2)
    return "unnoticed", float("inf")


async def _is_whole(server: BrokenServer) -> bool:
    async with clients([server.address], keyed_requests(3)) as client:
        return (await client.call(timeout=1.0)).outcome == OK


def lasting(options: Options) -> Iterator[Check]:
    """R19: what a GPU does when it fails: errors, NaN and constant tokens that do not end.

    Constant tokens are wrong answers that look right: only a canary tells, within 30 s of a busy lane.
    """
    actions = (Action.RAISE, Action.NAN, Action.CONSTANT, Action.CUDA)
    for action in actions[: options.count(len(actions), 2)]:
        point = Point.BEFORE_STEP if action in (Action.RAISE, Action.CUDA) else Point.AFTER_STEP
        with broken_server() as server:
            lines_before = len(server.process.stderr())
            server.arm(point, action, -1)
            started = time.monotonic()
            client, state, seconds = asyncio.run(_until_told(server))
            num_bytes = len(server.process.stderr()) - lines_before
        lasted = max(time.monotonic() - started, 1.0)
        faults = client.faults(_ALLOWED)
        if action is Action.CONSTANT:
            wrong = [fault for fault in faults if fault.endswith(WRONG)]
            faults = [fault for fault in faults if fault not in wrong]
            yield told("constant: until the canary", ", ".join(wrong))
        yield none(f"{action.value}: journal", faults)
        yield told(f"{action.value}: calls", str(dict(client.journal.counts())))
        is_told = seconds <= _NOTICE_SECONDS + 5.0
        yield Check(f"{action.value}: {state}", f"after {seconds:.1f} s", "<= 35 s", is_told)
        yield Check(f"{action.value}: log", f"{num_bytes / lasted / 1000:.1f} kB/s", "<= 20", num_bytes / lasted < 2e4)
    with broken_server() as server:
        server.arm(Point.BEFORE_STEP, Action.OOM)
        client = asyncio.run(keyed_load(server.address, 1.0))
        yield none("one out of memory: journal", client.faults([*_ALLOWED]))
        yield told("one out of memory: calls", str(dict(client.journal.counts())))


async def _until_told(server: BrokenServer) -> tuple[Clients, str, float]:
    """Calls until health says that the server is broken, or its process ends."""
    over = asyncio.Event()
    async with clients([server.address], keyed_requests(200)) as client:
        load = asyncio.create_task(client.open(50.0, _NOTICE_SECONDS + 10.0, until=over))
        state, seconds = await _verdict(server, ["readiness"], may_recover=False)
        over.set()
        await load
    return client, state, seconds


CASES = (
    Case("R6", "a lane that hangs, a lane that dies", asynchronous(stuck)),
    Case("R7", "every failpoint with every action", struck_once),
    Case("R19", "a network that fails for good, or lies", lasting),
)
