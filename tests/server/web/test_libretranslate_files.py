"""LibreTranslate's paths for files over a real socket; the engine echoes, and the processes are real."""

import asyncio
import gc
import tracemalloc
from urllib.parse import urlsplit

import pytest

from server.access.access import Access
from server.documents.formats import FORMATS
from tests.children import children
from tests.server.echo_engine import EchoEngine
from tests.server.models.administered import until
from tests.server.web.client import head
from tests.server.web.conftest import BILLING, Connect, OpenSite, Site
from tests.server.web.forms import form, upload

EN_DE = {"source": "en", "target": "de"}


@pytest.mark.parametrize("prefix", ["", "/libretranslate"])
async def test_a_file_is_translated_and_its_address_answered(site: Site, prefix: str) -> None:
    answer = await upload(site, f"{prefix}/translate_file", EN_DE, "A report.txt", b"A dog runs.\n")
    address = urlsplit(answer.json["translatedFileUrl"])
    file = await site.call("GET", address.path)

    assert (address.scheme, address.netloc) == ("http", "test")
    assert address.path.startswith(f"{prefix}/download_file/")
    assert address.path.endswith(".A%20report.txt")
    assert (file.status, file.body) == (200, b"A dog runs.\n")
    assert file.headers["content-disposition"] == "attachment; filename*=UTF-8''A%20report.txt"


async def test_the_address_has_the_scheme_that_a_proxy_tells(site: Site) -> None:
    found = []
    for scheme in ("https", "javascript"):
        answer = await upload(site, "/translate_file", EN_DE, "a.txt", b"A dog.", x_forwarded_proto=scheme)
        found.append(urlsplit(answer.json["translatedFileUrl"]).scheme)

    assert found == ["https", "http"]


@pytest.mark.parametrize(
    ("fields", "name", "data", "words"),
    [
        (EN_DE, None, b"", "Invalid request: missing file parameter"),
        ({"target": "de"}, "a.txt", b"A", "Invalid request: missing source parameter"),
        ({"source": "en"}, "a.txt", b"A", "Invalid request: missing target parameter"),
        (EN_DE, "a.txt", b"", "Invalid request: empty file"),
        (EN_DE, "a.pdf", b"A", "Invalid request: file format not supported"),
        (EN_DE | {"target": "zz"}, "a.txt", b"A", "zz is not supported"),
        (EN_DE, "a.docx", b"A", "file: cannot be translated: it is no ZIP archive, or a damaged one"),
    ],
)
async def test_what_is_wrong_is_answered_in_its_words(
    site: Site, fields: dict[str, str], name: str | None, data: bytes, words: str
) -> None:
    answer = await upload(site, "/translate_file", fields, name, data)

    assert answer.status == 400
    assert answer.json["error"].startswith(words)


async def test_what_is_no_name_of_a_file_or_not_kept_is_answered_so(site: Site) -> None:
    wrong = await site.call("GET", "/download_file/../etc/passwd")
    no_uuid = await site.call("GET", "/download_file/a.txt")
    unknown = await site.call("GET", "/download_file/00000000-0000-0000-0000-000000000000.a.txt")

    assert wrong.status == 404
    assert (no_uuid.status, no_uuid.json) == (400, {"error": "Invalid filename"})
    assert (unknown.status, unknown.json["error"][:19]) == (404, "Document not found:")


async def test_the_work_ends_when_the_caller_hangs_up(site: Site, connect: Connect) -> None:
    before = children()
    body, headers = form(EN_DE, "a.txt", b"A dog.")
    _, writer = await connect(site.port)
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    head = f"POST /translate_file HTTP/1.1\r\nhost: a\r\ncontent-length: {len(body)}\r\n{lines}\r\n"
    writer.write(head.encode() + body)
    await until(lambda: bool(children() - before))
    begun = children() - before
    writer.close()

    await asyncio.wait_for(until(lambda: not children() & begun), 5)


async def test_a_key_comes_with_the_form_and_is_not_needed_to_fetch(
    opening_http: OpenSite, access_of_two: Access
) -> None:
    async with opening_http(access_of_two) as site:
        without = await upload(site, "/translate_file", EN_DE, "a.txt", b"A dog.")
        answer = await upload(site, "/translate_file", EN_DE | {"api_key": BILLING}, "a.txt", b"A dog.")
        file = await site.call("GET", urlsplit(answer.json["translatedFileUrl"]).path)

    assert (without.status, without.json) == (403, {"error": "Invalid API key"})
    assert (file.status, file.body) == (200, b"A dog.")


async def test_the_formats_are_told(site: Site) -> None:
    settings = (await site.call("GET", "/frontend/settings")).json

    assert settings["filesTranslation"] is True
    assert settings["supportedFilesFormat"] == [f".{extension}" for extension in FORMATS]
    assert settings["supportedFilesFormat"][0] == ".txt"


async def test_a_file_is_not_kept_in_memory_while_it_is_translated(
    site: Site, connect: Connect, engine: EchoEngine
) -> None:
    engine.is_holding = True
    line, num_lines = b"42\n" * 20_000, 64
    body, headers = form(EN_DE, "a.txt", b"|A dog runs.\n")
    before, behind = body.split(b"|")
    length = len(before) + num_lines * len(line) + len(behind)
    _, writer = await connect(site.port)

    tracemalloc.start()
    try:
        writer.write(head("POST", "/translate_file", headers | {"content-length": str(length)}) + before)
        for _ in range(num_lines):
            writer.write(line)
            await writer.drain()
        writer.write(behind)
        await engine.submitted.wait()
        gc.collect()
        num_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert num_bytes < length / 2
