"""Files in requests and answers."""

import os
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from server.documents.documents import MAX_FILE_BYTES
from server.documents.formats import FORMATS
from server.documents.job import Job
from server.errors import InvalidRequest
from server.web.exchange import CHUNK_BYTES, SEND_SECONDS, send_pieces
from server.web.parts import File

_MIB = 1 << 20
MAX_UPLOAD_BYTES = MAX_FILE_BYTES + _MIB  # with the other fields of the form


def read_file(fields: Mapping[str, Sequence[Any]]) -> File:
    """Returns the field `file` of a form. The field `filename` has its name if it is there.

    Raises:
        InvalidRequest: there is no such field, or more than one.
    """
    values = fields.get("file", ())
    if len(values) != 1 or not isinstance(values[0], File | str):
        raise InvalidRequest("file", f"must be one file in a form of parts, not {len(values)}")
    value: File | str = values[0]
    named = fields.get("filename", ("",))[0]
    name = named if isinstance(named, str) else ""
    if isinstance(value, str):  # a part without a name of a file
        return File(name, value.encode(errors="surrogatepass"))
    return value._replace(name=name or value.name)


class FileResponse(Response):
    """The answer with a translated file, for saving, which is read while the caller takes it.

    Args:
        job: has ended.

    Raises:
        DocumentFailed: there is no such file.
    """

    def __init__(self, job: Job) -> None:
        job.check_result()
        super().__init__(
            media_type=FORMATS[job.extension].content_type,
            headers={
                "content-disposition": f"attachment; filename*=UTF-8''{quote(job.name)}",
                "x-content-type-options": "nosniff",  # a translated page must not run as one of this site
                "content-security-policy": "sandbox",
                "cache-control": "no-store",
                "content-length": str(job.num_bytes),
            },
        )
        self._job = job

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 # as ASGI calls it
        """Sends the file."""
        num_bytes = self._job.num_bytes
        seconds = SEND_SECONDS * max(1.0, num_bytes / _MIB)  # a slow caller takes no memory, and the file is counted
        with self._job.reading() as file:
            places = range(0, num_bytes, CHUNK_BYTES)
            pieces = (os.pread(file.fileno(), CHUNK_BYTES, place) for place in places)
            await send_pieces(self, pieces, seconds, scope, send)
