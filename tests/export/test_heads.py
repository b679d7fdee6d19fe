import copy
import dataclasses
import math
from pathlib import Path

import pytest
import torch

from export.heads import Head, Loss, distances_of, heads_of, loss, measure_heads, report, without
from model.checkpoint import load_checkpoint
from model.data import make_batch
from model.transformer import Transformer

CHECKPOINT = Path(__file__).parents[1] / "data" / "tiny.pt"
PAIRS = [("A dog runs.", "Ein Hund läuft."), ("Two men are sitting on a bench.", "Zwei Männer sitzen auf einer Bank.")]
TEXTS = {"captions": PAIRS * 3, "words": [("dog", "Hund"), ("man", "Mann")]}


def test_distances_are_those_of_the_formula() -> None:
    heads = torch.tensor([[[1.0, 0.0], [0.5, 0.5]], [[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [1.0, 0.0]]])

    found = distances_of(heads)

    half = -(0.75 * math.log2(0.75) + 0.25 * math.log2(0.25)) - 0.5
    assert found[0].tolist() == pytest.approx([0.0, 0.0, (1.0 + half) / 2], abs=1e-6)
    assert torch.equal(found, found.T)


def test_a_rise_has_an_interval_over_sentences() -> None:
    before, after = Loss(torch.tensor([1.0, 3.0]), 4), Loss(torch.tensor([2.0, 6.0]), 4)

    assert (before.mean, after.mean) == (1.0, 2.0)
    assert after.rise(before) == pytest.approx((1.0, 1.96 * math.sqrt(2) * 1.0 / 4))


def test_the_loss_is_the_cross_entropy_of_each_sentence(model: Transformer) -> None:
    batch = make_batch([([7, 8, 9], [5, 6]), ([4], [9, 8, 7, 6])], model.config)
    with torch.inference_mode():
        found = loss(model, [batch])
        log_probs = model(batch.source, batch.target_in).log_softmax(-1)

    one, other = [5, 6, 3], [9, 8, 7, 6, 3]
    expected = [
        -sum(float(log_probs[row, place, token]) for place, token in enumerate(ids))
        for row, ids in enumerate((one, other))
    ]
    assert found.num_tokens == 8
    assert found.sums.tolist() == pytest.approx(expected, abs=1e-4)


def test_a_network_without_a_head_is_whole_again_afterwards(model: Transformer) -> None:
    batch = make_batch([([7, 8, 9], [5, 6])], model.config)
    weights = copy.deepcopy(model.state_dict())
    with torch.inference_mode():
        whole = loss(model, [batch]).mean
        for head in heads_of(model):
            with without(model, [head]):
                assert loss(model, [batch]).mean != whole
            with pytest.raises(RuntimeError, match="stop"), without(model, [head]):
                raise RuntimeError("stop")
    assert all(torch.equal(model.state_dict()[name], weight) for name, weight in weights.items())


def test_a_network_without_any_head_of_the_source_does_not_see_it(model: Transformer) -> None:
    one, other = (make_batch([(source, [5, 6])], model.config) for source in ([7, 8, 9], [4, 4]))
    cross = [head for head in heads_of(model) if head.attention == "cross"]
    with torch.inference_mode(), without(model, cross):
        assert loss(model, [one]).mean == pytest.approx(loss(model, [other]).mean, abs=1e-6)
    with torch.inference_mode():
        assert loss(model, [one]).mean != pytest.approx(loss(model, [other]).mean, abs=1e-6)


def test_every_head_is_measured_in_every_text() -> None:
    checkpoint = load_checkpoint(CHECKPOINT)
    found = measure_heads(checkpoint, TEXTS)

    heads = heads_of(checkpoint.build_model())
    assert [Head(*(each[name] for name in Head._fields)) for each in found["heads"]] == heads
    for name in TEXTS:
        for kind, matrix in found["distances"][name].items():
            own = [head for head in heads if head.attention == kind]
            assert len(matrix) == len(own)
            assert all(0 <= bits <= 1 for row in matrix for bits in row)
    cross = [each for each in found["heads"] if each["attention"] == "cross"]
    assert max(each["rise"]["captions"] for each in cross) > 0.01
    for each in found["heads"]:
        assert each["closest"]["attention"] == each["attention"]
        assert (each["closest"]["layer"], each["closest"]["head"]) != (each["layer"], each["head"])


def test_a_head_that_passes_nothing_on_is_worth_nothing() -> None:
    checkpoint = load_checkpoint(CHECKPOINT)
    model = checkpoint.build_model()
    idle = heads_of(model)[0]
    with without(model, [idle]):
        weights = {name: weight.clone() for name, weight in model.state_dict().items()}
    found = measure_heads(dataclasses.replace(checkpoint, weights=weights), TEXTS)

    assert found["heads"][0]["rise"] == {"captions": 0.0, "words": 0.0}
    title, *rows = report(found).splitlines()[5:]
    assert title.split() == ["head", "text", "1", "text", "2", "most", "alike", "bits"]
    assert len(rows) == len(heads_of(model))
    assert [row.split()[2] for row in rows if row.startswith("encoder 0.0 ")] == ["+0.0000"]
    worst = [max(float(row.split()[2]), float(row.split()[4])) for row in rows]
    assert worst == sorted(worst)


def test_a_text_without_a_pair_that_fits_is_refused() -> None:
    with pytest.raises(ValueError, match="long has no pair of at most"):
        measure_heads(load_checkpoint(CHECKPOINT), {"long": [("dog " * 5000, "Hund")]})
