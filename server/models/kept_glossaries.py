"""Glossaries that callers keep on the server, in memory: each belongs to a tenant, and no other tenant sees it.

A dictionary, which is the terms of one direction, is compiled once, on a thread of low priority. Requests name it as
they name the glossaries of files.
"""

import functools
import hashlib
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from server.bundle.codes import canonical_code
from server.errors import GlossaryNotFound, InvalidRequest, PreconditionFailed
from server.text.glossary import NamedGlossary
from server.text.term_table import Term, TermTable, phrase_fault, words_of
from server.threads import LANE_NICENESS, be_nice, whole

MAX_GLOSSARIES = 1000  # of a tenant, as DeepL has it; half, and a script that makes one for each customer stops
# Memory of terms, by `_need`. Half, and a dictionary of 50,000 terms does not fit. Twice that, and hostile tenants take
# a quarter of 1 GiB.
TENANT_BYTES, ALL_BYTES = 32 << 20, 128 << 20
_MAX_TITLE_CHARACTERS = 1024
_DICTIONARY_BYTES = 1 << 10  # of a dictionary, beside its terms
_TERM_BYTES = 250  # of a term, beside its characters and words


@dataclass(frozen=True, slots=True)
class Dictionary:
    """The terms of one direction.

    Attributes:
        terms: targets by sources, in the caller's order.
        compiled: under the name that requests may name.
        num_bytes: that it takes, about.
    """

    terms: Mapping[str, str]
    compiled: NamedGlossary
    num_bytes: int


@dataclass(frozen=True, slots=True)
class GivenDictionary:
    """A dictionary as a caller gives it: codes and terms, unchecked, sources maybe twice. Terms are read once."""

    source: str
    target: str
    terms: Iterable[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptGlossary:
    """A glossary.

    Attributes:
        identity: its UUID.
        title: for people.
        create_time: of `time.time`.
        revision: one more with each change.
        dictionaries: each of another direction.
    """

    identity: str
    title: str
    create_time: float
    revision: int
    dictionaries: tuple[Dictionary, ...]

    @property
    def num_bytes(self) -> int:
        """What its terms take, about."""
        return sum(each.num_bytes for each in self.dictionaries)


class KeptGlossaries:
    """Keeps glossaries, on the event loop's thread. `tenant` is a tenant's name."""

    def __init__(self) -> None:
        self._kept: dict[str, dict[str, KeptGlossary]] = {}
        self._num_bytes: Counter[str] = Counter()  # of each tenant's glossaries
        self._thread: ThreadPoolExecutor | None = None

    async def put(
        self, tenant: str, title: str, given: Sequence[GivenDictionary], *, identity: str = "", revision: int = 0
    ) -> KeptGlossary:
        """Keeps a glossary, and returns it.

        Args:
            tenant: whose it is.
            title: for people.
            given: its new dictionaries, which replace the old ones.
            identity: of the one that it replaces; empty for a new one.
            revision: that this one must have; 0 for any.

        Raises:
            InvalidRequest: the title or a dictionary breaks a rule.
            GlossaryNotFound: there is none to be replaced.
            PreconditionFailed: there is no room, or it has another revision.
        """
        _check_title(title)
        self._find_old(tenant, identity, revision)
        chosen = identity or str(uuid.uuid4())
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "glossary-compiler", functools.partial(be_nice, LANE_NICENESS))
        compiled = await whole(self._thread.submit(_compile_all, chosen, given))
        old = self._find_old(tenant, identity, revision)  # it may have changed meanwhile
        kept = KeptGlossary(
            identity=chosen,
            title=title,
            create_time=old.create_time if old else time.time(),
            revision=old.revision + 1 if old else 1,
            dictionaries=compiled,
        )
        more = kept.num_bytes - (old.num_bytes if old else 0)
        self._check_room(tenant, more, is_new=old is None)
        self._kept.setdefault(tenant, {})[chosen] = kept
        self._num_bytes[tenant] += more
        return kept

    def get(self, tenant: str, identity: str) -> KeptGlossary:
        """Returns a glossary. Raises GlossaryNotFound."""
        found = self._kept.get(tenant, {}).get(identity)
        if found is None:
            raise GlossaryNotFound("id: is of no glossary that this caller keeps here; ListKeptGlossaries has all")
        return found

    def all_of(self, tenant: str) -> list[KeptGlossary]:
        """Returns a tenant's glossaries, the oldest first."""
        return list(self._kept.get(tenant, {}).values())

    def delete(self, tenant: str, identity: str) -> None:
        """Forgets a glossary. Raises GlossaryNotFound."""
        self._num_bytes[tenant] -= self.get(tenant, identity).num_bytes
        del self._kept[tenant][identity]
        if not self._kept[tenant]:
            del self._kept[tenant], self._num_bytes[tenant]

    def named(self, tenant: str, name: str) -> NamedGlossary | None:
        """Returns the dictionary that a request of a tenant names; None if there is none of that name."""
        found = self._kept.get(tenant, {}).get(name.partition(".")[0])
        return (
            next((each.compiled for each in found.dictionaries if each.compiled.name == name), None) if found else None
        )

    def _find_old(self, tenant: str, identity: str, revision: int) -> KeptGlossary | None:
        if not identity:
            return None
        old = self.get(tenant, identity)
        if revision not in (0, old.revision):
            raise PreconditionFailed(
                f"revision: must be {old.revision}, not {revision}: the glossary has changed since"
            )
        return old

    def _check_room(self, tenant: str, more: int, *, is_new: bool) -> None:
        """Raises PreconditionFailed if there is no room for a new glossary, or for so many bytes more."""
        if is_new and len(self._kept.get(tenant, ())) >= MAX_GLOSSARIES:
            raise PreconditionFailed(f"a tenant must have at most {MAX_GLOSSARIES} glossaries; it has as many already")
        if self._num_bytes[tenant] + more > TENANT_BYTES:
            raise PreconditionFailed(f"a tenant's glossaries must take at most {TENANT_BYTES >> 20} MiB")
        if self._num_bytes.total() + more > ALL_BYTES:
            raise PreconditionFailed(f"the glossaries of all callers must take at most {ALL_BYTES >> 20} MiB")


def _check_title(title: str) -> None:
    if not title.strip() or len(title) > _MAX_TITLE_CHARACTERS:
        message = f"must have 1 to {_MAX_TITLE_CHARACTERS} characters, not all white space, not {len(title)}"
        raise InvalidRequest("glossary.title", message)


def _compile_all(identity: str, given: Sequence[GivenDictionary]) -> tuple[Dictionary, ...]:
    compiled: list[Dictionary] = []
    first_of: dict[str, int] = {}
    num_bytes = 0
    for index, each in enumerate(given):
        field = f"glossary.dictionaries[{index}]"
        dictionary = _compile(field, identity, each, TENANT_BYTES - num_bytes)
        num_bytes += dictionary.num_bytes
        if (other := first_of.setdefault(dictionary.compiled.name, index)) != index:
            raise InvalidRequest(field, f"has the direction that glossary.dictionaries[{other}] has already")
        compiled.append(dictionary)
    return tuple(compiled)


def _compile(field: str, identity: str, given: GivenDictionary, room: int) -> Dictionary:
    source, target = (_code(f"{field}.{name}_language_code", getattr(given, name)) for name in ("source", "target"))
    if source == target:
        raise InvalidRequest(f"{field}.target_language_code", "must be another language than the source")
    terms: dict[str, str] = {}
    first_of: dict[str, int] = {}
    table = TermTable()
    digest = hashlib.sha256(f"{source}\n{target}".encode())
    num_bytes = _DICTIONARY_BYTES
    for index, pair in enumerate(given.terms):
        for name, form in zip(("source", "target"), pair, strict=True):
            if fault := phrase_fault(form):
                raise InvalidRequest(f"{field}.terms[{index}].{name}", fault)
        own, other = pair
        if (first := first_of.setdefault(own, index)) != index:
            raise InvalidRequest(f"{field}.terms[{index}]", f"has the source that {field}.terms[{first}] has already")
        num_bytes += _need(own, other)
        if num_bytes > room:
            raise InvalidRequest(f"{field}.terms", f"must take at most {TENANT_BYTES >> 20} MiB with all others")
        terms[own] = other
        table.add(Term((own,), (other,)))
        digest.update(f"\n{own}\t{other}".encode())
    if not terms:
        raise InvalidRequest(f"{field}.terms", "must be at least 1, not 0")
    name = f"{identity}.{source}-{target}"
    compiled = NamedGlossary(name, source, target, digest.hexdigest()[:12], table)
    return Dictionary(terms, compiled, num_bytes)


def _code(field: str, code: str) -> str:
    standard = canonical_code(code) if len(code) <= 32 else None
    if standard is None:
        raise InvalidRequest(field, "must be a BCP-47 code")
    return standard


def _need(source: str, target: str) -> int:
    """Returns about how many bytes a term takes: its beginnings are keys of tables (`TermTable`)."""
    num_bytes = len(source.encode())
    return _TERM_BYTES + len(words_of(source)) * (60 + num_bytes) + 4 * (num_bytes + len(target.encode()))
