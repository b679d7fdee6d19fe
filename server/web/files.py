"""Files in requests and answers."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from starlette.responses import Response

from server.documents.documents import MAX_FILE_BYTES
from server.documents.formats import FORMATS
from server.documents.job import Job
from server.errors import InvalidRequest
from server.web.bodies import File

MAX_UPLOAD_BYTES = MAX_FILE_BYTES + (1 << 20)  # with the other fields of the form


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


def file_response(job: Job) -> Response:
    """Returns the answer with a translated file, for saving. Raises DocumentFailed if there is none."""
    return Response(
        job.read_result(),
        media_type=FORMATS[job.extension].content_type,
        headers={
            "content-disposition": f"attachment; filename*=UTF-8''{quote(job.name)}",
            "x-content-type-options": "nosniff",  # a translated page must not run as one of this site
            "content-security-policy": "sandbox",
            "cache-control": "no-store",
        },
    )
