"""The ladder of parity for a whole bundle: torch, the engine with one sentence, with many, and a server agree.

`BundleTests` asks the same of each kind of network that writes token by token. It translates 40 sentences, because they
take time, or as many as the environment's `BABELSERVE_LADDER_SENTENCES` says: 320 after a change of graphs or searches.
The export's own proof has as many.
"""

import gzip
import os
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest
import sentencepiece
from prometheus_client import CollectorRegistry

from babelserve.v1 import translation_pb2 as pb
from babelserve.v1.translation_pb2_grpc import TranslationServiceStub
from export.bundle import export_bundle
from export.subject import DevSet, subject_of
from model.checkpoint import Checkpoint
from model.search import Stepwise, default_max_tokens, search
from server.bundle.bundle import Bundle
from server.bundle.variants import VARIANTS
from server.models.checking import check_bundle
from server.settings.settings import Settings
from server.telemetry.metrics import Metrics
from tests.acceptance.calls import open_stub
from tests.acceptance.server_process import running_server
from tests.parity.test_continuous_batching import Ids, Stepper, best

# Half, and few sentences join a batch that is full: 64 rows are, with 16 of the sentences in beams of four.
_NUM_SENTENCES = int(os.environ.get("BABELSERVE_LADDER_SENTENCES", "40"))
_CAPTIONS = Path(__file__).parents[1] / "data" / "multi30k_val.en.gz"
_BATCH = 40  # sentences that torch translates at once

# Of a variant, texts and a beam size, the pieces of each translation that a server answers.
Served = Callable[[str, list[str], int], list[list[str]]]


def exported(
    checkpoint: Checkpoint,
    dev_set: DevSet,
    factory: pytest.TempPathFactory,
    variants: Collection[str] = tuple(VARIANTS),
) -> Bundle:
    """Exports and proves a bundle, with as many sentences as the ladder has."""
    out = factory.mktemp("bundles") / "bundle"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("export.bundle._ORACLE_WORK", 0)
        patch.setattr("export.bundle._LEAST_CHECKED", _NUM_SENTENCES)
        return export_bundle(subject_of(checkpoint), out, dev_set, version="0", variants=variants, max_bleu_loss=5.0)


class BundleTests:
    """The tests of a bundle; a subclass has the fixtures `checkpoint` and `bundle`."""

    @pytest.fixture(scope="class")
    @classmethod
    def served(cls, bundle: Bundle) -> Iterator[Served]:
        """Translates by servers in processes of their own: one for each variant, from when it is first asked."""
        with ExitStack() as stack:

            @cache
            def stub_of(variant: str) -> TranslationServiceStub:
                flags = ["--bundle", str(bundle.directory), "--variant", variant]
                return stack.enter_context(open_stub(stack.enter_context(running_server(flags)).address))

            yield lambda variant, texts, beam_size: _served(stub_of(variant), texts, beam_size)

    def test_the_export_proves_steps_and_ids_equal(self, bundle: Bundle) -> None:
        parity = bundle.manifest.parity

        assert 0 < parity["step_logits"]["largest_difference"] < 1e-4
        for found in ("greedy_ids", "beam_4_ids"):
            assert parity[found]["equal"] + len(parity[found]["near_ties"]) == parity[found]["sentences"] >= 40
        assert parity["int8_rows_apart"]["same_alone"] >= 0.99 * parity["int8_rows_apart"]["sentences"]

    def test_the_bundle_passes_its_check(self, bundle: Bundle) -> None:
        settings, metrics = Settings(bundle=bundle.directory), Metrics(CollectorRegistry())
        lines = check_bundle(bundle.directory, settings, metrics)

        assert sum("passes the golden sentence" in line for line in lines) >= 2

    @pytest.mark.parametrize("variant", ["cpu-fp32", "cpu-int8"])
    def test_a_server_answers_with_the_translations_of_the_bundle(
        self, checkpoint: Checkpoint, bundle: Bundle, served: Served, variant: str
    ) -> None:
        golden = bundle.manifest.golden

        found = served(variant, [golden.source_text] * 3, golden.beam_size)

        assert found == _spelled(checkpoint, [golden.outputs[variant].ids]) * 3

    @pytest.mark.parametrize("beam_size", [1, 4])
    def test_torch_steps_batches_and_a_server_say_the_same(
        self, checkpoint: Checkpoint, bundle: Bundle, served: Served, beam_size: int
    ) -> None:
        limits = bundle.manifest.limits
        texts, sources = _captions(checkpoint, limits.max_source_tokens)

        expected = _of_torch(checkpoint, sources, beam_size, limits.max_target_tokens)

        assert len(sources) == _NUM_SENTENCES
        assert _alone(bundle, "cpu-fp32", sources, beam_size) == expected
        assert _together(bundle, "cpu-fp32", sources, beam_size) == expected
        assert served("cpu-fp32", texts, beam_size) == _spelled(checkpoint, expected)

    def test_int8_keeps_sentences_apart_and_is_served(
        self, checkpoint: Checkpoint, bundle: Bundle, served: Served
    ) -> None:
        texts, sources = _captions(checkpoint, bundle.manifest.limits.max_source_tokens)

        expected = _alone(bundle, "cpu-int8", sources, 4)

        assert _together(bundle, "cpu-int8", sources, 4) == expected
        assert served("cpu-int8", texts, 4) == _spelled(checkpoint, expected)


def _captions(checkpoint: Checkpoint, limit: int) -> tuple[list[str], list[list[int]]]:
    """Returns sentences of fewer than `limit` tokens, and their ids with eos."""
    pieces = sentencepiece.SentencePieceProcessor(model_proto=checkpoint.tokenizer)
    chosen: dict[str, list[int]] = {}
    for text in gzip.decompress(_CAPTIONS.read_bytes()).decode("utf-8").splitlines():
        ids = pieces.encode(text)
        # A server splits texts into sentences, and copies words with characters that the vocabulary lacks.
        is_one = text.count(".") == 1 and text.endswith(".")
        if is_one and len(ids) < limit and not any(map(pieces.is_byte, ids)) and len(chosen) < _NUM_SENTENCES:
            chosen[text] = [*ids, checkpoint.config.eos_id]
    return list(chosen), list(chosen.values())


def _of_torch(checkpoint: Checkpoint, sources: list[list[int]], beam_size: int, limit: int) -> list[Ids]:
    """Returns what the oracle finds with whole prefixes, without states."""
    model, found = checkpoint.build_network(), list[Ids]()
    assert isinstance(model, Stepwise)
    for start in range(0, len(sources), _BATCH):
        some = sources[start : start + _BATCH]
        limits = [default_max_tokens(len(source), limit) for source in some]
        found += [tuple(each[0].ids) for each in search(model, some, beam_size=beam_size, max_tokens=limits)]
    return found


def _alone(bundle: Bundle, variant: str, sources: list[list[int]], beam_size: int) -> list[Ids]:
    """Returns what the engine finds step by step, one sentence after the other."""
    stepper = Stepper(bundle, variant)
    return [stepper.alone(source, beam_size) for source in sources]


def _together(bundle: Bundle, variant: str, sources: list[list[int]], beam_size: int) -> list[Ids]:
    """Returns what the engine finds for sentences that join and leave the same batch."""
    stepper = Stepper(bundle, variant)
    futures = []
    for i, source in enumerate(sources):
        futures.append(stepper.submit(source, beam_size))
        stepper.step(i % 3)
    stepper.finish()
    return [best(future) for future in futures]


def _served(stub: TranslationServiceStub, texts: list[str], beam_size: int) -> list[list[str]]:
    """Returns the pieces of each translation that a server answers."""
    options = pb.DecodingOptions(beam_size=beam_size, end_loops=False)
    pieces = []
    for start in range(0, len(texts), _BATCH):
        request = pb.TranslateRequest(
            contents=texts[start : start + _BATCH],
            target_language_code="de",
            decoding=options,
            output=pb.OutputOptions(include_tokens=True),
        )
        pieces += [
            [token.text for each in translation.sentences for token in each.tokens if token.text]
            for translation in stub.Translate(request, timeout=50).translations
        ]
    return pieces


def _spelled(checkpoint: Checkpoint, translations: list[Ids]) -> list[list[str]]:
    """Returns the pieces of translations."""
    pieces = sentencepiece.SentencePieceProcessor(model_proto=checkpoint.tokenizer)
    return [[pieces.id_to_piece(token) for token in ids] for ids in translations]
