"""Makes the served models follow the folder of models, look by look."""

import asyncio
import logging

from server.models.catalogue import Catalogue
from server.models.folder_loader import FolderLoader

logger = logging.getLogger(__name__)

POLL_SECONDS = 1.0


async def watch_folder(loader: FolderLoader, catalogue: Catalogue, poll_seconds: float = POLL_SECONDS) -> None:
    """Makes the catalogue serve what the folder of models holds, until cancelled."""
    while True:
        await asyncio.sleep(poll_seconds)
        async with loader.turn:
            try:
                await _take_changes(loader, catalogue)
            except Exception:  # a fault of ours; the served models go on
                logger.exception("models: the folder could not be followed; it will be looked at again")


async def _take_changes(loader: FolderLoader, catalogue: Catalogue) -> None:
    for name in await loader.in_background(loader.changed):
        change = await loader.in_background(loader.load, name)
        if change is None:
            continue
        if change.model is not None:
            catalogue.put(change.model)
        else:
            catalogue.remove(name)
        del change  # else the model would stay in memory after it is replaced
        await catalogue.make_room()
