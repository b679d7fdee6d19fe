"""Loads models of the folder when requests first need them, and tries again later what has failed.

A model has failed if none of its versions could be loaded. Some reasons pass by themselves, such as too little memory
or too many open files. So the server proves a bundle again, unless a proof has found a fault of the bundle itself.
"""

import math
import time
from collections.abc import Callable

from server.errors import NotServing
from server.models.folder import FoundBundle
from server.models.folder_loader import FolderLoader
from server.models.model import Model

_AGAIN_SECONDS = 5.0  # until a model that has failed is tried again


class OnDemand:
    """Used on the event loop's thread.

    Args:
        loader: of the folder of models.
        clock: seconds, monotonic.
    """

    def __init__(self, loader: FolderLoader, clock: Callable[[], float] = time.monotonic) -> None:
        self._loader = loader
        self._clock = clock
        self._failed: dict[str, float] = {}  # models, and when they have failed

    async def prove(self, name: str) -> None:
        """Proves versions of a model from the highest down to the first good one.

        Raises:
            NotServing: none is good, or the model has just failed.
        """
        if self._clock() < self._failed.get(name, -math.inf) + _AGAIN_SECONDS:
            raise _failure(name)
        for bundle in self._loader.tried(name):
            if await self._is_good(bundle, is_again=name in self._failed):
                return
        raise self._fail(name)

    async def load(self, name: str) -> Model:
        """Loads the highest good version of a model. Raises NotServing if there is none."""
        model = await self._loader.in_background(self._loader.load_one, name)
        if model is None:
            raise self._fail(name)
        self._failed.pop(name, None)
        return model

    def _fail(self, name: str) -> NotServing:
        self._failed[name] = self._clock()
        return _failure(name)

    async def _is_good(self, bundle: FoundBundle, *, is_again: bool) -> bool:
        proofs = self._loader.bundles.proofs
        faults = proofs.faults_of(bundle)
        if faults is None or (is_again and not proofs.is_at_fault(bundle)):
            return await self._loader.is_proved(bundle)
        return not faults


def _failure(name: str) -> NotServing:
    return NotServing(f"model {name} cannot be loaded; the server's log says why")
