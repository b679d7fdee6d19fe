"""LibreTranslate's paths for texts, at the root and below /libretranslate."""

from dataclasses import replace
from pathlib import Path

from starlette.responses import Response
from starlette.routing import Route

from server.documents.formats import FORMATS
from server.errors import PermissionDenied, TranslationError
from server.fronts.backend import Caller
from server.fronts.languages import unchanged
from server.fronts.libretranslate import (
    FRONT,
    Fields,
    Translate,
    read_detect,
    read_key,
    read_translate,
    refusal,
    write_detect,
    write_languages,
    write_settings,
    write_translate,
)
from server.web.bodies import read_fields
from server.web.exchange import Exchange, Site, json_response
from server.web.page_files import PageFile

PREFIXES = ("", "/libretranslate")


class LibreTranslateApi:
    """Handles the requests of LibreTranslate's clients.

    Args:
        site: has what endpoints share.
    """

    def __init__(self, site: Site) -> None:
        self._site = site
        self._backend = site.backend

    def routes(self) -> list[Route]:
        """Returns the routes that an application has for it."""
        handlers = {
            "POST /translate": self.translate,
            "POST /detect": self.detect,
            "GET /languages": self.languages,
            "GET /frontend/settings": self.settings,
            "GET /health": self._site.health,
            "POST /suggest": self.suggest,
            "GET /spec": PageFile.read(Path(__file__).with_suffix(".json")).answer,
        }
        return self._site.routes(FRONT, handlers, PREFIXES)

    async def translate(self, exchange: Exchange) -> Response:
        """Answers `q`, `source`, `target` with `translatedText`."""
        asked, caller = await _read_translate(exchange)
        response = None
        if asked.source == asked.target:
            response = unchanged(asked.message, await self._backend.list_models(caller))
        try:
            response = response or await self._backend.translate(asked.message, caller)
        except TranslationError as error:
            raise refusal(error, asked) from None
        return json_response(write_translate(response, asked))

    async def detect(self, exchange: Exchange) -> Response:
        """Answers `q` with the language that it seems to be in."""
        fields, caller = await read(exchange)
        return json_response(write_detect(await self._backend.detect_languages(read_detect(fields), caller)))

    async def languages(self, exchange: Exchange) -> Response:
        """Answers with all languages."""
        _, caller = await read(exchange)
        return json_response(write_languages(await self._backend.list_models(caller)))

    async def settings(self, exchange: Exchange) -> Response:
        """Answers with what LibreTranslate's page asks for."""
        _, caller = await read(exchange)
        served = await self._backend.list_models(caller)
        return json_response(write_settings(served, FORMATS, asks_for_key=self._backend.asks_for_key))

    async def suggest(self, _: Exchange) -> Response:
        """Raises PermissionDenied, as a LibreTranslate that takes no suggestions."""
        raise PermissionDenied("Suggestions are disabled on this server.")


async def read(exchange: Exchange) -> tuple[Fields, Caller]:
    """Returns the fields, and the caller with the key that they have, if the headers have none."""
    fields = await read_fields(exchange.request, exchange.take_body())
    key = exchange.caller.key if exchange.caller.key is not None else read_key(fields)
    return fields, replace(exchange.caller, key=key)


async def _read_translate(exchange: Exchange) -> tuple[Translate, Caller]:
    """Returns what the fields ask for, and frees the fields: they may be long, and the translation may wait."""
    fields, caller = await read(exchange)
    return read_translate(fields), caller
