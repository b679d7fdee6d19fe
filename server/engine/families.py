"""What an engine does differently for each family of networks: a row for each."""

from collections.abc import Callable
from dataclasses import dataclass

from server.bundle.graphs import ONE_PASS, RECURRENT, TRANSFORMER
from server.bundle.manifest import Manifest
from server.decoding.beam_search import BeamSearch
from server.decoding.one_pass_search import OnePassSearch
from server.decoding.searches import new_search
from server.engine.batch import Batch
from server.engine.cost import CostModel
from server.engine.limits import EngineLimits
from server.engine.one_pass import OnePassBatch, OnePassCost, bounded


@dataclass(frozen=True, slots=True)
class Family:
    """What an engine asks of a family.

    Attributes:
        batch: what lanes step.
        cost: predicts what sentences cost.
        search: makes the search of a sentence from the arguments of `BeamSearch`.
        limits: returns the limits of an engine; they are the given ones, or less.
    """

    batch: type[Batch]
    cost: type[CostModel]
    search: Callable[..., BeamSearch]
    limits: Callable[[EngineLimits, Manifest], EngineLimits]


_STEPWISE = Family(Batch, CostModel, new_search, lambda limits, _: limits)
FAMILIES = {
    TRANSFORMER: _STEPWISE,
    RECURRENT: _STEPWISE,
    ONE_PASS: Family(
        OnePassBatch,
        OnePassCost,
        OnePassSearch,
        lambda limits, manifest: bounded(limits, manifest.dimensions.vocab_size),
    ),
}
