"""Pairs of a source and a given translation, as an engine is shown them to score the translation."""

from collections.abc import Sequence
from functools import partial

from server.errors import DeadlineExceeded, InvalidRequest
from server.text.source import Given, SourceSentence, SplitText
from server.text.splitter import IsOver, Splitter
from server.translation.family_rules import check_scoring
from server.translation.legs import Leg
from server.translation.request import TranslationRequest
from server.translation.routes import Routes, TextRoute
from server.translation.rules import check_characters


def direct_routes(table: Routes, request: TranslationRequest) -> list[TextRoute]:
    """Returns the route of each pair: one model, the same for all.

    Raises:
        ModelNotFound: no model has the name that the request names.
        InvalidRequest: no model translates the direction by itself, or the source language is open.
    """
    legs, _ = table.find(request.model, request.source_language_code, request.target_language_code)
    if len(legs) != 1:
        message = "must be a language that one model translates from directly: only its translations are scored"
        raise InvalidRequest("source_language_code", message)
    return [TextRoute(legs)] * len(request.contents)


async def encode_pairs(
    sources: Sequence[str], targets: Sequence[str], leg: Leg, splitter: Splitter, deadline: float
) -> list[SplitText]:
    """Returns each source as one sentence with its given translation, or with the error of what breaks a limit.

    Args:
        sources: as they stand.
        targets: as many, likewise.
        leg: of the model.
        splitter: calls it on another thread if there is much to do.
        deadline: instant of `time.monotonic`.

    Raises:
        InvalidRequest: the model cannot score given translations.
        Overloaded: too much text is being split or encoded already.
        DeadlineExceeded: the deadline passed.
    """
    check_scoring(leg.model.manifest)
    num_characters = sum(map(len, sources)) + sum(map(len, targets))
    return await splitter.work(num_characters, partial(_encode, sources, targets, leg), deadline)


def _encode(sources: Sequence[str], targets: Sequence[str], leg: Leg, is_over: IsOver) -> list[SplitText]:
    split = []
    for index, (source, target) in enumerate(zip(sources, targets, strict=True)):
        if is_over():
            raise DeadlineExceeded("the time was over before the scoring could start")
        try:
            split.append(SplitText("", (_encode_pair(f"pairs[{index}]", source, target, leg),)))
        except InvalidRequest as error:
            split.append(SplitText("", (), error))
    return split


def _encode_pair(field: str, source: str, target: str, leg: Leg) -> SourceSentence:
    rules, limits = leg.split_rules, leg.model.manifest.limits
    most_target = limits.max_target_tokens - len(leg.pair.target_prefix)
    for side, text, most in (("source", source, rules.max_tokens), ("target", target, most_target)):
        check_characters(f"{field}.{side}", text, most)
    source_ids = rules.encode(source)
    if not rules.num_added < len(source_ids) <= rules.max_tokens:
        least, number = rules.num_added + 1, len(source_ids)
        message = f"must be from {least} to {rules.max_tokens} tokens, with those that the model adds, not {number}"
        raise InvalidRequest(f"{field}.source", message)
    target_ids = leg.model.tokenizer.encode_target(target)
    if target_ids is None:
        raise InvalidRequest(f"{field}.target", "cannot be scored: the model's tokenizer does not split translations")
    if len(target_ids) > most_target:
        message = f"must be at most {most_target} tokens, with the end of the sentence, not {len(target_ids)}"
        raise InvalidRequest(f"{field}.target", message)
    return SourceSentence(source, "", source_ids, rules.num_added, given=Given(target, target_ids))
