"""What sentences with terms, penalties, bans or sampling cost the sentences beside them.

    python -m tests.acceptance.steered_neighbours
    python -m tests.acceptance.steered_neighbours --variant cpu-fp32 --rounds 30

A lane steps a batch of sentences whose rows are full: once without an option, then with an option for a quarter of
them, and so on in turns. The options are such as people set, and change what these sentences say. So what counts is the
time for a token of the translations. The times are those of cores, so that other processes hardly matter.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from prometheus_client import CollectorRegistry

from server.decoding.options import DecodingOptions, Sampling
from server.decoding.result import Result
from server.decoding.terms import Replaced, Terms
from server.engine.engine import Engine
from tests.acceptance.report import Check, print_checks
from tests.acceptance.server_process import BUILTIN_BUNDLE
from tests.bench.rounds import turns
from tests.bench.statistics import Ratio, median_of_ratios
from tests.bench.systems import Ids, Settings, open_engine
from tests.bench.text import DEFAULT_TEXT, read_text

_ROWS = 32
_MOST = 1.05
_PLAIN, _TERMS = "plain", "terms"
_OPTIONS: dict[str, dict[str, Any]] = {
    "penalty": {"repetition_penalty": 1.2},
    "n-grams": {"no_repeat_ngram_size": 3},
    "bans": {"min_output_tokens": 5, "suppressed": ((7000,), (7001,), *((i, i + 1) for i in range(100, 120)))},
    "sampling": {"sampling": Sampling()},
    "sampling, top_p 0.9": {"sampling": Sampling(top_p=0.9, temperature=0.8)},
    "sampling, top_k 10": {"sampling": Sampling(top_k=10)},
    "end_loops, of all": {"end_loops": True},
    _TERMS: {},
}


def main() -> int:
    """Entry point; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--variant", default="cpu-int8", help="of the built-in model (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=60, metavar="N", help="default: %(default)s")
    arguments = parser.parse_args()
    tokenizer = (BUILTIN_BUNDLE / "tokenizer.model").read_bytes()
    sources = [ids for ids in read_text(DEFAULT_TEXT, tokenizer).source_ids if 20 <= len(ids) <= 40]
    settings = Settings(
        system="ours", path=str(BUILTIN_BUNDLE), precision=arguments.variant, workers=1, threads=1, batch=_ROWS
    )
    engine = open_engine(settings, CollectorRegistry())
    engine.start()
    kinds = [
        (name, beam_size)
        for name, options in _OPTIONS.items()
        for beam_size in (1, 4)
        if (beam_size == 1 or "sampling" not in options) and (beam_size == 4 or name != _TERMS)
    ]
    checks = []
    try:
        for name, beam_size in kinds:
            ratio = _ratio(engine, sources, name, beam_size, arguments.rounds)
            title = f"{name}, beam {beam_size}: times plain"
            checks.append(Check(title, str(ratio), f"<= {_MOST}", ratio.value <= _MOST))
    finally:
        engine.stop()
    return print_checks(checks)


def _ratio(engine: Engine, sources: Sequence[Ids], name: str, beam_size: int, rounds: int) -> Ratio:
    """Returns the time of a token with an option, relative to the time without it; both take turns."""
    seconds: dict[str, list[float]] = {_PLAIN: [], name: []}
    for number, kind in turns(list(seconds), rounds):
        own = _measure(engine, sources, kind, beam_size)
        if number >= 0:
            seconds[kind].append(own)
    return median_of_ratios(seconds[name], seconds[_PLAIN])


def _measure(engine: Engine, sources: Sequence[Ids], name: str, beam_size: int) -> float:
    """Returns the seconds of a core that a token takes, if a quarter of the sentences has an option."""
    sources = sources[: _ROWS // beam_size]
    plain = DecodingOptions(beam_size=beam_size)
    steered = [replace(plain, **_OPTIONS.get(name, {}))] * len(sources)
    num_plain = 0 if name == "end_loops, of all" else len(sources) * 3 // 4
    if name == _TERMS:
        steered = [replace(plain, terms=_terms(future.result())) for future in engine.submit(sources, plain)]
    started = time.process_time()
    futures = [
        future
        for source, own in zip(sources[num_plain:], steered[num_plain:], strict=True)
        for future in engine.submit([source], own)
    ]
    futures += engine.submit(sources[:num_plain], plain) if num_plain else []
    num_tokens = sum(1 + len(future.result().hypotheses[0].ids) for future in futures)
    return (time.process_time() - started) / num_tokens


def _terms(result: Result) -> Terms:
    """Returns two tokens of a translation as terms, so that it has them wherever they are."""
    ids = result.hypotheses[0].ids
    forms = tuple(((token,),) for token in (ids[len(ids) // 3], ids[2 * len(ids) // 3]))
    return Terms(forms, Replaced(((),) * len(forms), tuple(ids)))


if __name__ == "__main__":
    sys.exit(main())
