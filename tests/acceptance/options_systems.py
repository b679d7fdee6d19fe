"""A way to search, asked of our engine and of CTranslate2: the same weights in float32, the same sentences."""

import dataclasses
import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from export.aligner import write_aligner
from export.probe_bundle import write_manifest
from model.checkpoint import Checkpoint
from server.bundle.alignment import Alignment, Head
from server.bundle.bundle import open_bundle
from server.decoding.options import DecodingOptions
from tests.acceptance.server_process import BUILTIN_BUNDLE
from tests.bench.shortlist import random_shortlist
from tests.bench.systems import Ids, Settings, open_engine

MOST_TOKENS = 160  # of a translation; one as long as that is left out, as the systems count its end differently
_PRECISION = "cpu-fp32"
Hypotheses = list[tuple[tuple[int, ...], float]]  # ids and score of each


@dataclasses.dataclass(frozen=True, kw_only=True)
class Way:
    """How sentences are translated.

    Attributes:
        ours, theirs: options; phrases are filled in.
        beam_sizes: each is tried.
        with_prefixes: whether translations begin with given ids.
        is_judged: whether ids must be equal.
        num_hypotheses: that are compared.
        one_by_one: whether CTranslate2 has to translate one sentence at a time, because its padding counts otherwise.
    """

    name: str
    ours: dict[str, Any] = dataclasses.field(default_factory=dict)
    theirs: dict[str, Any] = dataclasses.field(default_factory=dict)
    beam_sizes: tuple[int, ...] = (1, 4)
    with_prefixes: bool = False
    is_judged: bool = True
    num_hypotheses: int = 1
    one_by_one: bool = False


class Ours:
    """Our engine.

    Args:
        path: of a bundle, which is made: the built-in one, aligned as CTranslate2 does.
    """

    def __init__(self, path: Path) -> None:
        shutil.copytree(BUILTIN_BUNDLE, path)
        bundle = open_bundle(path, _PRECISION)
        manifest = bundle.manifest
        alignment = Alignment(
            heads=(Head(manifest.dimensions.decoder_layers - 1, 0, False),), error_rate=0.0, num_sentences=0
        )
        variants = dict(manifest.variants)
        variants[_PRECISION] = write_aligner(path / _PRECISION, variants[_PRECISION], alignment.heads)
        write_manifest(path, dataclasses.replace(manifest, alignment=alignment, variants=variants))
        self._engine = open_engine(
            Settings(system="ours", path=str(path), precision=_PRECISION, batch=32), CollectorRegistry()
        )
        self._engine.start()

    def translate(
        self, sources: Sequence[Ids], way: Way, beam_size: int, prefixes: Sequence[Ids] | None = None
    ) -> list[Hypotheses]:
        """Returns the hypotheses of each sentence, best first, behind given prefixes if there are any."""
        asked = DecodingOptions(
            beam_size=beam_size, num_hypotheses=way.num_hypotheses, max_output_tokens=MOST_TOKENS, **way.ours
        )
        options = [dataclasses.replace(asked, target_prefix=tuple(ids)) for ids in prefixes or [()] * len(sources)]
        futures = [
            future for ids, own in zip(sources, options, strict=True) for future in self._engine.submit([ids], own)
        ]
        return [[(each.ids, each.score) for each in future.result().hypotheses] for future in futures]

    def close(self) -> None:
        """Stops the engine."""
        self._engine.stop()


class Theirs:
    """CTranslate2's translator.

    Args:
        checkpoint: the model.
        path: of CTranslate2's model, which is made.
    """

    def __init__(self, checkpoint: Checkpoint, path: Path) -> None:
        import ctranslate2  # noqa: PLC0415

        from tests.bench.conversion import convert  # noqa: PLC0415  # needs ctranslate2, too

        convert(checkpoint.build_model(), path, "float32", random_shortlist(checkpoint.config, seed=1))
        self._translator = ctranslate2.Translator(str(path), compute_type="float32", intra_threads=2)
        self._tokens: list[str] = json.loads((path / "shared_vocabulary.json").read_text(encoding="utf-8"))
        self._end: str = json.loads((path / "config.json").read_text(encoding="utf-8"))["eos_token"]

    def translate(
        self, sources: Sequence[Ids], way: Way, beam_size: int, prefixes: Sequence[Ids] | None = None
    ) -> list[Hypotheses]:
        """See `Ours.translate`."""
        ids = {name: token for token, name in enumerate(self._tokens)}
        found: list[Hypotheses] = [[]] * len(sources)
        for numbers, options in self._batches(sources, way):
            results = self._translator.translate_batch(
                [self._named(sources[number]) for number in numbers],
                None if prefixes is None else [self._named(prefixes[number]) for number in numbers],
                **{"min_decoding_length": 0, "max_decoding_length": MOST_TOKENS} | options,
                beam_size=beam_size,
                num_hypotheses=way.num_hypotheses,
                max_input_length=0,
                return_end_token=True,  # so that it counts in the length
                return_scores=True,
                batch_type="tokens",
                max_batch_size=2048,
            )
            for number, result in zip(numbers, results, strict=True):
                found[number] = [
                    (tuple(ids[name] for name in names if name != self._end), score)
                    for names, score in zip(result.hypotheses, result.scores, strict=True)
                ]
        return found

    def _batches(self, sources: Sequence[Ids], way: Way) -> Iterator[tuple[list[int], dict[str, Any]]]:
        """Yields the numbers of sentences that share a call, and its options: lengths may depend on the source's."""
        options = dict(way.theirs)
        if "suppress_sequences" in options:
            options["suppress_sequences"] = [self._named(phrase) for phrase in options["suppress_sequences"]]
        all_numbers = range(len(sources))
        if way.one_by_one:
            yield from (([number], options) for number in all_numbers)
        elif any(map(callable, options.values())):
            for length in sorted(set(map(len, sources))):
                own = {name: value(length) if callable(value) else value for name, value in options.items()}
                yield [number for number in all_numbers if len(sources[number]) == length], own
        else:
            yield list(all_numbers), options

    def _named(self, ids: Ids) -> list[str]:
        return [self._tokens[token] for token in ids]
