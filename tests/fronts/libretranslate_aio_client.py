"""Every call of libretranslate-aio that is served; run in its own environment, with the server's address."""

import asyncio
import io
import sys
import tempfile
from pathlib import Path

import httpx
from libretranslate_aio import AsyncLibreTranslate, LibreTranslate, exceptions


async def main(address: str) -> None:
    """Makes the calls, first in a thread's way and then in asyncio's. Raises AssertionError."""
    with LibreTranslate(address) as client:
        assert client.translate("A dog runs.", source="en", target="de").translated_text == "Ein Hund läuft."
        assert client.health()
        settings = client.frontend_settings()
        assert settings.suggestions is False
        try:
            client.suggest("a", "b", "en", "de")
        except exceptions.LibreTranslateError as error:
            assert "Suggestions are disabled on this server." in str(error)
        else:
            raise AssertionError
    async with AsyncLibreTranslate(address) as client:
        several = await client.translate(["A dog runs.", "A man sits."], source="en", target="de")
        assert several.translated_text == ["Ein Hund läuft.", "Ein Mann sitzt."]
        detected = await client.translate("Der Hund läuft über das Feld.", source="auto", target="en")
        assert detected.detected_language.language == "de"
        file = await client.translate_file(io.BytesIO(b"A dog runs.\n"), source="auto", target="de")
        async with httpx.AsyncClient() as browser:
            assert (await browser.get(file.translated_file_url)).text == "Ein Hund läuft.\n"
        html = await client.translate("<b>A dog runs.</b>", source="en", target="de", format="html")
        assert html.translated_text == "<b>Ein Hund läuft.</b>"
        more = await client.translate("A dog runs.", source="en", target="de", alternatives=3)
        assert 1 <= len(more.alternatives) <= 3
        assert more.translated_text not in more.alternatives
        assert [each.language for each in await client.detect("The dog runs over the field.")] == ["en"]
        assert {each.code for each in await client.languages()} == {"en", "de"}
        await further(client)


async def further(client: AsyncLibreTranslate) -> None:
    """Translates with every option, and what is refused."""
    both = await client.translate(
        ["<b>A dog runs.</b>", "A man sits."], source="auto", target="de", format="html", alternatives=1
    )
    assert both.translated_text == ["<b>Ein Hund läuft.</b>", "Ein Mann sitzt."]
    assert [each.language for each in both.detected_language] == ["en", "en"]
    assert both.alternatives == [[], []]
    same = await client.translate("A dog runs.", source="en", target="en")
    assert same.translated_text == "A dog runs."
    assert await client.health()
    assert (await client.frontend_settings()).language.target is not None
    for asked in ({"target": "zz"}, {"target": "de", "format": "pdf"}, {"target": "de", "alternatives": 99}):
        try:
            await client.translate("A dog.", source="en", **asked)
        except exceptions.LibreTranslateError as error:
            assert error.status_code == 400, error
        else:
            raise AssertionError


def translate_files(address: str) -> None:
    """Translates files by their paths. Raises AssertionError."""
    with tempfile.TemporaryDirectory() as folder, LibreTranslate(address) as client:
        page, archive = Path(folder, "My page.html"), Path(folder, "a.docx")
        page.write_bytes(b"<!DOCTYPE html><p>A <b>dog</b> runs.</p>")
        archive.write_bytes(b"no archive")
        url = client.translate_file(page, source="en", target="de").translated_file_url
        answer = httpx.get(url)
        assert url.startswith(f"{address}/download_file/")
        assert answer.text == "<!DOCTYPE html><p>Ein <b>Hund</b> läuft.</p>"
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        known = {".txt", ".docx", ".pptx", ".xlsx", ".odt", ".epub"}
        assert known <= set(client.frontend_settings().supported_files_format)
        try:
            client.translate_file(archive, source="en", target="de")
        except exceptions.LibreTranslateError as error:
            assert "is no ZIP archive, or a damaged one" in str(error)
        else:
            raise AssertionError


for mount in ("", "/libretranslate"):
    translate_files(sys.argv[1] + mount)
asyncio.run(main(sys.argv[1]))
