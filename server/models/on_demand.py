"""Loads models of the folder when requests first need them.

A model has failed if none of its versions could be loaded. Some reasons pass by themselves, such as too little memory
or too many open files. So it is tried again when a request comes after a pause, unless its bundles are at fault
themselves (`server.models.bundle_loader`).
"""

from server.errors import NotServing
from server.models.folder_loader import FolderLoader
from server.models.model import Model


class OnDemand:
    """Used on the event loop's thread.

    Args:
        loader: of the folder of models.
    """

    def __init__(self, loader: FolderLoader) -> None:
        self._loader = loader

    async def prove(self, name: str) -> None:
        """Proves versions of a model from the highest down to the first good one.

        Raises:
            NotServing: none is good, or the model has just failed.
        """
        for bundle in self._loader.tried(name):
            if await self._loader.is_good(bundle):
                return
        raise _failure(name)

    async def load(self, name: str) -> Model:
        """Loads the highest good version of a model. Raises NotServing if there is none."""
        model = await self._loader.in_background(self._loader.load_one, name)
        if model is None:
            raise _failure(name)
        return model


def _failure(name: str) -> NotServing:
    return NotServing(f"model {name} cannot be loaded; the server's log says why")
