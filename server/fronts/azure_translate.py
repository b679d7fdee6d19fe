"""Requests to Azure Translator to translate, in versions 3.0 and 2026-06-06; `server.fronts.azure_answers` answers.

A call may have several targets, and in the later version each text has its own languages and type. Texts that have all
of these in common are one request of ours.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from babelserve.v1 import translation_pb2 as pb
from server.errors import InvalidRequest, ModelNotFound, TranslationError
from server.fronts.azure import (
    NO_SCRIPT,
    TOO_LONG,
    V3,
    WRONG,
    WRONG_OPTION,
    WRONG_TARGET,
    WRONG_TYPE,
    Query,
    WrongRequest,
    first,
    own_text,
    read_items,
    read_text,
    read_version,
    with_script,
)
from server.translation.rules import MAX_ANSWER_CHARACTERS

MOST_REQUESTS = 64  # of ours for one call. Half, and a text for all languages of a model may need two calls. Twice, and
# one call waits for as much as a client with many connections.
_TYPES = {"": "text/plain", "plain": "text/plain", "html": "text/html"}
_GENERAL = frozenset({"", "general", "generalnn", "best"})  # names that leave the choice of a model to the server
_REFUSED = ("gender", "adaptivedatasetid", "referencetextpairs")  # of a target
_TONES = {"formal": "FORMALITY_MORE", "informal": "FORMALITY_LESS", "neutral": "", "": ""}
_SPELLING = {"adaptivedatasetid": "adaptiveDatasetId", "referencetextpairs": "referenceTextPairs"}
_BOOLEANS = {"": None, "true": True, "false": False}


class Key(NamedTuple):
    """What texts of one request of ours have in common."""

    source: str
    target: str
    mime_type: str
    model: str
    may_use_another: bool
    formality: str = ""


@dataclass(frozen=True, slots=True)
class Target:
    """A language that a text is to be translated into; `name` is the caller's."""

    name: str
    key: Key


@dataclass(frozen=True, slots=True)
class Input:
    """A text; `source` is the caller's name of its language, empty if it is to be detected."""

    text: str
    source: str
    targets: Sequence[Target]


@dataclass(frozen=True, slots=True)
class Part:
    """A request of ours, and which of its texts each input is."""

    message: pb.TranslateRequest
    rows: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Translate:
    """A request to translate.

    Attributes:
        version: of Azure's API.
        inputs: its texts.
        parts: what it means.
        num_characters: code points of the texts, counted once for each target.
        with_alignment: whether it asks for words that belong together.
        with_lengths: whether it asks for the lengths of sentences.
    """

    version: str
    inputs: Sequence[Input]
    parts: Mapping[Key, Part]
    num_characters: int
    with_alignment: bool = False
    with_lengths: bool = False


def read_translate(query: Query, value: Any) -> Translate:
    """Returns what a request to translate means. Raises WrongRequest."""
    version = read_version(query)
    if version == V3:
        alignment, sizes = (_boolean(query, name) for name in ("includeAlignment", "includeSentenceLength"))
        inputs = _read_v3(query, value)
    else:
        alignment, sizes = False, False
        inputs = _read_2026(value)
    num_characters = sum(len(each.text) * len(each.targets) for each in inputs)
    if num_characters > MAX_ANSWER_CHARACTERS:  # each text is copied for each target
        rule = f"must have at most {MAX_ANSWER_CHARACTERS} characters times targets, not {num_characters}"
        raise WrongRequest(TOO_LONG, "text", rule)
    parts: dict[Key, Part] = {}
    for index, each in enumerate(inputs):
        for target in each.targets:
            part = parts.get(target.key)
            if part is None:
                if len(parts) == MOST_REQUESTS:
                    rule = f"must together be at most {MOST_REQUESTS} sets of source, target, type and category"
                    raise WrongRequest(WRONG, "targets", rule)
                part = parts[target.key] = Part(_message(target.key, with_alignment=alignment, with_lengths=sizes))
            if index not in part.rows:
                part.rows[index] = len(part.rows)
                part.message.contents.append(each.text)
    return Translate(
        version=version,
        inputs=inputs,
        parts=parts,
        num_characters=num_characters,
        with_alignment=alignment,
        with_lengths=sizes,
    )


def without_what_is_missing(part: Part, key: Key, error: TranslationError) -> Part | None:
    """Returns a request that Azure would answer instead of a refused one; None if it would refuse it too.

    Azure leaves alignment out where it has none, and uses another model where the caller allows it.
    """
    has_no_links = isinstance(error, InvalidRequest) and error.field == "output.include_alignment"
    if not has_no_links and not (isinstance(error, ModelNotFound) and key.may_use_another and part.message.model):
        return None
    message = pb.TranslateRequest()
    message.CopyFrom(part.message)
    if has_no_links:
        message.output.include_alignment = False
    else:
        message.model = ""
    return Part(message, part.rows)


def _message(key: Key, *, with_alignment: bool, with_lengths: bool) -> pb.TranslateRequest:
    is_plain = key.mime_type == "text/plain"  # of markup Azure aligns nothing
    return pb.TranslateRequest(
        source_language_code=key.source,
        target_language_code=key.target,
        mime_type=key.mime_type,
        model=key.model,
        formality=key.formality or None,
        output=pb.OutputOptions(
            text_once=True,
            include_alignment=with_alignment and is_plain,
            include_sentences=with_lengths and is_plain,
        ),
    )


def _read_v3(query: Query, value: Any) -> list[Input]:
    names = [name.strip() for each in query.get("to", ()) for name in each.split(",")]
    if not all(names) or not names:
        raise WrongRequest(WRONG_TARGET, "to", "is required")
    source, script = first(query, "from"), first(query, "fromScript")
    if any(query.get("toscript", ())):
        raise WrongRequest(NO_SCRIPT, "toScript", "must be absent: this server does not transliterate")
    for name in ("profanityAction", "profanityMarker"):
        _check_profanity(name, first(query, name))
    key = Key(
        source=with_script(source, script, "fromScript"),
        target="",
        mime_type=_type(first(query, "textType"), "textType"),
        model=_model(first(query, "category")),
        may_use_another=_boolean(query, "allowFallback") is not False,
    )
    targets = [Target(name, key._replace(target=with_script(name, "", "to"))) for name in dict.fromkeys(names)]
    return [Input(read_text(item, f"[{index}]"), source, targets) for index, item in enumerate(read_items(value))]


def _read_2026(value: Any) -> list[Input]:
    if not isinstance(value, dict):
        raise WrongRequest(WRONG, "body", "must be an object")
    body = {name.lower(): each for name, each in value.items()}
    return [
        _read_input(item, f"inputs[{index}]") for index, item in enumerate(read_items(body.get("inputs"), "inputs"))
    ]


def _read_input(item: Mapping[str, Any], place: str) -> Input:
    text = read_text(item, place)
    source = _optional(item, "language", place)
    key = Key(
        source=with_script(source, _optional(item, "script", place), f"{place}.script"),
        target="",
        mime_type=_type(_optional(item, "textType", place), f"{place}.textType"),
        model="",
        may_use_another=True,
    )
    targets = read_items(item.get("targets"), f"{place}.targets")
    return Input(text, source, [_read_target(each, key, f"{place}.targets[{n}]") for n, each in enumerate(targets)])


def _read_target(item: Mapping[str, Any], key: Key, place: str) -> Target:
    for name in _REFUSED:
        if item.get(name) not in (None, "", []):
            rule = "must be absent: this server has no such option"
            raise WrongRequest(WRONG_OPTION, f"{place}.{_SPELLING.get(name, name)}", rule)
    for option in ("profanityAction", "profanityMarker"):
        _check_profanity(f"{place}.{option}", _optional(item, option, place))
    name = own_text(WRONG_TARGET, f"{place}.language", item.get("language"))
    if not name:
        raise WrongRequest(WRONG_TARGET, f"{place}.language", "is required")
    tone = _optional(item, "tone", place).lower()
    if tone not in _TONES:
        raise WrongRequest(WRONG_OPTION, f"{place}.tone", "must be one of formal, informal, neutral")
    fallback = item.get("allowfallback")
    if not isinstance(fallback, bool | None):
        raise WrongRequest(WRONG_OPTION, f"{place}.allowFallback", "must be true or false")
    return Target(
        name,
        key._replace(
            target=with_script(name, _optional(item, "script", place), f"{place}.script"),
            model=_model(_optional(item, "deploymentName", place)),
            may_use_another=fallback is not False,
            formality=_TONES[tone],
        ),
    )


def _optional(item: Mapping[str, Any], name: str, place: str) -> str:
    """Returns a text of an object; empty if it has none."""
    value = item.get(name.lower())
    return "" if value is None else own_text(WRONG_OPTION, f"{place}.{name}", value)


def _type(value: str, name: str) -> str:
    try:
        return _TYPES[value.lower()]
    except KeyError:
        raise WrongRequest(WRONG_TYPE, name, "must be Plain or Html") from None


def _model(category: str) -> str:
    return "" if category.lower() in _GENERAL else category


def _check_profanity(name: str, value: str) -> None:
    """Checks that nothing is to be done about profanities. How they would be marked does not matter then."""
    allowed = ("", "noaction") if name.endswith("Action") else ("", "asterisk", "tag")
    if value.lower() not in allowed:
        rule = "must be NoAction: this server marks and deletes nothing"
        raise WrongRequest(WRONG_OPTION, name, rule if name.endswith("Action") else "must be Asterisk or Tag")


def _boolean(query: Query, name: str) -> bool:
    value = first(query, name).lower()
    if value not in _BOOLEANS:
        raise WrongRequest(WRONG_OPTION, name, "must be true or false")
    return _BOOLEANS[value]  # type: ignore[return-value]
