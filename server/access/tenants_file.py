"""The file of tenants and their keys (`--keys`), TOML. docs/guides/secure.md says what an operator does with it.

    [tenants.billing]
    weight = 2.0                                  # share of a busy server against others'; default 1
    priority = "high"                             # the best it may ask for: high, normal (default), low
    quota = { rate = 0.5, burst = 60 }            # seconds of one engine lane: per second, and at once; default none
    common_names = ["billing.example.org"]        # subject of a client certificate
    uris = ["spiffe://example.org/billing"]       # alternative name of a client certificate

    [[tenants.billing.keys]]                      # any number: two while one takes over from the other
    sha256 = "b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9"
    expires = 2027-01-31T00:00:00Z                # default never

All faults are reported at once, and none repeats a hash, in whose place a key may stand by mistake.
"""

import datetime as dt
import itertools
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from typing import Any

from server.access.directory import Account, Directory
from server.access.keys import KeyHash
from server.access.tenants import ANONYMOUS, Priority, Tenant
from server.access.token_bucket import TokenBucket
from server.errors import SettingsError

MAX_TENANTS = 100  # each has series of its own on the metrics page
MAX_KEYS = 1000  # ten for each tenant
MAX_NAME_LENGTH = 256
MAX_BYTES = 256 << 10  # twice what so many tenants and keys need
MAX_DOTS = 32  # in a row of names
_WEIGHTS = (0.01, 100.0)
_RATES = (0.001, 10_000.0)
_BURSTS = (0.01, 1_000_000.0)

_TENANT_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
_SHA256 = re.compile(r"[0-9a-fA-F]{64}")
# Names with dots between them, wherever they stand: tomllib takes quadratic time for these, 0.7 s for 16 KiB.
_QUOTED = rf"""\"(?:[^"\\\n]|\\.){{0,{MAX_NAME_LENGTH}}}\"|'[^'\n]{{0,{MAX_NAME_LENGTH}}}'"""
_DOTTED = re.compile(rf"(?<![\w-])(?:(?:[\w-]+|{_QUOTED})[ \t]*\.[ \t]*){{{MAX_DOTS + 1}}}")

_NO_KEY = KeyHash(digest=b"")  # in place of a faulty one


class _Table:
    """A table of the file: gives its values, and adds what is wrong with them to the faults.

    Args:
        where: its path in the file.
        values: what TOML has there.
        faults: of the whole file.
        known: the names that it may have.
    """

    def __init__(self, where: str, values: Any, faults: list[str], known: tuple[str, ...]) -> None:
        self._where = where
        self._faults = faults
        self._values: dict[str, Any] = values if isinstance(values, dict) else {}
        if not isinstance(values, dict):
            faults.append(f"{where}: must be a table")
        for name in sorted(self._values.keys() - set(known)):
            self.fault(name, "is unknown")

    def has(self, name: str) -> bool:
        return name in self._values

    def fault(self, name: str, text: str) -> None:
        plain = name if name.isascii() and name.isprintable() else ascii(name)
        self._faults.append(f"{self._where}.{plain[:MAX_NAME_LENGTH]}: {text}")

    def table(self, name: str, *known: str) -> "_Table":
        return _Table(f"{self._where}.{name}", self._values[name], self._faults, known)

    def tables(self, name: str, *known: str) -> "Iterator[_Table]":
        for index, each in enumerate(self._list(name)):
            yield _Table(f"{self._where}.{name}[{index}]", each, self._faults, known)

    def number(self, name: str, limits: tuple[float, float], default: float | None = None) -> float:
        value: Any = self._values.get(name, default)
        low, high = limits
        if type(value) in (int, float) and low <= value <= high:  # a bool is no number here
            return float(value)
        self.fault(name, f"must be a number from {low:g} to {high:g}")
        return low

    def priority(self, name: str, default: Priority) -> Priority:
        words = [each.name.lower() for each in Priority]
        value = self._values.get(name, default.name.lower())
        if value in words:
            return Priority(words.index(value))
        self.fault(name, f"must be one of {', '.join(words)}")
        return default

    def texts(self, name: str) -> tuple[str, ...]:
        values = self._list(name)
        if any(not isinstance(each, str) or not 0 < len(each) <= MAX_NAME_LENGTH for each in values):
            self.fault(name, f"must hold texts of 1 to {MAX_NAME_LENGTH} characters")
            return ()
        return tuple(values)

    def digest(self, name: str) -> bytes:
        value = self._values.get(name)
        if isinstance(value, str) and _SHA256.fullmatch(value):
            return bytes.fromhex(value)
        self.fault(name, "must be the 64 hexadecimal digits of a key's hash, as --make-key prints it")
        return _NO_KEY.digest

    def instant(self, name: str) -> float:
        value = self._values.get(name)
        if isinstance(value, dt.datetime) and value.tzinfo is not None:
            return value.timestamp()
        self.fault(name, "must be a date, time and offset, such as 2027-01-31T00:00:00Z")
        return 0.0

    def _list(self, name: str) -> list[Any]:
        value = self._values.get(name, [])
        if isinstance(value, list):
            return value
        self.fault(name, "must be a list")
        return []


def read_tenants(content: bytes) -> Directory:
    """Reads the file.

    Raises:
        SettingsError: every fault.
    """
    if len(content) > MAX_BYTES:
        raise SettingsError([f"--keys: must have at most {MAX_BYTES} bytes, not {len(content)}"])
    try:
        text = content.decode()
        if found := _DOTTED.search(text):
            line = text.count("\n", 0, found.start()) + 1
            raise SettingsError([f"--keys: a name must have at most {MAX_DOTS} dots (at line {line})"])
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # among them UnicodeDecodeError and TOMLDecodeError
        place = re.search(r"\(at [a-z0-9 ,]+\)", str(error))
        raise SettingsError([f"--keys: is no TOML {place[0] if place else ''}".rstrip()]) from None
    tenants = document.get("tenants")
    if document.keys() != {"tenants"} or not isinstance(tenants, dict) or not 1 <= len(tenants) <= MAX_TENANTS:
        raise SettingsError([f"--keys: must have 1 to {MAX_TENANTS} tables [tenants.NAME], and nothing else"])
    faults: list[str] = []
    everybody = _Table("--keys: tenants", tenants, faults, tuple(tenants))
    accounts = [_account(everybody, name) for name in tenants]
    faults += _contradictions(accounts)
    if faults:
        raise SettingsError(faults)
    return Directory(accounts)


def _account(everybody: _Table, name: str) -> Account:
    if not _TENANT_NAME.fullmatch(name) or name == ANONYMOUS.name:
        rule = f'1 to 32 small letters, digits, "-" and "_", and not "{ANONYMOUS.name}"'
        everybody.fault(name, f"a tenant's name must have {rule}")
    table = everybody.table(name, "weight", "priority", "quota", "common_names", "uris", "keys")
    bucket = None
    if table.has("quota"):
        quota = table.table("quota", "rate", "burst")
        bucket = TokenBucket(quota.number("rate", _RATES), quota.number("burst", _BURSTS))
    tenant = Tenant(
        name=name,
        weight=table.number("weight", _WEIGHTS, 1.0),
        priority=table.priority("priority", Priority.NORMAL),
        bucket=bucket,
    )
    keys = tuple(
        KeyHash(digest=each.digest("sha256"), expires=each.instant("expires") if each.has("expires") else float("inf"))
        for each in table.tables("keys", "sha256", "expires")
    )
    return Account(tenant=tenant, keys=keys, common_names=table.texts("common_names"), uris=table.texts("uris"))


def _contradictions(accounts: list[Account]) -> Iterator[str]:
    """Faults between tenants."""
    num_keys = sum(len(each.keys) for each in accounts)
    if num_keys > MAX_KEYS:
        yield f"--keys: must have at most {MAX_KEYS} keys, not {num_keys}"
    for what in ("keys", "common_names", "uris"):
        everything = [(each.tenant.name, getattr(each, what)) for each in accounts]
        counts = Counter(itertools.chain.from_iterable(values for _, values in everything))
        for name, values in everything:
            if any(counts[value] > 1 and value != _NO_KEY for value in values):
                yield f"--keys: tenants.{name}.{what}: one of them stands in the file twice"
