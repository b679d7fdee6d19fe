"""The rules that a request's fields must keep, on plain values; each breach names field, limit and value.

A value is repeated in an error only if it is a number or a short plain name: whatever else a client may have put there,
its own text included, is not.
"""

import dataclasses
import re

from server.access.tenants import Priority, Tenant
from server.bundle.manifest import Limits
from server.decoding.options import MAX_LENGTH_PENALTY, DecodingOptions
from server.errors import InvalidRequest, PermissionDenied
from server.text.masking import Masker
from server.text.sentences import SplitText
from server.translation.request import DecodingRequest

MAX_TEXTS = 1024
MAX_ANSWER_CHARACTERS = 8 << 20  # of all hypotheses, if they are as long as their texts
MAX_KEY_CHARACTERS = 256
_DECODING_FIELDS = [each.name for each in dataclasses.fields(DecodingRequest)]
_PLAIN_NAME = re.compile(r"[A-Za-z0-9._/+-]{1,64}")


def check_texts(num_texts: int) -> None:
    """There is something to translate, and not too much of it. Raises InvalidRequest."""
    _check_range("contents", num_texts, 1, MAX_TEXTS, " texts")


def check_answer(num_characters: int, num_hypotheses: int) -> None:
    """The hypotheses of so many characters of text are not too much for an answer. Raises InvalidRequest."""
    if num_characters * num_hypotheses > MAX_ANSWER_CHARACTERS:
        most = MAX_ANSWER_CHARACTERS // num_characters
        message = f"must be at most {most} for texts of {num_characters} characters, not {num_hypotheses}"
        raise InvalidRequest("decoding.num_hypotheses", message)


def check_mime_type(mime_type: str) -> None:
    """The text is plain. Raises InvalidRequest."""
    if mime_type not in ("", "text/plain"):
        raise InvalidRequest("mime_type", f"must be text/plain, not {shown(mime_type)}")


def check_traffic_key(key: str) -> None:
    """It is no text. Raises InvalidRequest."""
    _check_range("traffic_key", len(key), 0, MAX_KEY_CHARACTERS, " characters")


def check_priority(priority: Priority, tenant: Tenant) -> None:
    """The tenant may ask for it. Raises PermissionDenied."""
    if priority < tenant.priority:
        best = tenant.priority.name
        raise PermissionDenied(f"priority: {priority.name} is better than tenant {tenant.name} may ask for, {best}")


def check_decoding(
    request: DecodingRequest, defaults: DecodingOptions, limits: Limits, *, has_shortlist: bool, least_tokens: int = 1
) -> DecodingOptions:
    """Returns the options, with defaults for what the request leaves open, if each is within its range.

    Args:
        request: as it came.
        defaults: with the prefix that is forced.
        limits: the model's.
        has_shortlist: whether it has one.
        least_tokens: of a translation: 2 for a model that forces eos.

    Raises:
        InvalidRequest: one is not.
    """
    given = {name: value for name in _DECODING_FIELDS if (value := getattr(request, name)) is not None}
    options = dataclasses.replace(defaults, **given) if given else defaults
    _check_range("decoding.beam_size", options.beam_size, 1, limits.max_beam_size)
    _check_range("decoding.num_hypotheses", options.num_hypotheses, 1, options.beam_size, " hypotheses (beam_size)")
    if not 0.0 <= options.length_penalty <= MAX_LENGTH_PENALTY:  # nor NaN
        message = f"must be a number from 0 to {MAX_LENGTH_PENALTY:g}, not {options.length_penalty:g}"
        raise InvalidRequest("decoding.length_penalty", message)
    if options.max_output_tokens is not None:
        most_tokens = limits.max_target_tokens - len(options.forced_prefix)
        _check_range("decoding.max_output_tokens", options.max_output_tokens, least_tokens, most_tokens)
    if options.use_shortlist and not has_shortlist:
        raise InvalidRequest("decoding.use_shortlist", "must be false: the model has no shortlist")
    return options


def _check_range(field: str, value: int, low: int, high: int, unit: str = "") -> None:
    if not low <= value <= high:
        raise InvalidRequest(field, f"must be from {low} to {high}{unit}, not {value}")


def shown(value: str) -> str:
    """Returns what an error may say of a client's value: a short plain name as it is, of others the length."""
    return value if _PLAIN_NAME.fullmatch(value) else f"a value of {len(value)} characters"


def check_scripts(field: str, split: SplitText, masker: Masker) -> SplitText:
    """Returns a text as it was split, or with the error of a sentence in a script that its model does not know."""
    for number, sentence in enumerate(split.sentences):
        if sentence.source_ids is None and (script := masker.unknown_script(sentence.text)):
            message = f"has a sentence, number {number}, in a script that the model does not know: {script}"
            return SplitText("", (), InvalidRequest(field, message))
    return split
