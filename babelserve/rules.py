"""Fields of a request from arguments: how texts are read, which terms they have, and how urgent they are."""

from collections.abc import Mapping, Sequence
from typing import Any

from babelserve.errors import InvalidRequest
from babelserve.v1 import translation_pb2

FORMALITIES = ("less", "more", "prefer_less", "prefer_more")
_PRIORITIES = {
    "high": translation_pb2.PRIORITY_HIGH,
    "normal": translation_pb2.PRIORITY_NORMAL,
    "low": translation_pb2.PRIORITY_LOW,
}


def check_text(name: str, text: object) -> None:
    """Raises TypeError if something is no text, and InvalidRequest if the text is not valid Unicode."""
    if not isinstance(text, str):
        raise TypeError(f"{name} must be a string, not {type(text).__name__}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidRequest(f"{name} is not valid Unicode: it holds a lone surrogate") from error


def text_options(options: Mapping[str, Any]) -> translation_pb2.TextOptions:
    """Returns how texts are read, as it is sent. Raises what `keep_rules` raises.

    Args:
        options: as `TranslateOptions`.
    """
    tags = translation_pb2.TagRules(
        ignored=options.get("ignored_tags") or (),
        splitting=options.get("splitting_tags") or (),
        non_splitting=options.get("non_splitting_tags") or (),
        only_named_split=options.get("only_named_split"),
        repair=options.get("repair_xml"),
    )
    return translation_pb2.TextOptions(
        refuse_unknown_scripts=options.get("refuse_unknown_scripts"),
        translate_attributes=options.get("translate_attributes"),
        adapt_quantities=options.get("adapt_quantities"),
        keep=keep_rules(options.get("keep")),
        tags=tags if tags.ByteSize() else None,
        join_lines=options.get("join_lines"),
    )


def keep_rules(keep: Sequence[Any] | None) -> list[translation_pb2.KeepRule]:
    """Returns rules as they are sent.

    Raises:
        TypeError: one is neither a string nor a pair of strings.
        InvalidRequest: one is not valid Unicode.
    """
    if isinstance(keep, str | bytes):
        raise TypeError("keep must be a sequence of rules, not one string: use [literal]")
    rules = []
    for index, rule in enumerate(keep or ()):
        fields = {"literal": rule}
        if not isinstance(rule, str):
            if not isinstance(rule, tuple | list) or len(rule) != 2:
                raise TypeError(f"keep[{index}] must be a string, or an opening and a closing, not {rule!r}")
            fields = dict(zip(("opening", "closing"), rule, strict=True))
        for text in fields.values():
            check_text(f"keep[{index}]", text)
        rules.append(translation_pb2.KeepRule(**fields))
    return rules


def glossary_message(
    glossary: Mapping[Any, Any] | None,
    names: Sequence[Any] | None,
    ignore_case: bool | None,
) -> translation_pb2.Glossary | None:
    """Returns a glossary as it is sent; None without one.

    Args:
        glossary: as `TranslateOptions` has it.
        names: `glossaries` of `TranslateOptions`.
        ignore_case: as `TranslateOptions` has it.

    Raises:
        TypeError: it is no mapping, a source is no string, or a target is neither a string nor a list of some; or the
            names are no sequence of strings.
        InvalidRequest: a text is not valid Unicode.
    """
    if glossary is None and names is None and ignore_case is None:
        return None
    if not isinstance(glossary, Mapping | None):
        raise TypeError(f"glossary must be a mapping from sources to targets, not {type(glossary).__name__}")
    if isinstance(names, str | bytes):
        raise TypeError("glossaries must be a sequence of names, not one string: use [name]")
    names = list(names or ())
    for index, name in enumerate(names):
        check_text(f"glossaries[{index}]", name)
    message = translation_pb2.Glossary(names=names, ignore_case=ignore_case)
    for source, targets in (glossary or {}).items():
        check_text("a source of glossary", source)
        name = f"glossary[{source!r}]"
        is_exact = not isinstance(targets, str)
        if isinstance(targets, str):
            targets = [targets]
        if not isinstance(targets, tuple | list) or not targets:
            raise TypeError(f"{name} must be a target, or a list of a target and its other forms, not {targets!r}")
        for target in targets:
            check_text(name, target)
        message.terms.add(source=source, target=targets[0], target_forms=targets[1:], exact=is_exact)
    return message


def formality_of(name: str | None) -> str | None:
    """Returns what a formality is on the wire. Raises InvalidRequest if there is none of that name."""
    if name is not None and name not in FORMALITIES:
        raise InvalidRequest(f"formality must be one of {', '.join(FORMALITIES)}, not {name!r}")
    return name and f"FORMALITY_{name.upper()}"


def priority_of(name: str | None) -> translation_pb2.Priority:
    """Returns what a priority is on the wire. Raises InvalidRequest if there is none of that name."""
    if name is None:
        return translation_pb2.PRIORITY_UNSPECIFIED
    if name not in _PRIORITIES:
        raise InvalidRequest(f"priority must be one of {', '.join(_PRIORITIES)}, not {name!r}")
    return _PRIORITIES[name]
