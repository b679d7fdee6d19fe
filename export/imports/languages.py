"""A model's own names of languages, made BCP-47 codes."""

import itertools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import langcodes

from export.imports.report import Report
from server.bundle.codes import CodeTable, canonical_code
from server.bundle.languages import Ids, LanguagePair

# What OPUS-MT calls a side of several languages: not a language, though some look like one.
_GROUPS_WORDS = """
    mul roa gem gmw gmq sla zle zlw zls cel fiu trk tut inc ine iir afa bnt bat itc romance scandinavia celtic north
    alv aav cau cpf cpp crp cus dra euq grk map mkh nic nah phi poz pqe sal sem sit sai sqj ssa urj wak zhx ber cai
    ccs cdd khi ngf
"""
_GROUPS = frozenset(_GROUPS_WORDS.split())
# What stands ahead of the languages: mt and big are codes, too.
_OPUS_MT = re.compile(r".*opus-mt-(?:tc-(?:base|big)-)?", re.IGNORECASE)
_MAX_NAMED = 12
_MAX_CODE_CHARACTERS = 64
_MAX_LANGUAGES = 2000  # names of one file: the models of most languages have some 400; so many take half a second


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenLanguages:
    """What the user said of the languages (`--source`, `--target`): BCP-47 codes; empty for what the model says."""

    source: tuple[str, ...] = ()
    target: tuple[str, ...] = ()


def bcp47(name: str) -> str | None:
    """Returns the canonical code of what a model calls a language, such as deu_Latn or pt_XX; None if it is none."""
    if len(name) > _MAX_CODE_CHARACTERS:
        return None
    parts = [part for part in name.replace("-", "_").split("_") if part != "XX"]
    if not parts or not all(part.isascii() and part.isalnum() for part in parts) or parts[0].lower() in _GROUPS:
        return None
    return canonical_code("-".join(parts)) if re.fullmatch(r"[a-zA-Z]{2,3}", parts[0]) else None


def by_code(names: Mapping[str, str], file: str, report: Report) -> dict[str, str]:
    """Returns the model's token of each language by its code.

    Args:
        names: the model's token by the model's name of the language.
        file: where they stand, for notes.
        report: gets a note of what has no code, or one that another has already; a fault if there are too many.
    """
    if len(names) > _MAX_LANGUAGES:
        report.fault(file, found=f"{len(names)} names of languages", expected=f"at most {_MAX_LANGUAGES}")
        return {}
    found: dict[str, str] = {}
    left_out = []
    for name, token in names.items():
        code = bcp47(name)
        if code is None or code in found:
            left_out.append(name if code is None else f"{name} ({code} is {found[code]} already)")
        else:
            found[code] = token
    if left_out:
        listed = ", ".join(left_out[:_MAX_NAMED]) + (" ..." if len(left_out) > _MAX_NAMED else "")
        report.note(f"{file}: languages without a BCP-47 code of their own are left out: {listed}")
    return found


def choose(side: str, given: Iterable[str], names: Iterable[str], place: str, report: Report) -> tuple[str, ...]:
    """Returns the codes of one side: those given, or else those that the model names.

    Args:
        side: "source" or "target".
        given: by the user.
        names: the model's own; what is no language, such as a group of them, does not count.
        place: file that the names are from.
        report: gets a fault if there is no code, or one that is none.
    """
    codes = []
    for name in given:
        code = bcp47(name)
        if code is None:
            report.fault(f"--{side}", found=name, expected="a BCP-47 code such as de or zh-Hant")
        else:
            codes.append(code)
    names = tuple(itertools.islice(names, _MAX_LANGUAGES))
    if not codes:
        codes = [code for code in map(bcp47, names) if code is not None]
    if not codes:
        found = f"{side} language {', '.join(names[:_MAX_NAMED])}" if names else f"nothing about the {side} language"
        report.fault(place, found=found, expected="a language", remedy=f"say which: --{side} CODE ...")
    return tuple(dict.fromkeys(codes))


def choose_among(side: str, given: tuple[str, ...], known: Iterable[str], report: Report) -> tuple[str, ...]:
    """Returns the codes of one side of a model that knows many: all, or those that the user has given."""
    known = tuple(known)
    if not given:
        return known
    table = CodeTable(known)
    chosen = {}
    for code in given:
        found = table.find(code)
        if found is None:
            near = table.near(code) or known[:_MAX_NAMED]
            report.fault(f"--{side}", found=code, expected=f"a language that the model has, such as {', '.join(near)}")
        else:
            chosen[found] = True
    return tuple(chosen)


def language_pairs(sources: Iterable[str], targets: Iterable[str], source_prefix: Ids = ()) -> tuple[LanguagePair, ...]:
    """Returns every direction from one of the sources into another language of the targets.

    Args:
        sources, targets: codes, which `choose` has returned.
        source_prefix: of each pair.
    """
    sides = itertools.product(sources, targets)
    return tuple(LanguagePair(source=one, target=two, source_prefix=source_prefix) for one, two in sides if one != two)


def pair_in_name(directory: Path) -> tuple[str, str] | None:
    """Returns the languages in a directory's name, such as opus-mt-en-de-v2 or ende.tiny; None unless they are clear.

    Two codes of two letters that stand together go first, then two of which one has three, then `joined_pair`.
    """
    name = directory.resolve().name
    words = re.split("[-_.]", _OPUS_MT.sub("", name))
    if any(len(word) == 4 and langcodes.tag_is_valid(f"und-{word}") for word in words):
        return None  # the script of one of them: zh-Hant is not zh
    found = [pair for pair in itertools.pairwise(words) if pair[0] != pair[1] and all(map(_is_known, pair))]
    found = [pair for pair in found if len("".join(pair)) == 4] or found
    if not found:
        return joined_pair(name)
    return found[0] if len(found) == 1 else None


def joined_pair(name: str) -> tuple[str, str] | None:
    """Returns the languages of a word such as ende in a name such as model.ende.bin; None unless they are clear.

    One of them must be English, as in all models of Bergamot and Mozilla: too many other words are two codes.
    """
    words = [(word[:2], word[2:]) for word in re.split("[-_.]", name) if len(word) == 4]
    found = [pair for pair in words if pair[0] != pair[1] and "en" in pair and all(map(_is_known, pair))]
    return found[0] if len(set(found)) == 1 else None


def _is_known(word: str) -> bool:
    """Whether a word is a code of a language, or a name of two or three letters that OPUS-MT has for several."""
    return 2 <= len(word) <= 3 and (word.lower() in _GROUPS or langcodes.tag_is_valid(word))
