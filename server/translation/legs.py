"""A text's way, leg by leg: one model's part, or two over a language between."""

import functools
from dataclasses import dataclass

from server.bundle.languages import LanguagePair
from server.decoding.options import DecodingOptions
from server.models.model import Model
from server.text.masking import Masker
from server.text.splitter import SplitRules


@dataclass(frozen=True, slots=True, kw_only=True)
class Leg:
    """One model's part.

    Attributes:
        model: that translates.
        pair: the direction, by the model's codes.
        options: of the search.
        spared_seconds: of the request's time, for what comes after it.
    """

    model: Model
    pair: LanguagePair
    options: DecodingOptions
    spared_seconds: float = 0.0

    @property
    def split_rules(self) -> SplitRules:
        """How texts are split for it."""
        masking = self.model.manifest.masking
        return SplitRules(
            self.pair.source.partition("-")[0],
            functools.partial(self.model.tokenizer.encode, prefix=self.pair.source_prefix),
            self.model.manifest.limits.max_source_tokens,
            num_added=self.model.tokenizer.num_added(self.pair.source_prefix),
            masker=Masker(masking.num_placeholders, masking.folds_capitals),
        )
