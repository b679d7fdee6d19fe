"""Azure Translator's paths: at the root if a request names a version, and below the prefixes of Azure's clients."""

import asyncio
import hashlib
import re
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Scope

from babelserve.v1 import translation_pb2 as pb
from server.errors import TranslationError
from server.fronts import azure as front
from server.fronts import azure_translate as texts
from server.fronts.azure_answers import check_answered, named, write_translate
from server.fronts.backend import Caller
from server.web.bodies import read_json, read_query
from server.web.exchange import Exchange, Site, json_response

_PREFIXES = ("", "/azure", "/translator/text/v3.0", "/translator/text/v2026-06-06")

_VERSION = re.compile(rb"(?:\A|&)api-version=([^&]*)", re.IGNORECASE)  # in a query

_T = TypeVar("_T")


class VersionRoute(Route):
    """A route of requests that name a version of Azure's API.

    Attributes:
        version: that they name; None for any.
    """

    version: str | None = None

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """See `Route`."""
        found = _VERSION.search(scope.get("query_string", b""))
        if found is None or (self.version is not None and found[1] != self.version.encode()):
            return Match.NONE, {}
        return super().matches(scope)


class AzureApi:
    """Handles the requests of Azure Translator's clients.

    Args:
        site: has what endpoints share.
    """

    def __init__(self, site: Site) -> None:
        self._site = site
        self._backend = site.backend

    def routes(self) -> list[BaseRoute]:
        """Returns the routes that an application has for it."""
        handlers = {
            "POST /translate": self.translate,
            "POST /detect": self.detect,
            "POST /breaksentence": self.break_sentence,
            "POST /transliterate": self.transliterate,
            "POST /dictionary/lookup": self.look_up,
            "POST /dictionary/examples": self.look_up,
            "GET /languages": self.languages,
        }
        found = [
            _of_version(route, version)
            for version, vendor in ((front.V2026, front.FRONT_2026), (None, front.FRONT))
            for route in self._site.routes(vendor, handlers, _PREFIXES)
        ]
        return [*found, *self._site.routes(front.FRONT, handlers, ["/azure"])]  # which say that a version is missing

    async def translate(self, exchange: Exchange) -> Response:
        """Answers texts with their translations into each target."""
        asked = texts.read_translate(_query(exchange), read_json(exchange.take_body()))
        caller = _caller(exchange)
        parts = asked.parts.items()
        answers = await _all([self._translate(asked, key, part, caller) for key, part in parts])
        response = _answer(exchange, write_translate(asked, dict(zip(asked.parts, answers, strict=True))))
        response.headers["x-metered-usage"] = str(asked.num_characters)
        return response

    async def _translate(
        self, asked: texts.Translate, key: texts.Key, part: texts.Part, caller: Caller
    ) -> pb.TranslateResponse:
        try:
            response = await self._backend.translate(part.message, caller)
        except TranslationError as error:
            again = texts.without_what_is_missing(part, key, error)
            if again is None:
                raise named(error, asked, part) from None
            return await self._translate(asked, key, again, caller)
        check_answered(asked, key, response)
        return response

    async def detect(self, exchange: Exchange) -> Response:
        """Answers texts with the languages that they seem to be in."""
        front.check_is_v3(_query(exchange))
        message = front.read_detect(read_json(exchange.take_body()))
        return _answer(exchange, front.write_detect(await self._detect(message, _caller(exchange))))

    async def break_sentence(self, exchange: Exchange) -> Response:
        """Answers texts with the lengths of their sentences."""
        query, caller = _query(exchange), _caller(exchange)
        front.check_is_v3(query)
        language, contents = front.read_break(query, read_json(exchange.take_body()))
        detected: Sequence[pb.Detection] = ()
        if not language:
            message = pb.DetectLanguagesRequest(contents=contents)
            detected = (await self._detect(message, caller)).detections
        languages = [each.language_code for each in detected] or [language] * len(contents)
        messages = front.break_messages(languages, contents, await self._backend.list_models(caller))
        answers = await _all([self._break(places, message, caller) for places, message in messages])
        translations = [pb.Translation()] * len(contents)
        for (places, _), answer in zip(messages, answers, strict=True):
            for place, translation in zip(places, answer.translations, strict=True):
                translations[place] = translation
        return _answer(exchange, front.write_break(contents, translations, detected))

    async def transliterate(self, exchange: Exchange) -> Response:
        """Raises WrongRequest, as Azure for scripts that it does not transliterate."""
        front.read_version(_query(exchange))
        rule = "is not served here: this server does not transliterate"
        raise front.WrongRequest(front.NO_SCRIPT, "transliterate", rule)

    async def look_up(self, exchange: Exchange) -> Response:
        """Raises WrongRequest, as Azure for languages without a dictionary."""
        front.check_is_v3(_query(exchange))
        raise front.WrongRequest(front.NO_PAIR, "dictionary", "is not served here: this server has no dictionaries")

    async def languages(self, exchange: Exchange) -> Response:
        """Answers with all languages, or with 304 if the caller has them."""
        query = _query(exchange)
        front.read_version(query)
        answer = front.write_languages(query, await self._backend.list_models(_caller(exchange)))
        response = _answer(exchange, answer)
        tag = f'"{hashlib.sha256(response.body).hexdigest()[:16]}"'
        if exchange.request.headers.get("if-none-match") == tag:
            response = Response(status_code=304)
        response.headers["etag"] = tag
        return response

    async def _detect(self, message: pb.DetectLanguagesRequest, caller: Caller) -> pb.DetectLanguagesResponse:
        places = [f"[{index}]" for index in range(len(message.contents))]
        try:
            response = await self._backend.detect_languages(message, caller)
            front.write_detect(response)  # raises if one failed
        except TranslationError as error:
            raise front.refusal(error, places, "from", "to") from None
        return response

    async def _break(self, places: Sequence[int], message: pb.TranslateRequest, caller: Caller) -> pb.TranslateResponse:
        try:
            return await self._backend.translate(message, caller)
        except TranslationError as error:
            raise front.refusal(error, [f"[{place}]" for place in places], "language", "language") from None


def _of_version(route: Route, version: str | None) -> BaseRoute:
    found = VersionRoute(route.path, route.endpoint, methods=list(route.methods or ()))
    found.version = version
    return found


def _query(exchange: Exchange) -> front.Query:
    return front.read_query(read_query(exchange.request.scope))


def _caller(exchange: Exchange) -> Caller:
    """Returns the caller, with the key as Azure's clients send it, if the usual headers have none."""
    query, headers = _query(exchange), exchange.request.headers
    key = headers.get("ocp-apim-subscription-key") or front.first(query, "subscription-key") or None
    return exchange.caller if exchange.caller.key is not None else replace(exchange.caller, key=key)


def _answer(exchange: Exchange, value: Any) -> Response:
    response = json_response(value)
    response.headers["x-requestid"] = exchange.caller.request_id
    return response


async def _all(calls: Sequence[Coroutine[Any, Any, _T]]) -> list[_T]:
    """Returns what all calls return. The first that fails ends the others."""
    if len(calls) == 1:
        return [await calls[0]]
    tasks = [asyncio.ensure_future(call) for call in calls]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
