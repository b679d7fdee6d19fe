import random
from typing import Any

import pytest

from server.access import tenants_file
from server.access.directory import Account, PeerNames
from server.access.keys import hash_key, new_key
from server.access.tenants import Priority
from server.access.tenants_file import MAX_BYTES, MAX_KEYS, MAX_TENANTS, read_tenants
from server.errors import SettingsError, Unauthenticated

HASH = hash_key("key").hex()
FULL = f"""
[tenants.billing]
weight = 2
priority = "high"
quota = {{ rate = 0.5, burst = 60 }}
common_names = ["billing.example.org"]
uris = ["spiffe://example.org/billing"]

[[tenants.billing.keys]]
sha256 = "{HASH}"
expires = 2026-01-31T00:00:00Z

[[tenants.billing.keys]]
sha256 = "{hash_key("other").hex().upper()}"

[tenants.search]
"""


def faults(text: str | bytes) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        read_tenants(text if isinstance(text, bytes) else text.encode())
    return caught.value.faults


def account(text: str) -> Account:
    (only,) = read_tenants(text.encode()).accounts
    return only


def test_everything_that_a_tenant_may_have_is_read() -> None:
    directory = read_tenants(FULL.encode())

    billing = directory.accounts[0].tenant
    assert (billing.name, billing.weight, billing.priority) == ("billing", 2.0, Priority.HIGH)
    assert billing.bucket is not None
    assert (billing.bucket.rate, billing.bucket.burst) == (0.5, 60.0)
    assert directory.of_key("other") is billing
    assert directory.of_certificate(PeerNames(common_name="billing.example.org")) is billing
    assert directory.of_certificate(PeerNames(common_name="", uris=("spiffe://example.org/billing",))) is billing
    with pytest.raises(Unauthenticated, match="has expired"):
        directory.of_key("key")


def test_what_is_left_out_has_its_default() -> None:
    search = read_tenants(FULL.encode()).accounts[1]

    assert (search.tenant.weight, search.tenant.priority, search.tenant.bucket) == (1.0, Priority.NORMAL, None)
    assert (search.keys, search.common_names, search.uris) == ((), (), ())


def test_the_example_of_the_docstring_is_a_good_file() -> None:
    lines = (tenants_file.__doc__ or "").splitlines()
    example = "\n".join(line[4:] for line in lines if line.startswith("    "))

    assert account(example).tenant.name == "billing"


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("weight = 0", "weight: must be a number from 0.01 to 100"),
        ("weight = nan", "weight: must be a number from 0.01 to 100"),
        ("weight = true", "weight: must be a number from 0.01 to 100"),
        ('weight = "1"', "weight: must be a number from 0.01 to 100"),
        ('priority = "urgent"', "priority: must be one of high, normal, low"),
        ("priority = []", "priority: must be one of high, normal, low"),
        ("quota = 1", "quota: must be a table"),
        ("quota = { rate = 1 }", "quota.burst: must be a number from 0.01 to 1e+06"),
        ("quota = { rate = 0, burst = 1 }", "quota.rate: must be a number from 0.001 to 10000"),
        ("quota = { rate = 1, burst = 1, per = 1 }", "quota.per: is unknown"),
        ('common_names = "a"', "common_names: must be a list"),
        ("uris = [1]", "uris: must hold texts of 1 to 256 characters"),
        ('uris = [""]', "uris: must hold texts of 1 to 256 characters"),
        ("wieght = 1", "wieght: is unknown"),
        ('"a\\nb" = 1', "'a\\nb': is unknown"),
        ("keys = 1", "keys: must be a list"),
        ("keys = [1]", "keys[0]: must be a table"),
        ("keys = [{ sha256 = 1 }]", "keys[0].sha256: must be the 64 hexadecimal digits of a key's hash"),
        (f'keys = [{{ sha256 = "{HASH}", expires = 2026-01-31 }}]', "keys[0].expires: must be a date, time and offset"),
        (f'keys = [{{ sha256 = "{HASH}", expires = 2026-01-31T00:00:00 }}]', "keys[0].expires: must be a date, time"),
    ],
)
def test_a_fault_says_where_it_is_and_what_would_be_right(line: str, fault: str) -> None:
    found = faults(f"[tenants.a]\n{line}\n")

    assert [each[: len(fault) + 18] for each in found if fault in each] == [f"--keys: tenants.a.{fault}"]


@pytest.mark.parametrize("name", ['"A"', '"a b"', '""', '"a.b"', "anonymous", "a" * 33, '"\\u0000"'])
def test_a_tenants_name_is_plain(name: str) -> None:
    (fault,) = faults(f"[tenants.{name}]")

    assert "a tenant's name must have 1 to 32 small letters" in fault
    assert fault.isprintable()


@pytest.mark.parametrize("text", ["", "tenants = 1", "tenants = {}", "[tenants.a]\n[other]", "[tenant.a]"])
def test_a_file_without_tenants_or_with_anything_else_is_refused(text: str) -> None:
    assert faults(text) == ["--keys: must have 1 to 100 tables [tenants.NAME], and nothing else"]


@pytest.mark.parametrize("name", ["a", '"a"', "'a'", '"\\""', '"a b"'])
@pytest.mark.parametrize("form", ["{}", "[{}]", "[[{}]]", "x = {{ {} = 1 }}", "{} = 1"])
def test_a_name_of_many_dots_is_refused_at_once(name: str, form: str) -> None:
    text = "# tenants\n" + form.format(" . ".join([name] * 30_000))

    assert faults(text) == ["--keys: a name must have at most 32 dots (at line 2)"]


def test_dots_in_values_do_not_count() -> None:
    uris = [f"spiffe://{index}.b.c.example.org/d" for index in range(100)]

    assert account(f"[tenants.a]\nuris = {uris}").uris == tuple(uris)


def test_a_file_that_is_too_long_is_refused() -> None:
    text = "[tenants.a]\n" + "#" * MAX_BYTES

    assert faults(text) == [f"--keys: must have at most 262144 bytes, not {len(text)}"]


def test_what_is_no_toml_is_told_with_its_place() -> None:
    assert faults("[tenants.a]\nweight = \n") == ["--keys: is no TOML (at line 2, column 10)"]
    assert faults(b"\xff") == ["--keys: is no TOML"]
    assert faults("a = " + "[" * 100_000) == ["--keys: is no TOML"]


def test_all_faults_are_listed_at_once() -> None:
    found = faults('[tenants.a]\nweight = 0\nkeys = [{}]\n[tenants.b]\npriority = ""\n[tenants.C]\n')

    assert len(found) == 4


@pytest.mark.parametrize("what", ["common_names", "uris"])
def test_nothing_proves_two_tenants(what: str) -> None:
    found = faults(f'[tenants.a]\n{what} = ["x", "y"]\n[tenants.b]\n{what} = ["x"]\n[tenants.c]\n{what} = ["z"]')

    assert found == [f"--keys: tenants.{name}.{what}: one of them stands in the file twice" for name in "ab"]


def test_no_key_stands_twice() -> None:
    key = f'[[tenants.a.keys]]\nsha256 = "{HASH}"\n'
    expiring = f"{key}expires = 2027-01-31T00:00:00Z\n"

    for twice in (key * 2, key + expiring):
        assert faults(twice) == ["--keys: tenants.a.keys: one of them stands in the file twice"]
    assert faults(key + expiring.replace("tenants.a", "tenants.b")) == [
        f"--keys: tenants.{name}.keys: one of them stands in the file twice" for name in "ab"
    ]


def test_there_are_so_many_tenants_and_keys_at_most() -> None:
    tenants = [f"[tenants.t{index}]" for index in range(MAX_TENANTS + 1)]
    keys = [f'[[tenants.a.keys]]\nsha256 = "{index:064}"' for index in range(MAX_KEYS + 1)]

    assert len(read_tenants("\n".join(tenants[1:]).encode()).accounts) == MAX_TENANTS
    assert len(account("\n".join(keys[1:])).keys) == MAX_KEYS
    assert faults("\n".join(tenants)) == ["--keys: must have 1 to 100 tables [tenants.NAME], and nothing else"]
    assert faults("\n".join(keys)) == ["--keys: must have at most 1000 keys, not 1001"]


def test_a_key_in_the_place_of_its_hash_is_not_repeated() -> None:
    key = new_key()

    (fault,) = faults(f'[[tenants.a.keys]]\nsha256 = "{key}"\n')

    assert key not in fault
    assert "as --make-key prints it" in fault


def mutated(text: bytes, chance: random.Random) -> bytes:
    """Some bytes or whole lines dropped, doubled, moved or changed."""
    pieces: list[Any] = text.splitlines(keepends=True) if chance.random() < 0.5 else [bytes([b]) for b in text]
    for _ in range(chance.randint(1, 6)):
        at, other = chance.randrange(len(pieces)), chance.randrange(len(pieces))
        change = chance.randrange(4)
        if change == 0:
            pieces[at] = b""
        elif change == 1:
            pieces[at] *= 2
        elif change == 2:
            pieces[at], pieces[other] = pieces[other], pieces[at]
        else:
            pieces[at] = bytes([chance.randrange(256)]) + pieces[at][1:]
    return b"".join(pieces)


def test_whatever_is_in_the_file_it_is_read_or_refused_in_printable_words() -> None:
    chance = random.Random(14)
    faults: list[str] = []
    num_read = 0

    for _ in range(3000):
        try:
            num_read += 1 <= len(read_tenants(mutated(FULL.encode(), chance)).accounts) <= 3
        except SettingsError as error:
            faults += error.faults

    assert num_read > 100
    assert len(faults) > 100
    assert [fault for fault in faults if not (fault.startswith("--keys: ") and fault.isprintable())] == []
    assert [fault for fault in faults if HASH in fault] == []
