"""How translations are searched for, as it is sent."""

from collections.abc import Mapping
from typing import Any

from babelserve.v1 import translation_pb2

_FIELDS = {field.name for field in translation_pb2.DecodingOptions.DESCRIPTOR.fields} - {"sampling", "suppress"}
_SAMPLING = "sampling_"


def decoding_options(options: Mapping[str, Any]) -> translation_pb2.DecodingOptions:
    """Returns the message for the options of a translation, whose types are right; other options are left alone.

    Raises:
        ValueError: a number fits no field.
    """
    given = {name: value for name, value in options.items() if value is not None}
    sampling = {name.removeprefix(_SAMPLING): given[name] for name in given if name.startswith(_SAMPLING)}
    return translation_pb2.DecodingOptions(
        **{name: given[name] for name in given if name in _FIELDS},
        suppress=options.get("suppress"),
        sampling=translation_pb2.Sampling(**sampling) if sampling else None,
    )
