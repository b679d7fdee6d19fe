"""Whether options of the search mean what they mean in CTranslate2: the same ids, in fp32.

    python -m tests.acceptance.options_equal_ctranslate2
    python -m tests.acceptance.options_equal_ctranslate2 --sentences 1000 --show 3

Both systems translate the same sentences of the same weights with the same option, greedily and with a beam. Of two
translations that differ, one may be as good as the other: then their scores are a near-tie. Without CTranslate2 the
exit status is 77.

For coverage penalties, our bundle says that translations are aligned by the first head of the last layer, whose
attention is CTranslate2's.
"""

import argparse
import contextlib
import dataclasses
import itertools
import math
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from export.restore import read_checkpoint
from export.verify import NEAR_TIE
from tests.acceptance.options_systems import MOST_TOKENS, Hypotheses, Ours, Theirs, Way
from tests.acceptance.report import EXIT_TOOL_MISSING, Check, print_checks
from tests.acceptance.server_process import BUILTIN_BUNDLE
from tests.bench.systems import Ids, has_ctranslate2
from tests.bench.text import DEFAULT_TEXT, read_text


def _same(name: str, beam_sizes: tuple[int, ...] = (1, 4), **options: Any) -> Way:
    """Returns a way whose options have the same names in both systems."""
    return Way(name=name, ours=options, theirs=options, beam_sizes=beam_sizes)


_ALTERNATIVES = {"return_alternatives": True}
_WAYS = [
    _same("none", (1, 2, 4)),
    _same("repetition_penalty 1.3", repetition_penalty=1.3),
    _same("no_repeat_ngram_size 1", no_repeat_ngram_size=1),
    _same("no_repeat_ngram_size 2", no_repeat_ngram_size=2),
    Way(name="min_output_tokens 30", ours={"min_output_tokens": 30}, theirs={"min_decoding_length": 30}),
    Way(name="suppress", ours={"suppressed": ()}, theirs={"suppress_sequences": ()}),
    _same("patience 2", (4,), patience=2.0),
    _same("patience 1.6, length_penalty 0.5", (2, 4), patience=1.6, length_penalty=0.5),
    Way(
        name="all",
        ours={"suppressed": (), "repetition_penalty": 1.1, "no_repeat_ngram_size": 2, "min_output_tokens": 30},
        theirs={
            "suppress_sequences": (),
            "repetition_penalty": 1.1,
            "no_repeat_ngram_size": 2,
            "min_decoding_length": 30,
        },
    ),
    Way(name="target_prefix", beam_sizes=(1, 2, 4), with_prefixes=True),
    Way(
        name="target_prefix, min_output_tokens 30, repetition_penalty 1.3",
        ours={"min_output_tokens": 30, "repetition_penalty": 1.3},
        theirs={"min_decoding_length": 30, "repetition_penalty": 1.3},
        with_prefixes=True,
    ),
    Way(name="return_alternatives", ours=_ALTERNATIVES, theirs=_ALTERNATIVES, num_hypotheses=4),
    Way(
        name="return_alternatives, target_prefix",
        ours=_ALTERNATIVES,
        theirs=_ALTERNATIVES,
        with_prefixes=True,
        num_hypotheses=4,
    ),
    Way(
        # CTranslate2 4.8 ends the process where no token is as probable, as behind a whole translation.
        name="return_alternatives, min_alternative_expansion_prob 0.01",
        ours=_ALTERNATIVES | {"min_alternative_expansion_prob": 0.01},
        theirs=_ALTERNATIVES | {"min_alternative_expansion_prob": 0.01},
        num_hypotheses=4,
    ),
    *(
        Way(
            name=f"prefix_bias_beta {beta}",
            ours={"prefix_bias_beta": beta},
            theirs={"prefix_bias_beta": beta},
            beam_sizes=beam_sizes,
            with_prefixes=True,
            is_judged=is_judged,
        )
        for beta, beam_sizes, is_judged in ((0.3, (1,), True), (0.7, (1,), True), (0.3, (4,), False))
    ),
    Way(
        name="min_length_ratio 1.2",
        ours={"min_length_ratio": 1.2},
        theirs={"min_decoding_length": lambda tokens: math.ceil(1.2 * tokens - 1e-4) - 1},
    ),
    Way(
        name="max_length_ratio 0.8",
        ours={"max_length_ratio": 0.8},
        theirs={"max_decoding_length": lambda tokens: max(2, math.floor(0.8 * tokens + 1e-4))},
    ),
    *(
        Way(
            name=f"coverage_penalty {penalty}",
            ours={"coverage_penalty": penalty},
            theirs={"coverage_penalty": penalty},
            beam_sizes=(4,),
            num_hypotheses=4,
            one_by_one=True,
        )
        for penalty in (0.1, 0.4)
    ),
]


def main() -> int:
    """Entry point; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=300, metavar="N", help="default: %(default)s")
    parser.add_argument("--only", default="", metavar="TEXT", help="only the ways whose names have TEXT")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="print N differences of each option")
    arguments = parser.parse_args()
    if not has_ctranslate2("cpu"):
        print("needs the package ctranslate2", file=sys.stderr)
        return EXIT_TOOL_MISSING
    checkpoint = read_checkpoint(BUILTIN_BUNDLE)
    sources = read_text(DEFAULT_TEXT, checkpoint.tokenizer).source_ids[: arguments.sentences]
    checks: list[Check] = []
    usual: dict[int, list[Hypotheses]] = {}  # translations without options, by the beam size
    with tempfile.TemporaryDirectory() as work, contextlib.closing(Ours(Path(work) / "bundle")) as ours:
        theirs = Theirs(checkpoint, Path(work) / "model")
        phrases = _phrases([best for ((best, _), *_) in ours.translate(sources, Way(name=""), 1)])
        prefixes = _prefixes([each[-1][0] for each in ours.translate(sources, Way(name="", num_hypotheses=4), 4)])
        for way in _WAYS:
            own = _with(way, phrases)
            for beam_size in way.beam_sizes if arguments.only in way.name else ():
                given = prefixes if way.with_prefixes else None
                mine = ours.translate(sources, own, beam_size, given)
                other = theirs.translate(sources, own, beam_size, given)
                checks.append(_check(f"{way.name}, beam {beam_size}", mine, other, arguments.show, way.is_judged))
                print(*dataclasses.astuple(checks[-1])[:2], file=sys.stderr, flush=True)
                width = max(beam_size, way.num_hypotheses)
                if width not in usual:
                    usual[width] = ours.translate(sources, Way(name=""), width)
                num_changed = sum(before[0][0] != after[0][0] for before, after in zip(usual[width], mine, strict=True))
                is_useful = None if way.name == "none" else num_changed > 0
                checks.append(Check("  translations that it changes", str(num_changed), "some", is_useful))
    return print_checks(checks)


def _with(way: Way, phrases: tuple[tuple[int, ...], ...]) -> Way:
    ours = way.ours | ({"suppressed": phrases} if "suppressed" in way.ours else {})
    theirs = way.theirs | ({"suppress_sequences": phrases} if "suppress_sequences" in way.theirs else {})
    return dataclasses.replace(way, ours=ours, theirs=theirs)


def _phrases(translations: Sequence[Ids]) -> tuple[tuple[int, ...], ...]:
    """Returns what to suppress: the first tokens of some translations, pairs and triples of tokens of others."""
    long = [tuple(ids) for ids in translations if len(ids) > 8]
    return (*(ids[:1] for ids in long[:4]), *(ids[2:4] for ids in long[4:60]), *(ids[3:6] for ids in long[60:]))


def _prefixes(translations: Sequence[Ids]) -> list[tuple[int, ...]]:
    """Returns what translations begin with: half of second-rate ones, of every tenth the whole."""
    return [
        tuple(ids) if number % 10 == 0 else tuple(ids[: max(1, len(ids) // 2)])
        for number, ids in enumerate(translations)
    ]


def _check(name: str, ours: list[Hypotheses], theirs: list[Hypotheses], show: int, is_judged: bool) -> Check:
    num_equal = num_ties = num_cut = 0
    furthest = 0.0
    for number, (own, others) in enumerate(zip(ours, theirs, strict=True)):
        pairs = [(mine, other) for mine, other in itertools.zip_longest(own, others, fillvalue=((), 0.0))]
        different = [(mine, other) for mine, other in pairs if mine[0] != other[0]]
        furthest = max(furthest, *(abs(mine[1] - other[1]) for mine, other in pairs if mine[0] == other[0]), 0.0)
        if not different:
            num_equal += 1
        elif max(len(ids) for pair in different for ids, _ in pair) >= MOST_TOKENS - 1:
            num_cut += 1
        elif all(abs(mine[1] - other[1]) <= NEAR_TIE for mine, other in different):
            num_ties += 1
        elif show > 0:
            show -= 1
            print(f"{name}, sentence {number}:", *different, sep="\n  ")
    measured = f"{num_equal} of {len(ours)} equal, {num_ties} near-ties, {num_cut} cut; scores within {furthest:.1e}"
    is_equal = num_equal + num_ties + num_cut == len(ours) and num_equal >= 0.95 * len(ours) and furthest <= NEAR_TIE
    return Check(name, measured, "all", is_equal if is_judged else None)


if __name__ == "__main__":
    sys.exit(main())
