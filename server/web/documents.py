"""Our own API for documents: a file in a form, and a JSON object that says how far it is."""

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from babelserve.v1 import translation_pb2 as pb
from server.documents.documents import Documents
from server.documents.job import Job
from server.errors import InvalidRequest
from server.fronts.front import check_text
from server.fronts.own import FRONT
from server.translation.rules import shown
from server.web.bodies import read_fields
from server.web.exchange import Exchange, Site, json_response
from server.web.files import MAX_UPLOAD_BYTES, FileResponse, read_file


class DocumentsApi:
    """Handles requests for documents.

    Args:
        site: has what endpoints share.
        documents: keeps and translates them.
    """

    def __init__(self, site: Site, documents: Documents) -> None:
        self._site = site
        self._documents = documents

    def routes(self) -> list[Route]:
        """Returns the routes that an application has for it."""
        uploads = {"POST /v1/documents": self.start}
        handlers = {
            "GET /v1/documents/{id}": self.show,
            "GET /v1/documents/{id}/file": self.download,
            "DELETE /v1/documents/{id}": self.forget,
        }
        return [
            *self._site.routes(FRONT, uploads, max_body_bytes=MAX_UPLOAD_BYTES),
            *self._site.routes(FRONT, handlers),
        ]

    async def start(self, exchange: Exchange) -> Response:
        """Begins to translate `file`, and answers with the document."""
        fields = await read_fields(exchange.request, exchange.take_body())
        file = read_file(fields)
        options = pb.TranslateRequest(
            source_language_code=_text(fields, "sourceLanguageCode"),
            target_language_code=_text(fields, "targetLanguageCode"),
            model=_text(fields, "model"),
        )
        glossary = _glossary(fields)
        if glossary.ByteSize():
            options.glossary.CopyFrom(glossary)
        return json_response(_value(await self._documents.start(file.name, file.content, options, exchange.caller)))

    async def show(self, exchange: Exchange) -> Response:
        """Answers with the document."""
        return json_response(_value(await self._find(exchange)))

    async def download(self, exchange: Exchange) -> Response:
        """Answers with the translated file as soon as it is there."""
        job = await self._find(exchange)
        exchange.take_body()  # because the work may last an hour
        await job.wait()
        return FileResponse(job)

    async def forget(self, exchange: Exchange) -> Response:
        """Ends the work, and forgets the document."""
        self._documents.forget(await self._find(exchange))
        return json_response({})

    async def _find(self, exchange: Exchange) -> Job:
        return await self._documents.find(exchange.request.path_params["id"], exchange.caller)


def _value(job: Job) -> dict[str, Any]:
    value: dict[str, Any] = {
        "id": job.identity,
        "fileName": job.name,
        "state": job.state.name,
        "texts": job.num_texts,
        "translatedTexts": job.num_done - job.num_failed,
        "failedTexts": job.num_failed,
        "characters": job.num_characters,
        "secondsRemaining": job.seconds_remaining,
    }
    if job.failure is not None:
        words = FRONT.words_of(job.failure, job.caller.request_id)
        value |= FRONT.body(job.failure, words, FRONT.status_of(job.failure))
    return value


def _glossary(fields: Mapping[str, Sequence[Any]]) -> pb.Glossary:
    glossary = pb.Glossary(names=[check_text("glossary", each) for each in fields.get("glossary", ()) if each])
    for each in fields.get("term", ()):
        source, sign, target = check_text("term", each).partition("=")
        if not sign:
            raise InvalidRequest("term", f"must be SOURCE=TARGET, not {shown(each)}")
        glossary.terms.add(source=source, target=target)
    return glossary


def _text(fields: Mapping[str, Sequence[Any]], name: str) -> str:
    value = next(iter(fields.get(name, ())), None)
    return "" if value is None else check_text(name, value)
