"""Decides once, from one snapshot of the engine, whether a request is admitted and which flows are in the background.

`docs/explanations/overload.md` has both rules, with the formula of the forecast and an example. A request that would be
late is refused at once, so hardly any waits in vain, and a refusal costs no step. Because sentences of the background
run in batches of their own, in the time that the foreground leaves (`server.engine.lane`), they do not make the steps
of others longer.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from server.engine.cost import CostModel, Demand
from server.engine.fair_queue import Load
from server.engine.flow import Flow
from server.engine.limits import EngineLimits
from server.errors import DeadlineExceeded, Overloaded
from server.shares import fair_level

# A request is long if it takes the engine more than this. Half, and a page counts as a document. Twice, and short
# requests wait for documents.
_LONG_SECONDS = 0.25
# A request is due after this many times what it takes alone. Half, and long requests overtake short ones. Twice, and
# long requests starve.
_PATIENCE = 20.0
# A flow is greedy if it wants this many times what the others want on average, for its weight. Half, and of equal flows
# some are taken for floods by chance. Twice, and a flood must be larger to be one.
_GREEDY = 2.0
_MARGIN = 1.5  # on forecasts of a busy engine: less, and answers come late; more, and requests are refused for nothing
HOPELESS = 4.0  # times the time that is left: the forecasts of an idle engine are no better than that
_RETRY_SECONDS = (0.05, 5.0)  # bounds of the time after which a refused caller may try again
_LASTING = 0.25  # of a refused request's wait, during which requests like it are refused without a look
# The same at least, whatever the wait. Half, and the event loop spends its time on reading what it refuses: with 1,500
# calls a second none is served. Twice, and requests that are shorter than the refused one are refused for nothing.
_LEAST_LASTING_SECONDS = 0.02
_FULL_SECONDS = 0.1  # the same, while the queue is full


class Request(NamedTuple):
    """What one request asks of an engine.

    Attributes:
        flow: of its tenant, or of the tenant's long requests if it is long.
        deadline: instant.
        due: instant by which it should start, which orders the requests of a flow.
    """

    demand: Demand
    flow: Flow
    deadline: float
    due: float


class Claim(NamedTuple):
    """What an active flow has of an engine, and wants of it.

    A flow is active while its sentences run or wait, and for a moment after its last request.

    Attributes:
        wanted: row-steps that it has lately asked for, admitted or not, plus the row-steps of its waiting sentences.
        rows: that its sentences hold and wait for.
    """

    weight: float
    wanted: float
    rows: int = 0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What an engine has to do at one instant, as one request sees it.

    Attributes:
        work_before: row-steps that wait in the request's flow and go before it.
        claims: of all active flows, with the request's, whose work is wanted already.
        background_pace: part of the time in which the background is stepped, over 0 to 1.
    """

    now: float
    work_before: float
    waiting: Load
    waiting_of_flow: Load
    claims: Mapping[Flow, Claim]
    background: Collection[Flow]
    background_pace: float


class Admission(NamedTuple):
    """The decision about a request that is admitted.

    Attributes:
        seconds: forecast of the time until its answer.
        background: flows that are in the background from then on.
    """

    seconds: float
    background: Collection[Flow]


def request_of(demand: Demand, flow: Flow, now: float, deadline: float, cost: CostModel) -> Request:
    """Returns a request of a tenant's flow that comes now.

    It is due when it must start to meet its deadline (least laxity first), or when it has waited `_PATIENCE` times as
    long as it takes alone. So short requests overtake a long one, but only for a while. Those of bulk calls go in the
    order in which they come: nobody waits for one of them, and a long one that is left to the end runs alone.
    """
    if cost.work_seconds(demand.work) > _LONG_SECONDS:
        flow = flow.of_long()
    alone = cost.alone_seconds(demand)
    return Request(demand, flow, deadline, now if flow.is_bulk else min(now + _PATIENCE * alone, deadline - alone))


def admit(request: Request, snapshot: Snapshot, cost: CostModel, limits: EngineLimits) -> Admission:
    """Admits a request or refuses it.

    Raises:
        Overloaded: the flow has its share of a full queue, or the answer would come too late.
        DeadlineExceeded: the answer of an idle engine would come much too late, so a retry is of no use.
    """
    demand, flow = request.demand, request.flow
    share = flow.weight / sum(claim.weight for claim in snapshot.claims.values())
    if not flow.is_begun:
        _check_queue(snapshot, share, limits)
    is_idle = not any(claim.rows for claim in snapshot.claims.values())
    own_claim = snapshot.claims[flow]
    own_rows = own_claim.rows + demand.rows * demand.num_sentences
    claims = {**snapshot.claims, flow: own_claim._replace(rows=own_rows)}
    background = _find_background(claims, snapshot.background, limits)
    is_background = flow in background
    shared_rows = sum(claim.rows for claim in claims.values())
    if not is_background:
        shared_rows -= sum(claims[each].rows for each in background)
    step_rows = min(shared_rows / limits.num_lanes, limits.lane.max_rows)
    step_seconds = max(cost.step_seconds(step_rows), cost.row_step_seconds * step_rows)
    own = cost.work_seconds(demand.work) + demand.steps * step_seconds
    before, other_work = snapshot.work_before, snapshot.waiting.work - snapshot.waiting_of_flow.work
    wait = cost.work_seconds(min(before / share, before + other_work))
    seconds = (wait + own) / (snapshot.background_pace if is_background else 1.0) * (1.0 if is_idle else _MARGIN)
    alone, left = cost.alone_seconds(demand), request.deadline - snapshot.now
    if alone > left * HOPELESS:
        raise DeadlineExceeded(_late(f"{_rounded(alone)} s of an idle server", left))
    if seconds > left and not is_idle:
        least, most = _RETRY_SECONDS
        retry = min(max(seconds - left, least), most)
        # The refusal says little about other requests if this one takes longer than it would wait, and nothing if it is
        # long.
        lasts = max(_LEAST_LASTING_SECONDS, min(retry, wait * _LASTING) if wait > own else 0.0)
        raise Overloaded(_late(f"{_rounded(seconds)} s", left), "deadline", retry, 0.0 if flow.is_long else lasts)
    return Admission(seconds, background)


def _check_queue(snapshot: Snapshot, share: float, limits: EngineLimits) -> None:
    """Raises Overloaded if the queue is full and the flow has its share of it."""
    waiting, of_flow = snapshot.waiting, snapshot.waiting_of_flow
    for reason, what, number, own, limit in (
        ("sentences", "sentences", waiting.num_sentences, of_flow.num_sentences, limits.max_waiting_sentences),
        ("tokens", "source tokens", waiting.num_tokens, of_flow.num_tokens, limits.max_waiting_tokens),
    ):
        if number >= limit and own >= limit * share:
            message = f"queue is full: {number} {what} wait, limit {limit}"
            raise Overloaded(message, reason, lasts_seconds=_FULL_SECONDS)


def _find_background(
    claims: Mapping[Flow, Claim], background: Collection[Flow], limits: EngineLimits
) -> Collection[Flow]:
    """Returns the flows that are in the background from now on, if flows have these claims.

    A flow of bulk calls always is, even if nobody else calls: otherwise the next caller would share its long steps
    until its running sentences have ended. Another flow enters the background if it has more rows than its share and
    wants much more than the others. Rows alone would not do, because every flow has many after the server was slow for
    a moment. It stays while it wants more than the others, even if all of its requests are refused.
    """
    level = fair_level(limits.num_lanes * limits.lane.max_rows, [(each.rows, each.weight) for each in claims.values()])
    all_weights, all_wanted = sum(each.weight for each in claims.values()), sum(each.wanted for each in claims.values())
    found = set()
    for flow, (weight, wanted, rows) in claims.items():
        stays = flow in background
        factor = 1.0 if stays else _GREEDY
        is_greedy = wanted * (all_weights - weight) > factor * weight * (all_wanted - wanted)
        if flow.is_bulk or (is_greedy and (stays or rows > level * weight)):
            found.add(flow)
    return found


def _late(takes: str, left: float) -> str:
    return f"the answer would take about {takes}, {_rounded(left)} s are left for it"


def _rounded(seconds: float) -> str:
    return f"{seconds:.2g}" if seconds < 10 else f"{seconds:.0f}"
