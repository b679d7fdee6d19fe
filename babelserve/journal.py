"""What has been translated of a file with a format, a line of JSON for each text: a stopped job goes on from there."""

import hashlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from babelserve.outputs import UsageError, claim, close_part, is_gzip, places, whole_lines, write_whole
from babelserve.terminal import write_shown


class Journal:
    """The file beside an output that has the translations until all are there.

    Args:
        path: of the output, which need not exist; None: standard output. That, and what is no regular file, is written
            at the end without a journal. If it ends in ".gz", the output is gzipped.
        texts: of the file.
        settings: what the texts are translated with: the target language and all options.

    Attributes:
        part: path of the journal; None without.
        translations: one for each text; None where it is not translated yet.

    Raises:
        UsageError, OSError: as `places`.
    """

    def __init__(self, path: Path | None, texts: Sequence[str], settings: object) -> None:
        self._path: Path | None = None
        self.part: Path | None = None
        self._is_gzip = path is not None and is_gzip(path)
        if path:
            self._path, self.part = places(path)
        self.translations: list[str | None] = [None] * len(texts)
        key = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
        self._hashes = [hashlib.sha256(f"{key}\n{text}".encode()).hexdigest()[:16] for text in texts]
        self._file: BinaryIO | None = None

    def open(self, *, resume: bool) -> int:
        """Opens it, and with `resume` reads what a stopped job has left; returns how many texts that has translated.

        Raises:
            UsageError: that job had another file, target or options; or another job has it.
            OSError: it cannot be read or written.
        """
        if self.part is None:
            return 0
        self._file = claim(self.part)
        num_bytes = 0
        try:
            for line in whole_lines(self._file) if resume else ():
                self._take(line)
                num_bytes += len(line)
            self._file.truncate(num_bytes)
            self._file.seek(num_bytes)
        except BaseException:
            self._file.close()
            self._file = None
            raise
        return len(self.translations) - self.translations.count(None)

    def add(self, index: int, translation: str) -> None:
        """Keeps a text's translation. Raises OSError."""
        self.translations[index] = translation
        if self._file is None:
            return
        entry = {"text": index, "hash": self._hashes[index], "translation": translation}
        self._file.write(json.dumps(entry, ensure_ascii=False).encode() + b"\n")
        self._file.flush()

    def finish(self, output: bytes) -> None:
        """Writes the output, whole or not at all, and removes the journal. Raises OSError, UsageError."""
        if self._path is None:
            write_shown(sys.stdout.buffer, output)
            sys.stdout.buffer.flush()
        elif self.part is None:
            with self._path.open("wb") as file:
                write_shown(file, output)
        else:
            write_whole(self._path, self.part, lambda whole: whole.write(output), gzipped=self._is_gzip)
            if self._file is not None:
                self._file.truncate(0)
            self.leave()

    def leave(self) -> bool:
        """Closes it; returns whether it has anything to go on from. It is removed if not."""
        if self._file is None:
            return False
        file, self._file = self._file, None
        return close_part(file, self.part)

    def _take(self, line: bytes) -> None:
        try:
            entry = json.loads(line)
            index, hash_, translation = entry["text"], entry["hash"], str(entry["translation"])
            translation.encode()  # JSON can have what no text may
            is_ours = 0 <= index < len(self._hashes) and self._hashes[index] == hash_
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise UsageError(f"{self.part} is no journal of a file with a format: remove it") from error
        if not is_ours:
            raise UsageError(f"{self.part} is of another file, or of other options, such as terms: remove it")
        self.translations[index] = translation
