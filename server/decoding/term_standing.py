"""Where a beam stands with the terms of its sentence, and what becomes of it with its next token."""

from collections.abc import Set as AbstractSet
from functools import cached_property
from typing import NamedTuple

from server.decoding.term_trie import TermTrie, Written

# In nats, for each term that a beam has written or is in. With half of it, terms come late, behind what they
# should replace. With twice as much, they come early.
_BONUS = 3.0


class Ahead(NamedTuple):
    """What becomes of a beam with its next token.

    Attributes:
        leading: tokens that begin a term or go on with one. `TermTrie.after` says how the beam stands behind them.
        special: the leading tokens, the tokens that `TermTrie.repeats` may forbid, and eos.
        usual: how the beam stands behind begins of words, and behind parts of words, that are not `leading`; see
            `TermTrie.usual`. None if none of them changes how it stands.
        wanted: tokens that bring it nearer to the terms that it lacks; all are `leading`.
        may_join: whether its last word may grow into a longer one that has a term.
        is_bound: whether `TermTrie.forbids` may forbid tokens.
    """

    leading: AbstractSet[int]
    special: AbstractSet[int]
    usual: "tuple[Standing, Standing] | None"
    wanted: list[int]
    may_join: bool
    is_bound: bool


class Standing:
    """Where a beam stands with its terms.

    Most tokens leave that as it is. So `ahead` is found when it is first asked for, and kept for all further steps.

    Args:
        written: of the terms.
        terms: of the sentence.

    Attributes:
        written: as given.
        gain: what is added to the beam's log-probability when beams are compared: a bonus for terms, and what their
            tokens are spared.
        level: see `TermTrie.level`.
    """

    def __init__(self, written: Written, terms: TermTrie) -> None:
        self._terms = terms
        self.written = written
        self.gain = _BONUS * (written.done.bit_count() + (written.node > 0)) - written.spared - written.spared_here
        self.level = terms.level(written)

    @cached_property
    def ahead(self) -> Ahead:
        """What becomes of the beam with its next token."""
        terms, written = self._terms, self.written
        leading, usual = terms.leading(written), None
        if written.node:  # else it would be this standing: a cycle, which keeps the trie until the collector runs
            of_word, of_part = terms.usual(written)
            in_word = Standing(of_part, terms)
            usual = in_word if of_word is of_part else Standing(of_word, terms), in_word
        special, is_bound = leading | terms.checked, written.node in terms.bound
        return Ahead(leading, special, usual, terms.wanted(written), terms.may_join(written), is_bound)
