"""What is wrong with somebody's model, all of it at once, and what is worth saying of one that is right."""

from collections.abc import Collection
from dataclasses import dataclass, field

_MAX_SHOWN = 200  # characters of what was found: a file may hold anything
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
        place = f"{self.file}: {self.key}" if self.key else self.file
        text = f"{place}: {shown(self.found)}"
        if self.expected:
            text += f"; expected {self.expected}"
        return f"{text}; {self.remedy}" if self.remedy else text


@dataclass(slots=True)
class Report:
    """Collects faults, and notes for the user.

    Attributes:
        allowed: names of settings and tensors that the user takes to be harmless (`--allow`).
    """

    allowed: Collection[str] = ()
    faults: list[Fault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def fault(self, file: str, key: str = "", *, found: object, expected: str = "", remedy: str = "") -> None:
        """Adds a fault; see `Fault`."""
        one = Fault(file=file, key=key, found=str(found), expected=expected, remedy=remedy)
        if one not in self.faults:
            self.faults.append(one)

    def unknown(self, file: str, key: str, found: object, remedy: str = "") -> None:
        """Adds a fault for something that nothing here reads, unless it is allowed."""
        if key not in self.allowed:
            remedy = remedy or f"if it changes no translation, pass --allow {key}"
            self.fault(file, key, found=found, expected="nothing that is not known here", remedy=remedy)

    def note(self, text: str) -> None:
        """Adds something that the user should know."""
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


def shown(text: str) -> str:
    """Returns a text of a stranger's file fit for a terminal: one line, printable, not too long."""
    plain = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)
    return plain if len(plain) <= _MAX_SHOWN else f"{plain[:_MAX_SHOWN]}..."
