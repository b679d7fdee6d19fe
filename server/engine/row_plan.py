"""Who runs in a batch, and which row is whose: iteration-level scheduling with integers only.

Between any two steps finished, cancelled and expired sentences leave and waiting ones enter. Source of the idea: Orca
(OSDI 2022).
"""

from collections import deque

from server.engine.limits import Footprint
from server.engine.sentence import Sentence
from server.network import RowMoves


class RowPlan:
    """One batch's running sentences and their rows 0..num_rows - 1, without gaps but those that `remove` leaves.

    Attributes:
        running: sentences in the batch.
        num_rows: their rows, which the next step has.
        footprint: what the sentences take, beams that they do not have yet included.
    """

    def __init__(self) -> None:
        self.running: list[Sentence] = []
        self.num_rows = 0
        self.footprint = Footprint()

    def add(self, sentences: list[Sentence]) -> None:
        """Adds sentences, which run without a row until `place`."""
        self.running.extend(sentences)
        for sentence in sentences:
            self.footprint += sentence.footprint

    def place(self, sentences: list[Sentence]) -> int:
        """Gives each encoded sentence its first row, behind the rows in use; returns the first one's."""
        first_row = self.num_rows
        for row, sentence in enumerate(sentences, start=first_row):
            sentence.rows = [row]
        self.num_rows += len(sentences)
        return first_row

    def remove(self, sentences: list[Sentence]) -> None:
        """Takes sentences out of the batch; their rows are free from the next `arrange` on."""
        if sentences:
            gone = set(sentences)
            self.running = [sentence for sentence in self.running if sentence not in gone]
            for sentence in sentences:
                self.footprint -= sentence.footprint
                self.num_rows -= len(sentence.rows)
                sentence.rows = []

    def arrange(self, parents: dict[Sentence, list[int]]) -> RowMoves:
        """Lays the next step's rows out without gaps, moving as few as possible.

        A beam stays in the row of the beam that it extends, if that row is within the new end and no other beam has
        claimed it. Of the rest, first those are moved that find a row of their own sentence, where only the last
        positions differ; then the others, into rows that other sentences have left.

        Args:
            parents: for sentences that were stepped, the beam that each of the next beams extends; those without an
                entry keep their rows, and those without rows have left.

        Returns:
            The copies to make; `Sentence.rows` are the new ones already.
        """
        moves = RowMoves()
        sources = {s: [s.rows[beam] for beam in beams] for s, beams in parents.items() if s.rows}
        num_rows = self.num_rows + sum(len(rows) - len(s.rows) for s, rows in sources.items())
        # Greedy sentences, and those whose last step failed, have no entry: they move only if they lie behind the end.
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
        """Gives the beams of a sentence rows of its own as far as there are any; returns the beams without one.

        Args:
            sentence: whose rows are replaced.
            sources: for each next beam the row that it extends.
            kept: rows that some beam of any sentence extends.
            num_rows: of the next step.
            free: rows of the next step that nobody extends; those that are given away are taken out.
            moves: the copies that this takes are added.
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
