"""R2 and S7: callers whose deadlines cannot hold for all, and one tenant of five that floods."""

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from tests.acceptance.report import Check
from tests.acceptance.server_process import ServerNotServing, running_server
from tests.chaos.bench import CLIENT_CORE, SERVER_CORE, TIMEOUT_SECONDS, Bench, Plan, bench
from tests.chaos.callers import REFUSED, Callers, Outcomes, callers, percentile, pinned
from tests.chaos.case import Case, Options, Skipped, none, told
from tests.chaos.journal import OVERLOAD_CODES
from tests.chaos.load import Command
from tests.chaos.probes import metric
from tests.chaos.requests import golden_requests
from tests.chaos.servers import FLAGS

_LOOPS = ((20, 40), (20, 5), (100, 40), (100, 5))  # callers, sentences of a call
_MOST_WASTED = 0.05
_TENANTS = ("flood", "one", "two", "three", "four")
_FLOODS = ((10.0, 8, True), (3.0, 1, True), (10.0, 1, False))  # times saturation, sentences of a call, whether judged
_OTHERS_SHARE = 0.1  # of saturation, each
_SATURATION_SECONDS = 5.0


def crowds(options: Options) -> Iterator[Check]:
    """Closed loops: what is decoded is decoded for somebody who still waits."""
    for num_callers, sentences in _LOOPS[-1:] if options.is_quick else _LOOPS:
        with bench(Plan(sentences=sentences, beam_size=1)) as system:
            seconds = float(options.count(60, 6))
            saturated = system.measure_saturation(options.count(15, 5))
            rows_per_token = _rows(system) / max(1, saturated.target_tokens)
            rows_before = _rows(system)
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
    """S7: one tenant offers a multiple of what the server can do; the other four a tenth each, and notice little.

    As for R2, the server has one core and its callers have another. Each flood comes after as long without one, and is
    compared with all of that: a virtual machine's speed may change by half from one minute to the next. To refuse ten
    times as many single sentences takes a good part of that core, whoever asks (R2 allows for it), so that flood is
    told of, not judged.
    """
    seconds = float(options.count(60, 6))
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
        full = processes["one"].run(replace(load, callers=64, timeout=None, metadata=metadata["one"]))
        saturation = full.goodput
        each = replace(load, seconds=seconds, rate=_OTHERS_SHARE * saturation)
        others = {
            tenant: replace(each, metadata=metadata[tenant], seed=seed)
            for seed, tenant in enumerate(_TENANTS[1:], start=1)
        }
        calm: dict[str, list[float]] = {tenant: [] for tenant in others}  # latencies
        floods: dict[str, tuple[dict[str, Outcomes], bool]] = {}
        for factor, sentences, is_judged in _FLOODS:
            many = requests.joined(sentences)
            command = replace(load, contents=many.contents, expected=many.expected, metadata=metadata["flood"])
            flood = replace(command, seconds=seconds, rate=factor * saturation / sentences)
            for tenant, outcomes in _at_once(processes, others).items():
                calm[tenant] += outcomes.latencies()
            during = _at_once(processes, {"flood": flood, **others})
            floods[f"{factor:g}x in calls of {sentences}"] = during, is_judged
    for name, (during, is_judged) in floods.items():
        yield told(f"{name}: the flood", str(dict(during["flood"].journal.counts())))
        for tenant in others:
            yield from _noticed(f"{name}: {tenant}", during[tenant], calm[tenant], is_judged, options)


def _noticed(name: str, during: Outcomes, calm: list[float], is_judged: bool, options: Options) -> Iterator[Check]:
    """Yields what a tenant noticed of a flood."""
    found, before = (percentile(each, 95) for each in (during.latencies(), calm))
    num_refused = during.journal.counts()[REFUSED]
    yield none(f"{name}: journal", during.journal.faults(OVERLOAD_CODES))
    yield Check(f"{name}: refused", str(num_refused), "0", num_refused == 0 if is_judged else None)
    yield Check(
        f"{name}: p95",
        f"{1000 * found:.0f} ms, {found / before:.2f} of the same without the flood",
        "<= 1.5",
        found <= 1.5 * before if is_judged and not options.is_quick else None,
    )


def _account(tenant: str, key: str) -> str:
    return f'[tenants.{tenant}]\n[[tenants.{tenant}.keys]]\nsha256 = "{hashlib.sha256(key.encode()).hexdigest()}"\n'


def _at_once(processes: dict[str, Callers], commands: dict[str, Command]) -> dict[str, Outcomes]:
    """Runs loads side by side."""
    for tenant, command in commands.items():
        processes[tenant].start(command)
    return {tenant: processes[tenant].finish() for tenant in commands}


CASES = (
    Case("R2-callers", "callers whose deadlines cannot hold for all", crowds),
    Case("S7", "one tenant of five that floods", flooded),
)
