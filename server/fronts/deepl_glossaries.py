"""DeepL's glossaries, of versions 2 and 3, on those that callers keep here.

A glossary of version 3 has dictionaries of several directions; one of version 2 has one. Both versions see the same
glossaries; version 2 sees those with one dictionary alone, as DeepL has it.
"""

import csv
import io
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from babelserve.v1 import glossary_store_pb2 as pb
from server.errors import InvalidRequest
from server.fronts.deepl import Fields, NotHere, Refused, base_code, is_uuid, not_supported, optional, required
from server.fronts.front import check_text

Pairs = Collection[tuple[str, str]]

# Lines of entries of a request. Half, and term banks do not fit; twice that, and reading them keeps a thread for 0.2 s.
_MOST_LINES = 50_000
_NAMES = ("source_lang", "target_lang", "entries", "entries_format")  # fields of a dictionary
_FORM_FIELD = re.compile(r"dictionaries\[(\d{1,4})\](?:\.(\w{1,32})|\[(\w{1,32})\])", re.ASCII)
_WRONG_ENTRIES = "Invalid glossary entries provided"
_TERM_FAULT = re.compile(r"glossary\.dictionaries\[(\d+)\]\.terms\[(\d+)\](?:\.(source|target))?")


def read_id(identity: str) -> str:
    """Returns the id of a path. Raises InvalidRequest if DeepL could not have made it."""
    if not is_uuid(identity):
        raise not_supported("glossary_id")
    return identity.lower()


def read_v2(fields: Fields, pairs: Pairs) -> pb.KeptGlossary:
    """Returns the glossary that a request of version 2 wants to be kept. Raises InvalidRequest."""
    title = required(fields, "name")
    return pb.KeptGlossary(title=title, dictionaries=[read_dictionary(fields, pairs)])


def read_v3(fields: Fields, pairs: Pairs) -> pb.KeptGlossary:
    """Returns the glossary that a request of version 3 wants to be kept. Raises InvalidRequest."""
    title = required(fields, "name")
    dictionaries = read_dictionaries(fields, pairs)
    if not dictionaries:
        raise Refused("dictionaries", "Glossary dictionaries must be provided")
    return pb.KeptGlossary(title=title, dictionaries=dictionaries)


def read_dictionaries(fields: Fields, pairs: Pairs) -> list[pb.Dictionary]:
    """Returns the dictionaries of a request, of JSON or of a form, each of another direction. Raises InvalidRequest."""
    given: list[Any] = []
    for value in fields.get("dictionaries", ()):
        given += value if isinstance(value, list) else [value]
    given += _of_form(fields)
    texts = []
    for index, each in enumerate(given):
        if not isinstance(each, Mapping):
            raise InvalidRequest(f"dictionaries[{index}]", "must be an object")
        names = [name for name in _NAMES if each.get(name) is not None]
        texts.append({name: check_text(f"dictionaries[{index}].{name}", each[name]) for name in names})
    return _read_all(texts, pairs)


def read_dictionary(fields: Fields, pairs: Pairs) -> pb.Dictionary:
    """Returns the dictionary that a request has as its own fields. Raises InvalidRequest."""
    (only,) = _read_all([{name: optional(fields, name) for name in _NAMES}], pairs)
    return only


def read_pair(fields: Fields) -> tuple[str, str]:
    """Returns the direction that a request names. Raises InvalidRequest."""
    return base_code(required(fields, "source_lang")), base_code(required(fields, "target_lang"))


def merged(kept: pb.KeptGlossary, title: str, dictionaries: Iterable[pb.Dictionary]) -> pb.KeptGlossary:
    """Returns a glossary with another title, if that is not empty, and with more terms, which win over older ones."""
    changed = pb.KeptGlossary()
    changed.CopyFrom(kept)
    changed.title = title or kept.title
    found = {_pair(own): own for own in changed.dictionaries}
    for each in dictionaries:
        old = found.get(_pair(each))
        if old is None:
            changed.dictionaries.append(each)
            continue
        targets = {term.source: term.target for term in each.terms}
        for term in old.terms:
            term.target = targets.pop(term.source, term.target)
        for source, target in targets.items():
            old.terms.add(source=source, target=target)
    return changed


def replaced(kept: pb.KeptGlossary, dictionary: pb.Dictionary) -> pb.KeptGlossary:
    """Returns a glossary with a dictionary in the place of that of its direction, if it has one."""
    changed = without(kept, _pair(dictionary), is_needed=False)
    changed.dictionaries.append(dictionary)
    return changed


def without(kept: pb.KeptGlossary, pair: tuple[str, str], *, is_needed: bool = True) -> pb.KeptGlossary:
    """Returns a glossary without a direction's dictionary. Raises NotHere if it has none, unless none is needed."""
    if is_needed:
        _find(kept, pair)
    changed = pb.KeptGlossary(id=kept.id, title=kept.title, revision=kept.revision)
    changed.dictionaries.extend(each for each in kept.dictionaries if _pair(each) != pair)
    return changed


def write_v2(kept: pb.KeptGlossary) -> dict[str, Any]:
    """Returns the description of a glossary with one dictionary. Raises NotHere if it has another number of them."""
    if len(kept.dictionaries) != 1:
        raise NotHere("Glossary not found: it has not one dictionary, so that only version 3 has it")
    (only,) = kept.dictionaries
    return {
        "glossary_id": kept.id,
        "name": kept.title,
        "ready": True,
        **write_dictionary(only),
        "creation_time": _time(kept),
    }


def write_all_v2(kept: pb.ListKeptGlossariesResponse) -> dict[str, Any]:
    """Returns the descriptions of the glossaries that have one dictionary."""
    return {"glossaries": [write_v2(each) for each in kept.glossaries if len(each.dictionaries) == 1]}


def write_v3(kept: pb.KeptGlossary) -> dict[str, Any]:
    """Returns the description of a glossary."""
    return {
        "glossary_id": kept.id,
        "name": kept.title,
        "dictionaries": [write_dictionary(each) for each in kept.dictionaries],
        "creation_time": _time(kept),
    }


def write_dictionary_of(kept: pb.KeptGlossary, pair: tuple[str, str]) -> dict[str, Any]:
    """Returns the description of a glossary's dictionary. Raises NotHere if there is none."""
    return write_dictionary(_find(kept, pair))


def write_dictionary(dictionary: pb.Dictionary) -> dict[str, Any]:
    """Returns the description of a dictionary."""
    source, target = _pair(dictionary)
    return {"source_lang": source, "target_lang": target, "entry_count": dictionary.num_terms}


def write_tsv(kept: pb.KeptGlossary) -> str:
    """Returns the entries of a glossary with one dictionary. Raises NotHere if it has another number of them."""
    write_v2(kept)
    return _tsv(kept.dictionaries[0])


def write_entries(kept: pb.KeptGlossary, fields: Fields) -> dict[str, Any]:
    """Returns the entries of a glossary: of the direction that a request names, else all. Raises TranslationError."""
    names_one = any(optional(fields, name) for name in ("source_lang", "target_lang"))
    dictionaries = [_find(kept, read_pair(fields))] if names_one else kept.dictionaries
    return {
        "dictionaries": [
            dict(zip(("source_lang", "target_lang"), _pair(each), strict=True))
            | {"entries_format": "tsv", "entries": _tsv(each)}
            for each in dictionaries
        ]
    }


def refusal(error: InvalidRequest) -> InvalidRequest:
    """Returns the error that DeepL would answer to a glossary that breaks a rule, instead of ours."""
    words = str(error)
    match = _TERM_FAULT.match(words)
    if match is None:
        return error
    refused = Refused("entries", _WRONG_ENTRIES, f"Key with the index {match[2]}{words[match.end() :]}")
    refused.is_recorded = error.is_recorded
    return refused


def _read_all(given: Sequence[Mapping[str, str]], pairs: Pairs) -> list[pb.Dictionary]:
    entries = [each.get("entries", "") for each in given]
    if sum(each.count("\n") + each.count("\r") for each in entries) > _MOST_LINES:
        raise Refused("entries", _WRONG_ENTRIES, f"There must be at most {_MOST_LINES} lines")
    index_of: dict[tuple[str, str], int] = {}
    found = []
    for index, each in enumerate(given):
        found.append(_read_dictionary(each, pairs))
        if (other := index_of.setdefault(_pair(found[-1]), index)) != index:
            raise InvalidRequest(f"dictionaries[{index}]", f"has the direction that dictionaries[{other}] has already")
    return found


def _read_dictionary(texts: Mapping[str, str], pairs: Pairs) -> pb.Dictionary:
    pair = base_code(texts.get("source_lang", "")), base_code(texts.get("target_lang", ""))
    if pair not in pairs:
        raise Refused("source_lang", "Unsupported glossary source and target language pair")
    entries, kind = texts.get("entries", ""), texts.get("entries_format", "")
    for name, value in (("entries", entries), ("entries_format", kind)):
        if not value:
            raise Refused(name, f"Parameter '{name}' not specified")
    if kind not in ("tsv", "csv"):
        raise not_supported("entries_format")
    dictionary = pb.Dictionary(source_language_code=pair[0], target_language_code=pair[1])
    first_of: dict[str, int] = {}
    for index, source, target in _rows_of_csv(entries, pair) if kind == "csv" else _rows_of_tsv(entries):
        if (first := first_of.setdefault(source, index)) != index:
            raise Refused(
                "entries", _WRONG_ENTRIES, f"Key with the index {index} duplicates key with the index {first}"
            )
        dictionary.terms.add(source=source, target=target)
    if not dictionary.terms:
        raise Refused("entries", _WRONG_ENTRIES, "There is no entry")
    return dictionary


def _rows_of_tsv(entries: str) -> Iterator[tuple[int, str, str]]:
    for index, line in enumerate(entries.removeprefix("\ufeff").split("\n")):
        if line.strip():
            source, tab, target = line.partition("\t")
            if not tab:
                raise Refused("entries", _WRONG_ENTRIES, f"Key with the index {index} misses tab separator")
            yield index, source.strip(), target.strip()


def _rows_of_csv(entries: str, pair: tuple[str, str]) -> Iterator[tuple[int, str, str]]:
    """Yields rows of source, target and, where they are, codes; rows of another direction are passed over."""
    rows = csv.reader(io.StringIO(entries.removeprefix("\ufeff"), newline=""))
    try:
        for index, row in enumerate(rows):
            cells = [cell.strip() for cell in row]
            if len(cells) >= 2 and any(cells) and tuple(map(base_code, cells[2:4])) in ((), ("",), ("", ""), pair):
                yield index, cells[0], cells[1]
    except csv.Error as error:
        raise Refused("entries", _WRONG_ENTRIES, f"The CSV cannot be read: {error}") from None


def _of_form(fields: Fields) -> list[dict[str, Any]]:
    """Returns the dictionaries of fields such as `dictionaries[0].source_lang`, in the order of their numbers."""
    found: dict[int, dict[str, Any]] = {}
    for name, values in fields.items():
        if match := _FORM_FIELD.fullmatch(name):
            found.setdefault(int(match[1]), {})[match[2] or match[3]] = values[0]
    return [found[index] for index in sorted(found)]


def _pair(dictionary: pb.Dictionary) -> tuple[str, str]:
    return base_code(dictionary.source_language_code), base_code(dictionary.target_language_code)


def _find(kept: pb.KeptGlossary, pair: tuple[str, str]) -> pb.Dictionary:
    for each in kept.dictionaries:
        if _pair(each) == pair:
            return each
    raise NotHere("Dictionary not found")


def _tsv(dictionary: pb.Dictionary) -> str:
    return "\n".join(f"{term.source}\t{term.target}" for term in dictionary.terms)


def _time(kept: pb.KeptGlossary) -> str:
    return (
        datetime.fromtimestamp(kept.create_time_ms / 1000, UTC)
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z")
    )
