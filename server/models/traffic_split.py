"""Decides which version of a model serves a request, if several versions share its requests."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from server.models.folder import version_key

PERCENT = 100


@dataclass(frozen=True, slots=True)
class TrafficSplit:
    """The shares of a model's requests that its versions have.

    A key has a bucket from 0 to 99: the first eight bytes of the SHA-256 of model, a zero byte and key (UTF-8), as a
    big-endian number, modulo 100. Versions take buckets in turn, the lowest version first. So a key goes to the same
    version on every replica, and while the highest version's share grows, no key leaves it. Other keys come first for
    another model.

    Attributes:
        shares: version and percent of each, without versions of 0 percent, the lowest version first; together 100.
    """

    shares: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, percents: Mapping[str, int]) -> "TrafficSplit":
        """Returns the split for the percents of versions, which add up to 100."""
        assert sum(percents.values()) == PERCENT, percents
        return cls(tuple((each, percents[each]) for each in sorted(percents, key=version_key) if percents[each]))

    @property
    def main(self) -> str:
        """The version with the largest share; the lowest of several."""
        return max(self.shares, key=lambda share: share[1])[0]

    def percent(self, version: str) -> int:
        """Returns a version's share, 0 to 100."""
        return dict(self.shares).get(version, 0)

    def choose(self, model: str, key: str) -> str:
        """Returns the version that serves requests with that key."""
        if len(self.shares) > 1:
            digest = hashlib.sha256(f"{model}\0{key}".encode()).digest()
            bucket = int.from_bytes(digest[:8], "big") % PERCENT
            for version, percent in self.shares[:-1]:
                if bucket < percent:
                    return version
                bucket -= percent
        return self.shares[-1][0]
