"""Calls without any protocol: how each can end."""

import asyncio
import logging

import pytest
from prometheus_client.openmetrics import exposition as openmetrics

from server.access.tenants import ANONYMOUS, Tenant, caller
from server.errors import (
    REJECT_REASONS,
    Code,
    DeadlineExceeded,
    InvalidRequest,
    NotServing,
    Overloaded,
    TranslationError,
)
from server.telemetry.log import add_facts, begin_request, facts
from server.telemetry.metrics import HTTP, Metrics
from server.telemetry.rate_limit import BURST, RateLimit
from server.telemetry.tracing import CallTrace, TraceParent, Tracing, current_trace
from server.translation.calls import Call, Calls, choose_id, let_in
from server.translation.memory import Holder, holder
from server.translation.running_calls import RunningCalls
from tests.fakes import FakeClock

SECRET = "secret sentence"
PARENT = TraceParent("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", is_sampled=True)
CALL = Call("Translate", "my-id", has_expired=lambda spare: False)


@pytest.fixture
def calls(metrics: Metrics) -> Calls:
    return Calls(metrics, RunningCalls(), 60.0)


def counted(metrics: Metrics, code: str, method: str = "Translate") -> float | None:
    return metrics.registry.get_sample_value("babelserve_requests_total", {"method": method, "code": code})


def refusals(metrics: Metrics, reason: str) -> float | None:
    return metrics.registry.get_sample_value("babelserve_queue_rejected_total", {"reason": reason})


async def raising(error: BaseException) -> None:
    raise error


async def test_an_answer_is_counted_and_logged_with_its_facts(
    calls: Calls, metrics: Metrics, caplog: pytest.LogCaptureFixture
) -> None:
    async def answer() -> int:
        add_facts(texts=2)
        return 42

    with caplog.at_level(logging.INFO):
        assert await calls.run(CALL, answer) == 42
        assert not caplog.records, "the answer goes first"
        await asyncio.sleep(0)

    assert counted(metrics, "OK") == 1
    (record,) = caplog.records
    facts = vars(record)["facts"]
    assert (facts["method"], facts["code"], facts["texts"]) == ("Translate", "OK", 2)


async def test_what_is_answered_in_time_is_goodput(calls: Calls, metrics: Metrics) -> None:
    async def answer() -> None:
        add_facts(target_tokens=7)

    await calls.run(CALL, answer)
    await calls.run(Call("Translate", "late", has_expired=lambda spare: True), answer)

    value = metrics.registry.get_sample_value
    assert counted(metrics, "OK") == 2
    assert value("babelserve_goodput_requests_total", {"method": "Translate"}) == 1
    assert value("babelserve_goodput_tokens_total") == 7


async def test_a_call_is_logged_with_its_trace_and_tells_it_to_who_records(
    metrics: Metrics, caplog: pytest.LogCaptureFixture
) -> None:
    codes: list[Code] = []

    class Recorded(CallTrace):
        def end(self, code: Code) -> None:
            codes.append(code)

    class Records(Tracing):
        def begin(self, method: str, request_id: str, parent: TraceParent | None) -> CallTrace:
            assert (method, request_id, parent) == ("Translate", "my-id", PARENT)
            return Recorded("4bf92f3577b34da6a3ce929d0e0e4736", is_sampled=True)

    async def answer() -> None:
        current_trace.get().add_sentence(0.1, 0.1, 0.1)
        raise InvalidRequest("field", "is wrong")

    calls = Calls(metrics, RunningCalls(), 60.0, Records())

    with caplog.at_level(logging.INFO):
        with pytest.raises(InvalidRequest):
            await calls.run(Call("Translate", "my-id", lambda spare: False, PARENT), answer)
        await asyncio.sleep(0)

    assert codes == [Code.INVALID_ARGUMENT]
    assert vars(caplog.records[0])["facts"]["trace_id"] == "4bf92f3577b34da6a3ce929d0e0e4736"
    page: bytes = openmetrics.generate_latest(metrics.registry)  # type: ignore[no-untyped-call]
    assert b"4bf92f3577b34da6a3ce929d0e0e4736" in page


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            InvalidRequest("decoding.beam_size", "must be from 1 to 8, not 99"),
            {"field": "decoding.beam_size", "rule": "must be from 1 to 8"},
        ),
        (
            InvalidRequest("target_language_code", f"must be one of de, en, not {SECRET}"),
            {"field": "target_language_code", "rule": "must be one of de, en"},
        ),
        (Overloaded("4096 sentences wait", "sentences"), {"reason": "sentences"}),
        (NotServing("loading"), {}),
    ],
)
async def test_the_log_says_what_was_refused_and_why_without_the_callers_value(
    calls: Calls, caplog: pytest.LogCaptureFixture, error: TranslationError, expected: dict[str, str]
) -> None:
    with caplog.at_level(logging.INFO):
        with pytest.raises(TranslationError):
            await calls.run(CALL, lambda: raising(error))
        await asyncio.sleep(0)

    (record,) = caplog.records
    facts = vars(record)["facts"]
    assert {name: facts[name] for name in facts.keys() - {"method", "front", "code", "seconds"}} == expected
    assert SECRET not in str(facts)


async def test_a_refused_call_is_counted_by_its_reason_and_no_other_is(calls: Calls, metrics: Metrics) -> None:
    for error in (Overloaded("full", "tokens"), Overloaded("late", "unfinished"), NotServing("loading")):
        with pytest.raises(TranslationError):
            await calls.run(CALL, lambda error=error: raising(error))  # type: ignore[misc]

    refused = {reason: count for reason in REJECT_REASONS if (count := refusals(metrics, reason))}
    assert refused == {"tokens": 1.0, "unfinished": 1.0}


async def test_a_declared_error_is_the_fronts_to_answer(calls: Calls, metrics: Metrics) -> None:
    error = InvalidRequest("field", "is wrong")

    with pytest.raises(InvalidRequest) as caught:
        await calls.run(CALL, lambda: raising(error))

    assert caught.value is error
    assert counted(metrics, "INVALID_ARGUMENT") == 1


async def test_any_other_error_has_fixed_words(calls: Calls, metrics: Metrics) -> None:
    with pytest.raises(TranslationError, match=r"^internal error$"):
        await calls.run(CALL, lambda: raising(ValueError(SECRET)))

    assert counted(metrics, "INTERNAL") == 1


@pytest.mark.parametrize("ending", [KeyboardInterrupt, SystemExit, GeneratorExit])
async def test_what_ends_the_process_is_not_kept_from_it(
    calls: Calls, metrics: Metrics, ending: type[BaseException]
) -> None:
    with pytest.raises(ending):
        await calls.run(CALL, lambda: raising(ending()))

    assert counted(metrics, "CANCELLED") == 1


async def test_a_cancellation_of_the_servers_own_making_is_answered(calls: Calls) -> None:
    with pytest.raises(NotServing):
        await calls.run(CALL, lambda: raising(asyncio.CancelledError()))


@pytest.mark.parametrize(("has_expired", "code"), [(False, "CANCELLED"), (True, "DEADLINE_EXCEEDED")])
async def test_a_caller_who_leaves_is_counted_by_why(
    calls: Calls, metrics: Metrics, has_expired: bool, code: str
) -> None:
    started = asyncio.Event()

    async def answer() -> None:
        started.set()
        await asyncio.Event().wait()

    running = asyncio.create_task(calls.run(Call("Translate", "id", lambda spare: has_expired), answer))
    await started.wait()
    running.cancel()

    with pytest.raises(asyncio.CancelledError):
        await running
    assert counted(metrics, code) == 1


async def test_a_call_that_hangs_ends_at_the_limit(metrics: Metrics) -> None:
    with pytest.raises(DeadlineExceeded, match=r"0\.01 seconds"):
        await Calls(metrics, RunningCalls(), 0.01).run(CALL, asyncio.Event().wait)


async def test_an_endless_call_has_no_limit(metrics: Metrics) -> None:
    endless = Call("TranslateBulk", "my-id", has_expired=lambda spare: False, is_endless=True)

    await Calls(metrics, RunningCalls(), 0.01).run(endless, lambda: asyncio.sleep(0.05))

    assert counted(metrics, "OK", "TranslateBulk") == 1


async def test_a_server_that_refuses_does_not_even_begin(metrics: Metrics) -> None:
    running = RunningCalls()
    running.refuse()

    with pytest.raises(NotServing):
        await Calls(metrics, running, 60.0).run(CALL, lambda: raising(AssertionError()))

    assert counted(metrics, "UNAVAILABLE") == 1


def test_only_a_plain_id_is_taken() -> None:
    assert choose_id("a.B-7_") == "a.B-7_"
    for odd in (None, "", "two words", "x" * 65, b"bytes", "line\nbreak"):
        assert len(choose_id(odd)) == 32


async def test_lines_of_refusals_are_few_and_say_how_many_are_missing(
    calls: Calls, metrics: Metrics, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FakeClock()
    monkeypatch.setitem(calls._lines, Code.RESOURCE_EXHAUSTED, RateLimit(clock))
    with caplog.at_level(logging.INFO):
        for _ in range(BURST + 3):
            with pytest.raises(Overloaded):
                await calls.run(CALL, lambda: raising(Overloaded("full", "sentences")))
        await asyncio.sleep(0)
        clock.now += 1.0
        with pytest.raises(Overloaded):
            await calls.run(CALL, lambda: raising(Overloaded("full", "sentences")))
        await asyncio.sleep(0)

    assert len(caplog.records) == BURST + 1
    assert vars(caplog.records[-1])["facts"]["suppressed"] == 3
    assert counted(metrics, "RESOURCE_EXHAUSTED") == BURST + 4
    assert metrics.registry.get_sample_value("babelserve_log_messages_suppressed_total") == 3


@pytest.mark.parametrize("error", [InvalidRequest("field", "is wrong"), DeadlineExceeded("late")])
async def test_calls_that_all_fail_alike_do_not_fill_the_log(
    calls: Calls, caplog: pytest.LogCaptureFixture, error: TranslationError
) -> None:
    with caplog.at_level(logging.INFO):
        for _ in range(3 * BURST):
            with pytest.raises(TranslationError):
                await calls.run(CALL, lambda: raising(error))
        await calls.run(CALL, lambda: asyncio.sleep(0))
        await asyncio.sleep(0)

    codes = [vars(record)["facts"]["code"] for record in caplog.records]
    assert BURST <= codes.count(error.code.name) < 2 * BURST
    assert codes[-1] == "OK"


async def test_calls_are_counted_by_their_front(calls: Calls, metrics: Metrics) -> None:
    refused = Call("Translate", "my-id", has_expired=lambda spare: False, front=HTTP)
    with pytest.raises(Overloaded):
        await calls.run(refused, lambda: raising(Overloaded("full", "sentences")))
    calls.count_other(Code.UNIMPLEMENTED)

    for front, code in (("http", "RESOURCE_EXHAUSTED"), ("grpc", "UNIMPLEMENTED")):
        labels = {"front": front, "code": code}
        assert metrics.registry.get_sample_value("babelserve_front_requests_total", labels) == 1
    assert counted(metrics, "UNIMPLEMENTED", "other") == 1


@pytest.mark.parametrize(
    ("tenant", "expected"),
    [(Tenant(name="billing", weight=2.0), Holder(name="billing", weight=2.0)), (ANONYMOUS, Holder(name="1.2.3.4"))],
)
async def test_a_tenant_takes_memory_by_its_name_and_others_by_their_address(tenant: Tenant, expected: Holder) -> None:
    async def enter() -> None:
        begin_request("my-id")
        let_in(tenant, "1.2.3.4")
        assert (caller.get(), holder.get(), facts()["tenant"]) == (tenant, expected, tenant.name)

    await asyncio.create_task(enter())
