"""R2-core: far more calls than a core can even refuse, sent by gRPC's own client.

    python -m tests.chaos.floods --connections 40 --multiples 10 30

As for R2, the server has one lane and one core, the client another one; calls of one sentence with beam 1 are the
cheapest to serve, so the flood has the most calls. Goodput counts calls that were answered rightly and in time.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence

from tests.acceptance.report import Check, print_checks
from tests.chaos.bench import Bench, Plan, bench
from tests.chaos.callers import REFUSED, Outcomes, percentile
from tests.chaos.case import Case, Options, told
from tests.chaos.journal import OVERLOAD_CODES
from tests.chaos.observations import is_serving

_LEAST_GOODPUT = {3.0: 0.9, 10.0: 0.45, 30.0: 0.3}  # of saturation, by how many times of it is offered
_MOST_REFUSED = 10.0  # times saturation; of more, gRPC itself ends some calls, without a word of ours
_GRPCS_OWN = ("CANCELLED", "UNAVAILABLE")
_SETTLE_SECONDS = 5.0


def measure(plan: Plan) -> Iterator[Check]:
    """Yields the table's lines, as they are measured."""
    with bench(plan) as system:
        system.measure_saturation(3.0)  # warms both up
        saturated = system.measure_saturation(plan.calm_seconds)
        where = f"{plan.connections} connections"
        yield Check(
            f"{where}: saturation, closed loop",
            f"{system.saturation:.0f} sentences/s; client {saturated.client_load:.0%} of a core",
        )
        for multiple in plan.multiples:
            outcomes = system.overload(multiple, plan.seconds, with_retries=False)
            yield from _checks(f"{where}, {multiple:g}x", system, outcomes, multiple)
            system.calm(_SETTLE_SECONDS)


def _checks(name: str, system: Bench, outcomes: Outcomes, multiple: float) -> Iterator[Check]:
    share = outcomes.goodput / system.saturation
    least = _LEAST_GOODPUT.get(multiple)
    yield system.judged(name, outcomes, {*OVERLOAD_CODES, *(_GRPCS_OWN if multiple > _MOST_REFUSED else ())})
    yield Check(
        f"{name}: goodput",
        f"{share:.0%} of saturation ({outcomes.goodput:.0f}/s), {outcomes.offered:.0f} calls/s offered",
        f">= {least:.0%}" if least else "",
        share >= least if least else None,
    )
    counts = ", ".join(f"{code} {count}" for code, count in outcomes.journal.counts().most_common())
    yield told(f"{name}: outcomes", counts)
    for what, latencies in (("accepted", outcomes.latencies()), ("refused", outcomes.latencies(REFUSED))):
        p50, p99 = (1000 * percentile(latencies, percent) for percent in (50, 99))
        yield told(f"{name}: {what}", f"p50 {p50:.0f}, p99 {p99:.0f} ms")
    refused = [entry for entry in outcomes.journal.entries if entry.outcome == REFUSED]
    without = sum(entry.pushback_ms is None for entry in refused)
    yield Check(f"{name}: refusals without pushback", str(without), "0", without == 0)
    healthy = is_serving(system.server.health_address)
    yield Check(f"{name}: health, on its own port", "SERVING" if healthy else "not SERVING", "SERVING", healthy)
    yield told(f"{name}: client", f"{1000 * outcomes.lag:.0f} ms late (p99), {outcomes.client_load:.0%} of a core")


def flooded(options: Options) -> Iterator[Check]:
    """R2-core: over few connections and over many."""
    seconds = float(options.count(20, 4))
    for connections in (4, 40):
        multiples = tuple(_LEAST_GOODPUT)
        plan = Plan(
            sentences=1, beam_size=1, connections=connections, is_core=True, seconds=seconds, multiples=multiples
        )
        yield from measure(plan)


CASES = (Case("R2-core", "far more calls than the server can refuse, from gRPC's own client", flooded),)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.floods", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--multiples", type=float, nargs="+", default=[3.0, 10.0, 30.0], help="of saturation")
    parser.add_argument("--connections", type=int, default=4, help="(%(default)s)")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each flood (%(default)s)")
    parser.add_argument("flags", nargs="*", help="of the server, after --")
    options = parser.parse_args(arguments)
    plan = Plan(
        sentences=1,
        multiples=tuple(options.multiples),
        seconds=options.seconds,
        calm_seconds=8.0,
        beam_size=1,
        connections=options.connections,
        flags=tuple(options.flags),
        is_core=True,
    )
    checks = []
    for check in measure(plan):
        checks.append(check)
        print(f"{check.name}: {check.measured} {check.verdict}", file=sys.stderr, flush=True)
    return print_checks(checks)


if __name__ == "__main__":
    sys.exit(main())
