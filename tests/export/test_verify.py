import copy
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import sacrebleu
import sentencepiece
import torch

from export.examples import encode_examples
from export.id_translator import open_translator
from export.subject import DevSet
from export.verify import VerificationError, check_ids, check_quality, check_step_logits, measure_quality
from model.checkpoint import Checkpoint
from model.search import default_max_tokens, search
from model.transformer import Transformer
from server.bundle.bundle import Bundle
from server.bundle.tokenizer import Tokenizer
from server.decoding.options import DecodingOptions
from server.errors import NotServing
from server.runtime.runner import HostRunner
from tests.export.conftest import write_fp32
from tests.runners import open_host_runner


@pytest.fixture(scope="module")
def runner(tiny_bundle: Bundle) -> HostRunner:
    return open_host_runner(tiny_bundle)


@pytest.fixture(scope="module")
def max_tokens(tiny_bundle: Bundle) -> int:
    return tiny_bundle.manifest.limits.max_target_tokens


@pytest.fixture
def targets(tiny_checkpoint: Checkpoint, dev_set: DevSet) -> list[list[int]]:
    tokenizer = sentencepiece.SentencePieceProcessor(model_proto=tiny_checkpoint.tokenizer)
    return [[tiny_checkpoint.config.bos_id, *ids] for ids in tokenizer.encode(dev_set.references)]


def changed(model: Transformer, change: Callable[[Transformer], object]) -> Transformer:
    other = copy.deepcopy(model)
    with torch.no_grad():
        change(other)
    return other


def runner_of(model: Transformer, like: Bundle, directory: Path) -> tuple[HostRunner, Bundle]:
    bundle = write_fp32(model, like, directory)
    return open_host_runner(bundle), bundle


def swap_tokens(model: Transformer, one: int, other: int) -> None:
    weight = model.embedding.tokens.weight
    weight[[one, other]] = weight[[other, one]]


class TestStepLogits:
    def test_right_graphs_pass_and_what_was_measured_is_returned(
        self, tiny_model: Transformer, runner: HostRunner, sources: list[list[int]], targets: list[list[int]]
    ) -> None:
        report = check_step_logits(tiny_model, runner, sources[:8], targets[:8])

        assert report["sentences"] == 8
        assert report["positions"] == max(map(len, targets[:8]))
        assert 0 < report["largest_difference"] < 1e-4

    @pytest.mark.parametrize(
        "name",
        [
            "encoder.0.self_attention.qkv.weight",
            "encoder.1.feed_forward.hidden.bias",
            "decoder.0.cross_attention.qkv.weight",
            "decoder.1.self_norm.weight",
            "embedding.tokens.weight",
        ],
    )
    def test_a_wrong_weight_in_a_graph_is_found(
        self,
        tiny_model: Transformer,
        tiny_bundle: Bundle,
        sources: list[list[int]],
        targets: list[list[int]],
        tmp_path: Path,
        name: str,
    ) -> None:
        wrong = changed(tiny_model, lambda m: m.get_parameter(name).mul_(1.01))
        runner, _ = runner_of(wrong, tiny_bundle, tmp_path)

        expected = r"step logits differ from teacher forcing by .*, allowed 1\.[0-9]e-04"
        with pytest.raises(VerificationError, match=expected):
            check_step_logits(tiny_model, runner, sources[:4], targets[:4])

    def test_logits_that_are_no_numbers_are_found(
        self,
        tiny_model: Transformer,
        tiny_bundle: Bundle,
        sources: list[list[int]],
        targets: list[list[int]],
        tmp_path: Path,
    ) -> None:
        broken = changed(tiny_model, lambda m: m.decoder[0].feed_forward.output.bias.fill_(float("nan")))
        runner, _ = runner_of(broken, tiny_bundle, tmp_path)

        for model in (tiny_model, broken):  # a broken checkpoint is no excuse
            with pytest.raises(VerificationError, match="by nan"):
                check_step_logits(model, runner, sources[:4], targets[:4])


class TestIds:
    @pytest.mark.parametrize("beam_size", [1, 4])
    def test_right_graphs_pass(
        self,
        tiny_model: Transformer,
        tiny_bundle: Bundle,
        runner: HostRunner,
        sources: list[list[int]],
        max_tokens: int,
        beam_size: int,
    ) -> None:
        with open_translator(runner, tiny_bundle) as translator:
            report = check_ids(tiny_model, translator, sources[:40], beam_size, max_tokens)

        assert report == {"sentences": 40, "equal": 40, "near_ties": []}

    def test_every_sentence_whose_ids_differ_is_named(
        self,
        tiny_model: Transformer,
        tiny_bundle: Bundle,
        sources: list[list[int]],
        max_tokens: int,
        tmp_path: Path,
    ) -> None:
        few = sources[:6]
        used = [one[0].ids for one in search(tiny_model, few, max_tokens=max_tokens)]
        common = max(set(used[0]), key=lambda token: sum(token in ids for ids in used))
        unused = next(token for token in range(4, 700) if not any(token in ids for ids in [*used, *few]))
        runner, bundle = runner_of(changed(tiny_model, lambda m: swap_tokens(m, common, unused)), tiny_bundle, tmp_path)
        affected = [i for i in range(6) if common in used[i]]

        with (
            open_translator(runner, bundle) as translator,
            pytest.raises(VerificationError, match=r"^beam size 1: ids differ from the oracle's: ") as caught,
        ):
            check_ids(tiny_model, translator, few, 1, max_tokens)

        message = str(caught.value)
        assert all(f"sentence {i}: [" in message for i in affected)
        assert message.count("instead of") >= len(affected)

    def test_a_near_tie_is_allowed_and_listed(
        self,
        tiny_model: Transformer,
        tiny_bundle: Bundle,
        sources: list[list[int]],
        max_tokens: int,
        tmp_path: Path,
    ) -> None:
        few = sources[:6]
        used = [one[0].ids for one in search(tiny_model, few, max_tokens=max_tokens)]
        token = used[0][0]
        twin = next(other for other in range(4, 700) if not any(other in ids for ids in [*used, *few]))

        def make_twins(model: Transformer) -> None:
            weight = model.embedding.tokens.weight
            weight[twin] = weight[token] * (1 - 3e-6)  # a little less likely than its twin

        twins = changed(tiny_model, make_twins)
        runner, bundle = runner_of(twins, tiny_bundle, tmp_path)
        oracle = changed(twins, lambda m: swap_tokens(m, token, twin))

        with open_translator(runner, bundle) as translator:
            report = check_ids(oracle, translator, few, 1, max_tokens)
            clear = check_ids(twins, translator, few, 1, max_tokens)

        assert len(report["near_ties"]) >= 1
        assert report["equal"] == 6 - len(report["near_ties"])
        assert report["near_ties"][0].startswith(f"sentence 0: [{token}, ")
        assert f" instead of [{twin}, " in report["near_ties"][0]
        assert clear["near_ties"] == []


class TestQuality:
    def test_int8_may_lose_so_much_and_no_more(self) -> None:
        quality = {"cpu-fp32": {"bleu": 30.0}, "cpu-int8": {"bleu": 29.5}}

        check_quality(quality, 0.5)

        with pytest.raises(
            VerificationError, match=r"cpu-int8 loses 0\.50 BLEU to cpu-fp32 on the dev set, allowed 0\.4"
        ):
            check_quality(quality, 0.4)

    def test_int8_may_be_better(self) -> None:
        check_quality({"cpu-fp32": {"bleu": 30.0}, "cpu-int8": {"bleu": 31.0}}, 0.0)

    def test_quality_is_that_of_the_beam_4_translations(
        self,
        tiny_checkpoint: Checkpoint,
        tiny_model: Transformer,
        tiny_bundle: Bundle,
        runner: HostRunner,
        sources: list[list[int]],
        dev_set: DevSet,
        max_tokens: int,
    ) -> None:
        tokenizer = sentencepiece.SentencePieceProcessor(model_proto=tiny_checkpoint.tokenizer)
        own = Tokenizer(tiny_bundle.manifest, tiny_bundle.read)
        examples = encode_examples(dev_set, tiny_bundle.manifest, own)[:10]
        few, references = sources[:10], dev_set.references[:10]
        limits = [default_max_tokens(len(source), max_tokens) for source in few]
        oracle = [found[0].ids for found in search(tiny_model, few, beam_size=4, max_tokens=limits)]

        with open_translator(runner, tiny_bundle) as translator:
            found, best = measure_quality(translator, own, examples, DecodingOptions(beam_size=4))

        expected = sacrebleu.corpus_bleu(tokenizer.decode(oracle), [references]).score
        assert found["bleu"] == pytest.approx(expected, abs=0.01)
        assert [list(each.ids) for each in best] == oracle
        assert found["sentences"] == 10
        assert "tok:13a" in found["bleu_signature"]


def test_a_translator_answers_in_order_and_its_engine_ends_with_the_block(
    tiny_bundle: Bundle, runner: HostRunner, sources: list[list[int]]
) -> None:
    options = DecodingOptions(beam_size=2)

    with open_translator(runner, tiny_bundle, max_rows=4) as translator:
        together, alone = translator(sources[:6], options), translator.one_by_one(sources[:6], options)

    assert [one.ids for one in together] == [one.ids for one in alone]
    np.testing.assert_allclose([one.score for one in together], [one.score for one in alone], atol=1e-5)
    with pytest.raises(NotServing):
        translator(sources[:1], options)
