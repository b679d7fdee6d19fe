"""What a caller wants kept beside what every text has: literal texts, and what stands between two delimiters.

There are no regular expressions from callers: Python's take exponential time on some texts.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from server.errors import InvalidRequest

# Each literal is looked for at each place of a text: half as many, and glossaries of products do not fit; twice as
# many, and a text of 2 MiB takes twice the time, which is then seconds.
MAX_LITERALS = 64
MAX_DELIMITERS = 8
MAX_LITERAL_CHARACTERS = 100
MAX_DELIMITER_CHARACTERS = 8
# Between two delimiters. Half of it, and long expressions are translated; twice that, and openings that nobody closes
# take twice the time.
_MOST_BETWEEN = 200
_NOTHING = re.compile(r"(?!)")


@dataclass(frozen=True, slots=True)
class OwnParts:
    """What a caller wants kept, compiled.

    Args:
        literals: texts of 1 to 100 characters, at most 64. Where a literal begins or ends with a letter or a digit, it
            is a whole word.
        delimiters: pairs of an opening and a closing of 1 to 8 characters, at most 8, neither of them white space.
            What stands between them is in one line, and at most 200 characters.
        name: of the field that errors name.

    Raises:
        InvalidRequest: there are too many, or one is empty or too long.
    """

    literals: Sequence[str] = ()
    delimiters: Sequence[tuple[str, str]] = ()
    name: str = "placeholders"
    _pattern: "re.Pattern[str]" = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._check("literals", self.literals, MAX_LITERALS, MAX_LITERAL_CHARACTERS)
        both = [each for pair in self.delimiters for each in pair]
        self._check("delimiters", both, 2 * MAX_DELIMITERS, MAX_DELIMITER_CHARACTERS)
        # The longest is tried first, so that "{{" is not read as "{".
        found = [_between(*pair) for pair in sorted(self.delimiters, key=lambda pair: -len(pair[0]))]
        found += [_literal(each) for each in sorted(self.literals, key=len, reverse=True)]
        object.__setattr__(self, "_pattern", re.compile("|".join(found)) if found else _NOTHING)

    def find(self, text: str) -> Iterator[tuple[int, int]]:
        """Yields where the parts stand in a text, in order; takes time linear in the text."""
        return (match.span() for match in self._pattern.finditer(text))

    def _check(self, kind: str, texts: Sequence[str], most: int, most_characters: int) -> None:
        field_name = f"{self.name}.{kind}"
        if len(texts) > most:
            raise InvalidRequest(field_name, f"must be at most {most} texts, not {len(texts)}")
        for index, text in enumerate(texts):
            if not text.strip() or len(text) > most_characters:
                message = f"must have 1 to {most_characters} characters that are no white space, not {len(text)}"
                raise InvalidRequest(f"{field_name}[{index}]", message)


def _literal(text: str) -> str:
    before = r"(?<!\w)" if text[0].isalnum() else ""
    behind = r"(?!\w)" if text[-1].isalnum() else ""
    return f"{before}{re.escape(text)}{behind}"


def _between(opening: str, closing: str) -> str:
    first = re.escape(closing[0])
    inside = f"[^\\n{first}]" if len(closing) == 1 else f"(?:[^\\n{first}]|{first}(?!{re.escape(closing[1:])}))"
    return f"{re.escape(opening)}{inside}{{0,{_MOST_BETWEEN}}}+{re.escape(closing)}"


NO_OWN_PARTS = OwnParts()
