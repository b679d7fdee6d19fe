"""What has been translated of a file with a format, a line of JSON for each text: a stopped job goes on from there."""

import contextlib
import hashlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from babelserve.files import UsageError


class Journal:
    """The file beside an output that has the translations until all are there.

    Args:
        path: of the output, which need not exist; None: standard output. That, and what is no regular file, is written
            at the end without a journal.
        texts: of the file.
        target: code of the target language.

    Attributes:
        part: path of the journal; None without.
        translations: one for each text; None where it is not translated yet.
    """

    def __init__(self, path: Path | None, texts: Sequence[str], target: str) -> None:
        self._path = path and path.resolve()  # a link stays one
        is_special = self._path is None or (self._path.exists() and not self._path.is_file())
        self.part = None if is_special or self._path is None else self._path.with_name(self._path.name + ".part")
        self.translations: list[str | None] = [None] * len(texts)
        self._hashes = [hashlib.sha256(f"{target}\n{text}".encode()).hexdigest()[:16] for text in texts]
        self._file: BinaryIO | None = None

    def open(self, *, resume: bool) -> int:
        """Opens it, and with `resume` reads what a stopped job has left; returns how many texts that has translated.

        Raises:
            UsageError: that job had another file, or another target.
            OSError: it cannot be read or written.
        """
        if self.part is None:
            return 0
        num_bytes = 0
        if resume and self.part.is_file():
            with self.part.open("rb") as file:
                for line in file:
                    if not line.endswith(b"\n"):
                        break  # torn
                    self._take(line)
                    num_bytes += len(line)
        self._file = self.part.open("r+b" if num_bytes else "wb")
        self._file.truncate(num_bytes)
        self._file.seek(num_bytes)
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
        """Writes the output, whole or not at all, and removes the journal. Raises OSError."""
        if self._path is None:
            sys.stdout.buffer.write(output)
            sys.stdout.buffer.flush()
        elif self.part is None:
            self._path.write_bytes(output)
        else:
            whole = self.part.with_name(self.part.name + ".whole")
            whole.write_bytes(output)
            whole.replace(self._path)
            self.leave()
            self.part.unlink(missing_ok=True)

    def leave(self) -> bool:
        """Closes it; returns whether it has anything to go on from. It is removed if not."""
        if self._file is None or self.part is None:
            return False
        with contextlib.suppress(OSError):  # a full disk was complained of already
            self._file.close()
        self._file = None
        if self.part.stat().st_size == 0:
            self.part.unlink()
            return False
        return True

    def _take(self, line: bytes) -> None:
        try:
            entry = json.loads(line)
            index, hash_, translation = entry["text"], entry["hash"], str(entry["translation"])
            is_ours = 0 <= index < len(self._hashes) and self._hashes[index] == hash_
        except (ValueError, TypeError, KeyError) as error:
            raise UsageError(f"{self.part} is no journal of a file with a format: remove it") from error
        if not is_ours:
            raise UsageError(f"{self.part} is of another file, or of another target language: remove it")
        self.translations[index] = translation
