"""Whether a server's confidence in its translations is right.

    python -m tests.acceptance.confidence
    python -m tests.acceptance.confidence --reverse

It translates lines of one sentence that have a reference, and asks for the tokens and the confidence. A translation is
good if its chrF to the reference is at least 50. The calibration error is the mean distance between what is said of a
hundred translations and how many of them are good. By cross-validation, it is that of functions which are fitted here,
in the way of the export, on nine tenths of the lines and judged on the others. Beside it stands what the server itself
says: of the lines that the built-in bundles were fitted on, and of Tatoeba's, which are another kind of text. There it
need not be right, but must rank: the area is how often a good translation has more confidence than one that is not.
"""

import argparse
import dataclasses
import sys
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from babelserve.v1.translation_pb2 import OutputOptions
from export.confidence import are_good, calibration_error, cross_validated_error
from model.data import read_corpus
from model.recipe import CorpusConfig
from server.bundle.confidence import features
from tests.acceptance.lines import DATA, Asker, Judged, add_flags, run_judge
from tests.acceptance.report import Check

_MOST_ERROR = 0.05
_LEAST_AREA = 0.65  # of chance it is 0.5

Pairs = Sequence[tuple[str, str]]


def judge(ask: Asker, fitted: Pairs, others: Pairs) -> Judged:
    """Compares what is said of translations with their references.

    Args:
        ask: translates.
        fitted: sentences with references, of the kind that the bundle was fitted on.
        others: the same, of another kind.
    """
    ask = dataclasses.replace(ask, output=OutputOptions(include_tokens=True, include_confidence=True))
    checks = []
    for name, pairs, is_fitted in (("like the fitted", fitted, True), ("other texts", others, False)):
        answers = ask([text for text, _ in pairs])
        single = [
            (answer.sentences[0], reference)
            for answer, (_, reference) in zip(answers, pairs, strict=True)
            if len(answer.sentences) == 1 and answer.sentences[0].tokens
        ]
        good = are_good([sentence.text for sentence, _ in single], [reference for _, reference in single])
        said = np.array([sentence.confidence for sentence, _ in single])
        inputs = np.array([features([token.log_prob for token in sentence.tokens]) for sentence, _ in single])
        checks.append(Check(f"{name}: good", f"{good.sum()} of {len(good)}"))
        if is_fitted:
            error = cross_validated_error(inputs, good)
            checks.append(Check("- error, cross-validated", f"{error:.3f}", f"<= {_MOST_ERROR}", error <= _MOST_ERROR))
        checks.append(Check("- error of what the server says", f"{calibration_error(said, good):.3f}"))
        found = area(said, good)
        checks.append(Check("- area", f"{found:.3f}", f">= {_LEAST_AREA}", found >= _LEAST_AREA))
    return checks, []


def area(said: NDArray[np.float64], good: NDArray[np.bool_]) -> float:
    """Returns how often what is said of a good one is more than of one that is not; a tie counts half."""
    more = np.sign(said[good][:, None] - said[~good][None])
    return float(0.5 + 0.5 * more.mean())


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the comparison and returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.acceptance.confidence", description=__doc__)
    add_flags(parser, 500)
    options = parser.parse_args(arguments)
    source, target = ("de", "en") if options.reverse else ("en", "de")
    corpus = CorpusConfig(source=f"general_dev.{source}.gz", target=f"general_dev.{target}.gz")
    fitted = read_corpus(corpus, DATA).pairs[: options.sentences]
    others = read_corpus(CorpusConfig(tsv="tatoeba_held_out.tsv", reverse=options.reverse), DATA).pairs
    return run_judge(options, lambda ask: judge(ask, fitted, others[: options.sentences]))


if __name__ == "__main__":
    sys.exit(main())
