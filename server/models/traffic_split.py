"""Which version of a model a request goes to, where several share its requests."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from server.models.folder import version_key

PERCENT = 100


@dataclass(frozen=True, slots=True)
class TrafficSplit:
    """Shares of a model's requests, and who has which.

    A key has a bucket from 0 to 99: of the SHA-256 of model, a zero byte and key (UTF-8), the first eight bytes as a
    big-endian number, modulo 100. Versions take buckets in turn, the lowest version first. So a key goes to the same
    version on every replica, and while the highest version's share grows, no key leaves it; of two models, different
    keys are first.

    Attributes:
        shares: version and percent of each, those with 0 left out, the lowest version first; together 100.
    """

    shares: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, percents: Mapping[str, int]) -> "TrafficSplit":
        """Returns the split by versions' percents, which add up to 100."""
        assert sum(percents.values()) == PERCENT, percents
        return cls(tuple((each, percents[each]) for each in sorted(percents, key=version_key) if percents[each]))

    @property
    def main(self) -> str:
        """The version that has most; the lowest of several."""
        return max(self.shares, key=lambda share: share[1])[0]

    def percent(self, version: str) -> int:
        """A version's share, 0 to 100."""
        return dict(self.shares).get(version, 0)

    def choose(self, model: str, key: str) -> str:
        """Returns the version that a request of that key goes to."""
        if len(self.shares) > 1:
            digest = hashlib.sha256(f"{model}\0{key}".encode()).digest()
            bucket = int.from_bytes(digest[:8], "big") % PERCENT
            for version, percent in self.shares[:-1]:
                if bucket < percent:
                    return version
                bucket -= percent
        return self.shares[-1][0]
