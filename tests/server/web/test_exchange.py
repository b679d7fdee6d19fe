"""How calls over HTTP begin and end, over real sockets."""

import json
import logging
import time
from pathlib import Path
from typing import Any

import pytest

from server.access.access import Access
from server.access.keys import hash_key
from server.errors import DeadlineExceeded, EngineFailed, NotServing, Overloaded, PermissionDenied, TranslationError
from server.telemetry.metrics import Metrics
from tests.server.echo_engine import EchoEngine
from tests.server.web.client import head
from tests.server.web.conftest import Connect, OpenSite, Site

REQUEST = {"contents": ["secret sentence"], "targetLanguageCode": "de"}


def count(metrics: Metrics, code: str) -> float | None:
    labels = {"front": "http", "code": code}
    return metrics.registry.get_sample_value("babelserve_front_requests_total", labels)


def request(path: str, body: Any, **headers: str) -> bytes:
    data = json.dumps(body).encode()
    return head("POST", path, {"content-length": str(len(data)), **headers}) + data


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (PermissionDenied("not allowed"), 403),
        (Overloaded("queue is full", "sentences"), 429),
        (NotServing("stopping"), 503),
        (DeadlineExceeded("too late"), 504),
        (EngineFailed("translation failed"), 500),
    ],
)
async def test_a_declared_error_is_answered_and_counted(
    site: Site, engine: EchoEngine, metrics: Metrics, error: TranslationError, status: int
) -> None:
    engine.refuses = error

    answer = await site.call("POST", "/v1/translate", REQUEST)

    assert answer.status == status
    assert answer.json["error"]["message"].startswith(str(error))
    assert count(metrics, error.code.name) == 1


async def test_an_unknown_exception_is_answered_with_fixed_words_and_the_request_id(
    site: Site, engine: EchoEngine
) -> None:
    engine.fails = lambda _: ValueError("secret sentence")

    answer = await site.call("POST", "/v1/translate", REQUEST, x_request_id="my-id")

    assert (answer.status, answer.headers["x-request-id"]) == (500, "my-id")
    assert answer.json["error"]["message"] == "internal error; request id my-id"


async def test_what_is_no_request_is_counted_and_logged_without_its_text(
    site: Site, metrics: Metrics, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        await site.call("POST", "/v1/translate", b"secret sentence", x_request_id="a b")

    (record,) = [record for record in caplog.records if record.message == "request"]
    facts = vars(record)["facts"]
    assert (facts["front"], facts["method"], facts["code"]) == ("http", "other", "INVALID_ARGUMENT")
    assert "secret" not in str(facts)
    assert count(metrics, "INVALID_ARGUMENT") == 1


@pytest.mark.parametrize("path", ["/v1/translate", "/v1/translate/stream"])
async def test_work_ends_when_the_caller_hangs_up(
    site: Site, connect: Connect, engine: EchoEngine, metrics: Metrics, path: str
) -> None:
    engine.is_holding = True
    _, writer = await connect(site.port)
    writer.write(request(path, REQUEST))
    await engine.submitted.wait()

    writer.close()
    await site.running.wait_until_idle()

    assert all(future.cancelled() for future in engine.futures)
    assert count(metrics, "CANCELLED") == 1


async def test_work_ends_when_the_caller_of_a_long_text_hangs_up(
    site: Site, connect: Connect, engine: EchoEngine, metrics: Metrics
) -> None:
    engine.is_holding = True
    _, writer = await connect(site.port)
    writer.write(request("/v1/translate", {"contents": ["A dog runs. " * 20_000], "targetLanguageCode": "de"}))
    await writer.drain()
    await engine.submitted.wait()

    writer.close()
    await site.running.wait_until_idle()

    assert count(metrics, "CANCELLED") == 1


async def test_a_caller_who_stays_gets_answer_after_answer(site: Site, connect: Connect) -> None:
    reader, writer = await connect(site.port)
    for _ in range(3):
        writer.write(request("/v1/translate", REQUEST))
        assert b"200 OK" in await reader.readuntil(b"\r\n\r\n")
        await reader.readuntil(b'"targetLanguageCode":"de"}')


async def test_keys_are_asked_for_and_quotas_are_the_tenants(
    opening_http: OpenSite, metrics: Metrics, tmp_path: Path
) -> None:
    keys = tmp_path / "keys.toml"
    keys.write_text(
        "[tenants.billing]\n"
        f'keys = [{{ sha256 = "{hash_key("key").hex()}" }}]\n'
        "quota = { rate = 0.01, burst = 0.01 }\n"
    )
    async with opening_http(Access(metrics.access, keys=keys)) as site:
        without = await site.call("POST", "/v1/translate", REQUEST)
        wrong = await site.call("POST", "/v1/translate", REQUEST, x_api_key="no")
        first = await site.call("POST", "/v1/translate", REQUEST, authorization="Bearer key")
        second = await site.call("POST", "/v1/translate", REQUEST, authorization="Bearer key")

    assert (without.status, wrong.status, first.status, second.status) == (401, 401, 200, 429)
    assert int(second.headers["retry-after"]) > 1
    assert "quota of tenant billing" in second.json["error"]["message"]


async def test_memory_is_given_back_when_the_answer_is_sent(site: Site) -> None:
    long = {"contents": ["A dog runs. " * 10_000], "targetLanguageCode": "de"}

    answer = await site.call("POST", "/v1/translate", long)

    assert len(answer.body) > 2 * 10_000 * 12
    assert answer.json["translations"][0]["text"] == long["contents"][0]
    assert site.translator.memory.used_bytes == 0


async def test_a_caller_may_say_how_long_it_waits(site: Site, engine: EchoEngine) -> None:
    await site.call("POST", "/v1/translate", REQUEST, x_request_timeout="2.5")

    (deadline,) = engine.deadlines
    assert deadline is not None
    assert 0.0 < deadline - time.monotonic() < 2.5


@pytest.mark.parametrize("given", ["", "0", "-1", "nan", "inf", "1e9", "2 s", "9" * 400, "\u0661"])
async def test_what_is_no_time_to_wait_is_refused(site: Site, given: str) -> None:
    answer = await site.call("POST", "/v1/translate", REQUEST, x_request_timeout=given)

    assert answer.status == 400
    assert answer.json["error"]["message"].startswith("x-request-timeout: must be a number of seconds above 0, not ")


@pytest.mark.parametrize("size", [9 << 20, 64 << 20])
async def test_who_sends_too_much_before_it_reads_comes_to_read_why(site: Site, size: int) -> None:
    answer = await site.call("POST", "/v1/translate", bytes(size))

    assert (answer.status, answer.headers["connection"]) == (413, "close")
