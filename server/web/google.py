"""Google's paths: /language/translate/v2 and /v3, and both below /google."""

from dataclasses import replace
from typing import Any, TypeVar

from google.protobuf.message import Message
from starlette.responses import Response
from starlette.routing import BaseRoute

from server.fronts import google as front
from server.fronts import google_rest as rest
from server.fronts.backend import Caller
from server.fronts.fields import fields_named
from server.fronts.front import NotOffered
from server.fronts.v1 import google_pb2 as google
from server.web.bodies import read_fields, read_json, read_query
from server.web.exchange import Exchange, Site, json_response

_PREFIXES = ("", "/google")
_V2 = "/language/translate/v2"
_VERSIONS = ("/v3", "/v3beta1")
_PARENT, _NAME = "/{parent:path}", "/{name:path}"

_M = TypeVar("_M", bound=Message)


class GoogleApi:
    """Handles the requests of clients of Google's Cloud Translation.

    Args:
        site: has what endpoints share.
    """

    def __init__(self, site: Site) -> None:
        self._site = site
        self._backend = site.backend

    def routes(self) -> list[BaseRoute]:
        """Returns the routes that an application has for it."""
        second = {
            f"{method} {_V2}{path}": handle
            for method in ("GET", "POST")
            for path, handle in (("", self.translate_2), ("/detect", self.detect_2), ("/languages", self.languages_2))
        }
        third = {
            f"{method} {version}{path}": handle
            for version in _VERSIONS
            for method, path, handle in (
                ("POST", f"{_PARENT}:translateText", self.translate),
                ("POST", f"{_PARENT}:detectLanguage", self.detect),
                ("GET", f"{_PARENT}/supportedLanguages", self.languages),
                ("GET", f"{_PARENT}/glossaries", self.glossaries),
                ("GET", "/{parent:path}/glossaries/{glossary}", self.glossary),
                *((method, _NAME, self.refuse) for method in ("GET", "POST", "PATCH", "DELETE")),
            )
        }
        return [
            *self._site.routes(rest.FRONT_2, second, _PREFIXES),
            *self._site.routes(rest.FRONT, third, _PREFIXES),
        ]

    async def translate_2(self, exchange: Exchange) -> Response:
        """Answers `q` and `target` of version 2 with translations."""
        asked = rest.read_translate(await read_fields(exchange.request, exchange.take_body()))
        with fields_named(rest.V2_FIELDS):
            response = await self._backend.translate(front.read_translate(asked), _caller(exchange))
            return json_response(rest.write_translate(asked, front.write_translate(asked, response)))

    async def detect_2(self, exchange: Exchange) -> Response:
        """Answers `q` of version 2 with languages."""
        message = rest.read_detect(await read_fields(exchange.request, exchange.take_body()))
        with fields_named(rest.V2_FIELDS):
            return json_response(rest.write_detect(await self._backend.detect_languages(message, _caller(exchange))))

    async def languages_2(self, exchange: Exchange) -> Response:
        """Answers with all languages, as version 2."""
        asked = rest.read_languages(await read_fields(exchange.request, exchange.take_body()))
        served = await self._backend.list_models(_caller(exchange))
        return json_response(rest.write_languages(front.write_languages(asked, served)))

    async def translate(self, exchange: Exchange) -> Response:
        """Answers a `TranslateTextRequest`."""
        asked = _posted(google.TranslateTextRequest, exchange)
        with fields_named(front.FIELDS):
            response = await self._backend.translate(front.read_translate(asked), _caller(exchange))
            return json_response(rest.write_message(front.write_translate(asked, response)))

    async def detect(self, exchange: Exchange) -> Response:
        """Answers a `DetectLanguageRequest`."""
        message = front.read_detect(_posted(google.DetectLanguageRequest, exchange))
        with fields_named(front.DETECT_FIELDS):
            found = front.write_detect(await self._backend.detect_languages(message, _caller(exchange)))
            return json_response(rest.write_message(found))

    async def languages(self, exchange: Exchange) -> Response:
        """Answers a `GetSupportedLanguagesRequest`."""
        asked = _got(google.GetSupportedLanguagesRequest, exchange)
        served = await self._backend.list_models(_caller(exchange))
        return json_response(rest.write_message(front.write_languages(asked, served)))

    async def glossaries(self, exchange: Exchange) -> Response:
        """Answers a `ListGlossariesRequest`."""
        asked = _got(google.ListGlossariesRequest, exchange)
        loaded = await self._backend.list_glossaries(_caller(exchange))
        return json_response(rest.write_message(front.write_glossaries(asked, loaded)))

    async def glossary(self, exchange: Exchange) -> Response:
        """Answers a `GetGlossaryRequest`."""
        path = exchange.request.path_params
        asked = google.GetGlossaryRequest(name=f"{path['parent']}/glossaries/{path['glossary']}")
        loaded = await self._backend.list_glossaries(_caller(exchange))
        return json_response(rest.write_message(front.write_glossary(asked, loaded)))

    async def refuse(self, _: Exchange) -> Response:
        """Raises NotOffered."""
        served = "translateText, detectLanguage, supportedLanguages and glossaries are"
        raise NotOffered(f"this method is not served here; {served}")


def _posted(kind: type[_M], exchange: Exchange) -> _M:
    value: Any = read_json(body) if (body := exchange.take_body()) else {}
    return rest.read_message(kind, value, {"parent": exchange.request.path_params["parent"]})


def _got(kind: type[_M], exchange: Exchange) -> _M:
    value = rest.read_parameters(kind, read_query(exchange.request.scope))
    return rest.read_message(kind, value, {"parent": exchange.request.path_params["parent"]})


def _caller(exchange: Exchange) -> Caller:
    """Returns the caller, with the key that the query has, if the headers have none."""
    if exchange.caller.key is not None:
        return exchange.caller
    return replace(exchange.caller, key=next(iter(read_query(exchange.request.scope).get("key", ())), None))
