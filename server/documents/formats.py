"""Which format a file has: by the end of its name, or by how it begins if the name says nothing."""

import posixpath
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from server.errors import InvalidRequest

_OFFICE = "application/vnd.openxmlformats-officedocument"


class Format(NamedTuple):
    """A format of files: its name among the readers of `babelserve.formats`, and its type for HTTP."""

    name: str
    content_type: str


# By the end of a file's name; the best known first.
FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        "txt": Format("text", "text/plain; charset=utf-8"),
        "html": Format("html", "text/html; charset=utf-8"),
        "htm": Format("html", "text/html; charset=utf-8"),
        "docx": Format("docx", f"{_OFFICE}.wordprocessingml.document"),
        "pptx": Format("pptx", f"{_OFFICE}.presentationml.presentation"),
        "xlsx": Format("xlsx", f"{_OFFICE}.spreadsheetml.sheet"),
        "odt": Format("odt", "application/vnd.oasis.opendocument.text"),
        "epub": Format("epub", "application/epub+zip"),
        "srt": Format("srt", "application/x-subrip; charset=utf-8"),
        "vtt": Format("vtt", "text/vtt; charset=utf-8"),
        "md": Format("markdown", "text/markdown; charset=utf-8"),
        "po": Format("po", "text/x-gettext-translation; charset=utf-8"),
        "pot": Format("po", "text/x-gettext-translation; charset=utf-8"),
        "xlf": Format("xliff", "application/xliff+xml"),
        "xliff": Format("xliff", "application/xliff+xml"),
        "json": Format("json", "application/json"),
    }
)
_BEGINS = (  # of files without an end of their name, after blanks; an archive is told by what is in it
    (b"WEBVTT", "vtt"),
    (b"<!doctype html", "html"),
    (b"<html", "html"),
    (b"<?xml", "xliff"),
    (b"<xliff", "xliff"),
)
_MEMBERS = (  # names and types that stand in an archive as they are
    (b"word/document", "docx"),
    (b"ppt/presentation", "pptx"),
    (b"xl/workbook", "xlsx"),
    (b"application/vnd.oasis.opendocument.text", "odt"),
    (b"application/epub+zip", "epub"),
)
_LOOKED_AT = 1024  # bytes at the begin of a file that is no archive
_MOST_NAME = 200  # characters that are left of a name; file systems take 255 bytes


class UnknownFormat(InvalidRequest):
    """A file of a format that nobody here reads."""

    def __init__(self) -> None:
        ends = ", ".join(FORMATS)
        super().__init__("file", f"must have a name that ends in one of {ends} (Invalid file extension)")


def extension_of(name: str, data: bytes) -> str:
    """Returns the key in `FORMATS` of a file.

    Args:
        name: of the file. Without an end it says nothing, as some clients' "file" and "blob".
        data: all of it.

    Raises:
        UnknownFormat: the name has another end.
    """
    end = posixpath.splitext(name)[1][1:].lower()
    if not end:
        return _guess(data)
    if end not in FORMATS:
        raise UnknownFormat
    return end


def plain_name(name: str, extension: str) -> str:
    """Returns the name of a file without folders and control characters, with an end."""
    last = "".join(char for char in name.replace("\\", "/").rpartition("/")[2] if char.isprintable())
    stem = posixpath.splitext(last)[0].strip(". ")[:_MOST_NAME] or "document"
    return f"{stem}.{extension}"


def _guess(data: bytes) -> str:
    if data.startswith(b"PK"):
        found = next((extension for member, extension in _MEMBERS if member in data), None)
        if found is None:
            raise UnknownFormat
        return found
    begin = data[:_LOOKED_AT].removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    return next((extension for known, extension in _BEGINS if begin.startswith(known.lower())), "txt")
