"""How translations are searched for, as it is sent."""

from collections.abc import Mapping, Sequence
from typing import Any

from babelserve.errors import InvalidRequest
from babelserve.rules import check_text
from babelserve.v1 import translation_pb2

_FIELDS = {field.name for field in translation_pb2.DecodingOptions.DESCRIPTOR.fields} - {"sampling", "suppress"}
_SAMPLING = "sampling_"


def decoding_options(options: Mapping[str, Any]) -> translation_pb2.DecodingOptions:
    """Returns the message for the options of a translation, whose types are right; other options are left alone.

    Raises:
        ValueError: a number fits no field.
        InvalidRequest: both ways to give the length are there.
    """
    given = {name: value for name, value in options.items() if value is not None}
    if "exact_tokens" in given and "ratio" in given:
        raise InvalidRequest("decoding.ratio: must be left out with exact_tokens")
    sampling = {name.removeprefix(_SAMPLING): given[name] for name in given if name.startswith(_SAMPLING)}
    return translation_pb2.DecodingOptions(
        **{name: given[name] for name in given if name in _FIELDS},
        suppress=options.get("suppress"),
        sampling=translation_pb2.Sampling(**sampling) if sampling else None,
    )


def check_phrases(name: str, phrases: object) -> None:
    """Raises TypeError if an option is no sequence of strings, and InvalidRequest if one is not valid Unicode."""
    if isinstance(phrases, str | bytes) or not isinstance(phrases, Sequence):
        raise TypeError(f"{name} must be a sequence of phrases, not one string: use [phrase]")
    for index, phrase in enumerate(phrases):
        check_text(f"{name}[{index}]", phrase)
