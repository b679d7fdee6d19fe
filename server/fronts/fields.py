"""The names that vendors have for our fields, in errors."""

import contextlib
from collections.abc import Iterator, Mapping

from server.errors import TranslationError


@contextlib.contextmanager
def fields_named(names: Mapping[str, str]) -> Iterator[None]:
    """Has an error of the block name its field as the vendor does. The log still has our name.

    Args:
        names: how the vendor calls fields of ours, or how their names begin, with "." at the end; the first that fits
            counts.
    """
    try:
        yield
    except TranslationError as error:
        words = str(error)
        for ours, theirs in names.items():
            rest = words.removeprefix(ours)
            if rest != words and (ours.endswith(".") or rest.startswith((":", ".", "["))):  # no word of a sentence
                error.args = (theirs + rest,)
                break
        raise
