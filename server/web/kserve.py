"""KServe's and Triton's paths below /v2, and below /kserve/v2."""

import json
from dataclasses import replace

from starlette.responses import Response
from starlette.routing import Route

from babelserve.v1 import translation_pb2 as pb
from server.errors import InvalidRequest
from server.fronts import kserve as tensors
from server.fronts import kserve_models as models
from server.fronts.fields import fields_named
from server.fronts.front import NotOffered
from server.fronts.kserve_http import FRONT, Infer, json_length, plain, read_infer, write_infer
from server.fronts.v1 import kserve_pb2 as kserve
from server.web.bodies import read_json
from server.web.exchange import Exchange, Site, json_response

_PREFIXES = ("", "/kserve")
_TARGET = "target_language_code"  # a request that names it, and no version, needs no list of the models
_JSON_LENGTH = "inference-header-content-length"
_MODEL = "/v2/models/{model}"
_VERSION = _MODEL + "/versions/{version}"
_STATISTICS = "GET /v2/models/stats"  # no model of this name
_REFUSED = (  # Triton has these and this server has not
    "POST /v2/repository/models/{rest:path}",
    *(f"{method} {path}" for method in ("GET", "POST") for path in (_MODEL + "/{rest:path}", "/v2/trace/{rest:path}")),
    *(f"{method} /v2/{kind}sharedmemory/{{rest:path}}" for method in ("GET", "POST") for kind in ("system", "cuda")),
    *(f"{method} /v2/logging" for method in ("GET", "POST")),
)


class KserveApi:
    """Handles the requests of KServe's and Triton's clients.

    Args:
        site: has what endpoints share.
    """

    def __init__(self, site: Site) -> None:
        self._site = site
        self._backend = site.backend

    def routes(self) -> list[Route]:
        """Returns the routes that an application has for it."""
        handlers = {
            _STATISTICS: self.refuse,
            "GET /v2": self.server_metadata,
            "GET /v2/health/live": self.live,
            "GET /v2/health/ready": self.ready,
            "POST /v2/repository/index": self.repository_index,
            **{
                f"{method} {path}{action}": handle
                for path in (_MODEL, _VERSION)
                for method, action, handle in (
                    ("GET", "", self.model_metadata),
                    ("GET", "/ready", self.model_ready),
                    ("GET", "/config", self.model_config),
                    ("POST", "/infer", self.infer),
                )
            },
            **dict.fromkeys(_REFUSED, self.refuse),
        }
        return self._site.routes(FRONT, handlers, _PREFIXES)

    async def live(self, _: Exchange) -> Response:
        """Answers 200."""
        return Response()

    async def ready(self, _: Exchange) -> Response:
        """Answers 200 while requests are welcome, else 400, both without a body, as KServe's clients expect."""
        return Response(status_code=200 if self._backend.is_serving else 400)

    async def server_metadata(self, _: Exchange) -> Response:
        """Answers with what this server is."""
        return json_response(plain(models.write_server_metadata()))

    async def model_ready(self, exchange: Exchange) -> Response:
        """Answers 200 while requests for a model are welcome, else 400. Raises TranslationError if it is not served."""
        await self._find(exchange)
        return await self.ready(exchange)

    async def model_metadata(self, exchange: Exchange) -> Response:
        """Answers with the tensors of a model."""
        return json_response(plain(models.write_metadata(await self._find(exchange))))

    async def model_config(self, exchange: Exchange) -> Response:
        """Answers with Triton's description of a model."""
        return json_response(plain(models.write_config(await self._find(exchange)).config))

    async def repository_index(self, exchange: Exchange) -> Response:
        """Answers with the list of models."""
        asked = kserve.RepositoryIndexRequest()
        if body := exchange.take_body():
            value = read_json(body)
            wanted = value.get("ready", False) if isinstance(value, dict) else None
            if not isinstance(wanted, bool):
                raise InvalidRequest("ready", "must be true or false, in an object")
            asked.ready = wanted
        served = await self._backend.list_models(exchange.caller)
        index = models.write_index(asked, served, lambda _: self._backend.is_serving)
        return json_response([plain(each) for each in index.models])

    async def infer(self, exchange: Exchange) -> Response:
        """Answers the texts of a tensor with tensors of their translations."""
        asked = await self._read_infer(exchange)
        is_whole = not asked.message.model_version and _TARGET in asked.message.parameters
        served = pb.ListModelsResponse() if is_whole else await self._backend.list_models(exchange.caller)
        message = tensors.read_infer(asked.message, served)
        caller = replace(exchange.caller, seconds=tensors.read_timeout(asked.message, exchange.caller.seconds))
        with fields_named(tensors.FIELDS):
            response = await self._backend.translate(message, caller)
            return _answer(asked, response)

    async def _read_infer(self, exchange: Exchange) -> Infer:
        """Returns what is asked, without the body, because the answer takes its time."""
        headers, path = exchange.request.headers, exchange.request.path_params
        body = await self._site.bodies.unpack(exchange.take_body(), headers.get("content-encoding", ""))
        length = json_length(headers.get(_JSON_LENGTH), body)
        return read_infer(read_json(body[:length]), body[length:], path["model"], path.get("version", ""))

    async def refuse(self, _: Exchange) -> Response:
        """Raises NotOffered."""
        raise NotOffered("this server has no statistics, shared memory, traces, and no models to load over this API")

    async def _find(self, exchange: Exchange) -> pb.ModelInfo:
        path = exchange.request.path_params
        served = await self._backend.list_models(exchange.caller)
        return models.find_model(served, path["model"], path.get("version", ""))


def _answer(asked: Infer, response: pb.TranslateResponse) -> Response:
    asked.message.ClearField("raw_input_contents")  # so that the answer has plain values, which are packed here
    value, tail = write_infer(asked, tensors.write_infer(asked.message, response))
    if not tail:
        return json_response(value)
    head = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    return Response(head + tail, media_type="application/octet-stream", headers={_JSON_LENGTH: str(len(head))})
