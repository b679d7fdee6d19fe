"""The rules for a request's fields, on plain values.

The error of a broken rule names the field, the limit and the value.

An error repeats a value only if it is a number or a short plain name, because anything else may be a user's text.
"""

import dataclasses
import re
from collections.abc import Sequence

from server.access.tenants import Priority, Tenant
from server.bundle.alignment import Alignment
from server.bundle.confidence import Confidence
from server.bundle.manifest import Limits, Manifest
from server.bundle.tokenizer import Tokenizer
from server.decoding.options import MAX_LENGTH_PENALTY, DecodingOptions
from server.errors import InvalidRequest, PermissionDenied
from server.text.masking import Masker
from server.text.source import SplitText
from server.translation.request import DecodingRequest, TranslationRequest

MAX_TEXTS = 1024
MAX_ANSWER_CHARACTERS = 8 << 20  # of all hypotheses, assuming that each is as long as its text
MAX_KEY_CHARACTERS = 256
# Of all trees of an answer: 25 MiB of memory, and 2 MiB of message. Half as much, and some pages of text with a beam of
# 8 are refused. Twice as much has no use: nobody looks at so many.
MAX_SEARCH_NODES = 65_536
MAX_PHRASES, MAX_PHRASE_CHARACTERS = 100, 100
LEAST_RATIO = 0.01  # of target tokens to source tokens
# A text may have so many characters for each token that it may have: SentencePiece's pieces have at most 16 by default.
# Half, and texts are refused that fit. Twice, and a text that cannot fit is encoded longer before it is refused.
_CHARACTERS_PER_TOKEN = 16
_MAX_FACTOR = 10.0  # of a penalty for repetition, and of patience
_MAX_BIAS = 0.999
_MAX_NGRAM_SIZE = 100
_LEAST_TEMPERATURE, _MAX_TEMPERATURE = 0.01, 100.0
_DECODING_FIELDS = [each.name for each in dataclasses.fields(DecodingRequest) if each.name != "suppress"]
_PLAIN_NAME = re.compile(r"[A-Za-z0-9._/+-]{1,64}")


def check_texts(num_texts: int, field: str = "contents", unit: str = "texts") -> None:
    """Checks that there are texts, and not too many. Raises InvalidRequest."""
    check_range(field, num_texts, 1, MAX_TEXTS, f" {unit}")


def check_answer(num_characters: int, num_hypotheses: int) -> None:
    """Checks that the hypotheses of texts with so many characters fit into an answer. Raises InvalidRequest."""
    if num_characters * num_hypotheses > MAX_ANSWER_CHARACTERS:
        most = MAX_ANSWER_CHARACTERS // num_characters
        message = f"must be at most {most} for texts of {num_characters} characters, not {num_hypotheses}"
        raise InvalidRequest("decoding.num_hypotheses", message)


def check_traffic_key(key: str) -> None:
    """Checks that the key is short. Raises InvalidRequest."""
    check_range("traffic_key", len(key), 0, MAX_KEY_CHARACTERS, " characters")


def check_priority(priority: Priority, tenant: Tenant) -> None:
    """Checks that the tenant may ask for the priority. Raises PermissionDenied."""
    if priority < tenant.priority:
        best = tenant.priority.name
        raise PermissionDenied(f"priority: {priority.name} is better than tenant {tenant.name} may ask for, {best}")


def decoding_options(
    request: DecodingRequest,
    defaults: DecodingOptions,
    limits: Limits,
    *,
    has_shortlist: bool,
    least_tokens: int = 1,
) -> DecodingOptions:
    """Returns the decoding options, with defaults for what the request leaves open.

    Args:
        request: the options as the client gave them, unchecked.
        defaults: with the forced prefix.
        limits: the model's limits.
        has_shortlist: whether the model has a shortlist.
        least_tokens: the shortest translation that the model can write: 2 if it forces eos.

    Raises:
        InvalidRequest: an option is out of its range.
    """
    given = {name: value for name in _DECODING_FIELDS if (value := getattr(request, name)) is not None}
    options = dataclasses.replace(defaults, **given) if given else defaults
    if options.return_alternatives and request.beam_size is None:
        room = limits.max_beam_size // max(1, options.num_hypotheses)
        options = dataclasses.replace(options, beam_size=max(1, min(options.beam_size, room)))
    check_range("decoding.beam_size", options.beam_size, 1, limits.max_beam_size)
    most, unit = options.beam_size, " hypotheses (beam_size)"
    if options.sampling is not None:
        most, unit = limits.max_beam_size, " samples"
    elif options.return_alternatives:
        most, unit = limits.max_beam_size // options.beam_size, f" alternatives with beam_size {options.beam_size}"
    check_range("decoding.num_hypotheses", options.num_hypotheses, 1, most, unit)
    _check_number("decoding.length_penalty", options.length_penalty, 0, MAX_LENGTH_PENALTY)
    _check_number("decoding.repetition_penalty", options.repetition_penalty, 1, _MAX_FACTOR)
    _check_number("decoding.patience", options.patience, 1, _MAX_FACTOR)
    check_range("decoding.no_repeat_ngram_size", options.no_repeat_ngram_size, 0, _MAX_NGRAM_SIZE)
    _check_new_numbers(options)
    if options.max_output_tokens is not None:
        most_tokens = limits.max_target_tokens - len(options.forced_prefix)
        check_range("decoding.max_output_tokens", options.max_output_tokens, least_tokens, most_tokens)
    most_tokens = options.max_output_tokens or limits.max_target_tokens - len(options.forced_prefix)
    check_range("decoding.min_output_tokens", options.min_output_tokens, 0, most_tokens - 1, " tokens")
    if options.sampling is not None:
        options = _with_sampling(request, options)
    if options.return_alternatives:
        _check_alternatives(options)
    if options.use_shortlist and not has_shortlist:
        raise InvalidRequest("decoding.use_shortlist", "must be false: the model has no shortlist")
    return options


def _check_new_numbers(options: DecodingOptions) -> None:
    """Checks numbers of lengths, prefixes and coverage. Raises InvalidRequest."""
    _check_number("decoding.min_length_ratio", options.min_length_ratio, 0, _MAX_FACTOR)
    most = options.max_length_ratio
    if most is not None and not max(LEAST_RATIO, options.min_length_ratio) <= most <= _MAX_FACTOR:
        least = max(LEAST_RATIO, options.min_length_ratio)
        message = f"must be a number from {least:g} (or min_length_ratio) to {_MAX_FACTOR:g}, not {most:g}"
        raise InvalidRequest("decoding.max_length_ratio", message)
    _check_number("decoding.coverage_penalty", options.coverage_penalty, 0, _MAX_FACTOR)
    _check_number("decoding.prefix_bias_beta", options.prefix_bias_beta, 0, _MAX_BIAS)
    _check_number("decoding.min_alternative_expansion_prob", options.min_alternative_expansion_prob, 0, 1)


def _check_alternatives(options: DecodingOptions) -> None:
    """Checks that nothing is asked for that alternatives exclude. Raises InvalidRequest."""
    excluded = {
        "sampling": options.sampling is not None,
        "coverage_penalty": options.coverage_penalty > 0,
        "prefix_bias_beta": options.prefix_bias_beta > 0,
        "use_shortlist": options.use_shortlist,
    }
    for name, is_asked in excluded.items():
        if is_asked:
            raise InvalidRequest("decoding.return_alternatives", f"must be false with decoding.{name}")


def _with_sampling(request: DecodingRequest, options: DecodingOptions) -> DecodingOptions:
    """Returns the options with a beam for each sample. Raises InvalidRequest."""
    sampling = options.sampling
    assert sampling is not None, "it samples"
    if request.beam_size not in (None, 1):
        raise InvalidRequest("decoding.beam_size", f"must be 1 with sampling, not {request.beam_size}")
    if not 0.0 < sampling.top_p <= 1.0:
        raise InvalidRequest("decoding.sampling.top_p", f"must be over 0 and at most 1, not {sampling.top_p:g}")
    _check_number("decoding.sampling.temperature", sampling.temperature, _LEAST_TEMPERATURE, _MAX_TEMPERATURE)
    return dataclasses.replace(options, beam_size=options.num_hypotheses)


def with_phrases(options: DecodingOptions, phrases: Sequence[str], tokenizer: Tokenizer, name: str) -> DecodingOptions:
    """Returns the options with the phrases that no translation has.

    Args:
        options: without them.
        phrases: as the client gave them, unchecked.
        tokenizer: of the model.
        name: of the model.

    Raises:
        InvalidRequest: a phrase is out of its range or the model cannot be told any, or the options ask for a shortlist
            and for what looks at the whole vocabulary.
    """
    check_range("decoding.suppress", len(phrases), 0, MAX_PHRASES, " phrases")
    for index, phrase in enumerate(phrases):
        check_range(f"decoding.suppress[{index}]", len(phrase), 1, MAX_PHRASE_CHARACTERS, " characters")
    if phrases and not tokenizer.has_forms:
        raise InvalidRequest("decoding.suppress", f"must be empty: the model {name} cannot be told phrases")
    spelt = [each for phrase in phrases for each in (phrase, phrase[:1].upper() + phrase[1:])]
    options = dataclasses.replace(options, suppressed=tokenizer.encode_forms(spelt)) if phrases else options
    if options.use_shortlist and options.is_steered:
        message = "must be false with penalties, bans and sampling, which look at the whole vocabulary"
        raise InvalidRequest("decoding.use_shortlist", message)
    return options


def check_alignment(alignment: Alignment | None, field: str = "output.include_alignment", none: str = "false") -> None:
    """Checks that a bundle says how translations are aligned, for a field whose value is not `none`.

    Raises InvalidRequest.
    """
    if alignment is None:
        message = f"must be {none}: the bundle of the model does not say how translations are aligned"
        raise InvalidRequest(field, message)


def check_confidence(confidence: Confidence | None) -> None:
    """Checks that the bundle of a model says how sure it is of translations. Raises InvalidRequest."""
    if confidence is None:
        message = "must be false: the bundle of the model does not say how sure the model is of its translations"
        raise InvalidRequest("output.include_confidence", message)


def check_glossary(manifest: Manifest, has_forms: bool, options: DecodingOptions, *, is_only: bool) -> None:
    """Checks that a model can be told terms, is the only one of its route and searches. Raises InvalidRequest."""
    if options.sampling is not None or options.return_alternatives:
        name = "return_alternatives" if options.sampling is None else "sampling"
        raise InvalidRequest("glossary", f"must be empty with decoding.{name}")
    if not is_only:
        raise InvalidRequest("glossary", "must be empty for texts that go over a language between")
    if not has_forms or manifest.limits.max_beam_size == 1 or manifest.is_one_pass:
        raise InvalidRequest("glossary", f"must be empty: the model {manifest.name} cannot be told terms")


def with_wishes(request: TranslationRequest, options: DecodingOptions, manifest: Manifest) -> DecodingOptions:
    """Returns the options with what the answer is to carry. Raises InvalidRequest if the model or they cannot."""
    if request.with_alignment:
        check_alignment(manifest.alignment)
        options = dataclasses.replace(options, with_alignment=True)
    if request.with_confidence:
        check_confidence(manifest.confidence)
    if request.with_tokens or request.with_confidence or request.with_search:
        check_scores(options, with_search=request.with_search)
        options = dataclasses.replace(options, with_tokens=True, with_search=request.with_search)
    return options


def check_scores(options: DecodingOptions, *, with_search: bool = False) -> None:
    """Checks that a search whose tokens or tree are asked for has them. Raises InvalidRequest."""
    if with_search and options.return_alternatives:
        raise InvalidRequest("output.include_search", "must be false with decoding.return_alternatives")
    if not options.needs_log_probs:
        names = "include_tokens, output.include_confidence and output.include_search"
        message = f"must be true for output.{names} with beam_size 1, not false"
        raise InvalidRequest("decoding.with_scores", message)


def count_search_nodes(beam_size: int, most_tokens: Sequence[int]) -> int:
    """Returns how many nodes the trees of all searches may have together at most.

    Args:
        beam_size: of the searches.
        most_tokens: of the translation of each sentence.

    Raises:
        InvalidRequest: they may have more than `MAX_SEARCH_NODES`.
    """
    num_nodes = beam_size * sum(most_tokens)
    if num_nodes > MAX_SEARCH_NODES:
        limit = f"the most target tokens of all sentences times the beam size is over {MAX_SEARCH_NODES}"
        raise InvalidRequest("output.include_search", f"must be false if {limit}: it is {num_nodes}")
    return num_nodes


def _check_number(field: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:  # NaN is refused too
        raise InvalidRequest(field, f"must be a number from {low:g} to {high:g}, not {value:g}")


def check_range(field: str, value: int, low: int, high: int, unit: str = "") -> None:
    """Checks that a number is within a range, ends included. Raises InvalidRequest."""
    if not low <= value <= high:
        raise InvalidRequest(field, f"must be from {low} to {high}{unit}, not {value}")


def check_characters(field: str, text: str, max_tokens: int) -> None:
    """Checks that a text that may have so many tokens is not too long for them. Raises InvalidRequest."""
    most = max_tokens * _CHARACTERS_PER_TOKEN
    if len(text) > most:
        raise InvalidRequest(field, f"must be at most {most} characters, not {len(text)}")


def shown(value: str) -> str:
    """Returns what an error may show of a client's value: a short plain name as it is, of other values the length."""
    return value if _PLAIN_NAME.fullmatch(value) else f"a value of {len(value)} characters"


def with_known_scripts(field: str, split: SplitText, masker: Masker) -> SplitText:
    """Returns the split text, or an error if a sentence is in a script that the model does not know."""
    for number, sentence in enumerate(split.sentences):
        is_copied = sentence.source_ids is None and sentence.written is None
        if is_copied and (script := masker.unknown_script(sentence.text)):
            message = f"has a sentence, number {number}, in a script that the model does not know: {script}"
            return SplitText("", (), InvalidRequest(field, message))
    return split
