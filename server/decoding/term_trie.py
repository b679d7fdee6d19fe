"""Which terms a beam has written, and which tokens lead to the others: all forms of a sentence's terms as a trie."""

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from server.decoding.terms import LEAST_LETTERS, Form, ReplacedWord, Terms


class Written(NamedTuple):
    """What a beam has written of the terms.

    Attributes:
        done: a bit for each term.
        node: how far it is in a form, as a node of the trie of all forms; 0 if in none.
        cost: log-probability of the tokens that every beam has to write: the first token of each form that it has
            written, and each token that alone goes on with a form.
        spared: the part of the cost that does not count when beams are compared.
        num_tokens: how many tokens the cost is of.
        cost_here, spared_here, num_here: the same of the form that it is in.
        rest: letters of its last word behind this form; 0 if the word ends with the form.
    """

    done: int = 0
    node: int = 0
    cost: float = 0.0
    spared: float = 0.0
    num_tokens: int = 0
    cost_here: float = 0.0
    spared_here: float = 0.0
    num_here: int = 0
    rest: int = 0


class Ahead(NamedTuple):
    """What may follow a beam.

    Attributes:
        leading: tokens that begin a term or go on with one. `TermTrie.after` says how the beam stands behind them.
        special: the leading tokens, the tokens that `TermTrie.repeats` may forbid, and eos.
        wanted: tokens that bring it nearer to the terms that it lacks; all are `leading`.
        may_join: whether its last word may grow into a longer one that has a term.
        is_bound: whether `TermTrie.forbids` may forbid tokens.
    """

    leading: AbstractSet[int]
    special: AbstractSet[int]
    wanted: list[int]
    may_join: bool
    is_bound: bool


class TermTrie:
    """Follows beams through the forms of all terms of a sentence.

    Args:
        terms: of the sentence.
        eos_id: ends a translation.

    Attributes:
        word_parts: tokens that go on with the word before them, and how many letters they have.
        once: by its last token, each run that is written once for each of its terms, or with node 0 never.
        checked: tokens that `repeats` may forbid, and eos.
        bound: nodes of forms that begin as the words do that they replace; `forbids` forbids tokens at these alone.
    """

    def __init__(self, terms: Terms, eos_id: int) -> None:
        self.word_parts = terms.word_parts
        self._all = (1 << len(terms.forms)) - 1
        # Of each term that replaces words: its number, the words, and the tokens with which its forms begin.
        self._replaced: list[tuple[int, tuple[ReplacedWord, ...], frozenset[int]]] = []
        self._children: list[dict[int, int]] = [{}]
        self._least: dict[int, float] = {}  # what the next token of a form has cost the beam that it fits best
        self._ends = [0]  # for each node the terms of which a form ends there
        self._joins = [0]  # for each node the terms that a longer word has if it begins with these tokens
        self._below = [0]  # both, there or below
        self.bound: set[int] = set()
        ends: dict[int, Form] = {}
        joined = terms.joined or ((),) * len(terms.forms)
        for index, (forms, longer, replaced) in enumerate(zip(terms.forms, joined, terms.replaced.words, strict=True)):
            if replaced:
                self._replaced.append((index, replaced, frozenset(form[0] for form in (*forms, *longer))))
            for own, marks in ((forms, self._ends), (longer, self._joins)):
                for form in own:
                    nodes = self._add(form, 1 << index)
                    marks[nodes[-1]] |= 1 << index
                    self.bound.update(nodes if form[0] in {word.token for word in replaced} else ())
                    ends.update({nodes[-1]: form} if own is forms else {})
        once = {ends[node]: node for node in ends.keys() - self._nodes_within(terms.replaced.staying)}
        gone, sizes = terms.replaced.gone, set(map(len, terms.replaced.gone))
        gone -= {form[:size] for forms in (*terms.forms, *joined) for form in forms for size in sizes}
        self.once: dict[int, list[tuple[Form, int]]] = {}
        for run, node in [*once.items(), *((run, 0) for run in gone)]:
            self.once.setdefault(run[-1], []).append((run, node))
        self.checked = self.once.keys() | {eos_id}
        self._ahead: dict[tuple[int, int, bool], Ahead] = {}  # by what of a beam it depends on

    def _add(self, form: Form, term: int) -> list[int]:
        node, nodes = 0, []
        for token in form:
            if token not in self._children[node]:
                self._children[node][token] = len(self._children)
                self._children.append({})
                for marks in (self._ends, self._joins, self._below):
                    marks.append(0)
            node = self._children[node][token]
            self._below[node] |= term
            nodes.append(node)
        return nodes

    def _nodes_within(self, ids: Sequence[int]) -> set[int]:
        """Returns the nodes that any run of some ids leads to."""
        found = set()
        for start in range(len(ids)):
            node = 0
            for token in ids[start:]:
                if not (node := self._children[node].get(token, 0)):
                    break
                found.add(node)
        return found

    def note(self, written: Written, log_probs: Mapping[int, float]) -> None:
        """Notes what it costs a beam to go on with a form, before `after` is asked what its beams have written.

        Such a token is spared for as much as it costs the beam that it fits best. So beams are still compared by how
        well what they have before a form fits to it: "zug" of "Einzug" is likelier behind "der Ein" than "die Ein".

        Args:
            written: by the beam.
            log_probs: of its next tokens, the wanted ones included.
        """
        if not written.rest and self._is_forced(written.node):
            ((token, child),) = self._children[written.node].items()
            self._least[child] = max(log_probs[token], self._least.get(child, -math.inf))

    def _is_forced(self, node: int) -> bool:
        """Whether a beam within a form has one token alone to go on with it."""
        return node > 0 and len(self._children[node]) == 1 and not self._ends[node] | self._joins[node]

    def may_join(self, written: Written) -> bool:
        """Whether the last word of a beam may go on, and has a term then."""
        return bool(self._joins[written.node] & ~written.done)

    def has_begun(self, written: Written, term: int) -> bool:
        """Whether a beam has written a term, or is in a form of it."""
        return bool((written.done | (self._below[written.node] if written.node else 0)) & 1 << term)

    def is_done(self, written: Written) -> bool:
        """Whether all terms are written."""
        return written.done == self._all

    def level(self, written: Written) -> int:
        """Returns how far a beam is: 2 for each term that it has all tokens of, and 1 if it is within one."""
        is_whole = bool(self._whole(written))
        return 2 * (written.done.bit_count() + is_whole) + (written.node > 0 and not is_whole)

    def after(self, written: Written, token: int, log_prob: float, wish: float = -math.inf) -> Written:
        """Returns what a beam has written when it goes on with a token, eos included.

        Args:
            written: before.
            token: any.
            log_prob: of it.
            wish: log-probability of the word in whose place a term begins.
        """
        done, node, cost, spared, number, cost_here, spared_here, num_here, rest = written
        is_part = token in self.word_parts
        child = 0 if rest else self._child(node, token, done) if node else 0
        ends = 0
        if is_part and not child and (ends := self._joins[node] & ~done):
            rest += self.word_parts[token]
            if rest < LEAST_LETTERS:
                return written._replace(rest=rest)
        elif not is_part:
            ends = self._whole(written)
        if ends:
            done |= ends & -ends  # the first of equal ones
            cost, spared, number = cost + cost_here, spared + spared_here, number + num_here
        elif child:
            # What forms differ in counts, or the longest would be as good as any.
            if self._is_forced(node):
                least = self._least.get(child, log_prob)
                cost_here, spared_here, num_here = cost_here + log_prob, spared_here + least, num_here + 1
            return Written(done, child, cost, spared, number, cost_here, spared_here, num_here)
        if not (child := self._child(0, token, done)):
            return Written(done, 0, cost, spared, number)
        return Written(done, child, cost, spared, number, log_prob, min(0.0, log_prob - wish), 1)

    def usual(self, written: Written) -> tuple[Written, Written]:
        """Returns what `after` returns for tokens that are not `leading`: for begins of words, and for parts of words.

        Where the beam's last word `may_join`, only `after` itself tells for parts of words.
        """
        left = Written(written.done, 0, *written[2:5]) if written.node else written
        return (self.after(written, -1, 0.0) if self._whole(written) else left), left

    def ahead(self, written: Written) -> Ahead:
        """Returns what may follow a beam. It is found once for all beams that are at the same place in the terms."""
        place = written.done, written.node, written.rest > 0
        if (ahead := self._ahead.get(place)) is None:
            leading = self.leading(written)
            may_join, is_bound = self.may_join(written), written.node in self.bound
            ahead = Ahead(leading, leading | self.checked, self.wanted(written), may_join, is_bound)
            self._ahead[place] = ahead
        return ahead

    def leading(self, written: Written) -> AbstractSet[int]:
        """Returns the tokens that begin a term, or go on with the one that a beam is in."""
        return self._children[0].keys() | self._children[0 if written.rest else written.node].keys()

    def wanted(self, written: Written) -> list[int]:
        """Returns the tokens that bring a beam nearer to the terms that it has not written."""
        if written.rest:
            return []
        ends = self._whole(written)
        done = written.done | ends & -ends
        nodes = [written.node, 0] if ends else [written.node]
        return [token for node in nodes for token, child in self._children[node].items() if self._below[child] & ~done]

    def repeats(self, written: Written, prefix: Sequence[int], token: int) -> bool:
        """Whether a token would write a form again of which no term is left, or a word that is replaced.

        Args:
            written: by a beam.
            prefix: its tokens.
            token: the next one.
        """
        runs = self.once.get(token)
        if not runs or (written.node and token in self._children[written.node]):
            return False
        ends = self._whole(written)
        left, size = ~(written.done | ends & -ends), len(prefix) + 1
        return any(not self._ends[node] & left and run[:-1] == tuple(prefix[size - len(run) :]) for run, node in runs)

    def forbids(self, written: Written, token: int) -> bool:
        """Whether a token would make another word of a form that begins as the word does that it replaces."""
        if written.node not in self.bound or (not written.rest and token in self._children[written.node]):
            return False
        return not (self.may_join(written) if token in self.word_parts else self._whole(written))

    def replaced(self, written: Written, prefix: Sequence[int]) -> dict[int, tuple[int, frozenset[int]]]:
        """Returns the tokens in whose place terms stand that a beam has not written.

        Args:
            written: by the beam.
            prefix: its tokens.

        Returns:
            For each of these tokens the number of the term, and the first tokens of its forms.
        """
        if not self._replaced:
            return {}
        ends = self._whole(written)
        if written.node and not ends:  # it is within a term
            return {}
        done = written.done | ends & -ends
        nearest: dict[int, tuple[int, int, frozenset[int]]] = {}  # of each token the first word that is still to come
        for index, words, first in self._replaced:
            if not done >> index & 1:
                for word in words:
                    is_next = word.token not in nearest or word.place < nearest[word.token][0]
                    if word.token not in first and is_next and prefix.count(word.token) == word.num_before:
                        nearest[word.token] = word.place, index, first
        return {token: (term, first) for token, (_, term, first) in nearest.items()}

    def _whole(self, written: Written) -> int:
        """Returns the terms that a beam has written if its last word ends."""
        return 0 if written.rest else self._ends[written.node] & ~written.done

    def _child(self, node: int, token: int, done: int) -> int:
        """Returns the node behind another one; 0 if there is none that leads to a term that is not written."""
        child = self._children[node].get(token, 0)
        return child if self._below[child] & ~done else 0
