"""A file with a format as a job: its texts are translated as lines are, and then it is written with all of them."""

import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

from tqdm import tqdm

from babelserve.files import GZIP_MAGIC
from babelserve.formats.document import BadFile, Document
from babelserve.formats.readers import READERS
from babelserve.journal import Journal
from babelserve.lines import MAX_TEXT_BYTES, Line, TranslatedLine
from babelserve.outputs import UsageError

# Of a file, which is held in memory, and so is the one that is written. With half of it, books with many pictures would
# be refused. With twice as much, a file could take more than a gigabyte.
_MAX_FILE_BYTES = 128 * 2**20

_Translate = Callable[[Iterator[Line]], Iterator[list[TranslatedLine]]]


def read_document(format_name: str, path: Path | None) -> Document:
    """Reads a file of a format, standard input if `path` is None.

    Raises:
        UsageError: it is not of that format, or damaged, or too large.
        OSError: it cannot be read.
    """
    with path.open("rb") if path else nullcontext(sys.stdin.buffer) as file:
        data = file.read(_MAX_FILE_BYTES + 1)
    if data.startswith(GZIP_MAGIC):
        raise UsageError(f"{path or 'standard input'} is gzip: unpack it first")
    if len(data) > _MAX_FILE_BYTES:
        raise UsageError(f"{path or 'standard input'} has more than {_MAX_FILE_BYTES} bytes, the limit of --format")
    try:
        return READERS[format_name](data)
    except BadFile as error:
        raise UsageError(f"{path or 'standard input'} {error}") from error


def translate_document(
    document: Document,
    journal: Journal,
    target: str,
    translate: _Translate,
    progress: tqdm,
    tell: Callable[[str], object],
) -> int:
    """Translates what the journal lacks, and writes the file; a text that fails stays as it was.

    Args:
        document: the file.
        journal: of its texts, open.
        target: code of the target language.
        translate: gives batches of translations, in the order of the lines.
        progress: counts texts.
        tell: takes the reason why a text has failed.

    Returns:
        The number of texts that have failed.

    Raises:
        TranslationError: as `translate_lines`.
        UsageError: all texts have failed.
        OSError: the journal or the output cannot be written.
    """
    missing = [index for index, text in enumerate(journal.translations) if text is None]
    progress.update(len(document.texts) - len(missing))
    num_failed = 0
    numbers = iter(missing)
    for batch in translate(_line(document.texts[index]) for index in missing):
        for line in batch:
            index = next(numbers)
            if line.translation.error is None:
                journal.add(index, line.translation.text)
            else:
                num_failed += 1
                tell(f"text {index + 1}: {line.translation.error.code.name}: {line.translation.error.message}")
            progress.update()
    if document.texts and num_failed == len(document.texts):
        raise UsageError("no text of the file could be translated, so nothing is written")
    output, unfit = document.write(journal.translations, target)
    for index in unfit:
        tell(f"text {index + 1}: the translation has not the tags of the text, which stays as it was")
    journal.finish(output)
    return num_failed + len(unfit)


def _line(text: str) -> Line:
    num_bytes = len(text.encode())
    if num_bytes > MAX_TEXT_BYTES:
        return Line(text="", num_bytes=1, error=f"the text has {num_bytes} bytes; the limit is {MAX_TEXT_BYTES}")
    return Line(text=text, num_bytes=num_bytes)
