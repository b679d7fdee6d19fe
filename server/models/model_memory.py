"""Leaves memory to models that come while the server runs, and gives it back when they go."""

import logging
from collections.abc import Callable

from server.models.catalogue import Catalogue
from server.models.model import Model
from server.models.start_up import most_bytes
from server.settings.settings import Settings

logger = logging.getLogger(__name__)


class ModelMemory:
    """Used on the event loop's thread.

    Args:
        catalogue: has the served models.
        settings: of the server.
        reserve: takes bytes of the memory of requests, in place of what it took before. If there are too few, it takes
            what there is, and returns False.
    """

    def __init__(self, catalogue: Catalogue, settings: Settings, reserve: Callable[[int], bool]) -> None:
        self._catalogue = catalogue
        self._settings = settings
        self._reserve = reserve
        self._counted_bytes = 0  # of the models that were served when the memory of requests was reckoned
        self._is_enough = True

    def follow(self) -> None:
        """Leaves memory from now on to what the catalogue serves beyond what it serves now."""
        self._counted_bytes = self._most_bytes()
        self._catalogue.on_change = self._fit

    def fits(self, model: Model) -> bool:
        """Returns whether there is memory for a model beside the served ones."""
        is_enough = self._take(model)
        self._take()  # as before: the catalogue tells when the model is served
        return is_enough

    def _fit(self) -> None:
        was_enough, self._is_enough = self._is_enough, self._take()
        if was_enough and not self._is_enough:
            logger.warning("models: they may take memory that requests need; --memory-mib is too little for them")

    def _take(self, *more: Model) -> bool:
        return self._reserve(max(0, self._most_bytes(*more) - self._counted_bytes))

    def _most_bytes(self, *more: Model) -> int:
        return most_bytes([*self._catalogue.versions(), *more], self._settings)
