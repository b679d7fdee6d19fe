"""API keys: random, kept as hashes only.

A plain SHA-256 is enough: a key has 256 random bits, so there is nothing that a slow hash would protect from guessing.
"""

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

_KEY_BYTES = 32
_BEARER = "bearer "


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyHash:
    """What is known of a key. Two are equal if they are hashes of the same key, whenever that expires.

    Attributes:
        digest: its SHA-256.
        expires: instant of `time.time` from which it is refused; infinite for never.
    """

    digest: bytes
    expires: float = field(default=float("inf"), compare=False)


def new_key() -> str:
    """Returns a random key of 43 letters, digits, "-" and "_"."""
    return secrets.token_urlsafe(_KEY_BYTES)


def hash_key(key: str) -> bytes:
    """Returns a key's SHA-256, 32 bytes."""
    return hashlib.sha256(key.encode()).digest()


def key_of(headers: Mapping[str, str | bytes]) -> str | None:
    """Returns the key that came as `authorization: Bearer KEY`, `x-api-key` or `x-goog-api-key`, or None if none did.

    Args:
        headers: of a call, or its metadata; names in lower case.
    """
    bearer, key = headers.get("authorization"), headers.get("x-api-key", headers.get("x-goog-api-key"))
    if isinstance(bearer, str) and bearer[: len(_BEARER)].lower() == _BEARER:
        return bearer[len(_BEARER) :].strip()
    return key if isinstance(key, str) else None
