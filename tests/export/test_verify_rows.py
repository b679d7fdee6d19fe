"""How far two translations are apart, and whether rows of a batch are."""

from pathlib import Path

import onnx
import pytest
from onnx import helper

from export.graphs import step_graph
from export.id_translator import open_translator
from export.verify import NEAR_TIE, VerificationError, check_rows_apart, tie_gap, token_log_probs
from model.search import search
from model.transformer import Transformer
from server.bundle.bundle import Bundle
from server.runtime.runner import open_runner
from tests.export.conftest import write_fp32


class TestTieGap:
    @pytest.mark.parametrize("limit", [2, 60])
    def test_token_log_probs_add_up_to_the_score_of_the_search(
        self, tiny_model: Transformer, sources: list[list[int]], limit: int
    ) -> None:
        results = search(tiny_model, sources[:5], length_penalty=0.0, max_tokens=limit)

        assert any(found[0].is_complete for found in results) == (limit == 60)
        for source, found in zip(sources[:5], results, strict=True):
            log_probs = token_log_probs(tiny_model, source, found[0].ids, limit)
            assert sum(log_probs) == pytest.approx(found[0].score, abs=1e-4)

    def test_greedy_gap_is_that_of_the_first_step_that_differs(
        self, tiny_model: Transformer, sources: list[list[int]]
    ) -> None:
        ((best,),) = search(tiny_model, sources[:1], max_tokens=60)
        other = [*best.ids[:3], 9, 9, 9]

        gap = tie_gap(tiny_model, sources[0], best.ids, other, 60, is_greedy=True)

        mine, others = (token_log_probs(tiny_model, sources[0], ids, 60) for ids in (best.ids, other))
        assert gap == mine[3] - others[3] > NEAR_TIE

    def test_beam_gap_is_that_of_the_whole_translations(
        self, tiny_model: Transformer, sources: list[list[int]]
    ) -> None:
        first, second = search(tiny_model, sources[:1], beam_size=2, length_penalty=0.0, max_tokens=60)[0]

        gap = tie_gap(tiny_model, sources[0], first.ids, second.ids, 60, is_greedy=False)

        assert gap == pytest.approx(first.score - second.score, abs=1e-4)


class TestRowsApart:
    def test_rows_of_the_int8_graphs_are_apart(self, tiny_bundle: Bundle, sources: list[list[int]]) -> None:
        runner = open_runner(tiny_bundle, "cpu-int8", "cpu")

        with open_translator(runner, tiny_bundle) as translator:
            report = check_rows_apart(translator, sources[:20])

        assert report["sentences"] == 20
        assert report["same_alone"] >= 20 * 0.99

    def test_rows_that_see_each_other_are_found(
        self, tiny_model: Transformer, tiny_bundle: Bundle, sources: list[list[int]], tmp_path: Path
    ) -> None:
        bundle = write_fp32(tiny_model, tiny_bundle, tmp_path, _mix_rows(step_graph(tiny_model)))

        with (
            open_translator(open_runner(bundle, "cpu-fp32", "cpu"), bundle) as translator,
            pytest.raises(VerificationError, match=r"only \d+ of 12 sentences give the same ids alone and in a batch"),
        ):
            check_rows_apart(translator, sources[:12])


def _mix_rows(model: onnx.ModelProto) -> onnx.ModelProto:
    """Adds the mean over the rows of the step to what is projected to logits."""
    graph = model.graph
    at = next(i for i, node in enumerate(graph.node) if node.name == "logits")
    x = graph.node[at].input[0]
    axis = helper.make_node("Constant", [], ["rows_axis"], value_ints=[0])
    mean = helper.make_node("ReduceMean", [x, "rows_axis"], ["mean_row"], keepdims=1)
    mixed = helper.make_node("Add", [x, "mean_row"], ["mixed_rows"])
    for offset, node in enumerate((axis, mean, mixed)):
        graph.node.insert(at + offset, node)
    graph.node[at + 3].input[0] = "mixed_rows"
    return model
