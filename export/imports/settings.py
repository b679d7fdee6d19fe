"""A configuration file of a model, read key by key: what nobody has read in the end is a fault."""

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from export.imports.formats.json_files import MAX_SETTINGS_BYTES, read_json, read_object
from export.imports.formats.tensors import FormatError
from export.imports.report import Report, described


class ForeignSettings:
    """The keys and values of one file.

    Args:
        file: its name, for faults.
        values: what it holds.
        report: gets the faults.
    """

    def __init__(self, file: str, values: dict[str, Any], report: Report) -> None:
        self.file = file
        self.values = values
        self._report = report
        self._read: set[str] = set()

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def whole(self, key: str, default: int | None = None, *, least: int = 0, most: int = 2**20) -> int:
        """Returns a whole number; where it is wrong, or missing without a default, there is a fault and `least`."""
        value = self.get(key, default)
        if type(value) is float and value.is_integer():
            value = int(value)
        if type(value) is not int or not least <= value <= most:
            self.fault(key, f"a whole number from {least} to {most}")
            return least
        return value

    def number(self, key: str, default: float, *, least: float, most: float) -> float:
        """Returns a number likewise."""
        value = self.get(key, default)
        if type(value) not in (int, float) or not least <= value <= most:
            self.fault(key, f"a number from {least} to {most}")
            return default
        return float(value)

    def flag(self, key: str, default: bool) -> bool:
        """Returns true or false; null is the default."""
        value = self.get(key, default)
        if type(value) is not bool:
            self.fault(key, "true or false")
            return default
        return value

    def text(self, key: str, default: str = "") -> str:
        """Returns a text."""
        value = self.get(key, default)
        if type(value) is not str:
            self.fault(key, "a text")
            return default
        return value

    def expect(self, key: str, *accepted: Any, remedy: str = "") -> None:
        """Notes a fault unless a key is absent, null or one of the values that change nothing."""
        value = self.get(key, None)
        if value is not None and not any(type(value) is type(each) and value == each for each in accepted):
            self.fault(key, " or ".join(map(repr, accepted)) if accepted else "nothing", remedy)

    def get(self, key: str, default: Any) -> Any:
        """Returns a value as it is; null is the default."""
        self._read.add(key)
        value = self.values.get(key)
        return default if value is None else value

    def fault(self, key: str, expected: str, remedy: str = "") -> None:
        """Notes a fault of a key."""
        found = described(self.values[key]) if key in self.values else "missing"
        self._report.fault(self.file, key, found=found, expected=expected, remedy=remedy)

    def finish(self, harmless: Collection[str] = ()) -> None:
        """Notes a fault for every key that nobody has read, but for those that change no translation."""
        for key in sorted(self.values.keys() - self._read - set(harmless)):
            if self.values[key] is not None:
                self._report.unknown(self.file, key, described(self.values[key]))


def read_settings(directory: Path, file: str, report: Report, *, is_optional: bool = False) -> ForeignSettings:
    """Reads a JSON file of settings; a fault makes it an empty one."""
    values: dict[str, Any] = {}
    if not (directory / file).exists():
        if not is_optional:
            report.fault(file, found="missing", expected="a file of the model")
        return ForeignSettings(file, values, report)
    try:
        values = read_object(read_json(directory / file, MAX_SETTINGS_BYTES))
    except FormatError as error:
        report.fault(file, found=error)
    return ForeignSettings(file, values, report)


def missing_files(directory: Path, names: Iterable[str], report: Report, remedy: str) -> bool:
    """Notes a fault for each file that is not there; returns whether any is."""
    missing = [name for name in names if not (directory / name).is_file()]
    for name in missing:
        report.fault(name, found="missing", expected="a file of the model", remedy=remedy)
    return bool(missing)
