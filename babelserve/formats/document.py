"""What every file is read into: units to translate, each with the place in the file that its translation takes.

Nothing but these places is written anew, so the rest of a file comes back byte for byte.
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from babelserve.lines import MAX_TEXT_BYTES

PLAIN, HTML = "text/plain", "text/html"


class BadFile(Exception):
    """The file cannot be read; the message says why, and begins with "is" or "has" as if the file's name came first."""


Standing = Callable[[int, int], str]  # what stands in a range of a content, with the units in it translated


@dataclass(frozen=True, slots=True)
class Unit:
    """A text of a file, or a place for the code of the target language.

    Attributes:
        text: as it is sent; None where the target's code is to stand.
        begin, end: code points of the content, whose place the translation takes.
        render: makes of a translation what is written there; None if its tags are not those of the text.
        same: what is written if the translation equals the text; None: what stands there.
    """

    text: str | None
    begin: int
    end: int
    render: Callable[[str, Standing], str | None] = lambda translation, standing: translation
    same: str | None = None


class Content:
    """A text of the file, or of a member of an archive, with its units.

    Args:
        text: all of it.
        units: in any order; one may lie within another, but they do not overlap otherwise.
    """

    def __init__(self, text: str, units: Sequence[Unit]) -> None:
        self._text = text
        self.units = sorted(units, key=lambda unit: (unit.begin, -unit.end))
        self._begins = [unit.begin for unit in self.units]

    def write(self, translations: Sequence[str | None]) -> tuple[str, list[int]]:
        """Returns the content with its translations, and the indices of units whose translation does not fit.

        Args:
            translations: one for each unit; None leaves the unit as it is.
        """
        unfit: list[int] = []

        def replaced(index: int) -> str:
            unit, translation = self.units[index], translations[index]
            first = index + 1
            if translation is None or (translation == unit.text and unit.same is None):
                return spliced(unit.begin, unit.end, first)
            if translation == unit.text and unit.same is not None:
                return unit.same
            written = unit.render(translation, lambda begin, end: spliced(begin, end, first))
            if written is None:
                unfit.append(index)
                return spliced(unit.begin, unit.end, first)
            return written

        def spliced(begin: int, end: int, first: int) -> str:
            parts = []
            index = max(first, bisect_left(self._begins, begin))
            while index < len(self.units) and self._begins[index] < end:
                unit = self.units[index]
                if unit.begin >= begin:  # else it lies within the last one
                    parts += [self._text[begin : unit.begin], replaced(index)]
                    begin = unit.end
                index += 1
            return "".join([*parts, self._text[begin:end]])

        return spliced(0, len(self._text), 0), unfit


class Document:
    """A file that has been read.

    Args:
        mime_type: of its texts, as the server knows it.
        contents: by name.
        pack: makes the file of its contents.

    Attributes:
        texts: to be translated, in their order.
    """

    def __init__(
        self, mime_type: str, contents: Mapping[str, Content], pack: Callable[[dict[str, bytes]], bytes]
    ) -> None:
        self.mime_type = mime_type
        self._contents = contents
        self._pack = pack
        self.texts = [unit.text for content in contents.values() for unit in content.units if unit.text is not None]

    def write(self, translations: Sequence[str | None], target: str) -> tuple[bytes, list[int]]:
        """Returns the file, and the indices of texts whose translation did not fit and that stay as they were.

        Args:
            translations: one for each of `texts`; None leaves the text as it is.
            target: code of the target language.
        """
        files: dict[str, bytes] = {}
        unfit: list[int] = []
        done = 0
        for name, content in self._contents.items():
            places = [index for index, unit in enumerate(content.units) if unit.text is not None]
            filled: list[str | None] = [target] * len(content.units)
            for number, place in enumerate(places):
                filled[place] = translations[done + number]
            written, wrong = content.write(filled)
            unfit += [done + bisect_left(places, index) for index in wrong]
            done += len(places)
            files[name] = written.encode()
        return self._pack(files), unfit


def one_text(mime_type: str, text: str, units: Sequence[Unit]) -> Document:
    """Makes a document of a file that is one text."""
    return Document(mime_type, {"": Content(text, units)}, lambda files: files[""])


def decoded(data: bytes) -> str:
    """Reads UTF-8; a byte order mark stays in the text. Raises BadFile."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise BadFile(f"is not UTF-8: byte {error.start} is wrong; convert it first") from error


def read_whole(data: bytes, mime_type: str) -> Document:
    """Reads a file that the server takes whole, because it knows the format itself.

    Raises:
        BadFile: it is not UTF-8, or longer than a text may be.
    """
    text = decoded(data)
    if len(data) > MAX_TEXT_BYTES:
        raise BadFile(f"has {len(data)} bytes; the limit of this format is {MAX_TEXT_BYTES}: split it")
    return one_text(mime_type, text, [Unit(text, 0, len(text))] if has_letters(text) else [])


def has_letters(text: str) -> bool:
    """Whether there is anything to translate."""
    return any(map(str.isalpha, text))
