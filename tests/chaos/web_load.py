"""W1, W2: what callers over HTTP get when there is too much to do, and beside callers over gRPC."""

from collections.abc import Iterator

from tests.acceptance.report import Check
from tests.chaos.bench import Plan, bench
from tests.chaos.callers import percentile
from tests.chaos.case import Case, Options, told
from tests.chaos.journal import OK, OVERLOAD_CODES, QUICK_LATE_SECONDS
from tests.chaos.observations import watched_health
from tests.chaos.overload import KEYED, KEYED_FLAGS, measure

_BUSY = 0.8  # of saturation
_MOST_SLOWER = 1.1
_TURN_SECONDS = 8.0  # of each front in turn, so that a busy machine slows both alike


def overloaded(options: Options) -> Iterator[Check]:
    """W1: R2 over HTTP. Callers say how long they wait, and hang up then."""
    if not options.is_quick:
        plan = Plan(multiples=(1.3, 3.0, 10.0), seconds=30.0, with_retries=(False,), is_http=True)
        yield from measure(plan)
        return
    plan = Plan(sentences=2, beam_size=1, spec=KEYED, flags=KEYED_FLAGS, is_http=True)
    with bench(plan) as system:
        system.measure_saturation(4.0)
        with watched_health(system.server, system.http_port) as health:
            outcomes = system.overload(3.0, 5.0, with_retries=False)
    share = outcomes.goodput / system.saturation
    yield system.judged("3x", outcomes, OVERLOAD_CODES, QUICK_LATE_SECONDS)
    yield Check("3x: goodput", f"{share:.0%} of saturation", ">= 25 %", share >= 0.25)
    yield told("3x: outcomes", str(dict(outcomes.journal.counts())))
    refused = len(outcomes.refusal_latencies())
    yield Check(
        "3x: refusals with Retry-After",
        f"{refused - outcomes.num_without_pushback} of {refused}",
        "all",
        refused > 0 and not outcomes.num_without_pushback,
    )
    yield Check("3x: health", f"{health.num_bad} of {health.num_asked} not SERVING", "<= 1", health.num_bad <= 1)


def beside(options: Options) -> Iterator[Check]:
    """W2: the same calls over HTTP and over gRPC, in turn, at 80 % of what the server can do."""
    plan = Plan(sentences=1, calm_seconds=8.0, is_http=True)
    if options.is_quick:
        plan = Plan(sentences=2, beam_size=1, spec=KEYED, flags=KEYED_FLAGS, is_http=True)
    latencies: dict[bool, list[float]] = {False: [], True: []}
    loads: dict[bool, list[float]] = {False: [], True: []}
    with bench(plan) as system:
        system.measure_saturation(4.0)
        system.measure_saturation(options.count(8, 4))
        for _ in range(options.count(6, 1)):
            for is_http in latencies:
                outcomes = system.at(_BUSY, options.count(int(_TURN_SECONDS), 3), None, is_http=is_http)
                check = system.judged("over HTTP" if is_http else "over gRPC", outcomes, [OK])
                yield from [] if check.passed else [check]
                latencies[is_http] += outcomes.latencies()
                loads[is_http].append(outcomes.client_load)
    for percent in (50, 95, 99):
        grpc, http = (percentile(latencies[is_http], percent) for is_http in (False, True))
        measured = f"{1000 * grpc:.1f} ms over gRPC, {1000 * http:.1f} ms over HTTP: {http / grpc:.2f}"
        is_bar = percent == 95 and not options.is_quick  # the quick part runs on busy machines
        passed = http <= _MOST_SLOWER * grpc if is_bar else None
        yield Check(f"p{percent} at {_BUSY:.0%}", measured, f"<= {_MOST_SLOWER:g}" if is_bar else "", passed)
    yield told("calls", f"{len(latencies[False])} over gRPC, {len(latencies[True])} over HTTP")
    yield told("the client's core", f"{max(loads[False]):.0%} over gRPC, {max(loads[True]):.0%} over HTTP, at most")


CASES = (
    Case("W1", "more than the server can do, over HTTP", overloaded),
    Case("W2", "as fast over HTTP as over gRPC", beside),
)
