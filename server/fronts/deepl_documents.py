"""DeepL's API for documents (version 2): uploads in our messages, and how far a document is in its words."""

from typing import Any

from babelserve.v1 import translation_pb2 as pb
from server.errors import TranslationError
from server.fronts.deepl import FRONT, Fields, NotHere, Refused, optional, read_options


def read_upload(fields: Fields) -> pb.TranslateRequest:
    """Returns what a document's texts ask for, without texts. Raises InvalidRequest."""
    options = read_options(fields)
    if options.source_language_code.lower() == options.target_language_code.lower():
        raise Refused("target_lang", "Source and target language are equal.")
    return options


def read_output_format(fields: Fields) -> str:
    """Returns the end of a file's name that the translated file is to have; "" for that of the document."""
    return optional(fields, "output_format").lower().removeprefix(".")


def no_file() -> Refused:
    """Returns the error that an upload has no file, or an empty one."""
    return Refused("file", "Invalid file data.")


def wrong_output_format() -> Refused:
    """Returns the error that a document cannot be translated into a file of another format."""
    return Refused("output_format", "output_format not supported.")


def check_key(fields: Fields, key: str) -> None:
    """Raises NotHere if a request for a document has not its key."""
    if optional(fields, "document_key").lower() != key:
        raise NotHere("Document not found: the document_key is another one's")


def write_started(identity: str, key: str) -> dict[str, str]:
    """Returns the answer to an upload, for what identifies the document."""
    return {"document_id": identity.upper(), "document_key": key.upper()}


def write_status(
    identity: str,
    state: str,
    *,
    seconds_remaining: int,
    num_characters: int,
    failure: TranslationError | None,
    request_id: str,
) -> dict[str, Any]:
    """Returns how far a document is.

    Args:
        identity: of the document.
        state: "queued", "translating", "done" or "error".
        seconds_remaining: as far as that is known.
        num_characters: of the document.
        failure: what has ended it; None if nothing has.
        request_id: of the upload.
    """
    answer: dict[str, Any] = {"document_id": identity.upper(), "status": state}
    if state in ("translating", "done"):
        answer["seconds_remaining"] = seconds_remaining
    if state == "done":
        answer["billed_characters"] = num_characters
    if failure is not None:
        words = FRONT.body(failure, FRONT.words_of(failure, request_id), FRONT.status_of(failure))["message"]
        answer |= {"error_message": words, "message": words}
    return answer
