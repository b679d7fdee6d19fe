"""What translations begin with, because the caller has given it: the first sentence of a text that is translated.

A model is fed the prefix as it would have written it itself: with carriers for what it is not shown of the source. In
the answer the prefix stands as it was given, whatever the tokenizer makes of its spelling and white space.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from server.bundle.tokenizer import Tokenizer
from server.decoding.options import BEHIND_PREFIX
from server.errors import DeadlineExceeded, InvalidRequest
from server.text.masked import Placement, Restored
from server.text.source import Given, SplitText
from server.text.splitter import IsOver, Splitter
from server.translation.legs import Leg
from server.translation.request import TranslationRequest
from server.translation.rules import check_characters

_LOST = Placement.BY_POSITION
_SEAM = (
    "\u2060"  # between a prefix and the rest of a translation: no letter, no blank, and not what any prefix ends with
)


async def add_prefixes(
    texts: Sequence[SplitText],
    prefixes: Sequence[str],
    legs: Sequence[Leg],
    splitter: Splitter,
    deadline: float,
) -> list[SplitText]:
    """Returns the texts with their prefixes, or with the error of a prefix that breaks a limit.

    Args:
        texts: split.
        prefixes: one for each text, or one for all; an empty one is none.
        legs: of each text.
        splitter: calls it on another thread if there is much to do.
        deadline: instant of `time.monotonic`.

    Raises:
        Overloaded: too much text is being split or encoded already.
        DeadlineExceeded: the deadline passed.
    """
    each = prefixes if len(prefixes) == len(texts) else [*prefixes] * len(texts)
    return await splitter.work(sum(map(len, each)), partial(_add, texts, each, legs), deadline)


def _add(texts: Sequence[SplitText], prefixes: Sequence[str], legs: Sequence[Leg], is_over: IsOver) -> list[SplitText]:
    begun = []
    for index, (text, prefix, leg) in enumerate(zip(texts, prefixes, legs, strict=True)):
        if is_over():
            raise DeadlineExceeded("the time was over before the translation could start")
        try:
            begun.append(_with_prefix(f"target_prefixes[{index}]", text, prefix, leg) if prefix else text)
        except InvalidRequest as error:
            begun.append(SplitText("", (), error))
    return begun


def _with_prefix(field: str, text: SplitText, prefix: str, leg: Leg) -> SplitText:
    options = leg.options
    most = options.max_output_tokens or leg.model.manifest.limits.max_target_tokens - len(options.forced_prefix)
    most = max(0, most - BEHIND_PREFIX)
    check_characters(field, prefix, most)
    sentences = list(text.sentences)
    first = next((number for number, each in enumerate(sentences) if each.source_ids is not None), None)
    if first is None:
        return text
    given, sentences[first] = sentences[first].begun_with(prefix, leg.model.tokenizer.encode_target)
    if len(given.ids) > most:
        raise InvalidRequest(field, f"must be at most {most} tokens, not {len(given.ids)}")
    return replace(text, sentences=tuple(sentences))


def check_prefixes(request: TranslationRequest, legs: Sequence[Leg]) -> None:
    """Checks what a request says translations begin with, for texts that take these legs.

    Raises:
        InvalidRequest: there are neither as many prefixes as texts nor one, the texts have markup or go over a language
            between, or the model cannot be told any; or an option is about prefixes, and there are none.
    """
    num_prefixes, num_texts, options = len(request.target_prefixes), len(request.contents), legs[-1].options
    if options.prefix_bias_beta > 0 and not num_prefixes:
        message = f"must be 0 without target_prefixes, not {options.prefix_bias_beta:g}"
        raise InvalidRequest("decoding.prefix_bias_beta", message)
    if not num_prefixes:
        return
    if num_prefixes not in (1, num_texts):
        raise InvalidRequest("target_prefixes", f"must be 1, or as many as the texts, {num_texts}, not {num_prefixes}")
    if legs[0].read is not None:
        raise InvalidRequest("target_prefixes", "must be empty for texts with markup")
    if len(legs) > 1:
        raise InvalidRequest("target_prefixes", "must be empty for texts that go over a language between")
    if not legs[0].model.tokenizer.has_forms or legs[0].model.manifest.is_one_pass:
        name = legs[0].model.manifest.name
        raise InvalidRequest("target_prefixes", f"must be empty: the model {name} cannot be told any")


def restored_behind(
    prefix: Given | None, ids: Sequence[int], tokenizer: Tokenizer, restore: Callable[[str], Restored]
) -> Restored:
    """Returns the text of a hypothesis, which begins with the prefix as it was given if its ids begin with it.

    Parts that would be put into the prefix, because the model has lost them, are put behind everything.

    Args:
        prefix: of the sentence; None without one.
        ids: of the hypothesis.
        tokenizer: of the model.
        restore: returns what a reader is shown of what the model wrote.
    """
    text = tokenizer.decode(ids)
    whole = restore(text)
    if prefix is None:
        return whole
    shown = tokenizer.decode(prefix.ids)
    follows = tuple(ids[: len(prefix.ids)]) == prefix.ids and text.startswith(shown)
    if not follows or whole.text.startswith(prefix.text):
        return whole
    behind = restore(shown + _SEAM + text[len(shown) :]).text.rpartition(_SEAM)[2]
    pieces = [prefix.text + (behind.lstrip() if prefix.text[-1:].isspace() else behind)]
    pieces += [each.text for each in whole.parts if each.placement is _LOST and each.text not in pieces[0]]
    return replace(whole, text=" ".join(pieces))
