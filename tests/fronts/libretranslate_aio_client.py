"""Every call of libretranslate-aio that is served; run in its own environment, with the server's address."""

import asyncio
import sys

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
        html = await client.translate("<b>A dog runs.</b>", source="en", target="de", format="html")
        assert html.translated_text == "<b>Ein Hund läuft.</b>"
        more = await client.translate("A dog runs.", source="en", target="de", alternatives=3)
        assert 1 <= len(more.alternatives) <= 3
        assert more.translated_text not in more.alternatives
        assert [each.language for each in await client.detect("The dog runs over the field.")] == ["en"]
        assert {each.code for each in await client.languages()} == {"en", "de"}


asyncio.run(main(sys.argv[1]))
