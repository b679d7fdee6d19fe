"""Passes a sentence from the first leg of its route to the second.

The best translation of the first leg is a text of its own for the second leg. The sentence is passed on as soon as it
is translated, and is translated as if its caller had sent that translation by hand. If the first leg has made several
sentences of it, these are split, translated by the second leg and joined again. The white space between the source's
sentences stays.
"""

from dataclasses import dataclass

from server.decoding.result import FinishReason
from server.text.masked import Placement
from server.text.sentences import split_text
from server.translation.answer import Candidate, TextAnswer, TranslatedSentence
from server.translation.legs import Leg


@dataclass(frozen=True, slots=True)
class Relay:
    """One sentence on its second leg.

    Attributes:
        first: the sentence as the first leg translated it.
        middle: its best translation as a text, with the sentences that the second leg has translated so far.
    """

    first: TranslatedSentence
    middle: TextAnswer

    @classmethod
    def begin(cls, first: TranslatedSentence, leg: Leg) -> "Relay":
        """Splits a sentence's best translation for the second leg. Sentences without a letter are copied at once."""
        rules = leg.split_rules
        text = first.candidates[0].text
        split = split_text(
            text, rules.language, rules.encode, rules.max_tokens, num_added=rules.num_added, masker=rules.masker
        )
        middle = TextAnswer(split, (leg,))
        for index, sentence in enumerate(split.sentences):
            if sentence.source_ids is None:
                middle.sentences[index] = TranslatedSentence.copied(sentence)
        return cls(first, middle)

    @property
    def is_complete(self) -> bool:
        """Whether the second leg has translated all sentences."""
        return len(self.middle.sentences) == len(self.middle.split.sentences)

    def end(self, num_hypotheses: int) -> TranslatedSentence:
        """Returns the sentence with the translations of the second leg.

        A score is the sum of both legs' scores, as the probability of a route is the product of its legs'
        probabilities. So a translation never scores better than the text that it was made from, and the order of the
        second leg's hypotheses stays. What either leg has lost is told, and what the second one has kept.
        """
        best, middle = self.first.candidates[0], self.middle
        reason = FinishReason.of_all([best.finish_reason, middle.finish_reason])
        candidates = tuple(
            Candidate(
                middle.text(rank),
                best.score + middle.score(rank),
                sum(each.num_tokens for each in middle.candidates(rank)),
                reason,
            )
            for rank in range(num_hypotheses)
        )
        timings = self.first.timings.followed_by(each.timings for each in middle.sentences.values())
        source = self.first.source
        lost = [part for part in self.first.kept if part.placement is Placement.MISSING]
        parts = [*middle.kept, *lost]
        kept = parts if source.markup is None else source.markup.unkept_parts(parts)
        return TranslatedSentence(source, candidates, timings, tuple(kept))
