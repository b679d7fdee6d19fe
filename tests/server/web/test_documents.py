"""Our own API for documents over a real socket; the engine echoes, and the processes are real."""

import asyncio
import re
import tracemalloc
from typing import Any

import pytest

from server.access.access import Access
from server.documents.documents import MAX_FILE_BYTES, Limits
from server.telemetry.metrics import Metrics
from server.web.bodies import MAX_BODY_BYTES
from tests.server.documents.test_parsing_hostile import HOSTILE
from tests.server.echo_engine import EchoEngine
from tests.server.models.administered import until
from tests.server.web.client import Answer, head
from tests.server.web.conftest import BILLING, SHIPPING, Connect, OpenSite, Site
from tests.server.web.forms import form, upload

PATH = "/v1/documents"
EN_DE = {"sourceLanguageCode": "en", "targetLanguageCode": "de"}


async def at_its_end(site: Site, identity: str, **headers: str) -> dict[str, Any]:
    while True:
        shown: dict[str, Any] = (await site.call("GET", f"{PATH}/{identity}", **headers)).json
        if shown["state"] in ("DONE", "ERROR"):
            return shown
        await asyncio.sleep(0.02)


async def test_a_file_is_translated_and_fetched(site: Site) -> None:
    answer = await upload(site, PATH, EN_DE, "My report.html", b"<p>A <b>dog</b> runs.</p>")
    started = answer.json
    file = await site.call("GET", f"{PATH}/{started['id']}/file")
    shown = await at_its_end(site, started["id"])

    assert (answer.status, started["state"], started["fileName"]) == (200, "QUEUED", "My report.html")
    assert (file.status, file.body) == (200, b"<p>A <b>dog</b> runs.</p>")
    assert file.headers["content-type"] == "text/html; charset=utf-8"
    assert file.headers["content-disposition"] == "attachment; filename*=UTF-8''My%20report.html"
    assert (file.headers["content-security-policy"], file.headers["x-content-type-options"]) == ("sandbox", "nosniff")
    assert {name: shown[name] for name in ("state", "texts", "translatedTexts", "failedTexts", "secondsRemaining")} == {
        "state": "DONE",
        "texts": 1,
        "translatedTexts": 1,
        "failedTexts": 0,
        "secondsRemaining": 0,
    }


async def test_what_cannot_be_read_is_told_by_the_document_and_instead_of_the_file(site: Site) -> None:
    started = (await upload(site, PATH, EN_DE, "a.docx", b"no archive")).json
    shown = await at_its_end(site, started["id"])
    file = await site.call("GET", f"{PATH}/{started['id']}/file")

    assert shown["state"] == "ERROR"
    assert shown["error"]["message"].startswith("file: cannot be translated: it is no ZIP archive")
    assert (file.status, file.json["error"]) == (400, shown["error"])


async def test_a_document_that_is_one_too_many_is_refused_and_counted(
    site: Site, engine: EchoEngine, metrics: Metrics
) -> None:
    engine.is_holding = True
    statuses = [(await upload(site, PATH, EN_DE, "a.txt", b"A dog.")).status for _ in range(Limits().of_owner + 1)]

    assert statuses == [200] * Limits().of_owner + [429]
    assert metrics.registry.get_sample_value("babelserve_queue_rejected_total", {"reason": "memory"}) == 1


@pytest.mark.parametrize("name", ["a bomb", "a bomb that lies", "entities in each other", "an entity that is a file"])
async def test_a_hostile_document_is_refused_and_others_are_answered_meanwhile(site: Site, name: str) -> None:
    format_name, data, why = HOSTILE[name]
    started = (await upload(site, PATH, EN_DE, f"a.{format_name}", data)).json
    other = await site.call("POST", "/v1/translate", {"contents": ["A dog."], **EN_DE})
    file = await site.call("GET", f"{PATH}/{started['id']}/file")

    assert (other.status, file.status) == (200, 400)
    assert re.search(f"file: cannot be translated: it .*{why}", file.json["error"]["message"])


async def test_a_document_is_forgotten(site: Site) -> None:
    started = (await upload(site, PATH, EN_DE, "a.txt", b"A dog.")).json

    assert (await site.call("DELETE", f"{PATH}/{started['id']}")).status == 200
    gone = await site.call("GET", f"{PATH}/{started['id']}")
    assert (gone.status, gone.json["error"]["status"]) == (404, "NOT_FOUND")
    assert "not over a restart" in gone.json["error"]["message"]


@pytest.mark.parametrize(
    ("fields", "name", "words"),
    [
        ({}, "a.txt", "target_language_code"),
        (EN_DE, "a.pdf", "file: must have a name that ends in one of txt, html"),
        (EN_DE, None, "file: must be one file in a form of parts, not 0"),
        (EN_DE | {"glossary": "none"}, "a.txt", "none"),
        (EN_DE | {"model": "none"}, "a.txt", "none"),
        (EN_DE | {"term": "dog"}, "a.txt", "term: must be SOURCE=TARGET, not dog"),
        (EN_DE | {"term": f"dog={'x' * 201}"}, "a.txt", "200 characters"),
    ],
)
async def test_what_is_wrong_is_named(site: Site, fields: dict[str, str], name: str | None, words: str) -> None:
    answer = await upload(site, PATH, fields, name, b"A dog.")

    assert 400 <= answer.status <= 404
    assert words in answer.json["error"]["message"]


@pytest.mark.parametrize("body", [b"", b"{}", b'{"file": 1}', b'{"file": [null]}', b"\xff\xfe", b"--x\r\n"])
async def test_what_is_no_form_with_a_file_is_refused(site: Site, body: bytes) -> None:
    for kind in ("application/json", "multipart/form-data", "multipart/form-data; boundary=x", "text/plain"):
        assert (await site.call("POST", PATH, body, content_type=kind)).status == 400


async def test_files_have_a_limit(site: Site) -> None:
    long = await upload(site, PATH, EN_DE, "a.txt", b"x" * (MAX_FILE_BYTES + 1))
    longer = await upload(site, PATH, EN_DE, "a.txt", b"x" * (MAX_FILE_BYTES + (1 << 20)))
    empty = await upload(site, PATH, EN_DE, "a.txt", b"")

    assert [each.status for each in (long, longer, empty)] == [400, 413, 400]
    assert f"must have 1 to {MAX_FILE_BYTES} bytes" in long.json["error"]["message"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", f"{PATH}/ID"),
        ("GET", f"{PATH}/ID/file"),
        ("DELETE", f"{PATH}/ID"),
        ("GET", "/download_file/ID"),
        ("POST", "/v2/document/ID"),
        ("POST", "/v2/document/ID/result"),
    ],
)
async def test_only_an_upload_may_be_as_long_as_a_file(site: Site, method: str, path: str) -> None:
    assert (await site.call(method, path, bytes(MAX_BODY_BYTES + 1))).status == 413


async def test_the_body_of_a_caller_that_waits_for_a_file_takes_no_memory(
    site: Site, connect: Connect, engine: EchoEngine
) -> None:
    engine.is_holding = True
    started = (await upload(site, PATH, EN_DE, "a.txt", b"A dog.")).json
    await engine.submitted.wait()
    length = 4 << 20

    def is_let_go() -> bool:
        now, most = tracemalloc.get_traced_memory()
        return most > length and now < length / 2

    for path in (f"{PATH}/{started['id']}/file", f"/download_file/{started['id']}"):
        _, writer = await connect(site.port)
        tracemalloc.start()
        try:
            writer.write(head("GET", path, {"content-length": str(length)}))
            for _ in range(64):
                writer.write(bytes(length // 64))
                await writer.drain()
            await asyncio.wait_for(until(is_let_go), 10)
        finally:
            tracemalloc.stop()


async def test_a_document_is_its_tenants(opening_http: OpenSite, access_of_two: Access) -> None:
    async with opening_http(access_of_two) as site:
        without = await upload(site, PATH, EN_DE, "a.txt", b"A dog.")
        started = (await upload(site, PATH, EN_DE, "a.txt", b"A dog.", x_api_key=BILLING)).json
        other = await site.call("GET", f"{PATH}/{started['id']}", x_api_key=SHIPPING)
        own = await at_its_end(site, started["id"], x_api_key=BILLING)

    assert (without.status, other.status, own["state"]) == (401, 404, "DONE")


async def test_uploads_that_stop_half_way_leave_nothing(site: Site, connect: Connect) -> None:
    body, headers = form(EN_DE, "a.txt", b"A dog.")
    _, writer = await connect(site.port)
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    writer.write(f"POST {PATH} HTTP/1.1\r\nhost: a\r\ncontent-length: {len(body)}\r\n{lines}\r\n".encode() + body[:20])
    writer.close()
    answer: Answer = await site.call("GET", "/healthz")

    assert answer.status == 200
