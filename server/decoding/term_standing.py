"""Where a beam stands with the terms of its sentence, and what becomes of it with its next token."""

from server.decoding.term_trie import Ahead, TermTrie, Written

# In nats, for each term that a beam has written or is in. With half of it, terms come late, behind what they
# should replace. With twice as much, they come early.
_BONUS = 3.0


class Standing:
    """Where a beam stands with its terms.

    Most tokens leave that as it is. So `ahead` and `usual` are found when they are first asked for, and kept.

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
        self._ahead: Ahead | None = None
        self._usual: tuple[Standing, Standing] | None = None

    @property
    def ahead(self) -> Ahead:
        """What may follow the beam: see `TermTrie.ahead`."""
        if self._ahead is None:
            self._ahead = self._terms.ahead(self.written)
        return self._ahead

    @property
    def usual(self) -> "tuple[Standing, Standing] | None":
        """How the beam stands behind begins of words, and behind parts of words, that are not `leading`.

        See `TermTrie.usual`. None if none of them changes how it stands.
        """
        if self._usual is None and self.written.node:  # without a node, it would be this standing: a cycle
            of_word, of_part = self._terms.usual(self.written)
            in_word = Standing(of_part, self._terms)
            self._usual = in_word if of_word is of_part else Standing(of_word, self._terms), in_word
        return self._usual
