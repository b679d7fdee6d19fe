"""`python -m model.ding DICTIONARY CORPUS...`: single words of the Ding dictionary, as a corpus and a table of nouns.

DICTIONARY is Debian's /usr/share/trans/de-en (package trans-de-en, GPL-2.0 or later); the corpora, of English TAB
German lines, say which words and senses are in use. On standard output, by the English word and the commonest sense
first: English TAB German TAB class. Nouns of one class may stand for each other in a sentence: they have one gender and
number, want the same article and have the same endings. Other words have none.
`model/configs/ding_words.en-de.tsv.gz` was made so.
"""

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from model.data import read_corpus
from model.recipe import CorpusConfig

_WORD = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*")
_NOTES = re.compile(r"\{[^}]*\}|\[[^\]]*\]|\([^)]*\)|<[^>]*>")  # on grammar, field, meaning, and see-also
_GENDER = re.compile(r"\{(m|f|n|pl)\}")
_WEAK = re.compile(r"(e|ent|ant|ist|at|oge|nom|ad|Nachbar|Bär|Herr|Mensch|Held)$")  # masculine, but with endings
_UNWANTED = re.compile(r"\[(obs|veraltet|poet|archaic|dated|Ös|Schw|Bayr|Süddt|pej|vulg|slang|humor)")
_FAMILIAR = 400  # times in the corpora, from which on they teach a word better
_CONTEXTS = 60  # more occurrences of a translation do not make it likelier
_MINOR = 4  # times as rare as the first sense beside the same word, and left out
_SENSES = 2  # of an English word


@dataclass(frozen=True, slots=True)
class Entry:
    """A pair of words, how far from the first the entry names them, and the class of the German one."""

    english: str
    german: str
    place: int
    gender: str

    @property
    def word_class(self) -> str:
        """Of what it may stand for: gender, the English article, and whether a German dative plural is the same."""
        is_weak = self.gender == "m" and _WEAK.search(self.german)
        if not self.gender or is_weak or not self.english.islower() or not self.german.istitle():
            return ""
        before_vowel = "-an" if self.english[0] in "aeiou" else ""
        return self.gender + before_vowel + ("-n" if self.gender == "pl" and self.german[-1] in "ns" else "")


def entries(lines: Iterable[str]) -> list[Entry]:
    """Returns the pairs of single words; each word of a side with the first of the other."""
    found: dict[tuple[str, str], Entry] = {}
    for line in lines:
        german, separator, english = line.partition(" :: ")
        sides = german.split("|"), english.split("|")
        if line.startswith("#") or not separator or len(sides[0]) != len(sides[1]):
            continue
        for german_form, english_form in zip(*sides, strict=True):
            for entry in _form_entries(german_form.split(";"), english_form.split(";")):
                found.setdefault((entry.english, entry.german), entry)
    return list(found.values())


def _form_entries(german: list[str], english: list[str]) -> Iterable[Entry]:
    for i, german_text in enumerate(german):
        for j, english_text in enumerate(english):
            words = [_NOTES.sub("", text).strip() for text in (english_text, german_text)]
            is_plain = all(_WORD.fullmatch(word) for word in words)
            if is_plain and not (i and j) and not _UNWANTED.search(german_text + english_text):
                gender = _GENDER.search(german_text)
                yield Entry(words[0], words[1], i + j, gender[1] if gender else "")


def chosen(found: list[Entry], pairs: list[tuple[str, str]]) -> list[Entry]:
    """Returns those of which the pairs have a side, without familiar words, and of each word the commonest senses."""
    english_counts, german_counts, together = _counts(found, pairs)
    by_english: dict[str, list[Entry]] = defaultdict(list)
    for entry in found:
        key = entry.english.lower()
        if english_counts[key] <= _FAMILIAR and english_counts[key] + german_counts[entry.german] > 0:
            by_english[key].append(entry)

    def use(entry: Entry) -> tuple[int, int, int]:
        shared = together[entry.english.lower(), entry.german]
        return -shared, -min(german_counts[entry.german], _CONTEXTS), entry.place

    kept = []
    for key in sorted(by_english):
        senses = sorted(by_english[key], key=use)[:_SENSES]
        most = -use(senses[0])[0]
        kept += [entry for entry in senses if -use(entry)[0] * _MINOR >= most]
    return kept


def _counts(
    found: list[Entry], pairs: list[tuple[str, str]]
) -> tuple[Counter[str], Counter[str], Counter[tuple[str, str]]]:
    """Returns how often the pairs have each English word, in small letters, each German one, and both of an entry."""
    candidates: dict[str, set[str]] = defaultdict(set)
    for entry in found:
        candidates[entry.english.lower()].add(entry.german)
    english_counts: Counter[str] = Counter()
    german_counts: Counter[str] = Counter()
    together: Counter[tuple[str, str]] = Counter()
    for source, target in pairs:
        english, german = set(_WORD.findall(source.lower())), set(_WORD.findall(target))
        english_counts.update(english)
        german_counts.update(german)
        together.update((word, other) for word in english for other in candidates[word] & german)
    return english_counts, german_counts, together


def main() -> None:
    """Writes the words."""
    dictionary, *corpora = map(Path, sys.argv[1:])
    pairs = [pair for path in corpora for pair in read_corpus(CorpusConfig(tsv=path.name), path.parent).pairs]
    last = ""
    for entry in chosen(entries(dictionary.read_text(encoding="utf-8").splitlines()), pairs):
        is_first = entry.english.lower() != last
        last = entry.english.lower()
        print(entry.english, entry.german, entry.word_class if is_first else "", sep="\t")


if __name__ == "__main__":
    main()
