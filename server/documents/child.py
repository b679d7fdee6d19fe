"""The process that reads a document, or writes it with its translations. `server.documents.parsing` starts it.

It has files that are open and have no names, and bounds: memory (set by `server.children`), processor time, what it
writes. It has no network, as far as the kernel gives that. It says one line of JSON: `fault`, which is null if there is
none, and for a document that it has written `num_unfit`, how many translations did not fit.
"""

import json
import os
import resource
from collections.abc import Callable
from typing import Any

from babelserve.formats.document import BadFile
from babelserve.formats.readers import READERS
from server.children import isolate

# A book of 1000 pages has 2 MB and 20,000 texts. Half refuses large manuals. Twice, and one document may keep the
# models busy for hours.
MAX_TEXTS, MAX_TEXT_BYTES = 50_000, 8 << 20
MAX_WRITTEN_BYTES = 64 << 20  # of a file; a document of 16 MiB grows by its texts, and XML escapes
_CPU_SECONDS = 30  # the largest documents take 8. Half refuses some on slow machines; twice lets bad ones run longer
_NICE = 10  # the lanes come first


def read(format_name: str, source: int, output: int) -> None:
    """Writes the type and the texts of a document as JSON.

    Args:
        format_name: a key of `READERS`.
        source: descriptor of the document.
        output: descriptor of an empty file.
    """

    def work() -> dict[str, int]:
        document = READERS[format_name](_all_of(source))
        num_bytes = sum(len(text.encode()) for text in document.texts)
        if len(document.texts) > MAX_TEXTS or num_bytes > MAX_TEXT_BYTES:
            most = f"the limits are {MAX_TEXTS} texts and {MAX_TEXT_BYTES} bytes: split it"
            raise BadFile(f"has {len(document.texts)} texts with {num_bytes} bytes; {most}")
        _write(
            output, json.dumps({"mime_type": document.mime_type, "texts": document.texts}, ensure_ascii=False).encode()
        )
        return {}

    _run(work)


def write(format_name: str, source: int, output: int, translations: int, target: str) -> None:
    """Writes a document with its translations.

    Args:
        format_name: a key of `READERS`.
        source: descriptor of the document.
        output: descriptor of an empty file.
        translations: descriptor of a JSON list with a text or null for each text of the document.
        target: code of the target language.
    """

    def work() -> dict[str, int]:
        given: Any = json.loads(_all_of(translations))
        written, unfit = READERS[format_name](_all_of(source)).write(given, target)
        _write(output, written)
        return {"num_unfit": len(unfit)}

    _run(work)


def _run(work: Callable[[], dict[str, int]]) -> None:
    """Has the process do its work, and say what the work returns, with the fault beside it."""
    os.nice(_NICE)
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_SECONDS, _CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_WRITTEN_BYTES, MAX_WRITTEN_BYTES))
    isolate()
    said: dict[str, Any] = {"fault": None}
    try:
        said |= work()
    except BadFile as error:
        said["fault"] = str(error)
    except MemoryError:
        said["fault"] = "takes too much memory to read"
    except RecursionError:
        said["fault"] = "is nested too deep"
    os.write(1, json.dumps(said).encode())
    os._exit(0)  # what was built is not taken apart


def _all_of(file: int) -> bytes:
    with open(file, "rb", closefd=False) as opened:  # it has no path
        opened.seek(0)
        return opened.read()


def _write(file: int, data: bytes) -> None:
    try:
        with open(file, "wb", closefd=False) as opened:
            opened.write(data)
    except OSError as error:
        raise BadFile(f"cannot be written, with its {len(data)} bytes: {error.strerror}") from error
