"""Texts into sentences and back, losing nothing.

A text is its leading white space, then each sentence with the white space that follows it; `SplitText.join` puts the
translations in the sentences' places. Line breaks and tabs always end a sentence: they come back where they were, and
a list, a table or a poem keeps its form. (Hard-wrapped prose is translated line by line: joining its lines would lose
them.) So does the syntax of programs, which is copied as a sentence of its own (`server.text.layout`).

Within a line, sentencex (Wikimedia; MIT, no dependencies, still released) finds the sentences. Weighed against it:
pysbd 0.3.4, its last release for years. Sentencex was right where pysbd split "a.html?x=1" and "Well... I", or kept
"Hello!!! How are you??? Fine." whole; it cuts "1." off a list item, which does no harm here, and is some hundred times
faster. Two faults of it (1.0.32) are kept from callers. It is quadratic in typographic quotes, unclosed or closed such
as 《 》 (4096 characters: 160 ms, 1024: 0.4 ms), and holds the interpreter's lock all the while, so it is shown at
most `WINDOW_CHARACTERS` at a time, which makes the whole linear. And it panics on white space beyond ASCII between an
initial and a full stop, so every white space is shown to it as a plain one.

A sentence of too many tokens is cut in halves until they fit: at the clause mark nearest to its middle, else at white
space, else between any two characters. One with more addresses and the like than the network has symbols for is cut
between two of them. A sentence without a letter (a number, a bullet, an emoji) is not translated but copied:
there is nothing to translate, and a network that is given "***" invents something. What a network is shown of the
others is for `server.text.masking` to say.

A tokenizer normalises, and some characters become many: U+FDFA, 3 bytes of a request, 34 ids to translate. The masker
shows none of these to the network. A sentence that has more ids than bytes all the same is copied, so that no text
costs more ids than its bytes.
"""

import itertools
import logging
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator

import sentencex  # type: ignore[import-untyped]

from server.text.layout import Syntax, has_syntax, part_code, part_line, part_messages
from server.text.masking import NO_MASKING, Masker
from server.text.repeats import part_repeats
from server.text.sentence_ends import goes_on
from server.text.source import SourceSentence, SplitText

logger = logging.getLogger(__name__)

WINDOW_CHARACTERS = 1024
_LONGEST_PART = 1 << 15  # characters, to look at which keeps everybody waiting for up to 20 ms
_OTHER_SPACE = re.compile(r"[^\S ]")
_LINE_BREAKS = re.compile(r"[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]+")
_CLAUSE_END = re.compile(r"[,;:\u2013\u2014)\]]\s+|[\u3001\uff0c\uff1b\uff1a]\s*")
_LABEL = re.compile(  # in brackets of East Asia, such as 【Test】
    r"\s*+[\u3008\u300a\u300c\u300e\u3010\u3014\u3016\uff3b][^\u3008-\u3017\uff3b\uff3d]{1,60}"
    r"[\u3009\u300b\u300d\u300f\u3011\u3015\u3017\uff3d]\s*"
)
_SPACE = re.compile(r"\s+")
# What a network is shown as it is, and may write otherwise, as it may "...".
_RESTORED = re.compile(r"[\d\u2018\u201a\u201c-\u201f\u2026\xab\xbb]")
_MOST_MARKS = 16  # in a row, that a cut steps over

Encode = Callable[[str], tuple[int, ...]]
Watch = Callable[[int], None]


def split_text(
    text: str,
    language: str,
    encode: Encode,
    max_tokens: int,
    watch: Watch = lambda num_sentences: None,
    num_added: int = 1,
    masker: Masker = NO_MASKING,
) -> SplitText:
    """Splits a text into sentences of at most `max_tokens` ids. Takes time linear in the text.

    Args:
        text: any text.
        language: BCP-47 code of the text; an unknown one is split by general rules.
        encode: a sentence's ids, eos and prefixes included.
        max_tokens: most ids of a sentence, those included, at least one more than them.
        watch: called again and again, and at the end, with the number of sentences so far; ends the work by raising.
        num_added: ids of a sentence that are not its text's: eos and prefixes.
        masker: says what `encode` is shown of a sentence.
    """
    leading = ""
    sentences: list[SourceSentence] = []
    gap: list[str] = []
    core = ""
    for segment in _segments(text, language, masker):
        watch(len(sentences))
        stripped = segment.strip()
        if not stripped:
            gap.append(segment)
            continue
        start = segment.index(stripped)
        gap.append(segment[:start])
        if core:
            sentences.extend(_wrap(core, "".join(gap), encode, max_tokens, num_added, masker))
        else:
            leading = "".join(gap)
        gap = [segment[start + len(stripped) :]]
        core = Syntax(stripped) if isinstance(segment, Syntax) else stripped
    if core:
        sentences.extend(_wrap(core, "".join(gap), encode, max_tokens, num_added, masker))
    else:
        leading = "".join(gap)
    watch(len(sentences))
    return SplitText(leading, tuple(sentences))


def _segments(text: str, language: str, masker: Masker) -> Iterator[str]:
    """Yields what joins to the text: sentences of at most `WINDOW_CHARACTERS`, white space, addresses, syntax."""
    split_line = _line_and_syntax if has_syntax(text) else _line_segments
    for message in (text,) if split_line is _line_segments else _code_and_messages(text):
        if isinstance(message, Syntax):
            yield message
            continue
        start = 0
        for breaks in _LINE_BREAKS.finditer(message):
            yield from _after_label(split_line(message[start : breaks.start()], language, masker))
            yield breaks.group()
            start = breaks.end()
        yield from _after_label(split_line(message[start:], language, masker))


def _code_and_messages(text: str) -> Iterator[str]:
    for piece in part_code(text):
        if isinstance(piece, Syntax):
            yield piece
        else:
            yield from part_messages(piece)


def _line_and_syntax(line: str, language: str, masker: Masker) -> Iterator[str]:
    for piece in part_line(line):
        if isinstance(piece, Syntax):
            yield piece
        else:
            yield from _line_segments(piece, language, masker)


def _after_label(segments: Iterable[str]) -> Iterator[str]:
    """Yields segments, and what follows a label in brackets such as 【Test】 as a segment of its own."""
    for segment in segments:
        label = _LABEL.match(segment)
        if label and label.end() < len(segment):
            yield segment[: label.end()]
            yield segment[label.end() :]
        else:
            yield segment


def _line_segments(line: str, language: str, masker: Masker) -> Iterator[str]:
    for piece in part_repeats(line):
        if piece is line:
            yield from _sentences(line, language, masker)
        else:
            yield piece


def _sentences(line: str, language: str, masker: Masker) -> Iterator[str]:
    if not line or line.isspace():
        yield line
        return
    start = judged = 0
    while len(line) - start > WINDOW_CHARACTERS:
        found = masker.own_parts.find(line[start : start + 2 * WINDOW_CHARACTERS])
        parts = [(begin, end) for begin, end in found if end - begin <= WINDOW_CHARACTERS]
        room = next((begin for begin, end in parts if begin < WINDOW_CHARACTERS < end), WINDOW_CHARACTERS)
        window, within = line[start : start + room], _within(parts)
        *complete, last = _segment(window, language, within)
        # The last one may go on behind the window: it is seen again, unless that would mean no progress.
        if not complete or (room == WINDOW_CHARACTERS and sum(map(len, complete)) < WINDOW_CHARACTERS // 4):
            cut = _last_cut(window, len(window) - len(last), within)
            if not cut and not complete and start >= judged and room == WINDOW_CHARACTERS:
                judged = _word_end(line, start)  # a word longer than a window begins here
                if _is_part(line[start:judged], masker):
                    last = line[start:judged]
            if cut or not complete:
                complete.append(last[:cut] if cut else last)
        yield from complete
        start += sum(map(len, complete))
    yield from _segment(line[start:], language, _within(masker.own_parts.find(line[start:])))


def _within(parts: Iterable[tuple[int, int]]) -> set[int]:
    """Returns where a text must not be cut: within the parts that a caller wants kept."""
    return {place for begin, end in parts for place in range(begin + 1, end)}


def _segment(line: str, language: str, within: Collection[int]) -> list[str]:
    """Returns the sentences of a window, none of which ends in a caller's part; one if sentencex fails on it."""
    try:
        lengths = [len(segment) for segment in sentencex.segment(language, _OTHER_SPACE.sub(" ", line))]
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # noqa: BLE001  # a panic in Rust is no Exception
        logger.warning("sentencex failed on a line, which is taken as one sentence")
        return [line]
    if len(lengths) == 1 or sum(lengths) != len(line):
        return [line]
    ends = [end for end in itertools.accumulate(lengths) if end == len(line) or not goes_on(line, end, language)]
    return [line[start:end] for start, end in itertools.pairwise([0, *(end for end in ends if end not in within)])]


def _last_cut(text: str, begin: int, within: Collection[int]) -> int:
    """How much to cut off a sentence that begins there and goes on: up to its last white space; 0 if it has none."""
    return max((match.end() - begin for match in _SPACE.finditer(text, begin) if match.end() not in within), default=0)


def _is_part(word: str, masker: Masker) -> bool:
    """Whether a word longer than a window is an address, say, that a symbol may stand for."""
    return len(word) <= _LONGEST_PART and len(masker.mask(word).text) < WINDOW_CHARACTERS // 4


def _word_end(line: str, start: int) -> int:
    space = _SPACE.search(line, start)
    return space.start() if space else len(line)


def _wrap(
    text: str, separator: str, encode: Encode, max_tokens: int, num_added: int, masker: Masker
) -> Iterator[SourceSentence]:
    """Yields a sentence, or the pieces of one that has more than `max_tokens` ids, or more ids than bytes."""
    if isinstance(text, Syntax):
        yield SourceSentence(str(text), separator, None)
        return
    masked = masker.mask(text)
    if masked.num_fit is not None:
        for piece, gap in _pieces(text, separator, masked.num_fit):
            yield from _wrap(piece, gap, encode, max_tokens, num_added, masker)
        return
    if not masked.has_words:
        yield SourceSentence(text, separator, None)
        return
    ids = encode(masked.text)
    # Each byte may have one, and so may the white space ahead of a first word.
    if len(ids) > len(text.encode(errors="surrogatepass")) + 1 + num_added:
        yield SourceSentence(text, separator, None)
    elif len(ids) > max_tokens and len(text) > 1:
        for piece, gap in _pieces(text, separator, _middle_cut(text, _within(masker.own_parts.find(text)))):
            yield from _wrap(piece, gap, encode, max_tokens, num_added, masker)
    elif num_added < len(ids) <= max_tokens:
        is_plain = masked.text == text and "..." not in text and not _RESTORED.search(text)
        yield SourceSentence(text, separator, ids, num_added, None if is_plain else masked)
    else:  # it normalises to nothing, or to very many tokens
        yield SourceSentence(text, separator, None)


def _pieces(text: str, separator: str, cut: int) -> list[tuple[str, str]]:
    """Returns what stands before and behind a cut, each with the white space that follows it."""
    pieces: list[tuple[str, str]] = []
    for part in (text[cut:], text[:cut]):
        stripped = part.strip()
        begin = part.index(stripped)
        if stripped:
            pieces.append((stripped, part[begin + len(stripped) :] + separator))
            separator = part[:begin]
        else:
            separator = part + separator
    return pieces[::-1]


def _middle_cut(text: str, within: Collection[int]) -> int:
    """The best place to cut, 1 to len(text) - 1, between a quarter and three quarters of the text.

    It is not within a caller's part, unless this is the whole text. It may be nearer to an end if such a part is long.
    """
    middle = len(text) // 2
    for pattern in (_CLAUSE_END, _SPACE):
        found = pattern.finditer(text, len(text) // 4, 3 * len(text) // 4)
        cuts = [match.end() for match in found if match.end() not in within]
        if cuts:
            return min(cuts, key=lambda cut: abs(cut - middle))
    if middle in within:
        outside = (cut for cut in range(1, len(text)) if cut not in within)
        return min(outside, key=lambda cut: abs(cut - middle), default=middle)
    for cut in range(middle, min(middle + _MOST_MARKS, len(text))):
        if cut not in within and not unicodedata.category(text[cut]).startswith(("M", "Cf")):
            return cut
    return middle
