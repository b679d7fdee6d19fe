"""Values that are read from files, and read again when the files change."""

import errno
import logging
import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Generic, TypeVar

from server.errors import SettingsError
from server.files import open_without_waiting
from server.telemetry.access_metrics import AccessMetrics

logger = logging.getLogger(__name__)

MAX_FILE_BYTES = 1 << 20

_T = TypeVar("_T")


class WatchedFiles(Generic[_T]):
    """A value of some files. What they become is taken if it is good; else the old value stays.

    Contents are compared, not times: that sees what Kubernetes does (it swaps a link to a folder), and a file that is
    written in place.

    Args:
        name: of the value, in log and metrics; one of `server.telemetry.access_metrics.RELOADED`.
        paths: of the files, by the flags that name them.
        load: makes the value of the contents, by the same names; raises SettingsError.
        metrics: told how each reload went.

    Attributes:
        value: the one in force.

    Raises:
        SettingsError: there is no good one to begin with.
    """

    def __init__(
        self,
        name: str,
        paths: Mapping[str, Path],
        load: Callable[[Mapping[str, bytes]], _T],
        metrics: AccessMetrics,
    ) -> None:
        self._name = name
        self._paths = paths
        self._load = load
        self._metrics = metrics
        self._seen = self._judged = self._read()
        self.value = self._made(self._judged)

    def poll(self, *, at_once: bool = False) -> None:
        """Takes what has changed, once it is the same at two polls: files that belong together are written in turn.

        Args:
            at_once: takes what is there, without waiting for another poll; if that is bad it is told once more.
        """
        found = self._read()
        is_settled, self._seen = found == self._seen, found
        if not at_once and (not is_settled or found == self._judged):
            return
        self._judged = found
        try:
            self.value = self._made(found)
        except SettingsError as error:
            self._metrics.count_reload(self._name, is_successful=False)
            logger.error("new %s not taken, the old stay in force: %s", self._name, "; ".join(error.faults))
        else:
            self._metrics.count_reload(self._name, is_successful=True)
            logger.info("new %s taken", self._name)

    def _made(self, found: tuple[dict[str, bytes], list[str]]) -> _T:
        contents, faults = found
        if faults:
            raise SettingsError(faults)
        return self._load(contents)

    def _read(self) -> tuple[dict[str, bytes], list[str]]:
        """Returns the contents, and why some are missing."""
        contents, faults = {}, []
        for flag, path in self._paths.items():
            try:
                contents[flag] = _read(path)
            except OSError as error:
                faults.append(f"{flag}: {path} cannot be read: {error.strerror}")
            else:
                if len(contents[flag]) > MAX_FILE_BYTES:
                    faults.append(f"{flag}: {path} is longer than {MAX_FILE_BYTES} bytes")
        return contents, faults


def _read(path: Path) -> bytes:
    """Returns what a file begins with. Raises OSError."""
    with open_without_waiting(path) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        return file.read(MAX_FILE_BYTES + 1)
