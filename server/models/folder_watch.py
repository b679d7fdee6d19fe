"""Makes the served models follow the folder of models, look by look."""

import asyncio
import contextlib
import logging
import time

from server.models.catalogue import Catalogue
from server.models.folder_loader import FolderLoader

logger = logging.getLogger(__name__)

POLL_SECONDS = 1.0
_TAKE_SECONDS = 1.0  # for what one look has found; the rest waits for the next look, which may have found better


async def watch_folder(loader: FolderLoader, catalogue: Catalogue, poll_seconds: float = POLL_SECONDS) -> None:
    """Makes the catalogue serve what the folder of models holds, until cancelled."""
    while True:
        next_look = time.monotonic() + poll_seconds
        while time.monotonic() < next_look:
            proved = await _wait(loader, next_look)
            await _take_turn(loader, catalogue, proved)
        await _take_turn(loader, catalogue, None)


async def _wait(loader: FolderLoader, end: float) -> list[str]:
    """Waits for an instant, or until a bundle has been proved; returns the names of the models that can be loaded."""
    proofs = loader.bundles.proofs
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(proofs.news.wait(), end - time.monotonic())
    proofs.news.clear()
    return [name for name, task in loader.wanted.copy().items() if proofs.found(task.bundle) is not None]


async def _take_turn(loader: FolderLoader, catalogue: Catalogue, names: list[str] | None) -> None:
    """Takes the changes of these models, or of all at a new look."""
    async with loader.turn:
        try:
            await _take_changes(loader, catalogue, names)
        except Exception:  # a fault of ours; the served models go on
            logger.exception("models: the folder could not be followed; it will be looked at again")


async def _take_changes(loader: FolderLoader, catalogue: Catalogue, names: list[str] | None) -> None:
    if names is None:
        names = await loader.in_background(loader.changed)
    end = time.monotonic() + _TAKE_SECONDS
    for name in names:
        change = await loader.in_background(loader.load, name)
        if change is not None:
            if change.model is not None:
                catalogue.put(change.model)
            else:
                catalogue.remove(name)
            del change  # else the model would stay in memory after it is replaced
            await catalogue.make_room()
        if time.monotonic() > end:
            break
    loader.bundles.proofs.want([*loader.wanted.values()])
