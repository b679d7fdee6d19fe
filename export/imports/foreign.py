"""Somebody else's model, understood: what every family is read into, and all that the export needs."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from export.imports.formats.tensors import Tensors, num_elements
from export.imports.report import Report
from export.imports.weights import Plan, check_plan, check_size, expected_shapes, load_weights
from model.config import TransformerConfig
from server.bundle.languages import LanguagePair, Languages
from server.bundle.manifest import SearchDefaults
from server.bundle.shortlist import Shortlist

TRANSFORMERS, CTRANSLATE2 = "transformers", "ctranslate2"  # as a `ForeignModel.reference`
_NAME_THEM = "say which: --source CODE --target CODE"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignModel:
    """A model that has been read but for its weights.

    Attributes:
        family: for people.
        reference: the package that it is from, for people; `export.imports.reference` asks two of them.
        directory: where `CTRANSLATE2` finds it; None for other references.
        name: of the model, for the manifest.
        config: of our network that computes the same.
        plan: which of `tensors` its weights are.
        tokenizer: files of the bundle, by name, as `server.bundle.tokenizer` reads them.
        language_pairs, languages: as in `Manifest`; one of them is empty.
        source_eos: whether eos ends the encoder's input.
        suppressed: ids that are never generated, for which `config.output_bias` must hold.
        search: how its makers search.
        max_source_tokens, max_target_tokens: at most `config.max_positions`.
        shortlist: its own lexical one.
        origin: for people: licence, source and more.
    """

    family: str
    reference: str
    directory: Path | None = None
    name: str
    config: TransformerConfig
    plan: Plan
    tensors: Tensors
    tokenizer: dict[str, bytes]
    language_pairs: tuple[LanguagePair, ...] = ()
    languages: Languages | None = None
    source_eos: bool = True
    suppressed: tuple[int, ...] = ()
    search: SearchDefaults = field(default_factory=SearchDefaults)
    max_source_tokens: int
    max_target_tokens: int
    shortlist: Shortlist | None = None
    origin: dict[str, Any] = field(default_factory=dict)

    @property
    def num_parameters(self) -> int:
        """How many numbers our network has, tables of positions aside."""
        shapes = expected_shapes(self.config)
        return sum(num_elements(shape) for name, shape in shapes.items() if not name.endswith("_positions"))

    @property
    def directions(self) -> list[tuple[str, str]]:
        """Codes of source and target of all that it translates, by target."""
        if self.languages is None:
            return [(pair.source, pair.target) for pair in self.language_pairs]
        sides = itertools.product(self.languages.target, self.languages.source)
        return [(source, target) for target, source in sides if source != target]

    def check(self, report: Report) -> None:
        """Notes what is wrong with the languages, and with the tensors by their headers alone."""
        if not (self.directions or report.faults):  # a side without any language is a fault already
            report.fault(
                "languages", found="no direction is left", expected="a source and another target", remedy=_NAME_THEM
            )
        check_plan(self.plan, self.config, self.tensors, report)
        check_size(self.num_parameters, self.tensors, report)

    def weights(self, report: Report) -> Iterator[tuple[str, Tensor]]:
        """Yields the name and value of each weight of our network, loaded in turn.

        Raises:
            ImportFault: a file cannot be read after all.
        """
        for name, weight in load_weights(self.plan, self.config, self.tensors, report):
            if name == "output_bias":
                weight[list(self.suppressed)] = float("-inf")
            yield name, weight
