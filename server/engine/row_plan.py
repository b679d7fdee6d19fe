"""Which sentences run in a batch, and which rows they have: iteration-level scheduling, with integers only.

Between any two steps, finished, cancelled and expired sentences leave, and waiting sentences enter. Source of the
idea: Orca (OSDI 2022).
"""

from collections import deque

from server.engine.limits import Footprint
from server.engine.sentence import Sentence
from server.network import RowMoves


class RowPlan:
    """The running sentences of a batch and their rows, 0 to num_rows - 1. Only `remove` leaves gaps.

    Attributes:
        running: sentences in the batch.
        num_rows: of the next step.
        footprint: of the running sentences, with the beams that they will still grow.
    """

    def __init__(self) -> None:
        self.running: list[Sentence] = []
        self.num_rows = 0
        self.footprint = Footprint()

    def add(self, sentences: list[Sentence]) -> None:
        """Adds sentences. They have no row until `place`."""
        self.running.extend(sentences)
        for sentence in sentences:
            self.footprint += sentence.footprint

    def place(self, sentences: list[Sentence]) -> int:
        """Gives each encoded sentence its first row, behind the rows in use; returns the first of these rows."""
        first_row = self.num_rows
        for row, sentence in enumerate(sentences, start=first_row):
            sentence.rows = [row]
        self.num_rows += len(sentences)
        return first_row

    def remove(self, sentences: list[Sentence]) -> None:
        """Takes sentences out of the batch. The next `arrange` closes the gaps."""
        if sentences:
            gone = set(sentences)
            self.running = [sentence for sentence in self.running if sentence not in gone]
            for sentence in sentences:
                self.footprint -= sentence.footprint
                self.num_rows -= len(sentence.rows)
                sentence.rows = []

    def arrange(self, parents: dict[Sentence, list[int]]) -> RowMoves:
        """Lays out the rows of the next step without gaps, and moves as few as possible.

        A beam stays in the row of the beam that it extends, if that row is within the new end and no other beam has
        claimed it. Any other beam moves to a free row of its own sentence, where only the last positions differ, or, if
        there is none, to a row that another sentence has left.

        Args:
            parents: of each sentence that was stepped, the beam that each of the next beams extends. A sentence without
                an entry keeps its rows. A sentence without rows has left.

        Returns:
            The copies to make; `Sentence.rows` are the new ones already.
        """
        moves = RowMoves()
        sources = {s: [s.rows[beam] for beam in beams] for s, beams in parents.items() if s.rows}
        num_rows = self.num_rows + sum(len(rows) - len(s.rows) for s, rows in sources.items())
        # A greedy sentence has no entry, nor has one whose last step failed: it moves only if it lies behind the end.
        behind_end = (s for s in self.running if s not in sources and max(s.rows, default=0) >= num_rows)
        sources |= {sentence: list(sentence.rows) for sentence in behind_end}
        if sources:
            kept = {row for s in self.running for row in sources.get(s, s.rows) if row < num_rows}
            free = deque(row for row in range(num_rows) if row not in kept)
            homeless: list[tuple[Sentence, int, int]] = []
            for sentence, rows in sources.items():
                beams = self._settle(sentence, rows, kept, num_rows, free, moves)
                homeless.extend((sentence, beam, rows[beam]) for beam in beams)
            for sentence, beam, source in homeless:
                sentence.rows[beam] = free.popleft()
                moves.add(sentence.rows[beam], source, common=0)
            self.num_rows = num_rows
        return moves

    def _settle(
        self,
        sentence: Sentence,
        sources: list[int],
        kept: set[int],
        num_rows: int,
        free: "deque[int]",
        moves: RowMoves,
    ) -> list[int]:
        """Moves the beams of a sentence to its own rows, as far as it has any; returns the beams that are left.

        Args:
            sources: for each next beam, the row that it extends.
            kept: rows that some beam of any sentence extends.
            num_rows: of the next step.
            free: rows of the next step that no beam extends; the method takes out the ones that it uses.
            moves: the method adds its copies here.
        """
        old_rows, sentence.rows = sentence.rows, list(sources)
        if len(kept.intersection(sources)) == len(sources):  # none twice, none behind the end: all stay
            return []
        own_free = [row for row in old_rows if row < num_rows and row not in kept]
        claimed: set[int] = set()
        homeless: list[int] = []
        for beam, source in enumerate(sources):
            if source < num_rows and source not in claimed:
                claimed.add(source)
            elif own_free:
                row = own_free.pop()
                free.remove(row)
                sentence.rows[beam] = row
                common = sentence.search.num_common(old_rows.index(row), old_rows.index(source))
                moves.add(row, source, common)
            else:
                homeless.append(beam)
        return homeless
