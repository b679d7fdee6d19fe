"""A sentence between the legs of its route: its best translation by the first is a text of its own for the second.

The borders of the source's sentences stay, and its white space: a sentence is passed on as soon as it is there, and
gets what it would get if its caller sent its translation on by hand. What the first leg has made several sentences of
is split anew, and put together again.
"""

from dataclasses import dataclass

from server.decoding.result import FinishReason
from server.text.sentences import split_text
from server.translation.answer import Candidate, TextAnswer, TranslatedSentence
from server.translation.legs import Leg


@dataclass(frozen=True, slots=True)
class Relay:
    """One sentence on its second leg.

    Attributes:
        first: as the first leg translated it.
        middle: the text between, and what of it is translated so far.
    """

    first: TranslatedSentence
    middle: TextAnswer

    @classmethod
    def begin(cls, first: TranslatedSentence, leg: Leg) -> "Relay":
        """Splits a sentence's best translation for the second leg; what has no letter is copied there and then."""
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
        """Whether all of the text between is translated."""
        return len(self.middle.sentences) == len(self.middle.split.sentences)

    def end(self, num_hypotheses: int) -> TranslatedSentence:
        """Returns the sentence with what the second leg has made of it.

        A score is the sum of both legs', as the probability of a route is the product of its parts': a translation is
        never called surer than the text that it was made from, and the order of the second leg's hypotheses stays.
        """
        best, middle = self.first.candidates[0], self.middle
        is_cut = FinishReason.LENGTH in (best.finish_reason, middle.finish_reason)
        candidates = tuple(
            Candidate(
                middle.text(rank),
                best.score + middle.score(rank),
                sum(each.num_tokens for each in middle.candidates(rank)),
                FinishReason.LENGTH if is_cut else FinishReason.STOP,
            )
            for rank in range(num_hypotheses)
        )
        timings = self.first.timings.followed_by(each.timings for each in middle.sentences.values())
        return TranslatedSentence(self.first.source, candidates, timings, tuple(middle.kept))
