"""DeepL's paths for texts, at the root and below /deepl. Others are in `deepl_glossaries`, `deepl_documents`."""

from dataclasses import replace

from starlette.responses import Response
from starlette.routing import Route

from server.errors import TranslationError
from server.fronts.backend import Caller
from server.fronts.deepl import (
    FRONT,
    Fields,
    NotHere,
    Translate,
    base_code,
    read_key,
    read_translate,
    refusal,
    write_translate,
    write_usage,
)
from server.fronts.deepl_languages import write_languages, write_pairs, write_resources, write_v3_languages
from server.fronts.languages import unchanged
from server.web.bodies import read_fields
from server.web.exchange import Exchange, Handler, Site, json_response

PREFIXES = ("", "/deepl")
_NOT_SERVED = (  # each with any path behind it
    "/v2/write",
    "/v3/style_rules",
    "/v3/translation_memories",
)
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


class DeepLApi:
    """Handles the requests of DeepL's clients that concern texts.

    Args:
        site: has what endpoints share.
    """

    def __init__(self, site: Site) -> None:
        self._site = site
        self._backend = site.backend

    def routes(self) -> list[Route]:
        """Returns the routes that an application has for it."""
        handlers: dict[str, Handler] = {
            "GET /v2/translate": self.translate,
            "POST /v2/translate": self.translate,
            "GET /v2/languages": self.languages,
            "POST /v2/languages": self.languages,
            "GET /v2/usage": self.usage,
            "POST /v2/usage": self.usage,
            "GET /v2/glossary-language-pairs": self.glossary_pairs,
            "GET /v3/languages": self.v3_languages,
            "GET /v3/languages/resources": self.v3_resources,
            "GET /v3/style_rules": self.no_style_rules,
            "GET /v3/translation_memories": self.no_translation_memories,
        }
        for path in _NOT_SERVED:
            for method in _METHODS:
                handlers.setdefault(f"{method} {path}", self.refuse)
                handlers[f"{method} {path}/{{rest:path}}"] = self.refuse
        return self._site.routes(FRONT, handlers, PREFIXES)

    async def translate(self, exchange: Exchange) -> Response:
        """Answers `text` and `target_lang` with `translations`."""
        asked, caller = await _read_translate(exchange)
        response = None
        if base_code(asked.message.source_language_code) == base_code(asked.message.target_language_code):
            response = unchanged(asked.message, await self._backend.list_models(caller))
        try:
            response = response or await self._backend.translate(asked.message, caller)
        except TranslationError as error:
            raise refusal(error, asked.message) from None
        return json_response(write_translate(response, asked))

    async def languages(self, exchange: Exchange) -> Response:
        """Answers with the source languages, or the target languages."""
        fields, caller = await read(exchange)
        return json_response(write_languages(fields, await self._backend.list_models(caller)))

    async def v3_languages(self, exchange: Exchange) -> Response:
        """Answers with all languages."""
        fields, caller = await read(exchange)
        return json_response(write_v3_languages(fields, await self._backend.list_models(caller)))

    async def v3_resources(self, exchange: Exchange) -> Response:
        """Answers with what languages are for."""
        await self._let_in(exchange)
        return json_response(write_resources())

    async def usage(self, exchange: Exchange) -> Response:
        """Answers with what the caller has used."""
        await self._let_in(exchange)
        return json_response(write_usage())

    async def glossary_pairs(self, exchange: Exchange) -> Response:
        """Answers with the directions that a glossary may have."""
        _, caller = await read(exchange)
        return json_response(write_pairs(await self._backend.list_models(caller)))

    async def no_style_rules(self, exchange: Exchange) -> Response:
        """Answers that there are no style rules."""
        await self._let_in(exchange)
        return json_response({"style_rules": []})

    async def no_translation_memories(self, exchange: Exchange) -> Response:
        """Answers that there are no translation memories."""
        await self._let_in(exchange)
        return json_response({"translation_memories": [], "total_count": 0})

    async def refuse(self, exchange: Exchange) -> Response:
        """Raises NotHere: DeepL has this, and this server has not."""
        await self._let_in(exchange)
        raise NotHere("Not found: this server translates texts and documents, and keeps glossaries, and no more")

    async def _let_in(self, exchange: Exchange) -> None:
        """Raises TranslationError if the caller may not call."""
        _, caller = await read(exchange)
        await self._backend.list_models(caller)


async def read(exchange: Exchange) -> tuple[Fields, Caller]:
    """Returns the fields, and the caller with its key, however that came."""
    fields = await read_fields(exchange.request, exchange.take_body())
    key = exchange.caller.key
    if key is None:
        key = read_key(exchange.request.headers.get("authorization"), fields)
    return fields, replace(exchange.caller, key=key)


async def _read_translate(exchange: Exchange) -> tuple[Translate, Caller]:
    """Returns what the fields ask for, and frees the fields: they may be long, and the translation may wait."""
    fields, caller = await read(exchange)
    return read_translate(fields), caller
