"""R2 and S7: callers whose deadlines cannot hold for all, and a tenant that floods beside one, or four, that do not."""

import hashlib
import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from tests.acceptance.report import Check
from tests.acceptance.server_process import ServerNotServing, running_server
from tests.chaos.bench import CLIENT_CORE, SERVER_CORE, TIMEOUT_SECONDS, Bench, Plan, bench
from tests.chaos.callers import REFUSED, Callers, Outcomes, callers, percentile, pinned
from tests.chaos.case import Case, Options, Skipped, none, told
from tests.chaos.journal import OVERLOAD_CODES
from tests.chaos.load import Command
from tests.chaos.observations import metric
from tests.chaos.requests import golden_requests
from tests.chaos.servers import FLAGS

_LOOPS = ((20, 40), (20, 5), (100, 40), (100, 5))  # callers, sentences of a call
_MOST_WASTED = 0.05
_TENANTS = ("flood", "one", "two", "three", "four")
_TURNS = 3  # of calm and flood
_OTHERS_SHARE = 0.1  # of saturation, each
_SATURATION_SECONDS = 5.0
_MOST_SLOWER = 2.0


class _Flood(NamedTuple):
    """One of S7.

    Attributes:
        factor: of saturation, that it offers.
        sentences: of a call.
        num_others: tenants beside it.
        is_judged: whether there is a bar.
    """

    factor: float
    sentences: int
    num_others: int
    is_judged: bool = True


_FLOODS = (_Flood(10.0, 8, 1), _Flood(3.0, 1, 1), _Flood(10.0, 8, 4), _Flood(3.0, 1, 4, is_judged=False))


def crowds(options: Options) -> Iterator[Check]:
    """Closed loops: what is decoded is decoded for somebody who still waits."""
    for num_callers, sentences in _LOOPS[-1:] if options.is_quick else _LOOPS:
        with bench(Plan(sentences=sentences, beam_size=1)) as system:
            seconds = float(options.count(60, 6))
            rows_started = _rows(system)  # not 0: the bench has asked for some
            saturated = system.measure_saturation(options.count(15, 5))
            rows_before = _rows(system)
            rows_per_token = (rows_before - rows_started) / max(1, saturated.target_tokens)
            command = replace(system.command, seconds=seconds, callers=num_callers, timeout=TIMEOUT_SECONDS)
            outcomes = system.callers.run(command)
            rows = _rows(system) - rows_before
        name = f"{num_callers} callers of {sentences}"
        share = outcomes.goodput / system.saturation
        wasted = 1.0 - outcomes.target_tokens * rows_per_token / max(rows, 1.0)
        is_judged = not options.is_quick
        yield none(f"{name}: journal", outcomes.journal.faults(OVERLOAD_CODES))
        yield told(f"{name}: outcomes", str(dict(outcomes.journal.counts())))
        yield Check(f"{name}: goodput", f"{share:.0%} of saturation", ">= 90%", share >= 0.9 if is_judged else None)
        yield Check(
            f"{name}: decoded for callers who had left",
            f"{wasted:.1%} of tokens",
            f"<= {_MOST_WASTED:.0%}",
            wasted <= _MOST_WASTED if is_judged else None,
        )


def _rows(system: Bench) -> float:
    return metric(system.server, "batch_rows_sum")


def flooded(options: Options) -> Iterator[Check]:
    """S7: one tenant offers a multiple of what the server can do; the others ask for a tenth each, and notice little.

    As for R2, the server has one core and its callers have another. Floods come and go, each after as long without one:
    a virtual machine's speed may change by half from one minute to the next. Four others at a tenth each take most of
    that core themselves, as their batches are small; what it takes to refuse a flood of single sentences is more than
    they leave, so that flood is told of beside them, not judged.
    """
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        keys = {tenant: os.urandom(16).hex() for tenant in _TENANTS}
        (directory / "keys.toml").write_text("".join(_account(*each) for each in keys.items()))
        try:
            with pinned(SERVER_CORE):
                server = stack.enter_context(running_server([*FLAGS, "--keys", str(directory / "keys.toml")]))
        except ServerNotServing as error:
            raise Skipped(f"no --keys in this checkout: {str(error).splitlines()[-1]}") from error
        metadata = {tenant: [("authorization", f"Bearer {key}")] for tenant, key in keys.items()}
        requests = golden_requests(server.address, 64, beam_size=4, metadata=metadata["one"])
        load = Command(
            address=server.address,
            contents=requests.contents,
            expected=requests.expected,
            seconds=_SATURATION_SECONDS,
            timeout=TIMEOUT_SECONDS,
            connections=2,
            beam_size=4,
        )
        processes = {tenant: stack.enter_context(callers(CLIENT_CORE)) for tenant in _TENANTS}
        saturated = replace(load, callers=64, timeout=None, metadata=metadata["one"])
        saturation = processes["one"].run(saturated).goodput
        load = replace(load, seconds=float(options.count(30, 6)))
        loads = {
            tenant: replace(load, metadata=each, rate=_OTHERS_SHARE * saturation) for tenant, each in metadata.items()
        }
        for flood in _FLOODS:
            many = requests.joined(flood.sentences)
            rate = flood.factor * saturation / flood.sentences
            loads["flood"] = replace(loads["flood"], contents=many.contents, expected=many.expected, rate=rate)
            yield from _noticed(flood, *_take_turns(flood, processes, loads, options), options)


def _take_turns(
    flood: _Flood, processes: Mapping[str, Callers], loads: Mapping[str, Command], options: Options
) -> tuple[list[Outcomes], list[Outcomes], list[Outcomes]]:
    """Lets the others call without the flood and with it, by turns.

    Returns:
        What became of the flood's calls, of the others' beside it, and of the others' without it.
    """
    floods: list[Outcomes] = []
    during: list[Outcomes] = []
    calm: list[Outcomes] = []
    for turn in range(options.count(_TURNS, 1)):
        others = {
            tenant: replace(loads[tenant], seed=turn * len(_TENANTS) + place)
            for place, tenant in enumerate(_TENANTS[1 : 1 + flood.num_others], start=1)
        }
        calm += _at_once(processes, others).values()
        outcomes = _at_once(processes, {"flood": replace(loads["flood"], seed=turn + 1), **others})
        floods.append(outcomes.pop("flood"))
        during += outcomes.values()
    return floods, during, calm


def _noticed(
    flood: _Flood, floods: list[Outcomes], during: list[Outcomes], calm: list[Outcomes], options: Options
) -> Iterator[Check]:
    """Yields what the others noticed of a flood."""
    name = f"{flood.factor:g}x in calls of {flood.sentences}, beside {flood.num_others}"
    counts: Counter[str] = Counter()
    for each in floods:
        counts += each.journal.counts()
    yield told(f"{name}: the flood", str(dict(counts)))
    yield none(f"{name}: journal", [fault for each in during for fault in each.journal.faults(OVERLOAD_CODES)])
    num_refused = sum(each.journal.counts()[REFUSED] for each in during)
    num_calls = sum(len(each.journal.entries) for each in during)
    yield Check(f"{name}: refused", f"{num_refused} of {num_calls}", "0", num_refused == 0 if flood.is_judged else None)
    latencies, before = ([latency for each in part for latency in each.latencies()] for part in (during, calm))
    for percent in (50, 95, 99):
        found, least = percentile(latencies, percent), percentile(before, percent)
        is_judged = percent == 95 and flood.is_judged and not options.is_quick
        yield Check(
            f"{name}: p{percent}",
            f"{1000 * found:.0f} ms, {found / least:.2f} of the same without the flood",
            f"<= {_MOST_SLOWER:g}" if percent == 95 else "",
            found <= _MOST_SLOWER * least if is_judged else None,
        )


def _account(tenant: str, key: str) -> str:
    return f'[tenants.{tenant}]\n[[tenants.{tenant}.keys]]\nsha256 = "{hashlib.sha256(key.encode()).hexdigest()}"\n'


def _at_once(processes: Mapping[str, Callers], commands: dict[str, Command]) -> dict[str, Outcomes]:
    """Runs loads side by side."""
    for tenant, command in commands.items():
        processes[tenant].start(command)
    return {tenant: processes[tenant].finish() for tenant in commands}


CASES = (
    Case("R2-callers", "callers whose deadlines cannot hold for all", crowds),
    Case("S7", "a tenant that floods", flooded),
)
