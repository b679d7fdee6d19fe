"""What a caller says of the elements of a document."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TagRules:
    """The names of elements that are read in another way than they are by default.

    Attributes:
        ignored: names of those that stay as they are, with all that is in them.
        splitting: of those that end a sentence.
        non_splitting: of those that do not; of a name that is in both, `splitting` holds.
        only_named_split: whether no other element ends a sentence than those of `splitting`.
        repair: whether XML that is not well-formed is read as HTML.
    """

    ignored: frozenset[str] = frozenset()
    splitting: frozenset[str] = frozenset()
    non_splitting: frozenset[str] = frozenset()
    only_named_split: bool = False
    repair: bool = False


NO_RULES = TagRules()
