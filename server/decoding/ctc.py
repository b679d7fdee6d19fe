"""The searches that read a translation from the positions of a one-pass network.

The rules are those of `model.ctc_search`, the oracle: a path names a token or the blank for each position, and its
translation is what remains when equal neighbours become one and the blanks are taken out. A sentence has T positions.
Each of them may be the blank, which is column 0, or one of k tokens.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_NONE = -np.inf


@dataclass(frozen=True, slots=True)
class Positions:
    """What the positions of one sentence may be.

    Attributes:
        ids: int64 [T, 1 + k], the blank and then the best tokens of each position, best first. The blank stands among
            these again if it is one of the best.
        log_probs: float [T, 1 + k], their log-probabilities.
    """

    ids: NDArray[np.int64]
    log_probs: NDArray[np.float32]

    @property
    def values(self) -> NDArray[np.float64]:
        """The log-probabilities, with minus infinity where the blank is among the tokens."""
        values = self.log_probs.astype(np.float64)
        values[:, 1:][self.ids[:, 1:] == self.ids[:, :1]] = _NONE
        return values


@dataclass(frozen=True, slots=True)
class Reading:
    """A translation's ids, and its log-probability or that of its best path, in nats; see the search."""

    ids: tuple[int, ...]
    log_prob: float


def best_path(positions: Positions) -> Reading:
    """Returns the translation of the most probable path: greedy search. Logits do in place of log-probabilities."""
    path, blank = positions.ids[:, 1], positions.ids[0, 0]
    is_new = path != blank
    is_new[1:] &= path[1:] != path[:-1]
    return Reading(tuple(path[is_new].tolist()), float(positions.log_probs[:, 1].sum(dtype=np.float64)))


def prefix_beam(positions: Positions, beam_size: int) -> list[Reading]:
    """Returns the most probable translations, at most `beam_size`, best first, by the sum of their paths.

    After each position the `beam_size` most probable beginnings live on. The others are dropped, so their paths are
    missing in the sums. Takes time in O(T * beam_size * k).
    """
    search = _PrefixBeam()
    for ids, values in zip(positions.ids[:, 1:], positions.values, strict=True):
        search.advance(ids, values, beam_size)
    return search.readings()


class _PrefixBeam:
    """The W beginnings of translations that live. Each is a node of a tree, with its parent and its last token."""

    def __init__(self) -> None:
        self._parents, self._tokens = [-1], [-1]  # of each node; the first one is the empty beginning
        self._children: dict[tuple[int, int], int] = {}  # by node and token
        self._nodes = [0]  # of the live beginnings, best first
        self._with_blank, self._without = np.zeros(1), np.full(1, _NONE)  # log-probabilities of the paths by their end

    def advance(self, ids: NDArray[np.int64], values: NDArray[np.float64], most: int) -> None:
        """Adds a position: its tokens int64 [k]; log-probabilities of the blank and of these, float64 [1 + k]."""
        blank, values = values[0], values[1:]
        last = np.array([self._tokens[node] for node in self._nodes])
        total = np.logaddexp(self._with_blank, self._without)
        is_same = last[:, None] == ids  # [W, k]
        grown = np.where(is_same, self._with_blank[:, None], total[:, None]) + values
        stays = self._without + np.where(is_same, values, _NONE).max(axis=1)
        places = {node: place for place, node in enumerate(self._nodes)}
        for place, node in enumerate(self._nodes):  # a beginning that is another one and a token takes its paths
            parent = places.get(self._parents[node])
            if parent is not None and len(column := np.flatnonzero(ids == last[place])):
                stays[place] = np.logaddexp(stays[place], grown[parent, column[0]])
                grown[parent, column[0]] = _NONE
        with_blank = total + blank
        scores = np.concatenate([np.logaddexp(with_blank, stays), grown.ravel()])
        chosen = np.argsort(-scores, kind="stable")[:most]
        chosen = chosen[scores[chosen] > _NONE]
        num_live = len(self._nodes)
        is_old = chosen < num_live
        parents, columns = np.divmod(chosen - num_live, len(ids))
        grown_from = zip(chosen.tolist(), parents.tolist(), ids[columns].tolist(), strict=True)
        self._nodes = [
            self._nodes[i] if i < num_live else self._child(self._nodes[place], token) for i, place, token in grown_from
        ]
        own = np.where(is_old, chosen, 0)
        self._with_blank = np.where(is_old, with_blank[own], _NONE)
        self._without = np.where(is_old, stays[own], scores[chosen])

    def _child(self, parent: int, token: int) -> int:
        node = self._children.setdefault((parent, token), len(self._parents))
        if node == len(self._parents):
            self._parents.append(parent)
            self._tokens.append(token)
        return node

    def readings(self) -> list[Reading]:
        """Returns what lives, best first."""
        totals = np.logaddexp(self._with_blank, self._without).tolist()
        return [Reading(self._ids(node), total) for node, total in zip(self._nodes, totals, strict=True)]

    def _ids(self, node: int) -> tuple[int, ...]:
        ids = []
        while node:
            ids.append(self._tokens[node])
            node = self._parents[node]
        return tuple(reversed(ids))


def exact_length(positions: Positions, num_tokens: int) -> Reading:
    """Returns the translation of exactly `num_tokens` tokens that has the most probable path (Viterbi's algorithm).

    Of all paths with the same number of tokens and the same column at their last position, only the best can go on.
    Logits do in place of log-probabilities. Takes time and memory in O(T * num_tokens). The model's longest source
    bounds both factors.

    Args:
        positions: with at least 3 tokens each, so that every number of tokens up to T has a path.
        num_tokens: at least 0.

    Raises:
        ValueError: no path has so many.
    """
    ids, values = positions.ids.copy(), positions.values
    ids[:, 0] = -1  # so that no token is the blank
    num_positions, width = ids.shape
    best = np.full((num_tokens + 1, width), _NONE)  # of paths that end with a column, by their tokens
    best[0, 0] = 0.0
    came = np.zeros((num_positions, num_tokens + 1, width), np.int8)  # from which column of the position before
    for position in range(num_positions):
        now, before = ids[position], ids[position - 1] if position else np.full(width, -1)
        is_same = now[:, None] == before  # [columns now, columns before]
        is_same[0] = True  # a blank after anything, like a token after itself, is no new token
        stay, grow = (np.where(mask, 0.0, _NONE) for mask in (is_same, ~is_same))
        staying = best[:, None, :] + stay  # [num_tokens + 1, columns now, columns before]
        growing = np.full_like(staying, _NONE)
        growing[1:] = best[:-1, None, :] + grow
        origins = np.maximum(staying, growing)
        came[position] = origins.argmax(axis=2)
        best = origins.max(axis=2) + values[position]
    column = int(best[num_tokens].argmax())
    log_prob = float(best[num_tokens, column])
    if log_prob == _NONE:
        raise ValueError(f"no path over {num_positions} positions has {num_tokens} tokens")
    return Reading(_trace(ids, came, num_tokens, column), log_prob)


def _trace(ids: NDArray[np.int64], came: NDArray[np.int8], count: int, column: int) -> tuple[int, ...]:
    """Returns the tokens of the path that ends with a column and has so many tokens."""
    found = []
    for position in range(len(ids) - 1, -1, -1):
        earlier = int(came[position, count, column])
        if column and (position == 0 or ids[position, column] != ids[position - 1, earlier]):
            found.append(int(ids[position, column]))
            count -= 1
        column = earlier
    return tuple(reversed(found))
