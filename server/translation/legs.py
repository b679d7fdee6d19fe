"""A text's way, leg by leg: one model's part, or two over a language between."""

import functools
from dataclasses import dataclass, replace

from server.bundle.languages import LanguagePair
from server.decoding.options import DecodingOptions
from server.models.model import Model
from server.text.masked import Restored
from server.text.masking import Masker
from server.text.sentences import SourceSentence
from server.text.splitter import SplitRules


@dataclass(frozen=True, kw_only=True)
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

    def ask_again(self, sentence: SourceSentence, restored: Restored) -> SourceSentence | None:
        """Returns a sentence as its model is shown it next, after a translation that is not whole; None for no more."""
        rules, last = self.split_rules, sentence.masked
        masked = rules.masker.mask_again(last, restored.missing) if last is not None else None
        if masked is None:
            return None
        ids = rules.encode(masked.text)
        if not rules.num_added < len(ids) <= rules.max_tokens:
            return None
        return replace(sentence, source_ids=ids, masked=masked)

    @functools.cached_property
    def split_rules(self) -> SplitRules:
        """How texts are split for it."""
        masking = self.model.manifest.masking
        return SplitRules(
            self.pair.source.partition("-")[0],
            functools.partial(self.model.tokenizer.encode, prefix=self.pair.source_prefix),
            self.model.manifest.limits.max_source_tokens,
            num_added=self.model.tokenizer.num_added(self.pair.source_prefix),
            masker=Masker(
                carriers=masking.carriers,
                characters=self.model.characters,
                folds_capitals=masking.folds_capitals,
                language=self.pair.target,
            ),
        )
