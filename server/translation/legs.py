"""The legs of a request's routes, once their models are borrowed: how each translates, and which texts go by them."""

import functools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from server.bundle.languages import LanguagePair
from server.bundle.manifest import Manifest
from server.decoding.options import DecodingOptions
from server.engine.flow import Flow
from server.models.model import Model
from server.text.masked import Restored
from server.text.masking import Masker
from server.text.sentences import SourceSentence, SplitText
from server.text.splitter import MAX_TEXT_BYTES, SplitRules
from server.translation.languages import choose_languages
from server.translation.request import DecodingRequest, TranslationRequest
from server.translation.routes import PlannedLeg, TextRoute
from server.translation.rules import check_decoding

_BEAM_SIZE = 4  # of a model that names none
_LEAST_PART = 0.5  # of a request's time, that its first leg has


@dataclass(frozen=True, kw_only=True)
class Leg:
    """One model's part of a route.

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


class TextGroup:
    """Texts of a request that go by the same legs.

    Args:
        legs: one or two.
        indices: of the texts, at least one.
        contents: all texts of the request.

    Attributes:
        legs, indices: as given.
        num_characters: of the texts, but for those that are too long and fail alone.
    """

    def __init__(self, legs: tuple[Leg, ...], indices: Sequence[int], contents: Sequence[str]) -> None:
        self.legs = legs
        self.indices = indices
        lengths = [len(contents[index]) for index in indices]
        self.num_characters = sum(length for length in lengths if length <= MAX_TEXT_BYTES)

    def check_room(self, deadline: float, flow: Flow) -> None:
        """Asks the engines, the last first, and has the first leg leave the second the time that it takes at best.

        Args:
            deadline: instant.
            flow: that the request belongs to.

        Raises:
            Overloaded: one has no room, or the answer would come too late.
            NotServing: one has stopped.
            DeadlineExceeded: an idle engine's answer would come too late.
        """
        last = self.legs[-1]
        seconds = last.model.engine.check_room(self.num_characters, last.options, deadline, flow)
        if len(self.legs) > 1:
            # By a forecast, which may be wrong: it never takes more than a part.
            spared_seconds = min(seconds, _LEAST_PART * max(0.0, deadline - time.monotonic()))
            first = replace(self.legs[0], spared_seconds=spared_seconds)
            first.model.engine.check_room(self.num_characters, first.options, deadline - spared_seconds, flow)
            self.legs = (first, last)

    def measure(self, texts: Sequence[SplitText]) -> float:
        """Tells the first leg's model what its texts are, and returns what they cost, in seconds of a lane.

        A second leg is taken to have as many tokens as the first.

        Args:
            texts: of the request, split.
        """
        tokens = [sentence.num_tokens for index in self.indices for sentence in texts[index].sentences]
        model = self.legs[0].model
        model.metrics.request_source_tokens.observe(sum(tokens))
        model.engine.observe_text(self.num_characters, sum(tokens))
        translated = [number for number in tokens if number]
        return sum(leg.model.engine.predict_seconds(translated, leg.options) for leg in self.legs)


def group_texts(
    request: TranslationRequest, routes: Sequence[TextRoute], models: Mapping[str, Model], beam_size: int
) -> list[TextGroup]:
    """Returns the texts that go by the same legs, for all legs.

    Args:
        request: whose texts they are.
        routes: of its texts.
        models: that are borrowed, by name.
        beam_size: of requests that name none, where the model allows it; 0 for the model's own.

    Raises:
        InvalidRequest: an option is beyond a model's limits, or a model that is borrowed does not translate that.
    """
    indices: dict[tuple[PlannedLeg, ...], list[int]] = {}
    for index, route in enumerate(routes):
        if route.legs:
            indices.setdefault(route.legs, []).append(index)
    return [
        TextGroup(_borrowed_legs(request.decoding, legs, models, beam_size), own, request.contents)
        for legs, own in indices.items()
    ]


def _borrowed_legs(
    decoding: DecodingRequest, planned: Sequence[PlannedLeg], models: Mapping[str, Model], beam_size: int
) -> tuple[Leg, ...]:
    *before, last = planned
    legs = [
        # What is passed on is one translation, as long as it is.
        _leg(replace(decoding, num_hypotheses=None, max_output_tokens=None), each, models, beam_size)
        for each in before
    ]
    return *legs, _leg(decoding, last, models, beam_size)


def _leg(decoding: DecodingRequest, planned: PlannedLeg, models: Mapping[str, Model], beam_size: int) -> Leg:
    model, pair = models[planned.manifest.name], planned.pair
    if model.manifest is not planned.manifest:  # another version, or loaded since: what is borrowed decides
        pair = choose_languages(model.manifest, planned.source, planned.target)
    options = check_decoding(
        decoding,
        _default_options(model.manifest, pair, beam_size),
        model.manifest.limits,
        has_shortlist=model.has_shortlist,
        least_tokens=1 + model.manifest.search.forced_eos,
    )
    return Leg(model=model, pair=pair, options=options)


def _default_options(manifest: Manifest, pair: LanguagePair, beam_size: int) -> DecodingOptions:
    """Returns how a translation is searched for where a request leaves it open."""
    beam_size = beam_size or manifest.search.beam_size or _BEAM_SIZE
    return DecodingOptions(
        beam_size=min(beam_size, manifest.limits.max_beam_size),
        length_penalty=manifest.search.length_penalty,
        forced_prefix=pair.target_prefix,
    )
