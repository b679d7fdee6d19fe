"""Texts of a request that go one way: their legs, what is asked of the engines for them, and what they cost."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from server.bundle.languages import LanguagePair
from server.bundle.manifest import Manifest
from server.decoding.options import DecodingOptions
from server.engine.flow import Flow
from server.models.model import Model
from server.text.splitter import MAX_TEXT_BYTES, SplitRules
from server.translation.answer import TextAnswer
from server.translation.languages import choose_languages
from server.translation.legs import Leg
from server.translation.request import DecodingRequest, TranslationRequest
from server.translation.routes import Steps
from server.translation.rules import check_decoding

_BEAM_SIZE = 4  # of a model that names none
_LEAST_PART = 0.5  # of a request's time, that its first leg has


class TextGroup:
    """Texts that go one way.

    Args:
        legs: of the way.
        indices: of the texts, at least one.
        contents: all texts of the request.

    Attributes:
        legs, indices: as given.
        num_characters: of the texts, but for those that are too long and fail alone.
    """

    def __init__(self, legs: tuple[Leg, ...], indices: Sequence[int], contents: Sequence[str]) -> None:
        self.legs = legs
        self.indices = indices
        self._lengths = [len(contents[index]) for index in indices]
        self.num_characters = sum(length for length in self._lengths if length <= MAX_TEXT_BYTES)

    @property
    def split_rules(self) -> SplitRules:
        """How its texts are split."""
        return self.legs[0].split_rules

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

    def observe(self, answers: Sequence[TextAnswer]) -> None:
        """Tells the first leg's model what its texts are."""
        model, tokens = self.legs[0].model, self._tokens(answers)
        model.metrics.request_source_tokens.observe(sum(tokens))
        model.engine.observe_text(self.num_characters, tokens)

    def cost(self, answers: Sequence[TextAnswer]) -> float:
        """Returns seconds of a lane that its texts cost; a second leg is taken to have as many tokens as the first."""
        tokens = [number for number in self._tokens(answers) if number]
        return sum(leg.model.engine.predict_seconds(tokens, leg.options) for leg in self.legs)

    def _tokens(self, answers: Sequence[TextAnswer]) -> list[int]:
        return [sentence.num_tokens for index in self.indices for sentence in answers[index].split.sentences]


def make_legs(request: TranslationRequest, steps: Steps, used: Mapping[str, Model], beam_size: int) -> tuple[Leg, ...]:
    """Returns the legs of a way.

    Args:
        request: whose search it is.
        steps: of the way.
        used: models by name.
        beam_size: of requests that name none, where the model allows it; 0 for the model's own.

    Raises:
        InvalidRequest: an option is beyond a model's limits, or the model does not translate that.
    """
    legs = []
    for step in steps:
        model = used[step.model]
        pair = choose_languages(model.manifest, step.source, step.target)
        # What is passed on is one translation, as long as it is.
        asked = request.decoding if step is steps[-1] else _of_first_leg(request.decoding)
        options = check_decoding(
            asked,
            _default_options(model.manifest, pair, beam_size),
            model.manifest.limits,
            has_shortlist=model.has_shortlist,
            least_tokens=1 + model.manifest.search.forced_eos,
        )
        legs.append(Leg(model=model, pair=pair, options=options))
    return tuple(legs)


def _of_first_leg(decoding: DecodingRequest) -> DecodingRequest:
    return replace(decoding, num_hypotheses=None, max_output_tokens=None)


def _default_options(manifest: Manifest, pair: LanguagePair, beam_size: int) -> DecodingOptions:
    """Returns how a translation is searched for where a request leaves it open."""
    beam_size = beam_size or manifest.search.beam_size or _BEAM_SIZE
    return DecodingOptions(
        beam_size=min(beam_size, manifest.limits.max_beam_size),
        length_penalty=manifest.search.length_penalty,
        forced_prefix=pair.target_prefix,
    )
