"""Reads and writes documents of strangers in processes with bounds, one for each core at most.

What a process gives is looked at like any input. Files have no names, so nothing of them is left, whatever ends.
"""

import asyncio
import json
import tempfile
from collections.abc import Sequence
from typing import IO, Any, NamedTuple

from server.children import Bounds, run_child
from server.errors import InvalidRequest, NotServing

_SECONDS = 60.0  # by the clock; of processor time a child has half (`server.documents.child`)
# A document of Word with 1000 pages takes 0.3 GB. Half refuses it. Twice is what hostile ones may take on each core.
_MEMORY = 768 << 20
BOUNDS = Bounds(_SECONDS, _MEMORY)
_MAX_BYTES = 64 << 20  # of what a child writes: JSON of its texts, or the file


class Parsed(NamedTuple):
    """What is to be translated of a document: the type of its texts, and these."""

    mime_type: str
    texts: list[str]


class BadDocument(InvalidRequest):
    """The document cannot be read.

    Args:
        why: begins with "is", "has" or "takes", as if the file's name came first.
    """

    def __init__(self, why: str) -> None:
        super().__init__("file", f"cannot be translated: it {why}")


class Parser:
    """Runs the processes.

    Args:
        at_once: how many run at the same time.
        bounds: of each.
    """

    def __init__(self, at_once: int, bounds: Bounds = BOUNDS) -> None:
        self._room = asyncio.Semaphore(at_once)
        self._bounds = bounds

    async def read(self, format_name: str, source: IO[bytes]) -> Parsed:
        """Returns what is to be translated of a document.

        Raises:
            BadDocument: it cannot be read within the bounds, or is not of its format.
            NotServing: no process can be started.
        """
        with tempfile.TemporaryFile() as output:
            await self._run("read", [format_name, source.fileno(), output.fileno()])
            found = await asyncio.to_thread(_loaded, output)
        try:
            parsed = Parsed(found["mime_type"], found["texts"])
        except (KeyError, TypeError):
            raise BadDocument("makes its reader fail") from None
        if not all(isinstance(text, str) for text in [parsed.mime_type, *parsed.texts]):
            raise BadDocument("makes its reader fail")
        return parsed

    async def write(
        self, format_name: str, source: IO[bytes], translations: Sequence[str | None], target: str
    ) -> tuple[IO[bytes], int]:
        """Returns an open file without a name, the document with its translations, and how many of these did not fit.

        A translation does not fit if its tags are not those of the text, which then stays as it is.

        Args:
            format_name: as it was read.
            source: likewise.
            translations: of all texts; None leaves a text as it is.
            target: code of the target language.

        Raises:
            BadDocument, NotServing: as `read`.
        """
        output = tempfile.TemporaryFile()  # noqa: SIM115 # it is returned
        try:
            with tempfile.TemporaryFile() as given:
                await asyncio.to_thread(_dump, translations, given)
                files = [source.fileno(), output.fileno(), given.fileno()]
                said = await self._run("write", [format_name, *files, target])
            num_unfit: Any = said.get("num_unfit")
            if num_unfit not in range(len(translations) - translations.count(None) + 1):
                raise BadDocument("makes its reader fail")
        except BaseException:
            output.close()
            raise
        return output, num_unfit

    async def _run(self, function: str, arguments: Sequence[str | int]) -> dict[str, Any]:
        """Returns what the child says. Raises BadDocument and NotServing."""
        async with self._room:
            files = [each for each in arguments if isinstance(each, int)]
            try:
                ended = await run_child(f"server.documents.child:{function}", arguments, self._bounds, pass_fds=files)
            except OSError as error:
                raise NotServing(f"no process can be started to read documents: {error.strerror}") from error
        if ended.is_late:
            raise BadDocument(f"takes more than {self._bounds.seconds:.0f} s to read")
        try:
            found: dict[str, Any] = json.loads(ended.output)
            fault = found["fault"]
        except (ValueError, KeyError, TypeError):
            raise BadDocument(f"makes its reader fail, which {ended.how}") from None
        if fault is not None:
            raise BadDocument(str(fault)[:500])
        return found


def _loaded(file: IO[bytes]) -> dict[str, Any]:
    """Returns the JSON object that a child has written; an empty one if it is none."""
    file.seek(0)
    try:
        found = json.loads(file.read(_MAX_BYTES))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _dump(translations: Sequence[str | None], file: IO[bytes]) -> None:
    file.write(json.dumps(translations, ensure_ascii=False).encode())
    file.flush()
