"""Requests from arguments and results from answers: all that the sync and the asyncio client share about messages."""

import numbers
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypedDict, Unpack, get_args, get_type_hints

from google.protobuf.message import Message

from babelserve.answers import check_count
from babelserve.decoding import check_phrases, decoding_options
from babelserve.errors import InvalidRequest, ServerFailed
from babelserve.results import Hypothesis, StreamedSentence, Timings, TranslateResult, Translation
from babelserve.rules import check_text, formality_of, glossary_message, priority_of, text_options
from babelserve.sentences import (
    read_detected,
    read_finish_reason,
    read_kept,
    read_route,
    read_sentence,
    read_text_error,
)
from babelserve.terms import read_glossaries, read_terms
from babelserve.v1 import translation_pb2

MAX_REQUEST_BYTES = 4 * 2**20  # as translation.proto says; gRPC would refuse it as if the server were full


class TranslateOptions(TypedDict, total=False):
    """What else a translation can be asked for; None or absent: the server's default.

    Attributes:
        source: Code of the source language, such as "en", or "auto" to have it detected.
        model: Name of the model as `list_models` gives it.
        mime_type: What the texts are: "text/plain", "text/html", "text/markdown", "application/xliff+xml" or
            "application/xml".
        beam_size: Width of the beam, from 1 (greedy search) to the model's `max_beam_size`.
        num_hypotheses: How many best translations to return, 1 to `beam_size`.
        length_penalty: 0 to 10; over 1 favours longer translations.
        max_output_tokens: Most target tokens of one sentence.
        with_scores: False spares greedy search the scores, and time.
        use_shortlist: True searches only the model's lexical shortlist; for models that have one.
        repetition_penalty: 1 to 10; over 1 makes tokens less likely that the translation has already.
        no_repeat_ngram_size: No run of so many tokens is in a translation twice.
        min_output_tokens: Fewest target tokens of one sentence.
        suppress: Words and phrases that no translation has; at most 100 of 1 to 100 characters each.
        patience: 1 to 10; a beam search is over when so many times `beam_size` hypotheses are finished.
        sampling_top_k: Draw each token from the k most probable ones; 0 for all. Any of `sampling_` draws tokens.
        sampling_top_p: Draw from the most probable tokens that have this probability together, over 0 to 1.
        sampling_temperature: 0.01 to 100; less than 1 draws likely tokens more often.
        sampling_seed: The same seed draws the same translation.
        end_loops: False lets a translation go on that says the same again and again.
        return_alternatives: True has the `num_hypotheses` translations begin with different tokens, behind the prefix.
        min_alternative_expansion_prob: 0 to 1; alternatives whose first token is less probable are left out.
        target_prefixes: What translations begin with: one for each text, or one for all.
        prefix_bias_beta: 0 to 0.999; over 0 draws translations to their prefixes, which they need not have then.
        min_length_ratio, max_length_ratio: Bounds of a sentence's target tokens, as times its source tokens.
        exact_tokens: How many target tokens each sentence has; for models whose `has_length_control` is true.
        ratio: The same, as times the source tokens, up to the model's `max_length_ratio`; not with `exact_tokens`.
        coverage_penalty: 0 to 10; over 0 lowers the scores of translations that leave words of the source out.
        refuse_unknown_scripts: True has a text fail that has a sentence in a script that the model does not know.
        translate_attributes: True translates attributes that people read, such as `alt`; for `mime_type` "text/html".
        adapt_quantities: True writes numbers, currencies, units and dates as English and German do.
        join_lines: True takes a line break in plain text for a blank, and an empty line for the end of a paragraph.
        ignored_tags: Elements of XML or HTML that stay as they are; at most 100 names.
        splitting_tags: Elements of XML that end a sentence; likewise.
        non_splitting_tags: Elements of XML that do not; likewise.
        only_named_split: True has no other elements of XML end a sentence than `splitting_tags`.
        repair_xml: True reads XML that is not well-formed as HTML.
        formality: "less" has translations speak as to a friend, "more" as to a stranger, from English into German.
            "prefer_less" and "prefer_more" change nothing where these are refused.
        keep: What translations keep as it is: literals, and pairs of an opening and a closing, such as
            `["ACME", ("<<", ">>")]`; at most 100 of 1 to 100 characters each, and 4000 together.
        glossary: Words or phrases, and what each must become: a target, which may have the endings of its language, or
            a list of all that will do, such as `{"printer": "Drucker", "windows": ["Fenster", "Fenstern"]}`; at most
            1000 of 1 to 200 characters each, with at most 31 other forms. Refused over a language between.
        glossaries: Names as `list_glossaries` gives them, at most 16; of a source `glossary` wins, then the first.
        ignore_case: True finds the sources of all these terms in whatever case.
        priority: "high", "normal" or "low", among the caller's own requests.
        traffic_key: Requests of the same go to the same version where versions of a model share them; 256 characters.
        include_sentences: Fill `Translation.sentences` (`translate` only).
        include_alignment: Fill `Sentence.links`; for models whose `has_alignment` is true.
        include_tokens: Fill `Sentence.tokens`.
        include_search: Fill `Sentence.search`; for some hundred sentences at most.
        include_confidence: Fill `confidence` of translations and sentences; for models whose `has_confidence` is true.
    """

    source: str | None
    model: str | None
    mime_type: str | None
    beam_size: int | None
    num_hypotheses: int | None
    length_penalty: float | None
    max_output_tokens: int | None
    with_scores: bool | None
    use_shortlist: bool | None
    repetition_penalty: float | None
    no_repeat_ngram_size: int | None
    min_output_tokens: int | None
    suppress: Sequence[str] | None
    patience: float | None
    sampling_top_k: int | None
    sampling_top_p: float | None
    sampling_temperature: float | None
    sampling_seed: int | None
    end_loops: bool | None
    return_alternatives: bool | None
    min_alternative_expansion_prob: float | None
    target_prefixes: Sequence[str] | None
    prefix_bias_beta: float | None
    min_length_ratio: float | None
    max_length_ratio: float | None
    exact_tokens: int | None
    ratio: float | None
    coverage_penalty: float | None
    refuse_unknown_scripts: bool | None
    translate_attributes: bool | None
    adapt_quantities: bool | None
    join_lines: bool | None
    ignored_tags: Sequence[str] | None
    splitting_tags: Sequence[str] | None
    non_splitting_tags: Sequence[str] | None
    only_named_split: bool | None
    repair_xml: bool | None
    formality: str | None
    keep: Sequence[str | tuple[str, str]] | None
    glossary: Mapping[str, str | Sequence[str]] | None
    glossaries: Sequence[str] | None
    ignore_case: bool | None
    priority: str | None
    traffic_key: str | None
    include_sentences: bool | None
    include_alignment: bool | None
    include_tokens: bool | None
    include_search: bool | None
    include_confidence: bool | None


_OPTION_TYPES: dict[str, type] = {name: get_args(hint)[0] for name, hint in get_type_hints(TranslateOptions).items()}
_MOST_NUMBER, _MOST_SEED = 2**32 - 1, 2**64 - 1  # that the fields of numbers can carry
_LISTS = ("suppress", "target_prefixes", "ignored_tags", "splitting_tags", "non_splitting_tags")
_ACCEPTED: dict[type, tuple[type, str]] = {  # for each such type; numpy's numbers are numbers, too
    bool: (bool, "True or False"),
    int: (numbers.Integral, "a whole number"),
    float: (numbers.Real, "a number"),
}


def translate_request(
    contents: Sequence[str], target: str, **options: Unpack[TranslateOptions]
) -> translation_pb2.TranslateRequest:
    """Builds the request.

    Raises:
        TypeError: `contents` is one string, which would be sent letter by letter, or something else than texts; or an
            option is unknown, or of another type than its own.
        InvalidRequest: A text is not valid Unicode (a lone surrogate), a number fits no field, a word is none, or all
            is longer than a message may be.
    """
    contents = _checked_contents(contents)
    check_text("target", target)
    check_options(options, _OPTION_TYPES)
    try:
        request = translation_pb2.TranslateRequest(
            contents=contents,
            source_language_code=options.get("source"),
            target_language_code=target,
            model=options.get("model"),
            mime_type=options.get("mime_type"),
            decoding=decoding_options(options),
            target_prefixes=options.get("target_prefixes"),
            text=text_options(options),
            formality=formality_of(options.get("formality")),
            priority=priority_of(options.get("priority")),
            traffic_key=options.get("traffic_key"),
            output=translation_pb2.OutputOptions(
                include_sentences=options.get("include_sentences"),
                include_alignment=options.get("include_alignment"),
                include_tokens=options.get("include_tokens"),
                include_search=options.get("include_search"),
                include_confidence=options.get("include_confidence"),
                text_once=True,
            ),
            glossary=glossary_message(options.get("glossary"), options.get("glossaries"), options.get("ignore_case")),
        )
    except ValueError as error:  # protobuf's, for a number outside uint32: "Value out of range: -1"
        raise InvalidRequest(str(error)) from error
    check_size("contents", request)
    return request


def stream_request(
    contents: Sequence[str], target: str, partial_text: bool, **options: Unpack[TranslateOptions]
) -> translation_pb2.TranslateStreamRequest:
    """Builds the request of a stream. Raises as `translate_request`."""
    request = translate_request(contents, target, **options)
    return translation_pb2.TranslateStreamRequest(request=request, include_partial_text=partial_text)


def check_size(name: str, request: Message) -> None:
    """Raises InvalidRequest if a request is larger than a message may be, because of the field of this name."""
    if (num_bytes := request.ByteSize()) > MAX_REQUEST_BYTES:
        raise InvalidRequest(f"{name}: the request has {num_bytes} bytes; the limit is {MAX_REQUEST_BYTES}")


def _checked_contents(contents: Sequence[str]) -> list[str]:
    if isinstance(contents, str | bytes):
        raise TypeError("contents must be a sequence of texts, not one string: use [text]")
    if not isinstance(contents, Iterable):
        raise TypeError(f"contents must be a sequence of texts, not {type(contents).__name__}")
    contents = list(contents)
    for index, text in enumerate(contents):
        check_text(f"contents[{index}]", text)
    return contents


def check_options(options: Mapping[str, object], known: Iterable[str]) -> None:
    """Raises TypeError or InvalidRequest for options that are not known, or not as in `TranslateOptions`."""
    if unknown := sorted(options.keys() - set(known)):
        raise TypeError(f"unknown option: {', '.join(unknown)}")
    for name, value in options.items():
        declared = _OPTION_TYPES[name]
        if value is None or name in ("keep", "glossary", "glossaries"):  # which rules.py checks
            continue
        if name in _LISTS:
            check_phrases(name, value)
            continue
        if declared is str:
            check_text(name, value)
            continue
        accepted, said = _ACCEPTED[declared]
        if isinstance(value, bool) != (declared is bool) or not isinstance(value, accepted):
            raise TypeError(f"{name} must be {said}, not {type(value).__name__}")
        # Protobuf would not say which field a number does not fit.
        most = _MOST_SEED if name == "sampling_seed" else _MOST_NUMBER
        if declared is int and isinstance(value, numbers.Integral) and not 0 <= int(value) <= most:
            raise InvalidRequest(f"{name} must be from 0 to {most}, not {value}")


def translate_result(response: translation_pb2.TranslateResponse, num_texts: int) -> TranslateResult:
    """Reads the answer to Translate. Raises ServerFailed if it does not have as many translations as were asked for."""
    check_count(len(response.translations), num_texts)
    return TranslateResult(
        translations=tuple(_translation(message) for message in response.translations),
        model=response.model,
        model_version=response.model_version,
        source=response.source_language_code,
        target=response.target_language_code,
        timings=Timings(
            total_seconds=response.timings.total_seconds,
            queue_seconds=response.timings.queue_seconds,
            encode_seconds=response.timings.encode_seconds,
            decode_seconds=response.timings.decode_seconds,
        ),
        glossaries=read_glossaries(response),
    )


def streamed_sentence(response: translation_pb2.TranslateStreamResponse, num_texts: int) -> StreamedSentence:
    """Reads one item of the answer to TranslateStream. Raises ServerFailed if it is of none of the texts."""
    if response.content_index >= num_texts:
        raise ServerFailed(f"the server answered text {response.content_index} of {num_texts}")
    return StreamedSentence(
        content_index=response.content_index,
        sentence_index=response.sentence_index,
        sentence_count=response.sentence_count,
        leading=response.leading,
        sentence=read_sentence(response.sentence) if response.HasField("sentence") else None,
        error=read_text_error(response.status) if response.HasField("status") else None,
        model=response.model,
        model_version=response.model_version,
        detected=read_detected(response),
        route=read_route(response),
        glossaries=read_glossaries(response),
        partial_text=response.partial_text,
    )


def _translation(message: translation_pb2.Translation) -> Translation:
    return Translation(
        text=message.text,
        score=message.score,
        finish_reason=read_finish_reason(message.finish_reason),
        hypotheses=tuple(_hypotheses(message)),
        sentences=tuple(read_sentence(sentence) for sentence in message.sentences),
        source_tokens=message.source_tokens,
        target_tokens=message.target_tokens,
        error=read_text_error(message.status) if message.HasField("status") else None,
        detected=read_detected(message),
        route=read_route(message),
        kept=read_kept(message),
        terms=read_terms(message),
        confidence=message.confidence if message.HasField("confidence") else None,
    )


def _hypotheses(message: translation_pb2.Translation) -> Iterator[Hypothesis]:
    for rank, each in enumerate(message.hypotheses):
        yield Hypothesis(text=each.text if rank else message.text, score=each.score)
