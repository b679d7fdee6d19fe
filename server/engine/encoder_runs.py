"""Which sentences are encoded in one run: those of like lengths, so that little of what is encoded is padding."""

from collections.abc import Sequence

from server.engine.sentence import Sentence


def encoder_runs(sentences: Sequence[Sentence], most_padding: int) -> list[list[Sentence]]:
    """Returns sentences in groups, the longest first. A group has as many as keep its padding within a limit.

    Args:
        sentences: any number, in any order; those of one length stay in theirs.
        most_padding: source tokens, 0 or more.
    """
    runs: list[list[Sentence]] = []
    padding = most_padding + 1
    for sentence in sorted(sentences, key=lambda each: len(each.source_ids), reverse=True):
        padding += len(runs[-1][0].source_ids) - len(sentence.source_ids) if runs else 0
        if padding > most_padding:
            runs.append([])
            padding = 0
        runs[-1].append(sentence)
    return runs
