"""What a caller wants kept beside what every text has: literal texts, and what stands between two delimiters.

There are no regular expressions from callers: Python's take exponential time on some texts.
"""

import functools
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from server.errors import InvalidRequest

MAX_RULES = 100  # half as many, and lists of products do not fit; twice as many, and each must be under 20 characters
MAX_CHARACTERS = 100  # of a text; half of it, and titles of books do not fit; twice that, and compiling nests too deep
# Of all texts. Half of it, and a hundred names of 40 characters do not fit; twice that, and the event loop stands still
# for 30 ms while they are compiled.
MAX_ALL_CHARACTERS = 4000
_FIELD = "text.keep"  # that errors name
_NOTHING = re.compile(r"\uffff(?!)")  # a search for one character, which hardly a text has, is quick

Rule = str | tuple[str, str]


@dataclass(frozen=True, slots=True)
class OwnParts:
    """What a caller wants kept, compiled.

    Args:
        rules: at most 100, each a literal, or an opening and a closing, of 1 to 100 characters that are not all white
            space, and of 4000 characters together. A literal that begins or ends with a letter or a digit begins or
            ends a word, and so does the beginning of an opening. Of two rules with the same opening the last one holds.

    Raises:
        InvalidRequest: there are too many, or one is empty or too long.
    """

    rules: Sequence[Rule] = ()
    _pattern: "re.Pattern[str]" = field(init=False, repr=False, compare=False)
    _closings: dict[str, str] = field(init=False, repr=False, compare=False)  # by their openings

    def __post_init__(self) -> None:
        if len(self.rules) > MAX_RULES:
            raise InvalidRequest(_FIELD, f"must be at most {MAX_RULES} rules, not {len(self.rules)}")
        for index, rule in enumerate(self.rules):
            texts = {"literal": rule} if isinstance(rule, str) else dict(zip(("opening", "closing"), rule, strict=True))
            for kind, text in texts.items():
                if not text.strip() or len(text) > MAX_CHARACTERS:
                    message = f"must have 1 to {MAX_CHARACTERS} characters, not all white space, not {len(text)}"
                    raise InvalidRequest(f"{_FIELD}[{index}].{kind}", message)
        num_characters = sum(len(text) for rule in self.rules for text in ((rule,) if isinstance(rule, str) else rule))
        if num_characters > MAX_ALL_CHARACTERS:
            message = f"must have at most {MAX_ALL_CHARACTERS} characters in all rules, not {num_characters}"
            raise InvalidRequest(_FIELD, message)
        closings = dict(rule for rule in self.rules if not isinstance(rule, str))
        ends = {rule: r"(?!\w)" if rule[-1].isalnum() else "" for rule in self.rules if isinstance(rule, str)}
        ends |= dict.fromkeys(closings, "")
        object.__setattr__(self, "_pattern", re.compile(_tree(sorted(ends.items()))) if ends else _NOTHING)
        object.__setattr__(self, "_closings", closings)

    def find(self, text: str) -> Iterator[tuple[int, int]]:
        """Yields where the parts stand in a text, in order, apart from each other. Takes time linear in the text.

        An opening without a closing behind it is no part.
        """
        found: dict[str, int] = {}  # where each closing stands, the first one behind the place that was asked for
        end = 0
        while match := self._pattern.search(text, end):
            start, end = match.span()
            if closing := self._closings.get(match[0]):
                if found.get(closing, 0) < end:
                    place = text.find(closing, end)
                    found[closing] = len(text) if place < 0 else place
                if found[closing] == len(text):
                    end = start + 1
                    continue
                end = found[closing] + len(closing)
            yield start, end


@functools.lru_cache(maxsize=64)
def own_parts(rules: tuple[Rule, ...]) -> OwnParts:
    """Returns rules compiled, those of the last callers at once: each text of a bulk call has the same."""
    return OwnParts(rules)


def _tree(texts: Sequence[tuple[str, str]], depth: int = 0) -> str:
    """Returns a pattern of texts, the longest first, that looks at each character of a text once.

    Args:
        texts: each with what the pattern has behind it, sorted, different, with the same first `depth` characters.
    """
    branches = []
    longer = [each for each in texts if len(each[0]) > depth]
    for character, group in itertools.groupby(longer, key=lambda each: each[0][depth]):
        first = re.escape(character)
        word_begin = rf"(?<!\w{first})" if depth == 0 and character.isalnum() else ""
        branches.append(first + word_begin + _tree(list(group), depth + 1))
    branches += [behind for text, behind in texts if len(text) == depth]
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"


NO_OWN_PARTS = own_parts(())
