"""LibreTranslate's paths for files. The answer comes when the file is translated, and the work ends with its caller."""

import uuid
from urllib.parse import quote

from starlette.datastructures import URL
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from server.documents.documents import Documents
from server.documents.formats import UnknownFormat
from server.documents.job import Job
from server.errors import TranslationError
from server.fronts.libretranslate import FRONT, WrongRequest, read_translate_file, refusal
from server.web.exchange import Exchange, Site, json_response
from server.web.files import MAX_UPLOAD_BYTES, FileResponse, read_file
from server.web.libretranslate import PREFIXES, read

_UPLOAD = "/translate_file"


class LibreTranslateFiles:
    """Handles the requests of LibreTranslate's clients that concern files.

    Args:
        site: has what endpoints share.
        documents: keeps and translates them.
    """

    def __init__(self, site: Site, documents: Documents) -> None:
        self._site = site
        self._documents = documents

    def routes(self) -> list[Route]:
        """Returns the routes that an application has for it."""
        return [
            *self._site.routes(FRONT, {f"POST {_UPLOAD}": self.translate_file}, PREFIXES, MAX_UPLOAD_BYTES),
            *self._site.routes(FRONT, {"GET /download_file/{name}": self.download}, PREFIXES),
        ]

    async def translate_file(self, exchange: Exchange) -> Response:
        """Answers `file`, `source`, `target` with `translatedFileUrl`."""
        job = await self._start(exchange)
        exchange.take_body()  # because the work may last an hour
        try:
            await job.wait()
        except BaseException:
            self._documents.forget(job)
            raise
        if job.failure is not None:
            self._documents.forget(job)
            raise job.failure
        return json_response({"translatedFileUrl": _address(exchange.request, job)})

    async def download(self, exchange: Exchange) -> Response:
        """Answers with a translated file, whoever asks: clients send no key for it, and nobody can guess its name."""
        name = exchange.request.path_params["name"]
        try:
            identity = uuid.UUID(name.partition(".")[0]).hex
        except ValueError:
            raise WrongRequest("filename", "Invalid filename") from None
        job = self._documents.find_open(identity)
        exchange.take_body()
        await job.wait()
        return FileResponse(job)

    async def _start(self, exchange: Exchange) -> Job:
        """Begins to translate the file. It returns without its content."""
        fields, caller = await read(exchange)
        if not fields.get("file"):
            raise WrongRequest("file", "Invalid request: missing file parameter")
        asked, file = read_translate_file(fields), read_file(fields)
        if not file.content:
            raise WrongRequest("file", "Invalid request: empty file")
        try:
            return await self._documents.start(file.name, file.content, asked.message, caller)
        except UnknownFormat:
            raise WrongRequest("file", "Invalid request: file format not supported") from None
        except TranslationError as error:
            raise refusal(error, asked) from None


def _address(request: Request, job: Job) -> str:
    """Returns where the file is, by the address that the caller has used, as the proxy in front says it was."""
    scheme = request.headers.get("x-forwarded-proto", "")
    url = URL(scope=request.scope)
    path = url.path.removesuffix(_UPLOAD) + f"/download_file/{uuid.UUID(job.identity)}.{quote(job.name)}"
    return str(url.replace(path=path, query="", scheme=scheme if scheme in ("http", "https") else url.scheme))
