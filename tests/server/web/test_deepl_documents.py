"""DeepL's paths for documents over a real socket; the engine echoes, and the processes are real."""

import re
from typing import Any
from urllib.parse import urlencode

import pytest

from server.access.access import Access
from tests.server.echo_engine import EchoEngine
from tests.server.web.client import Answer, head
from tests.server.web.conftest import BILLING, SHIPPING, Connect, OpenSite, Site
from tests.server.web.forms import upload

EN_DE = {"source_lang": "EN", "target_lang": "DE"}


async def status_of(site: Site, started: dict[str, str], prefix: str = "", **headers: str) -> Answer:
    key = {"document_key": started["document_key"]}
    return await site.call("POST", f"{prefix}/v2/document/{started['document_id']}", key, **headers)


async def at_its_end(site: Site, started: dict[str, str], prefix: str = "", **headers: str) -> Any:
    while True:
        shown = (await status_of(site, started, prefix, **headers)).json
        if shown["status"] in ("done", "error"):
            return shown


@pytest.mark.parametrize("prefix", ["", "/deepl"])
async def test_a_document_is_translated_and_stays_when_it_was_fetched(
    site: Site, connect: Connect, prefix: str
) -> None:
    started = (await upload(site, f"{prefix}/v2/document", EN_DE, "a.txt", b"A dog runs.")).json
    shown = await at_its_end(site, started, prefix)
    path = f"{prefix}/v2/document/{started['document_id']}/result"
    form = urlencode({"document_key": started["document_key"]}).encode()
    reader, writer = await connect(site.port)
    writer.write(head("HEAD", f"{path}?{form.decode()}", {}))
    looked_at = await reader.readuntil(b"\r\n\r\n")
    first = await site.call("POST", path, form, content_type="application/x-www-form-urlencoded")
    second = await site.call("POST", path, form, content_type="application/x-www-form-urlencoded")

    assert re.fullmatch("[0-9A-F]{32} [0-9A-F]{64}", " ".join(started.values()))
    assert shown == {
        "document_id": started["document_id"],
        "status": "done",
        "seconds_remaining": 0,
        "billed_characters": 11,
    }
    assert b" 200 " in looked_at
    assert [(each.status, each.body) for each in (first, second)] == [(200, b"A dog runs.")] * 2


async def test_it_cannot_be_fetched_before_its_end(site: Site, engine: EchoEngine) -> None:
    engine.is_holding = True
    started = (await upload(site, "/v2/document", EN_DE, "a.txt", b"A dog runs.")).json
    shown = (await status_of(site, started)).json
    key = {"document_key": started["document_key"]}
    early = await site.call("POST", f"/v2/document/{started['document_id']}/result", key)

    assert shown["status"] in ("queued", "translating")
    assert (early.status, early.json) == (503, {"message": "Document translation is not done"})


@pytest.mark.parametrize(
    ("fields", "name", "data", "words"),
    [
        (EN_DE, None, b"", "Invalid file data."),
        (EN_DE, "a.txt", b"", "Invalid file data."),
        (EN_DE, "a.invalid", b"A", "Invalid file extension"),
        (EN_DE | {"target_lang": "XX"}, "a.txt", b"A", "Value for 'target_lang' not supported."),
        (EN_DE | {"source_lang": "XX"}, "a.txt", b"A", "Value for 'source_lang' not supported."),
        (EN_DE | {"target_lang": "EN"}, "a.txt", b"A", "Source and target language are equal."),
        (EN_DE | {"output_format": "pdf"}, "a.txt", b"A", "output_format not supported."),
        (EN_DE | {"output_format": "html"}, "a.txt", b"A", "output_format not supported."),
        (EN_DE | {"glossary_id": "none"}, "a.txt", b"A", "Glossary not found"),
    ],
)
async def test_what_is_wrong_is_answered_in_its_words(
    site: Site, fields: dict[str, str], name: str | None, data: bytes, words: str
) -> None:
    answer = await upload(site, "/v2/document", fields, name, data)

    assert answer.status == 400
    assert words in answer.json["message"]


async def test_a_document_has_a_formality(site: Site, engine: EchoEngine) -> None:
    started = (await upload(site, "/v2/document", EN_DE | {"formality": "less"}, "a.txt", b"You run.")).json
    refused = await upload(site, "/v2/document", {"target_lang": "EN-US", "formality": "less"}, "a.txt", b"A")

    assert (await at_its_end(site, started))["status"] == "done"
    assert all(options.suppressed for options in engine.options)
    assert (refused.status, refused.json["message"]) == (400, "Target language 'EN-US' doesn't support formality.")


async def test_a_document_that_cannot_be_read_ends_with_an_error(site: Site) -> None:
    fields = EN_DE | {"output_format": "docx"}
    shown = await at_its_end(site, (await upload(site, "/v2/document", fields, "a.docx", b"no archive")).json)

    assert shown["status"] == "error"
    assert shown["error_message"].startswith("file: cannot be translated: it is no ZIP archive")
    assert shown["message"] == shown["error_message"]


async def test_a_document_needs_the_key_of_its_tenant_and_its_own(
    opening_http: OpenSite, access_of_two: Access
) -> None:
    own, other = ({"authorization": f"DeepL-Auth-Key {key}"} for key in (BILLING, SHIPPING))
    async with opening_http(access_of_two) as site:
        without = await upload(site, "/v2/document", EN_DE, "a.txt", b"A dog.")
        started = (await upload(site, "/v2/document", EN_DE, "a.txt", b"A dog.", **own)).json
        wrong = await status_of(site, started | {"document_key": "0" * 64}, **own)
        others = await status_of(site, started, **other)
        shown = await at_its_end(site, started, **own)

    assert [each.status for each in (without, wrong, others)] == [403, 404, 404]
    assert shown["status"] == "done"
