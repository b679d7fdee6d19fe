"""The folder of glossaries: DIR/NAME.tsv, DIR/NAME.csv or DIR/NAME.tbx is the glossary NAME.

Files that begin with a dot are ignored, because Kubernetes makes such files to swap what is mounted. Links are
followed. A file is taken once it is the same at two looks, and is read whole before it replaces the old one. A
faulty one is refused, with its fault in the log, and the old one stays. A glossary is served until its file has gone;
but a folder without any is taken for a missing mount, and all stay.
"""

import errno
import heapq
import logging
import os
import stat
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from server.bundle.codes import canonical_code
from server.files import open_without_waiting
from server.models.folder import is_model_name
from server.telemetry.glossary_metrics import GlossaryMetrics
from server.text.glossary import NamedGlossary
from server.text.glossary_entries import MalformedGlossary
from server.text.glossary_files import SUFFIXES, read_glossary_file

logger = logging.getLogger(__name__)

MAX_FILE_BYTES = 32 << 20  # half, and a TBX of 100,000 terms does not fit; twice that, and to refuse one takes 10 s
MAX_GLOSSARIES = 100  # each has series of its own on the metrics page
MAX_ALL_WORDS = 1_000_000  # of the sources of all glossaries; 500,000 terms of two words take about 260 MiB
_MOST_FAULTS = 20  # that are named at one look

_Stamp = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file of the folder, as far as a look at it tells.

    Attributes:
        stamp: changes if the file is written or exchanged, or what it links to.
    """

    name: str
    path: Path
    stamp: _Stamp


def find_files(directory: Path, served: Collection[str] = ()) -> tuple[dict[str, FoundFile], list[str]]:
    """Finds the glossaries in the folder.

    Args:
        directory: the folder.
        served: names of glossaries. Their files come first, so that they stay when there are too many others.

    Returns:
        The files, by the names of their glossaries, and faults, which name files that are left out. Of many
        faults the last says how many more there are.

    Raises:
        OSError: the folder cannot be read.
    """
    with os.scandir(directory) as entries:
        files = [entry.name for entry in entries if not entry.name.startswith(".")]
    strays = [file for file in files if not file.endswith(SUFFIXES)]
    suffix_fault = f"no glossary: its name must end with one of {', '.join(SUFFIXES)}"
    faults = [f"{directory}/{ascii(file)[1:-1]}: {suffix_fault}" for file in heapq.nsmallest(_MOST_FAULTS, strays)]
    num_faults = len(strays)
    found: dict[str, FoundFile] = {}
    for file in sorted(set(files) - set(strays), key=lambda file: (Path(file).stem not in served, file)):
        path = directory / file
        fault = _name_fault(path, found)
        try:
            if not fault:
                found[path.stem] = FoundFile(path.stem, path, _stamp(path.stat()))
                continue
        except OSError as error:
            if error.errno == errno.ENOENT and not path.is_symlink():  # it has gone meanwhile
                continue
            fault = f"cannot be read: {error.strerror}"
        num_faults += 1
        faults.append(f"{directory}/{ascii(file)[1:-1]}: {fault}")
    del faults[_MOST_FAULTS:]
    if num_faults > len(faults):
        faults.append(f"{directory}: {num_faults - len(faults)} files more that are no glossaries")
    return found, faults


def _name_fault(path: Path, found: Mapping[str, FoundFile]) -> str:
    if not is_model_name(path.stem):
        return "no name of a glossary: letters, digits, '.', '_' and '-', at most 64"
    if path.stem in found:
        return f"{found[path.stem].path.name} has this name already"
    if len(found) == MAX_GLOSSARIES:
        return f"there must be at most {MAX_GLOSSARIES} glossaries"
    return ""


def read_file(found: FoundFile) -> bytes | None:
    """Returns the content of a file; None if it changed while it was read, or has gone.

    Raises:
        MalformedGlossary: it cannot be read, is no regular file, or is too long. A FIFO is not waited for.
    """
    try:
        with open_without_waiting(found.path) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise MalformedGlossary("must be a regular file")
            if status.st_size > MAX_FILE_BYTES:
                raise MalformedGlossary(f"must have at most {MAX_FILE_BYTES} bytes, not {status.st_size}")
            content = file.read(MAX_FILE_BYTES + 1)
            is_same = found.stamp == _stamp(status) == _stamp(os.fstat(file.fileno()))
    except OSError as error:
        if error.errno == errno.ENOENT:
            return None
        raise MalformedGlossary(f"cannot be read: {error.strerror}") from error
    return content if is_same else None


def _stamp(status: os.stat_result) -> _Stamp:
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


class GlossaryFolder:
    """Loads what is in the folder: everything at the start, then what changes. Its methods block.

    Args:
        directory: the folder.
        metrics: are told of every load.

    Attributes:
        served: the glossaries, by name; exchanged whole, so that any thread may read it.
    """

    def __init__(self, directory: Path, metrics: GlossaryMetrics) -> None:
        self._directory = directory
        self._metrics = metrics
        self._seen: dict[str, FoundFile] = {}
        self._judged: dict[str, FoundFile] = {}
        self._told: list[str] = []
        self.served: Mapping[str, NamedGlossary] = {}

    def load_all(self) -> None:
        """Loads all good glossaries, without a second look."""
        self._seen = self._look()
        for found in self._seen.values():
            self._load(found)

    def take_changes(self) -> None:
        """Loads the files that have changed since they were loaded, but not since the last look."""
        found = self._look()
        if not found and self._judged:
            return
        seen, self._seen = self._seen, found
        for name in self._judged.keys() - found.keys() - seen.keys():
            self._remove(name)
        for name, file in found.items():
            if file == seen.get(name) != self._judged.get(name):
                self._load(file)

    def _look(self) -> dict[str, FoundFile]:
        try:
            found, faults = find_files(self._directory, self.served)
        except OSError as error:
            found, faults = {}, [f"{self._directory}: cannot be read: {error.strerror}"]
        if not found:
            faults.append(f"{self._directory}: holds no glossary" + ("; those there were stay" if self._judged else ""))
        for fault in faults:
            if fault not in self._told:
                logger.warning("glossaries: %s", fault)
        self._told = faults
        return found

    def _load(self, found: FoundFile) -> None:
        started = time.monotonic()
        facts: dict[str, str | float] = {"glossary": found.name, "file": str(found.path)}
        try:
            content = read_file(found)
            if content is None:
                return  # the next looks will find what it is then
            glossary = self._checked(read_glossary_file(found.name, found.path.suffix, content))
        except MalformedGlossary as error:
            logger.error("a glossary is refused", extra={"facts": facts | {"error": str(error)}})
            self._metrics.count_load(found.name, is_successful=False)
        else:
            self.served = {**self.served, found.name: glossary}
            self._metrics.count_load(found.name, is_successful=True)
            self._metrics.terms.labels(found.name).set(glossary.table.num_terms)
            seconds = round(time.monotonic() - started, 3)
            facts |= {"glossary_version": glossary.version, "terms": glossary.table.num_terms, "seconds": seconds}
            logger.info("a glossary has been loaded", extra={"facts": facts})
        self._judged[found.name] = found

    def _checked(self, glossary: NamedGlossary) -> NamedGlossary:
        """Returns a glossary with its codes as BCP-47 writes them. Raises MalformedGlossary if it cannot be served."""
        source, target = canonical_code(glossary.source), canonical_code(glossary.target)
        if source is None or target is None:
            code = glossary.source if source is None else glossary.target
            raise MalformedGlossary(f"must be of two languages, but {code} is no BCP-47 code of one")
        others = [each for name, each in self.served.items() if name != glossary.name]
        num_words = sum(each.table.num_words for each in (*others, glossary))
        if num_words > MAX_ALL_WORDS:
            rule = f"the sources of all glossaries together must have at most {MAX_ALL_WORDS} words"
            raise MalformedGlossary(f"{rule}, not {num_words}")
        return replace(glossary, source=source, target=target)

    def _remove(self, name: str) -> None:
        del self._judged[name]
        self.served = {each: glossary for each, glossary in self.served.items() if each != name}
        self._metrics.remove(name)
        logger.info("a glossary has been removed", extra={"facts": {"glossary": name}})
