"""The texts of a request that take the same legs: whether the engines have room for them, and what they cost."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from server.engine.flow import Flow
from server.models.model import Model
from server.telemetry.log import add_facts
from server.text.source import SplitText
from server.text.splitter import MAX_TEXT_BYTES
from server.translation.answer import TextAnswer, raise_if_all_failed
from server.translation.legs import Leg, borrow_legs
from server.translation.memory import sentences_need
from server.translation.request import TranslationRequest
from server.translation.routes import PlannedLeg, TextRoute
from server.translation.rules import MAX_SEARCH_NODES, count_search_nodes

# Share of a document that is translated. Half, and more documents are split and then refused. Twice, and more are
# refused that could be translated in time.
_WORDS_IN_MARKUP = 0.3
_LEAST_PART = 0.5  # of a request's time, which the first leg has at least


class TextGroup:
    """The texts of a request that take the same legs.

    Args:
        legs: one or two.
        indices: the numbers of the texts, at least one.
        contents: all texts of the request.

    Attributes:
        num_characters: about the characters of the group's texts, without markup. A text that is too long is not
            counted, because it fails.
    """

    def __init__(self, legs: tuple[Leg, ...], indices: Sequence[int], contents: Sequence[str]) -> None:
        self.legs = legs
        self.indices = indices
        lengths = [len(contents[index]) for index in indices]
        share = 1.0 if legs[0].read is None else _WORDS_IN_MARKUP
        self._lengths = [math.ceil(share * length) for length in lengths if length <= MAX_TEXT_BYTES]
        self.num_characters = sum(self._lengths)

    def check_room(self, deadline: float, flow: Flow) -> None:
        """Asks the engines of the legs, the last leg first, whether they have room.

        Of two legs it replaces the first one in `legs`: that leaves the second one the time that this takes at best.

        Args:
            deadline: instant of `time.monotonic`.
            flow: the flow of the request.

        Raises:
            Overloaded: an engine has no room, or its answer would come too late.
            NotServing: an engine has stopped.
            DeadlineExceeded: even an idle engine's answer would come much too late.
        """
        last = self.legs[-1]
        seconds = last.model.engine.check_room(self._lengths, last.options, deadline, flow)
        if len(self.legs) > 1:
            # The forecast may be wrong, so the second leg never gets more than a part of the time.
            spared_seconds = min(seconds, _LEAST_PART * max(0.0, deadline - time.monotonic()))
            first = replace(self.legs[0], spared_seconds=spared_seconds)
            first.model.engine.check_room(self._lengths, first.options, deadline - spared_seconds, flow)
            self.legs = (first, last)

    def measure(self, texts: Sequence[SplitText]) -> float:
        """Tells the first leg's engine how many tokens the texts have.

        The second leg is assumed to have as many tokens as the first.

        Args:
            texts: the split texts of the request.

        Returns:
            The cost of the texts, in seconds of one lane.
        """
        sentences = [sentence for index in self.indices for sentence in texts[index].sentences]
        num_tokens = sum(each.num_tokens for each in sentences)
        model = self.legs[0].model
        model.metrics.request_source_tokens.observe(num_tokens)
        model.engine.observe_text(sum(len(each.text) for each in sentences), num_tokens)
        # What is given, as a whole or as a beginning, may be longer than any translation.
        given = [each.given or each.prefix for each in sentences]
        tokens = [max(each.num_tokens, len(own.ids) if own else 0) for each, own in zip(sentences, given, strict=True)]
        translated = [number for number in tokens if number]
        return sum(leg.model.engine.predict_seconds(translated, leg.options) for leg in self.legs)


def measure(
    request: TranslationRequest, groups: Sequence[TextGroup], answers: Sequence[TextAnswer]
) -> tuple[float, int]:
    """Returns the cost of split texts, in seconds of one lane, and the bytes that their sentences need.

    It tells engines, metrics and the log of them.

    Raises:
        InvalidRequest: every text has failed, or the trees of all searches may have too many nodes.
    """
    texts, options = [answer.split for answer in answers], groups[0].legs[-1].options
    cost = sum(group.measure(texts) for group in groups)
    sentences = [sentence for text in texts for sentence in text.sentences]
    num_tokens = sum(sentence.num_tokens for sentence in sentences)
    add_facts(texts=len(answers), sentences=len(sentences), source_tokens=num_tokens, beam_size=options.beam_size)
    raise_if_all_failed(answers)
    num_nodes = 0
    if request.with_search:
        width = max(leg.options.beam_size for group in groups for leg in group.legs)
        most_tokens = [
            options.of_source(num_tokens).most_tokens(
                num_tokens, len(sentence.prefix.ids) if sentence.prefix else 0, MAX_SEARCH_NODES
            )
            for sentence in sentences
            if sentence.source_ids is not None and (num_tokens := len(sentence.source_ids))
        ]
        num_nodes = count_search_nodes(width, most_tokens)
    num_sentences = sum(len(answer.split.sentences) * len(answer.legs) for answer in answers)  # on each leg
    num_marks = sum(len(sentence.markup.marks) for sentence in sentences if sentence.markup is not None)
    return cost, sentences_need(num_sentences, options.num_hypotheses, num_marks, num_nodes)


def group_texts(
    request: TranslationRequest, routes: Sequence[TextRoute], models: Mapping[str, Model], beam_size: int
) -> list[TextGroup]:
    """Returns the texts of a request in groups, one for each sequence of legs.

    Args:
        request: has the texts.
        routes: one for each text.
        models: the borrowed models, by name.
        beam_size: for requests that name none, if the model allows it; 0 for the model's own.

    Raises:
        InvalidRequest: an option is beyond a model's limits, or a borrowed model does not translate the direction.
    """
    indices: dict[tuple[PlannedLeg, ...], list[int]] = {}
    for index, route in enumerate(routes):
        if route.legs:
            indices.setdefault(route.legs, []).append(index)
    return [
        TextGroup(borrow_legs(request, legs, models, beam_size), own, request.contents) for legs, own in indices.items()
    ]
