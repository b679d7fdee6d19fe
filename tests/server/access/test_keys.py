import hashlib
import re

import pytest

from server.access.keys import hash_key, key_of, new_key


def test_keys_are_random_and_plain() -> None:
    keys = {new_key() for _ in range(100)}

    assert len(keys) == 100
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{43}", key) for key in keys)


def test_a_hash_is_the_one_of_sha256sum() -> None:
    assert hash_key("hello").hex() == hashlib.sha256(b"hello").hexdigest()
    assert hash_key("hell\xf6") == hashlib.sha256("hell\xf6".encode()).digest()


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
