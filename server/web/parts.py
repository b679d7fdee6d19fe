"""Reads forms of parts (`multipart/form-data`), which may bring files.

Starlette's parser is Python. It finds the end of a part quickly, but takes what only looks like a boundary byte by
byte, and heads slowly: 8 MiB of these took up to 8 s of the event loop. So such forms are refused before.
"""

import re
from typing import NamedTuple

from python_multipart.multipart import parse_options_header
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import Request
from starlette.types import Message

from server.errors import InvalidRequest

MAX_FIELDS = 4096  # of a form: 1024 texts and what belongs to them
_MAX_FILES = 16
_MAX_PARTS = MAX_FIELDS + _MAX_FILES
# Of the head of a part. Half, and long file names in escapes are refused. Twice, and the worst form keeps the event
# loop for twice as long.
_MAX_HEAD_BYTES, _MAX_SEMICOLONS, _MAX_BLANKS = 1024, 16, 8
_BLANKS = re.compile(rb"[ \t]{%d}" % (_MAX_BLANKS + 1))
_HEAD_END = b"\r\n\r\n"
# Starlette takes any codec of Python. That of Punycode takes 6 s for 400 KB, and four times as long for twice as much.
_OTHER_CHARSET = re.compile(r"charset(?!=\"?(?:utf-?8|us-ascii|iso-8859-1)(?![\w-]))", re.IGNORECASE)


class File(NamedTuple):
    """A file in a form of parts: its name, which may be empty, and its content."""

    name: str
    content: bytes


async def read_parts(request: Request, body: bytes, max_field_bytes: int) -> dict[str, list[File | str]]:
    """Returns the fields of a form, each with its values; a file is a `File`.

    Args:
        request: has the type of the body in its head.
        body: the form.
        max_field_bytes: of each field but files.

    Raises:
        InvalidRequest: it is no such form, or has too many parts, or a field is too long.
    """
    content_type = request.headers["content-type"]
    if _OTHER_CHARSET.search(content_type):
        raise InvalidRequest("body", "must be a form in UTF-8 or ISO-8859-1")
    _check_heads(content_type, body)

    async def whole() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    again = Request(request.scope, whole)
    try:
        form = await again.form(max_files=_MAX_FILES, max_fields=MAX_FIELDS, max_part_size=max_field_bytes)
    except (MultiPartException, HTTPException):  # the latter within an application of Starlette
        raise InvalidRequest(
            "body", f"must be a form of parts, each field with at most {max_field_bytes} bytes"
        ) from None
    fields: dict[str, list[File | str]] = {}
    for name, value in form.multi_items():
        if isinstance(value, UploadFile):
            fields.setdefault(name, []).append(File(value.filename or "", await value.read()))
        else:
            fields.setdefault(name, []).append(value)
    await form.close()
    return fields


def _check_heads(content_type: str, body: bytes) -> None:
    """Raises InvalidRequest if there are more boundaries than a form may have, or the head of a part takes long."""
    _, parameters = parse_options_header(content_type)
    boundary = b"\r\n--" + parameters.get(b"boundary", b"")
    if body.count(boundary) > _MAX_PARTS:
        raise InvalidRequest("body", f"must have at most {_MAX_PARTS} parts")
    for part in (b"\r\n" + body).split(boundary)[1:]:
        head, _, _ = part.partition(_HEAD_END)
        if len(head) > _MAX_HEAD_BYTES or head.count(b";") > _MAX_SEMICOLONS or _BLANKS.search(head):
            rule = (
                f"must have heads of parts with at most {_MAX_HEAD_BYTES} bytes, {_MAX_SEMICOLONS} semicolons and "
                f"{_MAX_BLANKS} blanks in a row"
            )
            raise InvalidRequest("body", rule)
