"""W1, W2: what callers over HTTP get when there is too much to do, and beside callers over gRPC."""

import statistics
from collections.abc import Iterator

from tests.acceptance.report import Check
from tests.bench.statistics import median_ratio
from tests.chaos.bench import Plan, bench
from tests.chaos.callers import percentile
from tests.chaos.case import Case, Options, told
from tests.chaos.journal import OK, OVERLOAD_CODES, QUICK_LATE_SECONDS
from tests.chaos.observations import watched_health
from tests.chaos.overload import KEYED, KEYED_FLAGS, measure

_BUSY = 0.8  # of saturation
_MOST_SLOWER = 1.1
_TURNS, _TURN_SECONDS = 10, 12  # of each front, so that a busy machine slows both alike


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
    """W2: the same calls over HTTP and over gRPC, in turn, at 80 % of what the server can do.

    Calls arrive at the same moments over both in a turn, and at others in the next.
    """
    plan = Plan(sentences=1, calm_seconds=8.0, is_http=True)
    if options.is_quick:
        plan = Plan(sentences=2, beam_size=1, spec=KEYED, flags=KEYED_FLAGS, is_http=True)
    latencies: dict[bool, list[list[float]]] = {False: [], True: []}
    loads: dict[bool, list[float]] = {False: [], True: []}
    with bench(plan) as system:
        system.measure_saturation(4.0)
        system.measure_saturation(options.count(8, 4))
        for turn in range(options.count(_TURNS, 1)):
            for is_http in (False, True) if turn % 2 else (True, False):
                outcomes = system.at(_BUSY, options.count(_TURN_SECONDS, 3), None, is_http=is_http, seed=turn)
                check = system.judged("over HTTP" if is_http else "over gRPC", outcomes, [OK])
                yield from [] if check.passed else [check]
                latencies[is_http].append(outcomes.latencies())
                loads[is_http].append(outcomes.client_load)
    for percent in (50, 95, 99):
        grpc, http = ([percentile(turn, percent) for turn in latencies[is_http]] for is_http in (False, True))
        ratio, milliseconds = median_ratio(http, grpc), [1000 * statistics.median(each) for each in (grpc, http)]
        measured = "{:.1f} ms over gRPC, {:.1f} ms over HTTP, medians of turns: ".format(*milliseconds) + str(ratio)
        is_bar = percent == 95 and not options.is_quick  # the quick part runs on busy machines
        passed = ratio.value <= _MOST_SLOWER if is_bar else None
        yield Check(f"p{percent} at {_BUSY:.0%}", measured, f"<= {_MOST_SLOWER:g}" if is_bar else "", passed)
    yield told("calls", "{} over gRPC, {} over HTTP".format(*(sum(map(len, each)) for each in latencies.values())))
    yield told("the client's core", f"{max(loads[False]):.0%} over gRPC, {max(loads[True]):.0%} over HTTP, at most")


CASES = (
    Case("W1", "more than the server can do, over HTTP", overloaded),
    Case("W2", "as fast over HTTP as over gRPC", beside),
)
