"""What a network is shown in the place of a sentence.

A *part* is what no network should read: an address, a code, a placeholder of a program, a character or word that this
network does not know. Marks at either end of a sentence are cut off and put back. Every other part is shown as a
*carrier*, something that the network copies: a reserved symbol, U+E000 or one of those after it, if it was trained with
them, or a short code such as "%1". In the translation the part stands in its carrier's place, character for character.

A translation that is not whole (`server.text.masked`) is asked for again: with the next carriers, and then without the
parts, which are put where the source has them. Numbers that were missing are parts in all these attempts but the last.

Sentences in capitals and titles are shown in small letters (`server.text.casing`). A word behind an opening bracket is
shown apart from it, since a network takes the piece of a word there for a name: it left 57 of 208 such words English,
and 4 behind a blank (en-de-small 2.3). Of 397 sentences 24 lost a bracket so, 10 without: these are asked for again.

A dash that touches the words on both sides is shown between blanks. Networks take the piece of a word behind one for a
name, too, and "I was tired—very tired." kept the English "very" (en-de-small 2.3).

A section of a law, such as "§ 5", is a part, but at the beginning of a German sentence its sign alone is cut off: the
network made "§ 5 is in here." of a part with "gilt hier.", and "is valid here." of "5 gilt hier."

Source: placeholders are what Luong et al., "Addressing the Rare Word Problem in Neural Machine Translation", ACL 2015,
do to rare words.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from server.text.casing import Casing, casing_of, fold
from server.text.characters import Characters
from server.text.ends import cut_ends, marks_at_ends
from server.text.full_stops import with_stop
from server.text.markup.document import STAND_IN
from server.text.masked import PARTED, Masked, Part
from server.text.number_signs import number_sign
from server.text.numbers import NumberSpan
from server.text.own_parts import NO_OWN_PARTS, OwnParts
from server.text.pairs import without_pairs
from server.text.patterns import find_emphasis, find_parts, is_mark
from server.text.quotes import MARKS, find_quotes, is_quote
from server.text.repeats import sounds_end
from server.text.runs import Run, script_of
from server.text.typography import ordinal_ending

_MARKS_REACH, _WORDS_REACH = 0.35, 0.4  # less, and parts that moved with reason are asked for again; more, and few are
_RANGE = re.compile(r"\s?[-\u2013\u2014/:x\u00d7]\s?")  # between two numbers that are one part
_SPACE = re.compile(r"\s+")
_ORDINAL_ENDING = re.compile(r"(?:st|nd|rd|th)(?![\w<])")  # of a placeholder, as in {n}th
_ESCAPE = re.compile(r"(?<!\\)\\(?=['\"])")  # of a quotation mark in the string of a program
_UNSEEN = "\u200b"  # what stands for it, which no network is shown
_BRACKET = re.compile(r"(?<![^\s!])([(\[])(?=[^\W\d_](?:[^\W\d_]| ))")
_DASH = re.compile(r"(?<=[^\s-])(?:\u2014|--)(?=[^\W\d_])")  # that touches the words on both sides
_NO_QUOTE = 3  # characters that no quotation mark has with its comma; a run of parts that touch may be long
_FIRST_SYMBOL = "\ue000"  # of the carriers that a network has learned
_CLOSING, _OPENING = ".,:;!?%)]}\u201d", "([{\u201c"


@dataclass(frozen=True, slots=True, kw_only=True)
class Masker:
    """Shows one network what it can read.

    Attributes:
        carriers: for each attempt, what stands for the parts of a sentence; empty if nothing is known to be copied.
        characters: that the network knows; None for all.
        folds_capitals: whether it is shown capitals and titles in small letters.
        language: BCP-47 code of its translations.
        own_parts: that a caller wants kept, beside what is kept of every text.
        adapts_from: see `Masked`.
        places_pairs: whether its translations are aligned, so that it is not shown marks round words.
    """

    carriers: tuple[tuple[str, ...], ...] = ()
    characters: Characters | None = None
    folds_capitals: bool = False
    language: str = ""
    own_parts: OwnParts = NO_OWN_PARTS
    adapts_from: str = ""
    places_pairs: bool = False

    @property
    def _has_symbols(self) -> bool:
        """Whether the network has learned symbols, as the built-in ones have."""
        return bool(self.carriers) and self.carriers[0][0] >= _FIRST_SYMBOL

    def mask(self, text: str, attempt: int = 0, numbers: Sequence[NumberSpan] = ()) -> Masked:
        """Returns a sentence as the network is shown it.

        Args:
            text: a sentence, without white space at its ends.
            attempt: how many came before.
            numbers: that are parts, too.
        """
        seen = text if self.characters is None or "\\" not in text else _ESCAPE.sub(_UNSEEN, text)
        runs = self._runs(seen, numbers)
        if self.places_pairs and not attempt:
            bare, pairs = without_pairs(text, runs)
            if pairs and (masked := replace(self, places_pairs=False).mask(bare)).num_fit is None:
                return replace(masked, pairs=pairs)
        start, end, runs = cut_ends(text, runs)
        source = _blanked(seen, runs, start, end)
        carriers = self._carriers(source, attempt) if runs else None
        num_fit = None
        if carriers is not None and len(runs) > len(carriers):
            num_fit = runs[len(carriers)].start
            runs = runs[: len(carriers)]
        parts = [
            self._part(text, run, start, end, "" if carriers is None else carriers[index])
            for index, run in enumerate(runs)
        ]
        pieces, position = [], start
        for run, part in zip(runs, parts, strict=True):
            before, behind = " " * part.touches_left, " " * part.touches_right
            comma = "," if is_quote(part.text) and text[run.start] == "," else ""
            pieces += [self._plain(seen[position : run.start]), before, part.carrier, comma, behind]
            position = run.end
        shown = "".join([*pieces, self._plain(seen[position:end])])
        if ("\u2014" in shown or "--" in shown) and self._has_symbols:
            shown = _DASH.sub(" \u2013 ", shown)
        has_brackets = "(" in shown or "[" in shown
        if has_brackets and self._has_symbols and not attempt and not PARTED.search(text):
            shown = _BRACKET.sub(r"\1 ", shown)
        shown = number_sign(shown, self.language)
        if carriers is None and parts:
            shown = _SPACE.sub(" ", shown).strip()
        casing = casing_of(source) if self.folds_capitals else Casing.PLAIN  # whatever its carriers are
        folded = fold(shown, casing)
        if self._has_symbols and not attempt:
            folded = with_stop(folded, self.language, text[:start])
        for part in parts if casing is not Casing.PLAIN else ():
            folded = folded.replace(part.carrier.lower(), part.carrier) if part.carrier else folded
        return Masked(
            text=folded,
            original=text,
            source=source,
            leading=text[:start],
            trailing=text[end:],
            parts=tuple(parts),
            casing=casing,
            num_fit=num_fit,
            language=self.language,
            attempt=attempt,
            numbers=tuple(numbers),
            adapts_from=self.adapts_from,
        )

    def mask_again(self, last: Masked, missing: Sequence[NumberSpan]) -> Masked | None:
        """Returns a sentence as the network is shown it after an attempt that failed; None if no other is worth making.

        Args:
            last: the attempt.
            missing: numbers that its translation lacks.
        """
        attempt = last.attempt + 1
        if attempt > len(self.carriers):
            return None
        # A number that is cut out seldom finds its place. So the last attempt shows it, and the answer tells of it.
        is_last = attempt == len(self.carriers)
        masked = self.mask(last.original, attempt, () if is_last else (*last.numbers, *missing))
        masked = replace(masked, pairs=last.pairs)
        is_other = masked.parts or (is_last and last.numbers) or masked.text != last.text
        return masked if is_other and masked.num_fit is None and masked.text else None

    def unknown_script(self, text: str) -> str:
        """Returns the script of the first letter that the network does not know, as Unicode names it; "" for none."""
        unknown = self.characters.unknown_in(text) if self.characters is not None else ()
        return next((script_of(letter) for letter in text if letter in unknown and letter.isalpha()), "")

    def _carriers(self, source: str, attempt: int) -> tuple[str, ...] | None:
        """Returns what stands for parts in an attempt, none of which the sentence has; None for nothing."""
        if attempt >= len(self.carriers):
            return None
        return tuple(carrier for carrier in self.carriers[attempt] if carrier not in source) or None

    def _part(self, text: str, run: Run, start: int, end: int, carrier: str) -> Part:
        """Returns a part of a sentence that begins and ends there."""
        left, right = text[run.start - 1 : run.start], text[run.end : run.end + 1]
        part = text[run.start : run.end]
        is_name = part[-3:-2].isidentifier() and not (part[0] == "$" and part[:-2].isupper())  # $path, but not $COUNTth
        may_end = part[:1] in "{[<$%#" and not is_name
        has_ending = may_end and _ORDINAL_ENDING.search(part, max(0, len(part) - 2)) is not None
        return Part(
            text=part[:-2] if has_ending else part,
            start=run.start,
            carrier=carrier,
            place=(run.start - start) / max(1, end - start - (run.end - run.start)),
            reach=self._reach(text, run),
            is_word=run.is_word,
            ending=ordinal_ending(part[-2:], self.language) if has_ending else "",
            touches_left=run.start > start and (left.isalnum() or left in _CLOSING),
            touches_right=run.end < end and (right.isalnum() or right in _OPENING),
        )

    def _reach(self, text: str, run: Run) -> float:
        """Returns how far a part may move: marks and foreign words little, addresses and the like with the grammar."""
        if not run.is_word:
            return _MARKS_REACH
        word = text[run.start : run.end]
        is_foreign = self.characters is not None and bool(self.characters.unknown_in(STAND_IN.sub("", word)))
        return _WORDS_REACH if is_foreign else 1.0

    def _plain(self, text: str) -> str:
        return text if text.isascii() or self.characters is None else self.characters.plain(text)

    def _runs(self, text: str, numbers: Sequence[NumberSpan]) -> list[Run]:
        """Returns all parts of a sentence, in order, apart from each other; what overlaps is one."""
        found = [Run(*span, is_word=True) for span in self.own_parts.find(text)]
        if self.characters is None and not self.carriers:  # nothing is known of the network
            found += [Run(*match.span(), is_word=True) for match in STAND_IN.finditer(text)]
        else:
            found += self._known_runs(text, found, numbers)
        if not found:
            return found
        runs: list[Run] = []
        for run in sorted(found):
            last = runs[-1] if runs else None
            if ending := _ORDINAL_ENDING.match(text, run.end):
                run = Run(run.start, ending.end(), is_word=True)
            is_apart = last is None or run.start > last.end or _is_beside_quote(text, last, run)
            if last and (not is_apart or (numbers and _RANGE.fullmatch(text, last.end, run.start))):
                runs[-1] = Run(last.start, max(last.end, run.end), last.is_word or run.is_word)
            else:
                runs.append(run)
        return runs

    def _known_runs(self, text: str, own: Sequence[Run], numbers: Sequence[NumberSpan]) -> list[Run]:
        """Returns the parts of a sentence that is shown to a network of which something is known, in any order."""
        found = [Run(*span, is_word=not is_mark(text[slice(*span)])) for span in find_parts(text)]
        if end := sounds_end(text):
            found.append(Run(0, end, is_word=True))
        if self.language.startswith("en") and text.startswith("\u00a7"):  # see the top of this file
            found = [run for run in found if run.start]
        if self.carriers and not MARKS.isdisjoint(text):
            found += [Run(*span, is_word=True) for span in find_quotes(text, self._has_symbols)]
        if "*" in text or "_" in text:
            found += [Run(*span, is_word=False) for span in find_emphasis(text)]
        found += [Run(number.start, number.end, is_word=True) for number in numbers]
        found += [Run(*span, is_word=False) for span in marks_at_ends(text)]
        if self.characters is not None:  # a sign within a part takes no word beside the part with it
            parts = sorted([*own, *found])
            found += self.characters.runs(_blanked(text, parts, 0, len(text)) if parts else text)
        return found


NO_MASKING = Masker()


def _is_beside_quote(text: str, first: Run, second: Run) -> bool:
    """Whether two runs touch of which one is a quotation mark, which the translation may write in another way."""
    return first.end == second.start and any(
        is_quote(text[run.start : min(run.end, run.start + _NO_QUOTE)]) for run in (first, second)
    )


def _blanked(text: str, runs: Sequence[Run], start: int, end: int) -> str:
    """Returns a sentence with blanks for its ends and parts, so that places in it are those in the text."""
    if not runs:
        return " " * start + text[start:end]
    pieces, position = [" " * start], start
    for run in runs:
        pieces += [text[position : run.start], " " * (run.end - max(position, run.start))]
        position = max(position, run.end)
    return "".join([*pieces, text[position:end]])
