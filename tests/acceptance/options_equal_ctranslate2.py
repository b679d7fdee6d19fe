"""Whether options of the search mean what they mean in CTranslate2: the same ids, in fp32.

    python -m tests.acceptance.options_equal_ctranslate2
    python -m tests.acceptance.options_equal_ctranslate2 --sentences 1000 --show 3

Both systems translate the same sentences of the same weights with the same option, greedily and with a beam. Of two
translations that differ, one may be as good as the other: then their scores are a near-tie. Without CTranslate2 the
exit status is 77.
"""

import argparse
import contextlib
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from export.restore import read_checkpoint
from export.verify import NEAR_TIE
from model.checkpoint import Checkpoint
from server.decoding.options import DecodingOptions
from tests.acceptance.report import EXIT_TOOL_MISSING, Check, print_checks
from tests.acceptance.server_process import BUILTIN_BUNDLE
from tests.bench.shortlist import random_shortlist
from tests.bench.systems import Ids, Settings, has_ctranslate2, open_engine
from tests.bench.text import DEFAULT_TEXT, read_text

_MOST_TOKENS = 160  # of a translation; one as long as that is left out, as the systems count its end differently
_WAYS: list[tuple[str, dict[str, Any], dict[str, Any], tuple[int, ...]]] = [
    ("none", {}, {}, (1, 2, 4)),
    ("repetition_penalty 1.3", {"repetition_penalty": 1.3}, {"repetition_penalty": 1.3}, (1, 4)),
    ("no_repeat_ngram_size 1", {"no_repeat_ngram_size": 1}, {"no_repeat_ngram_size": 1}, (1, 4)),
    ("no_repeat_ngram_size 2", {"no_repeat_ngram_size": 2}, {"no_repeat_ngram_size": 2}, (1, 4)),
    ("min_output_tokens 30", {"min_output_tokens": 30}, {"min_decoding_length": 30}, (1, 4)),
    ("suppress", {"suppressed": ()}, {"suppress_sequences": ()}, (1, 4)),
    ("patience 2", {"patience": 2.0}, {"patience": 2.0}, (4,)),
    ("patience 1.6, length_penalty 0.5", *({"patience": 1.6, "length_penalty": 0.5},) * 2, (2, 4)),
    (
        "all",
        {"suppressed": (), "repetition_penalty": 1.1, "no_repeat_ngram_size": 2, "min_output_tokens": 30},
        {
            "suppress_sequences": (),
            "repetition_penalty": 1.1,
            "no_repeat_ngram_size": 2,
            "min_decoding_length": 30,
        },
        (1, 4),
    ),
]
_Found = list[tuple[tuple[int, ...], float]]  # of each sentence: the ids of its translation, and its score


def main() -> int:
    """Entry point; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=300, metavar="N", help="default: %(default)s")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="print N differences of each option")
    arguments = parser.parse_args()
    if not has_ctranslate2("cpu"):
        print("needs the package ctranslate2", file=sys.stderr)
        return EXIT_TOOL_MISSING
    checkpoint = read_checkpoint(BUILTIN_BUNDLE)
    sources = read_text(DEFAULT_TEXT, checkpoint.tokenizer).source_ids[: arguments.sentences]
    checks: list[Check] = []
    usual: dict[int, _Found] = {}  # by the beam's width
    with tempfile.TemporaryDirectory() as work, contextlib.closing(_Ours()) as ours:
        theirs = _Theirs(checkpoint, Path(work) / "model")
        phrases = _phrases([ids for ids, _ in ours.translate(sources, {}, 1)])
        for name, our_options, their_options, beam_sizes in _WAYS:
            for beam_size in beam_sizes:
                mine = ours.translate(sources, _with(our_options, "suppressed", phrases), beam_size)
                other = theirs.translate(sources, _with(their_options, "suppress_sequences", phrases), beam_size)
                checks.append(_check(f"{name}, beam {beam_size}", mine, other, arguments.show))
                usual.setdefault(beam_size, mine)
                num_changed = sum(ids != before for (ids, _), (before, _) in zip(mine, usual[beam_size], strict=True))
                is_useful = None if name == "none" else num_changed > 0
                checks.append(Check("  translations that it changes", str(num_changed), "some", is_useful))
    return print_checks(checks)


def _with(options: dict[str, Any], name: str, phrases: tuple[tuple[int, ...], ...]) -> dict[str, Any]:
    return options | {name: phrases} if name in options else options


def _phrases(translations: Sequence[Ids]) -> tuple[tuple[int, ...], ...]:
    """Returns what to suppress: the first tokens of some translations, pairs and triples of tokens of others."""
    long = [tuple(ids) for ids in translations if len(ids) > 8]
    return (*(ids[:1] for ids in long[:4]), *(ids[2:4] for ids in long[4:60]), *(ids[3:6] for ids in long[60:]))


def _check(name: str, ours: _Found, theirs: _Found, show: int) -> Check:
    num_equal = num_ties = num_cut = 0
    for number, ((ids, score), (other_ids, other_score)) in enumerate(zip(ours, theirs, strict=True)):
        if ids == other_ids:
            num_equal += 1
        elif max(len(ids), len(other_ids)) >= _MOST_TOKENS - 1:
            num_cut += 1
        elif abs(score - other_score) <= NEAR_TIE:
            num_ties += 1
        elif show > 0:
            show -= 1
            print(f"{name}, sentence {number}:\n  {ids} {score:.5f}\n  {other_ids} {other_score:.5f}")
    measured = f"{num_equal} of {len(ours)} equal, {num_ties} near-ties, {num_cut} cut"
    return Check(name, measured, "all", num_equal + num_ties + num_cut == len(ours) and num_equal >= 0.95 * len(ours))


class _Ours:
    def __init__(self) -> None:
        settings = Settings(system="ours", path=str(BUILTIN_BUNDLE), precision="cpu-fp32", batch=32)
        self._engine = open_engine(settings, CollectorRegistry())
        self._engine.start()

    def translate(self, sources: Sequence[Ids], options: dict[str, Any], beam_size: int) -> _Found:
        asked = DecodingOptions(beam_size=beam_size, max_output_tokens=_MOST_TOKENS, **options)
        best = [future.result().hypotheses[0] for future in self._engine.submit(sources, asked, None)]
        return [(each.ids, each.score) for each in best]

    def close(self) -> None:
        self._engine.stop()


class _Theirs:
    def __init__(self, checkpoint: Checkpoint, path: Path) -> None:
        import ctranslate2  # noqa: PLC0415

        from tests.bench.conversion import convert  # noqa: PLC0415  # needs ctranslate2, too

        convert(checkpoint.build_model(), path, "float32", random_shortlist(checkpoint.config, seed=1))
        self._translator = ctranslate2.Translator(str(path), compute_type="float32", intra_threads=2)
        self._tokens: list[str] = json.loads((path / "shared_vocabulary.json").read_text(encoding="utf-8"))
        self._end: str = json.loads((path / "config.json").read_text(encoding="utf-8"))["eos_token"]

    def translate(self, sources: Sequence[Ids], options: dict[str, Any], beam_size: int) -> _Found:
        names = self._tokens
        if "suppress_sequences" in options:
            phrases = [[names[token] for token in phrase] for phrase in options["suppress_sequences"]]
            options = options | {"suppress_sequences": phrases}
        results = self._translator.translate_batch(
            [[names[token] for token in source] for source in sources],
            **{"min_decoding_length": 0} | options,
            beam_size=beam_size,
            max_decoding_length=_MOST_TOKENS,
            max_input_length=0,
            return_end_token=True,  # so that it counts in the length
            return_scores=True,
            batch_type="tokens",
            max_batch_size=2048,
        )
        ids = {name: token for token, name in enumerate(names)}
        return [
            (tuple(ids[name] for name in result.hypotheses[0] if name != self._end), result.scores[0])
            for result in results
        ]


if __name__ == "__main__":
    sys.exit(main())
