"""Our own messages as JSON, by the rules of protobuf (https://protobuf.dev/programming-guides/json/).

Names are those of `translation.proto` in lowerCamelCase. What was sent may also have them as the file writes them.
"""

import json
from typing import Any, TypeVar

from google.protobuf.json_format import MessageToDict, ParseDict, ParseError
from google.protobuf.message import Message

from server.errors import InvalidRequest, TranslationError
from server.fronts.front import Front, check_texts
from server.telemetry.metrics import HTTP

_TEXTS = "contents"
_M = TypeVar("_M", bound=Message)

_MOST_WORDS = 200  # of protobuf's own about what is wrong, which may quote the value


def read_message(kind: type[_M], fields: Any, *, ignores_unknown: bool = False) -> _M:
    """Returns the message that a JSON value means.

    Args:
        kind: of the message.
        fields: the JSON.
        ignores_unknown: whether fields that the message does not have are left out, and no fault.

    Raises:
        InvalidRequest: it means none, because a field is unknown or has a value of another type.
    """
    texts: list[str] = []
    if _TEXTS in kind.DESCRIPTOR.fields_by_name and isinstance(fields, dict) and isinstance(fields.get(_TEXTS), list):
        # protobuf looks for halves of surrogate pairs by a pattern, which takes 40 ms for a MiB.
        texts = check_texts(_TEXTS, fields[_TEXTS])
        fields = {name: value for name, value in fields.items() if name != _TEXTS}
    try:
        return ParseDict(fields, kind(**({_TEXTS: texts} if texts else {})), ignore_unknown_fields=ignores_unknown)
    except (ParseError, ValueError, TypeError, OverflowError, RecursionError) as error:
        words = str(error).partition("\n")[0].encode(errors="backslashreplace").decode()[:_MOST_WORDS]
    except SystemError:  # of protobuf, for a name of a field or of an enum's value that no UTF-8 can have
        words = "a name has half of a surrogate pair"
    raise InvalidRequest("body", f"must be the JSON form of {kind.DESCRIPTOR.full_name}, not so: {words}")


def write_message(message: Message) -> bytes:
    """Returns a message as JSON in UTF-8, without the fields that have their defaults."""
    return json.dumps(MessageToDict(message), ensure_ascii=False, separators=(",", ":")).encode()


def _error_body(error: TranslationError, words: str, status: int) -> dict[str, Any]:
    return {"error": {"code": status, "status": error.code.name, "message": words}}


FRONT = Front(name=HTTP, body=_error_body)


def error_event(error: TranslationError, request_id: str) -> bytes:
    """Returns what a stream says about an error that came when it had begun; it has the form of any error's answer."""
    body = FRONT.body(error, FRONT.words_of(error, request_id), FRONT.status_of(error))
    return json.dumps(body, ensure_ascii=False).encode()
