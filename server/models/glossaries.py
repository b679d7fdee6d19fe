"""The glossaries that requests may name: those that the server has loaded, and those that callers keep on it."""

import asyncio
import contextlib
import functools
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from server.errors import GlossaryNotFound, NotServing
from server.models.folder_watch import POLL_SECONDS
from server.models.kept_glossaries import KeptGlossaries
from server.telemetry.glossary_metrics import GlossaryMetrics
from server.text.glossary import Glossary, NamedGlossary
from server.threads import LANE_NICENESS, be_nice

if TYPE_CHECKING:
    from server.models.glossary_folder import GlossaryFolder

logger = logging.getLogger(__name__)


class Glossaries:
    """Follows the folder of glossaries.

    Args:
        directory: the folder; None for no glossaries.
        metrics: are told of every load; None for no glossaries.
        houses: names of the glossaries that hold in every request. If the folder lacks one, the server logs its name,
            and takes the glossary when it comes.

    Attributes:
        kept: those of callers.
    """

    def __init__(
        self, directory: Path | None = None, metrics: GlossaryMetrics | None = None, houses: Sequence[str] = ()
    ) -> None:
        self._folder = _opened(directory, metrics) if directory is not None and metrics is not None else None
        self._are_loaded = False
        self.kept = KeptGlossaries()
        self._houses = houses

    @property
    def served(self) -> list[NamedGlossary]:
        """The glossaries, by name. Raises NotServing while they are loaded for the first time."""
        served = self._by_name()
        return [served[name] for name in sorted(served)]

    @property
    def houses(self) -> list[NamedGlossary]:
        """The glossaries that hold in every request, in their order. Raises NotServing while the server loads them."""
        return [found for name in self._houses if (found := self._by_name().get(name)) is not None]

    def resolve(self, glossary: Glossary, tenant: str) -> Glossary:
        """Returns a request's glossary with those that it names, as they are now.

        Args:
            glossary: of the request.
            tenant: the name of the caller's tenant, whose kept glossaries may be named, too.

        Raises:
            GlossaryNotFound: there is none of a name.
            NotServing: glossaries are loaded for the first time.
        """
        named = []
        for index, name in enumerate(glossary.names):
            found = self.kept.named(tenant, name) or self._by_name().get(name)
            if found is None:
                shown = name if len(name) <= 64 and name.isascii() and name.isprintable() else f"{len(name)} characters"
                raise GlossaryNotFound(f"glossary.names[{index}]: {shown} is no glossary here; ListGlossaries has all")
            named.append(found)
        return glossary.with_named(named) if named else glossary

    def _by_name(self) -> Mapping[str, NamedGlossary]:
        if self._folder is None:
            return {}
        if not self._are_loaded:
            raise NotServing("the server is loading its glossaries")
        return self._folder.served

    @contextlib.asynccontextmanager
    async def followed(self, poll_seconds: float = POLL_SECONDS) -> AsyncIterator[None]:
        """Loads the glossaries on another thread, and takes what changes until the block is left."""
        if self._folder is None:
            yield
            return
        loop = asyncio.get_running_loop()
        thread = ThreadPoolExecutor(1, "glossary-loader", functools.partial(be_nice, LANE_NICENESS))
        await loop.run_in_executor(thread, self._folder.load_all)
        self._are_loaded = True
        for name in set(self._houses) - self._folder.served.keys():
            logger.warning(
                "the folder of glossaries lacks one that is to hold in every request",
                extra={"facts": {"glossary": name}},
            )
        following = asyncio.create_task(_follow(self._folder, thread, poll_seconds))
        try:
            yield
        finally:
            following.cancel()
            thread.shutdown(wait=False, cancel_futures=True)


def _opened(directory: Path, metrics: GlossaryMetrics) -> "GlossaryFolder":
    from server.models.glossary_folder import GlossaryFolder  # noqa: PLC0415  # readers, which most servers lack

    return GlossaryFolder(directory, metrics)


async def _follow(folder: "GlossaryFolder", thread: ThreadPoolExecutor, poll_seconds: float) -> None:
    while True:
        await asyncio.sleep(poll_seconds)
        try:
            await asyncio.get_running_loop().run_in_executor(thread, folder.take_changes)
        except Exception:  # a fault of ours; the served glossaries go on
            logger.exception("glossaries: the folder could not be followed; it will be looked at again")
