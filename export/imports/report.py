"""What is wrong with somebody's model, all of it at once, and what is worth saying of one that is right."""

import itertools
import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from model.command import printable

_MAX_SHOWN = 200  # characters of what was found: a file may hold anything
_MAX_LINE = 1000  # characters of a whole fault or note
_FEW = 12  # items of a list or mapping that are shown
_MAX_FAULTS = 40  # that are named


class ImportFault(Exception):
    """The model cannot be imported; `str()` lists every fault, one a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing that is wrong, and where.

    Attributes:
        file: name in the model's directory.
        key: of the setting or tensor; empty for the file as a whole.
        found: what is there.
        expected: what would be right; may be empty.
        remedy: what the user can do; may be empty.
    """

    file: str
    key: str = ""
    found: str
    expected: str = ""
    remedy: str = ""

    def __str__(self) -> str:
        place = f"{shown(self.file)}: {shown(self.key)}" if self.key else shown(self.file)
        text = f"{place}: {shown(self.found)}"
        if self.expected:
            text += f"; expected {self.expected}"
        return shown(f"{text}; {self.remedy}" if self.remedy else text, _MAX_LINE)


@dataclass(slots=True)
class Report:
    """Collects faults, and notes for the user.

    Attributes:
        allowed: names of settings and tensors that the user takes to be harmless (`--allow`).
        faults: each once, in order.
        notes: one line each.
    """

    allowed: Collection[str] = ()
    faults: list[Fault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _known: set[Fault] = field(default_factory=set)  # a file may have a hundred thousand of them

    def fault(self, file: str, key: str = "", *, found: object, expected: str = "", remedy: str = "") -> None:
        """Adds a fault; see `Fault`."""
        one = Fault(file=file, key=key, found=str(found), expected=expected, remedy=remedy)
        if one not in self._known:
            self._known.add(one)
            self.faults.append(one)

    def unknown(self, file: str, key: str, found: object, remedy: str = "") -> None:
        """Adds a fault for something that nothing here reads, unless it is allowed."""
        if key not in self.allowed:
            remedy = remedy or f"if it changes no translation, pass --allow {shlex.quote(shown(key))}"
            self.fault(file, key, found=found, expected="nothing that is not known here", remedy=remedy)

    def note(self, text: str) -> None:
        """Adds something that the user should know."""
        text = shown(text, _MAX_LINE)
        if text not in self.notes:
            self.notes.append(text)

    def check(self) -> None:
        """Ends the import if anything is wrong so far.

        Raises:
            ImportFault: with every fault.
        """
        if not self.faults:
            return
        lines = [str(fault) for fault in self.faults[:_MAX_FAULTS]]
        if len(self.faults) > _MAX_FAULTS:
            lines.append(f"and {len(self.faults) - _MAX_FAULTS} faults more")
        raise ImportFault("\n".join(lines))


def shown(text: str, most: int = _MAX_SHOWN) -> str:
    """Returns a text of a stranger's file fit for a terminal: one line, printable, at most so many characters."""
    return printable(text) if len(text) <= most else f"{printable(text[:most])}..."


def described(value: Any, depth: int = 2) -> str:
    """Returns how a value of a stranger's file begins, whatever its size and depth; objects are named by their class.

    A file of torch may hold lists that contain themselves or each other many times, so that `repr` would never end.
    """
    if isinstance(value, str | bytes):
        return repr(value[:_MAX_SHOWN])
    if isinstance(value, Mapping | list | tuple) and depth:
        parts = value.items() if isinstance(value, Mapping) else ((None, each) for each in value)
        few = [
            described(each, depth - 1) if key is None else f"{described(key, 0)}: {described(each, depth - 1)}"
            for key, each in itertools.islice(parts, _FEW)
        ]
        text = ", ".join([*few, "..."] if len(value) > _FEW else few)
        return f"{{{text}}}" if isinstance(value, Mapping) else f"[{text}]"
    is_small = value is None or type(value) in (bool, float) or (type(value) is int and abs(value) < 2**128)
    return repr(value) if is_small else type(value).__name__


def keys_of(document: Any) -> str:
    """Returns the first keys of a mapping, or the class of anything else."""
    if not isinstance(document, Mapping):
        return type(document).__name__
    return ", ".join(name_of(key) for key in itertools.islice(document, _FEW)) or "nothing"


def name_of(key: Any) -> str:
    """Returns the key of a mapping as a text."""
    return key if isinstance(key, str) else described(key)
