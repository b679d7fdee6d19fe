import itertools
import math
from dataclasses import dataclass

import pytest
import torch

from model.config import TransformerConfig
from model.search import Hypothesis, SearchRules, default_max_tokens, search
from model.transformer import Transformer

EOS = 3
SOURCES = [[4, 5, 6, 7, 3], [5, 3], [6, 6, 4, 3]]


def build(vocab_size: int, seed: int = 0) -> Transformer:
    torch.manual_seed(seed)
    config = TransformerConfig(
        vocab_size=vocab_size, d_model=16, num_heads=2, encoder_layers=1, decoder_layers=2, ffn_dim=32, max_positions=40
    )
    model = Transformer(config).eval()
    with torch.no_grad():
        model.embedding.tokens.weight[4:].mul_(2.0)  # far from uniform
    return model


@torch.inference_mode()
def next_log_probs(model: Transformer, source: list[int], prefix: list[int]) -> list[float]:
    logits = model(torch.tensor([source]), torch.tensor([[2, *prefix]]))
    return [float(value) for value in logits[0, -1].log_softmax(-1)]


@dataclass(frozen=True)
class Scored:
    ids: tuple[int, ...]
    log_prob: float
    is_complete: bool

    def score(self, length_penalty: float) -> float:
        length = len(self.ids) + self.is_complete  # counts eos
        return self.log_prob / math.pow(length, length_penalty)


def enumerate_all(model: Transformer, source: list[int], max_tokens: int) -> list[Scored]:
    """Every translation of at most `max_tokens` tokens (eos included), by brute force."""
    found: list[Scored] = []
    prefixes: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
    for length in range(1, max_tokens + 1):
        longer: list[tuple[tuple[int, ...], float]] = []
        for ids, log_prob in prefixes:
            for token, step in enumerate(next_log_probs(model, source, list(ids))):
                if token == EOS:
                    found.append(Scored(ids, log_prob + step, True))
                elif length == max_tokens:
                    found.append(Scored((*ids, token), log_prob + step, False))
                else:
                    longer.append(((*ids, token), log_prob + step))
        prefixes = longer
    return found


def same(hypothesis: Hypothesis, expected: Scored, length_penalty: float = 1.0) -> bool:
    return (
        tuple(hypothesis.ids) == expected.ids
        and hypothesis.is_complete == expected.is_complete
        and math.isclose(hypothesis.score, expected.score(length_penalty), abs_tol=1e-5)
    )


@pytest.mark.parametrize("seed", range(4))
def test_greedy_search_takes_the_best_token_of_each_step(seed: int) -> None:
    model = build(30, seed)

    for source in SOURCES:
        ids: list[int] = []
        total = 0.0
        while len(ids) < 12 and (not ids or ids[-1] != EOS):
            log_probs = next_log_probs(model, source, ids)
            ids.append(max(range(30), key=log_probs.__getitem__))
            total += log_probs[ids[-1]]
        is_complete = ids[-1] == EOS

        ((best,),) = search(model, [source], max_tokens=12)

        assert best.ids == (ids[:-1] if is_complete else ids)
        assert best.is_complete == is_complete
        assert best.score == pytest.approx(total / len(ids), abs=1e-5)


@pytest.mark.parametrize("length_penalty", [0.0, 0.6, 1.0, 2.0])
def test_a_beam_as_wide_as_the_space_finds_and_ranks_everything(length_penalty: float) -> None:
    model = build(6)
    everything = enumerate_all(model, [4, 5, 3], max_tokens=3)
    expected = sorted(everything, key=lambda one: -one.score(length_penalty))

    (found,) = search(model, [[4, 5, 3]], beam_size=200, max_tokens=3, length_penalty=length_penalty)

    assert len(found) == len(expected) == 1 + 5 + 25 + 125
    assert {tuple(one.ids): one.is_complete for one in found} == {one.ids: one.is_complete for one in expected}
    assert all(same(hypothesis, by_ids, length_penalty) for hypothesis, by_ids in zip(found, expected, strict=True))


@pytest.mark.parametrize(("seed", "beam_size"), [(0, 2), (1, 3), (2, 4), (3, 5)])
def test_a_narrow_beam_keeps_the_best_prefixes_of_each_step(seed: int, beam_size: int) -> None:
    model, source, max_tokens = build(8, seed), [4, 5, 7, 3], 4
    live: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
    finished: list[Scored] = []
    while live and len(finished) < beam_size:
        extended = [
            ((*ids, token), log_prob + step)
            for ids, log_prob in live
            for token, step in enumerate(next_log_probs(model, source, list(ids)))
        ]
        best = sorted(extended, key=lambda one: -one[1])
        finished += [Scored(ids[:-1], log_prob, True) for ids, log_prob in best[:beam_size] if ids[-1] == EOS]
        live = [one for one in best if one[0][-1] != EOS][:beam_size]
        if len(live[0][0]) == max_tokens:
            finished += [Scored(ids, log_prob, False) for ids, log_prob in live]
            live = []
    expected = sorted(finished[:beam_size], key=lambda one: -one.score(1.0))

    (found,) = search(model, [source], beam_size=beam_size, max_tokens=max_tokens)

    assert len(found) == beam_size
    assert all(itertools.starmap(same, zip(found, expected, strict=True)))


def test_a_wider_beam_finds_a_likelier_translation_than_greedy_search() -> None:
    gains = []
    for seed in range(8):
        model = build(8, seed)
        ((greedy,),) = search(model, [[4, 5, 3]], beam_size=1, max_tokens=5, length_penalty=0.0)
        (beam,) = search(model, [[4, 5, 3]], beam_size=8, max_tokens=5, length_penalty=0.0)
        gains.append(beam[0].score - greedy.score)

    assert min(gains) > -1e-5
    assert max(gains) > 0.01


@pytest.mark.parametrize("beam_size", [1, 4])
def test_a_batch_gives_what_each_sentence_gives_alone(beam_size: int) -> None:
    model, limits = build(30), [9, 2, 14]

    together = search(model, SOURCES, beam_size=beam_size, max_tokens=limits)
    alone = [
        search(model, [source], beam_size=beam_size, max_tokens=limit)[0]
        for source, limit in zip(SOURCES, limits, strict=True)
    ]

    assert [[one.ids for one in found] for found in together] == [[one.ids for one in found] for found in alone]
    for found, expected in zip(together, alone, strict=True):
        assert [one.score for one in found] == pytest.approx([one.score for one in expected], abs=1e-5)


def test_each_sentence_stops_at_its_own_limit() -> None:
    model, limits = build(30), [1, 5, 8]
    with torch.no_grad():
        model.embedding.tokens.weight[EOS] = -10 * model.embedding.tokens.weight[4:].mean(0)

    for found, limit in zip(search(model, SOURCES, beam_size=3, max_tokens=limits), limits, strict=True):
        for one in found:
            assert len(one.ids) + one.is_complete <= limit
            assert one.is_complete or len(one.ids) == limit


def test_hypotheses_hold_no_special_end_and_come_best_first() -> None:
    for found in search(build(30), SOURCES, beam_size=6, max_tokens=8):
        assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
        assert all(EOS not in one.ids for one in found)
        assert len({tuple(one.ids) for one in found}) == len(found) == 6


def test_the_length_penalty_decides_between_long_and_short() -> None:
    model = build(8, seed=1)
    with torch.no_grad():
        model.embedding.tokens.weight[EOS] = model.embedding.tokens.weight[7] * 0.9  # likely at every step

    short, long = (
        search(model, [[4, 5, 3]], beam_size=50, max_tokens=4, length_penalty=penalty)[0][0] for penalty in (0.0, 10.0)
    )

    assert len(long.ids) + long.is_complete == 4
    assert len(short.ids) + short.is_complete < 4


def search_as_transformers(
    model: Transformer, source: list[int], beam_size: int, length_penalty: float, max_tokens: int, forced_eos: bool
) -> list[Scored]:
    """The search of HF transformers 5 with `early_stopping=False`, on tensors of fixed sizes as it has them.

    Finished places that nobody has taken yet score -1e9; so do beams but the first at the start.
    """
    running: list[tuple[tuple[int, ...], float]] = [((), 0.0), *(((), -1e9) for _ in range(beam_size - 1))]
    kept: list[tuple[float, tuple[int, ...], float]] = [(-1e9, (), 0.0)] * beam_size
    for length in range(1, max_tokens + 1):
        is_last = length == max_tokens
        extended = []
        for ids, log_prob in running:
            steps = next_log_probs(model, source, list(ids))
            if is_last and forced_eos:
                steps = [0.0 if token == EOS else -1e9 for token in range(len(steps))]
            extended += [((*ids, token), log_prob + step) for token, step in enumerate(steps)]
        best = sorted(extended, key=lambda one: -one[1])[: 2 * beam_size]
        ended = [one for one in best[:beam_size] if is_last or one[0][-1] == EOS]
        kept += [(log_prob / length**length_penalty, ids, log_prob) for ids, log_prob in ended]
        kept = sorted(kept, key=lambda one: -one[0])[:beam_size]
        running = [one for one in best if one[0][-1] != EOS][:beam_size]
        if running and running[0][1] / length**length_penalty <= kept[-1][0]:
            break
    found = [(ids[:-1], log_prob, True) if ids[-1] == EOS else (ids, log_prob, False) for _, ids, log_prob in kept]
    return [Scored(*one) for one in found]


@pytest.mark.parametrize("length_penalty", [0.0, 0.6, 1.0, 2.0])
@pytest.mark.parametrize("forced_eos", [False, True])
@pytest.mark.parametrize("beam_size", [1, 2, 4])
def test_a_patient_search_finds_what_that_of_transformers_does(
    beam_size: int, forced_eos: bool, length_penalty: float
) -> None:
    rules, differs = SearchRules(early_stopping=False, forced_eos=forced_eos), False
    for seed in range(4):
        model, source = build(12, seed), [4, 5, 7, 3]
        with torch.no_grad():
            model.embedding.tokens.weight[EOS] = model.embedding.tokens.weight[7] * 0.9  # likely at every step
        expected = search_as_transformers(model, source, beam_size, length_penalty, 5, forced_eos)

        (found,) = search(
            model, [source], beam_size=beam_size, max_tokens=5, length_penalty=length_penalty, rules=rules
        )
        (impatient,) = search(model, [source], beam_size=beam_size, max_tokens=5, length_penalty=length_penalty)

        assert [tuple(one.ids) for one in found] == [one.ids for one in expected]
        for one, other in zip(found, expected, strict=True):
            length = len(other.ids) + (other.is_complete or forced_eos)
            assert one.score == pytest.approx(other.log_prob / length**length_penalty, abs=1e-5)
        differs = differs or [one.ids for one in found] != [one.ids for one in impatient]
    assert differs or beam_size < 4  # two beams seldom overtake each other


@pytest.mark.parametrize("early_stopping", [True, False])
def test_a_forced_end_costs_nothing_and_is_not_the_models(early_stopping: bool) -> None:
    model = build(30)
    with torch.no_grad():
        model.embedding.tokens.weight[EOS] = -10 * model.embedding.tokens.weight[4:].mean(0)  # it never ends
    free, forced = (
        search(model, SOURCES, beam_size=3, max_tokens=tokens, length_penalty=0.0, rules=rules)
        for tokens, rules in ((5, SearchRules()), (6, SearchRules(early_stopping=early_stopping, forced_eos=True)))
    )

    for one, other in zip(free, forced, strict=True):
        assert [each.ids for each in one] == [each.ids for each in other]
        assert [each.score for each in one] == pytest.approx([each.score for each in other], abs=1e-5)
        assert not any(each.is_complete for each in other)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_forced_prefix_is_free_and_no_part_of_the_translation(beam_size: int) -> None:
    model, prefixes = build(30), [[], [7], [8, 9]]
    limits = [6 + len(prefix) for prefix in prefixes]

    results = search(model, SOURCES, beam_size=beam_size, max_tokens=limits, forced_prefixes=prefixes)

    (alone,) = search(model, SOURCES[:1], beam_size=beam_size, max_tokens=6)
    assert [one.ids for one in results[0]] == [one.ids for one in alone]
    for source, prefix, limit, found in zip(SOURCES, prefixes, limits, results, strict=True):
        assert len(found) == beam_size
        for one in found:
            generated = [*one.ids, *([EOS] if one.is_complete else [])]
            assert len(prefix) + len(generated) <= limit
            total = sum(
                next_log_probs(model, source, [*prefix, *generated[:i]])[token] for i, token in enumerate(generated)
            )
            assert one.score == pytest.approx(total / (len(prefix) + len(generated)), abs=1e-5)
        if beam_size == 1:
            first = next_log_probs(model, source, prefix)
            assert found[0].ids[0] == max(range(30), key=first.__getitem__)


def test_a_prefix_that_leaves_no_room_is_refused() -> None:
    with pytest.raises(ValueError, match="a forced prefix of 2 tokens must be shorter than max_tokens, 2"):
        search(build(30), SOURCES[:1], max_tokens=2, forced_prefixes=[[7, 8]])


def test_the_default_limit_is_twice_the_source_plus_sixteen() -> None:
    assert default_max_tokens(10, 512) == 36
    assert default_max_tokens(300, 512) == 512
