"""DeepL's paths for documents, at the root and below /deepl."""

from starlette.responses import Response
from starlette.routing import Route

from server.documents.documents import Documents
from server.documents.formats import FORMATS, extension_of
from server.documents.job import Job
from server.errors import NotServing, TranslationError
from server.fronts.deepl import FRONT, refusal
from server.fronts.deepl_documents import (
    check_key,
    no_file,
    read_output_format,
    read_upload,
    write_started,
    write_status,
    wrong_output_format,
)
from server.fronts.deepl_languages import check_formality
from server.web.deepl import PREFIXES, read
from server.web.exchange import Exchange, Site, json_response
from server.web.files import MAX_UPLOAD_BYTES, FileResponse, read_file

# A status waits for the end, because clients ask only every 5 s. Half, and most small documents take 5 s. Twice, and
# deepl-node, which gives up an answer after 5 s, sends it again.
_HELD_SECONDS = 3.0


class DeepLDocuments:
    """Handles the requests of DeepL's clients that concern documents.

    Args:
        site: has what endpoints share.
        documents: keeps and translates them.
    """

    def __init__(self, site: Site, documents: Documents) -> None:
        self._site = site
        self._documents = documents

    def routes(self) -> list[Route]:
        """Returns the routes that an application has for it."""
        uploads = {"POST /v2/document": self.upload}
        handlers = {
            "GET /v2/document/{identity}": self.status,
            "POST /v2/document/{identity}": self.status,
            "GET /v2/document/{identity}/result": self.download,
            "POST /v2/document/{identity}/result": self.download,
        }
        return [
            *self._site.routes(FRONT, uploads, PREFIXES, MAX_UPLOAD_BYTES),
            *self._site.routes(FRONT, handlers, PREFIXES),
        ]

    async def upload(self, exchange: Exchange) -> Response:
        """Begins to translate `file`, and answers with what identifies the document."""
        fields, caller = await read(exchange)
        options = read_upload(fields)
        check_formality(options, await self._site.backend.list_models(caller))
        if not fields.get("file"):
            raise no_file()
        file, output_format = read_file(fields), read_output_format(fields)
        if not file.content:
            raise no_file()
        if output_format:
            own = FORMATS[extension_of(file.name, file.content)]
            if FORMATS.get(output_format) != own:
                raise wrong_output_format()
        try:
            job = await self._documents.start(file.name, file.content, options, caller)
        except TranslationError as error:
            raise refusal(error, options) from None
        return json_response(write_started(job.identity, job.key))

    async def status(self, exchange: Exchange) -> Response:
        """Answers how far a document is."""
        job = await self._find(exchange)
        await job.wait(_HELD_SECONDS)
        value = write_status(
            job.identity,
            job.state.name.lower(),
            seconds_remaining=job.seconds_remaining,
            num_characters=job.num_characters,
            failure=job.failure,
            request_id=job.caller.request_id,
        )
        return json_response(value)

    async def download(self, exchange: Exchange) -> Response:
        """Answers with a translated document."""
        job = await self._find(exchange)
        if not job.ended.is_set():
            raise NotServing("Document translation is not done")
        return FileResponse(job)

    async def _find(self, exchange: Exchange) -> Job:
        """Returns a document. Raises TranslationError, also if the key of the document is wrong."""
        fields, caller = await read(exchange)
        exchange.take_body()
        job = await self._documents.find(exchange.request.path_params["identity"], caller)
        check_key(fields, job.key)
        return job
