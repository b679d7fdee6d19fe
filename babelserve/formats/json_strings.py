r"""JSON: every string value is translated; keys, other values, order, indents and line breaks stay as they are."""

import json
import re
from functools import partial

from babelserve.formats.document import PLAIN, BadFile, Document, Standing, Unit, decoded, has_letters, one_text

_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"(?=[ \t\r\n]*+(:?))')


def read_json(data: bytes) -> Document:
    """Reads a JSON text in UTF-8.

    Raises:
        BadFile: it is something else, or nested too deep.
    """
    text = decoded(data)
    try:
        json.loads(text.removeprefix("\ufeff"), parse_int=str, parse_float=str)
    except ValueError as error:
        raise BadFile(f"is no JSON: {error}") from error
    except RecursionError as error:
        raise BadFile("is nested too deep") from error
    escapes_all = text.isascii() and "\\u" in text

    units = []
    for found in _STRING.finditer(text):
        value = json.loads(found[0]) if found[1] != ":" else ""
        if has_letters(value) and _is_unicode(value):
            units.append(Unit(value, *found.span(), partial(_written, found[0], escapes_all)))
    return one_text(PLAIN, text, units)


def _written(literal: str, escapes_all: bool, translation: str, _: Standing) -> str:
    written = json.dumps(translation, ensure_ascii=escapes_all)
    return written.replace("/", "\\/") if "\\/" in literal else written


def _is_unicode(text: str) -> bool:
    """Whether it can be sent: a lone surrogate, which JSON can write, cannot."""
    return not re.search("[\ud800-\udfff]", text)
