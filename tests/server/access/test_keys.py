import hashlib
import re
import statistics
import time

import pytest

from server.access.keys import KeyHash, hash_key, key_of, new_key


def test_keys_are_random_and_plain() -> None:
    keys = {new_key() for _ in range(100)}

    assert len(keys) == 100
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{43}", key) for key in keys)


def test_a_hash_is_the_one_of_sha256sum() -> None:
    assert hash_key("hello").hex() == hashlib.sha256(b"hello").hexdigest()
    assert hash_key("hell\xf6") == hashlib.sha256("hell\xf6".encode()).digest()


def test_only_its_own_key_has_the_hash() -> None:
    known = KeyHash(digest=hash_key("one"))

    assert known.is_of(hash_key("one"))
    assert not known.is_of(hash_key("two"))


def test_comparing_takes_the_same_time_wherever_a_difference_is() -> None:
    """Bytes long enough for a compare that stops at the first difference to be found out: it takes 1 % of the time."""
    known = bytes(1 << 20)
    first, last = b"\1" + known[1:], known[:-1] + b"\1"
    key = KeyHash(digest=known)

    def seconds(other: bytes) -> float:
        started = time.process_time()
        assert not key.is_of(other)
        return time.process_time() - started

    rounds = [(seconds(first), seconds(last)) for _ in range(25)]

    early, late = (statistics.median(column) for column in zip(*rounds, strict=True))
    assert 0.5 < early / late < 2.0


@pytest.mark.parametrize(
    ("headers", "key"),
    [
        ({"authorization": "bearer  key "}, "key"),
        ({"authorization": "Basic key", "x-api-key": "other"}, "other"),
        ({"authorization": "Bearer key", "x-api-key": "other"}, "key"),
        ({"authorization": "Bearer "}, ""),
        ({"x-api-key": b"key"}, None),
        ({}, None),
    ],
)
def test_a_key_is_read_from_two_headers(headers: dict[str, str | bytes], key: str | None) -> None:
    assert key_of(headers) == key
