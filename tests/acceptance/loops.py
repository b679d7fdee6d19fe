"""Whether translations that repeat themselves again and again are ended.

    python -m tests.acceptance.loops
    python -m tests.acceptance.loops --bundle DIR --variant cpu-fp32 --show 10

It translates what no model has learned: words that are repeated, scripts that the model does not know, random letters
and digits, until so many translations loop. A translation *loops* if it has over 16 tokens more than its source, or
comes to the limit, and has a part that is there three times in a row, in 8 tokens or more. Then it translates the same
sources with `end_loops`, and other sentences both ways.
"""

import argparse
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from prometheus_client import CollectorRegistry

from server.bundle.bundle import open_bundle
from server.bundle.tokenizer import Tokenizer
from server.decoding.options import DecodingOptions
from server.decoding.result import FinishReason, Hypothesis
from server.engine.engine import Engine
from tests.acceptance.calls import DEFAULT_SENTENCES, read_sentences
from tests.acceptance.lines import DATA
from tests.acceptance.report import Check, print_checks
from tests.acceptance.server_process import BUILTIN_BUNDLE
from tests.bench.systems import Ids, Settings, open_engine

_MORE_TOKENS = 16
_MOST_SOURCES = 20_000
_AT_A_TIME = 500
_SCRIPTS = "\u0e01\u10d0\u1200\u0905\u0b85\u13a0\u1780\u4e00\uac00\u0531\u07ca\u2d30"  # the first letter of each
_PIECES = ("ha", "la", "no", "x", "-", "1", "0", "?", "é", "ß", "ab", "qz", "na ", ". ", "the ")


def degenerate_texts(seed: int) -> Iterator[str]:
    """Yields texts without an end: in turn repeated words, unknown scripts, random letters, and repeated pieces."""
    chance = random.Random(seed)
    words = [word for line in read_sentences(DEFAULT_SENTENCES, 200) for word in line.split()]
    while True:
        yield " ".join(chance.sample(words, chance.randint(1, 3)) * chance.randint(3, 25))
        first = ord(chance.choice(_SCRIPTS))
        yield "".join(chr(first + chance.randrange(24)) + " " * (chance.random() < 0.2) for _ in range(20))
        yield "".join(chance.choice("bcdfghjklmnpqrstvwxz aeiou0123456789") for _ in range(chance.randint(5, 60)))
        yield chance.choice(_PIECES) * chance.randint(4, 60)


def loops(best: Hypothesis, source: Ids) -> bool:
    """Whether a translation is too long, and has a part three times in a row."""
    if len(best.ids) <= len(source) - 1 + _MORE_TOKENS and best.finish_reason is not FinishReason.LENGTH:
        return False
    for size in range(1, 13):
        run = 0
        for index in range(size, len(best.ids)):
            run = run + 1 if best.ids[index] == best.ids[index - size] else 0
            if run >= max(2 * size, 8 - size):
                return True
    return False


def main() -> int:
    """Entry point; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundle", type=Path, default=BUILTIN_BUNDLE, metavar="DIR", help="default: built in, en-de")
    parser.add_argument("--variant", default="cpu-int8", help="default: %(default)s")
    parser.add_argument(
        "--loops", type=int, default=500, metavar="N", help="half of them greedy (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the texts (default: %(default)s)")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="print N translations that are too long")
    arguments = parser.parse_args()
    bundle = open_bundle(arguments.bundle, arguments.variant)
    tokenizer = Tokenizer(bundle.manifest, bundle.read)
    settings = Settings(system="ours", path=str(arguments.bundle), precision=arguments.variant, batch=64)
    checks: list[Check] = []
    engine = open_engine(settings, CollectorRegistry())
    engine.start()
    try:
        for beam_size in (1, 4):
            checks += _judge(engine, tokenizer, beam_size, arguments)
    finally:
        engine.stop()
    return print_checks(checks)


def _judge(engine: Engine, tokenizer: Tokenizer, beam_size: int, arguments: argparse.Namespace) -> list[Check]:
    provoked: list[Ids] = []
    texts = degenerate_texts(arguments.seed)
    num_sources = 0
    while len(provoked) < arguments.loops // 2 and num_sources < _MOST_SOURCES:
        sources = [ids for ids in (tokenizer.encode(next(texts)) for _ in range(_AT_A_TIME)) if 1 < len(ids) <= 100]
        num_sources += len(sources)
        found = _translate(engine, sources, beam_size, end_loops=False)
        provoked += [source for source, best in zip(sources, found, strict=True) if loops(best, source)]
    provoked = provoked[: arguments.loops // 2]
    ended = _translate(engine, provoked, beam_size, end_loops=True)
    flagged = sum(best.finish_reason is FinishReason.REPETITION for best in ended)
    long = [
        index
        for index, (source, best) in enumerate(zip(provoked, ended, strict=True))
        if len(best.ids) > len(source) - 1 + _MORE_TOKENS
    ]
    for index in long[: arguments.show]:
        print(f"{tokenizer.spell_source(provoked[index])}\n  {tokenizer.decode(ended[index].ids)} {ended[index]}")
    others = sum(
        best.finish_reason is not FinishReason.REPETITION and not loops(best, source)
        for source, best in zip(provoked, ended, strict=True)
    )
    usual = [tokenizer.encode(line) for line in (DATA / "newstest2014_500.en.txt").read_text("utf-8").splitlines()]
    usual = [ids for ids in usual if len(ids) <= 200]
    plain, watched = (_translate(engine, usual, beam_size, end_loops=each) for each in (False, True))
    same = sum(a == b for a, b in zip(plain, watched, strict=True))
    way = f"beam {beam_size}: "
    enough = len(provoked) == arguments.loops // 2
    return [
        Check(f"{way}loops", f"{len(provoked)} of {num_sources} sources", f">= {arguments.loops // 2}", enough),
        Check(f"{way}longer than the source and 16 tokens", f"{len(long)}", "0", not long),
        Check(f"{way}flagged", f"{flagged}, and {others} have ended otherwise", "all", flagged + others == len(ended)),
        Check(f"{way}news as without end_loops", f"{same} of {len(usual)}", ">= 99 %", same >= 0.99 * len(usual)),
    ]


def _translate(engine: Engine, sources: Sequence[Ids], beam_size: int, *, end_loops: bool) -> list[Hypothesis]:
    options = DecodingOptions(beam_size=beam_size, end_loops=end_loops)
    return [future.result().hypotheses[0] for future in engine.submit(sources, options)]


if __name__ == "__main__":
    sys.exit(main())
