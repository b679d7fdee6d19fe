"""Beam search with terms, over a network whose next token depends on the last one."""

import itertools
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from server.decoding.options import DecodingOptions, SearchRules
from server.decoding.result import FinishReason, Hypothesis
from server.decoding.steering import BANNED
from server.decoding.term_search import TermSearch
from server.decoding.terms import Form, Terms
from tests.server.decoding.test_beam_search import BOS, EOS
from tests.server.decoding.test_term_trie import replaced_by

PART = 50
Network = Callable[[tuple[int, ...]], Mapping[int, float]]


def search(
    network: Network,
    *terms: tuple[Form, ...],
    joined: tuple[tuple[Form, ...], ...] = (),
    replaced: Sequence[Sequence[int]] = (),
    gone: frozenset[Form] = frozenset(),
    begin: Form = (),
    max_tokens: int = 12,
    rules: SearchRules | None = None,
    placeholders: Mapping[int, int] | None = None,
    **options: Any,
) -> list[Hypothesis]:
    """Searches to the end, with a network that gives every token's log-probability after those before it."""
    told = Terms(terms, replaced_by(replaced or ((),) * len(terms), gone, begin=begin), {PART: 4}, joined)
    options = {"beam_size": 4, "num_hypotheses": 4, "with_tokens": True, **options}
    chosen = DecodingOptions(**options, terms=told)
    searched = TermSearch(
        chosen,
        max_tokens=max_tokens,
        bos_id=BOS,
        eos_id=EOS,
        rules=rules or SearchRules(),
        placeholders=placeholders or {},
    )
    beams: list[tuple[int, ...]] = [()]
    while beams:
        rows = [sorted(network(beam).items(), key=lambda each: -each[1])[: searched.top_k] for beam in beams]
        wanted = [network(beams[beam]).get(token, -30.0) for beam, token in searched.wanted]
        ids = [[token for token, _ in row] for row in rows]
        parents = searched.advance(ids, [[value for _, value in row] for row in rows], wanted)
        beams = [(*beams[parent], token) for parent, token in zip(parents, searched.last_ids, strict=bool(parents))]
    return searched.best()


def saying(*tokens: int, others: Mapping[int, float] | None = None) -> Network:
    """A network that says some tokens one after the other, whatever it has said; it finds others less likely."""

    def network(before: tuple[int, ...]) -> Mapping[int, float]:
        own = tokens[len(before)] if len(before) < len(tokens) else EOS
        unlikely = {token: -8.0 - token / 1000 for token in range(4, 60)}
        return {**unlikely, EOS: -12.0, **(others or {}), own: -0.1}

    return network


def test_a_translation_that_has_its_terms_is_what_it_would_be() -> None:
    assert search(saying(10, 11, 12), ((11,),))[0].ids == (10, 11, 12)
    assert search(saying(10, 11, 12), ((11, 12), (40,)))[0].ids == (10, 11, 12)


def test_a_term_is_written_although_the_network_never_would() -> None:
    best, *_ = search(saying(10, 11, 12), ((40, PART, 41),))

    assert "40, 50, 41" in str(best.ids)
    assert best.finish_reason is FinishReason.STOP


def test_all_hypotheses_have_all_terms() -> None:
    found = search(saying(10, 11, 12, 13), ((40,),), ((41, PART),), ((10,),))

    assert len(found) == 4
    for each in found:
        assert {(40,), (41, PART), (10,)} <= {each.ids[a:b] for a, b in itertools.combinations(range(8), 2)}


def test_a_beam_keeps_its_width_although_each_of_its_candidates_has_come_further() -> None:
    """Of more levels than the beam is wide, a candidate is likelier than all candidates of higher levels."""
    terms = (((10, 11), (10, 12)), ((11, 13),), ((12,),))
    told = Terms(terms, replaced_by(((), (), ())))
    options = DecodingOptions(beam_size=2, terms=told)
    searched = TermSearch(options, max_tokens=12, bos_id=BOS, eos_id=EOS)

    for _ in range(5):
        rows = len(searched.last_ids)
        wanted = [-5.0] * len(searched.wanted)
        searched.advance([[30, 31, 32, 33]] * rows, [[-0.1, -0.2, -0.3, -0.4]] * rows, wanted)
        assert len(searched.last_ids) == 2


def test_a_term_stands_in_the_place_of_the_word_that_it_replaces() -> None:
    assert search(saying(10, 11, 9, 12), ((40, PART),), replaced=((11,),))[0].ids == (10, 40, PART, 12)
    assert search(saying(10, 11, 12), ((40,),), replaced=((12,),))[0].ids == (10, 11, 40)


WRONG, RIGHT = (20, 22), 21  # articles; the right one is that of the term


def articles(right: float, *, after: Callable[[tuple[int, ...]], Mapping[int, float]]) -> Network:
    """A network that says a wrong article first, or the right one with a log-probability, and then what is given."""
    unlikely = {**dict.fromkeys(range(4, 60), -12.0), EOS: -14.0}

    def network(before: tuple[int, ...]) -> Mapping[int, float]:
        likely = after(before) if before else {**dict.fromkeys(WRONG, -0.2), RIGHT: right}
        return {**unlikely, **likely}

    return network


def nouns(before: tuple[int, ...]) -> Mapping[int, float]:
    """The noun 11 follows the wrong articles, and a term's 40 or 41 fit to the right one alone."""
    if len(before) == 1:
        return {11: -6.0, 40: -0.2, 41: -6.0} if before[0] == RIGHT else {11: -0.1, 40: -6.0, 41: -6.1}
    return {EOS: -0.1} if before[-1] == 12 else {12: -0.1, 13: -0.1}


@pytest.mark.parametrize(("likelihood", "is_right"), [(-2.0, True), (-9.0, False)])
def test_an_article_becomes_that_of_the_term_if_it_is_not_much_less_likely(likelihood: float, is_right: bool) -> None:
    """Beams with wrong articles are more than there is room for, if the term counts as the noun behind each."""
    best, *_ = search(articles(likelihood, after=nouns), ((40,), (41,)), replaced=((11,),))

    assert (best.ids[0] == RIGHT, best.ids[1]) == (is_right, 40)


def test_an_article_changes_for_a_term_that_comes_earlier_behind_it() -> None:
    """The wrong articles have an ending, 30, before the noun."""

    def after(before: tuple[int, ...]) -> Mapping[int, float]:
        if before[0] == RIGHT:
            return nouns(before)
        return {30: -0.1} if len(before) == 1 else nouns((before[0], *before[2:]))

    best, *_ = search(articles(-2.0, after=after), ((40,), (41,)), replaced=((11,),))
    assert best.ids[:2] == (RIGHT, 40)


def test_an_article_changes_for_a_term_whose_second_token_tells_its_gender() -> None:
    def after(before: tuple[int, ...]) -> Mapping[int, float]:
        if len(before) == 1:
            return {11: -0.5, 40: -0.5}
        if before[-1] == 40:
            return {PART: -0.1 if before[0] == RIGHT else -7.0}
        return nouns(before[:2])

    best, *_ = search(articles(-2.0, after=after), ((40, PART),), replaced=((11,),))
    assert best.ids[:3] == (RIGHT, 40, PART)


def test_beams_that_lack_a_term_and_are_less_likely_besides_take_no_room() -> None:
    terms = Terms((((40,),),), replaced_by([()]))
    options = DecodingOptions(beam_size=4, terms=terms)
    searched = TermSearch(options, max_tokens=12, bos_id=BOS, eos_id=EOS)
    searched.advance([[40, 5, 6, 7, 8]], [[-0.1, -20.0, -20.0, -20.0, -20.0]], [-0.1])
    followers = [[12, 13, 14, 15]] * len(searched.last_ids)
    wanted = [-9.0] * len(searched.wanted)
    searched.advance(followers, [[-0.5, -1.0, -1.5, -2.0]] * len(followers), wanted)

    assert searched.last_ids == [12, 13, 14, 15], "behind the term"


def test_an_article_changes_although_beams_differ_in_words_far_before_it() -> None:
    """The first words are as good as each other, and each is followed by six others; they are written again."""

    def network(before: tuple[int, ...]) -> Mapping[int, float]:
        if not before:
            return {**dict.fromkeys(range(4, 60), -12.0), **dict.fromkeys(range(22, 30), -2.1), EOS: -14.0}
        if len(before) < 7:
            return saying(*range(4, 11))(before)
        return articles(-3.0, after=nouns)(before[7:])

    best, *_ = search(network, ((40,),), replaced=((11,),), beam_size=8, max_tokens=20, begin=(22, 5, 6, 7))
    assert best.ids[7:9] == (RIGHT, 40)


def test_a_term_that_begins_as_the_word_that_it_replaces_stands_there_once() -> None:
    best, *_ = search(saying(10, 11, PART, 12), ((11, 41),), replaced=((11,),))

    assert best.ids[:3] == (10, 11, 41)
    assert best.ids.count(11) == 1


def test_a_word_that_a_term_replaces_may_stand_behind_it() -> None:
    assert search(saying(11, 10, 11), ((40,),), replaced=((11,),))[0].ids == (40, 10, 11)


def test_a_loop_is_ended_beside_terms() -> None:
    network = saying(*[10, 11] * 20, 12)

    found = search(network, ((40,),), max_tokens=40, end_loops=True)
    assert FinishReason.REPETITION in {each.finish_reason for each in found} or 40 in found[0].ids


def test_a_word_that_is_gone_stands_nowhere() -> None:
    network = saying(10, 11, 11, 12)

    assert 11 in search(network, ((40,),), replaced=((11,),))[0].ids
    assert all(11 not in each.ids for each in search(network, ((40,),), replaced=((11,),), gone=frozenset({(11,)})))


def test_a_word_of_several_tokens_is_gone_where_the_first_of_them_stays() -> None:
    network = saying(10, 11, 13, 11, 12)

    assert (11, 12) in itertools.pairwise(search(network, ((40,),))[0].ids)
    found = search(network, ((40,),), gone=frozenset({(11, 12)}))
    assert (11, 13) in itertools.pairwise(found[0].ids)
    assert not any((11, 12) in itertools.pairwise(each.ids) for each in found)
    assert 40 in search(network, ((40,),), gone=frozenset({(40,)}))[0].ids, "a form begins so"


@pytest.mark.parametrize("forced", [(), (9,)])
def test_a_search_begins_with_what_it_writes_again_and_counts_it(forced: tuple[int, ...]) -> None:
    def network(before: tuple[int, ...]) -> Mapping[int, float]:
        return saying(10, 11, 12)(before[len(forced) :])

    found = search(network, ((40,),), begin=(20, 21), forced_prefix=forced)
    assert all(each.ids[:2] == (20, 21) and 40 in each.ids for each in found)
    for each in found:
        tokens = [*each.ids, EOS]
        expected = [network((*forced, *each.ids[:place])).get(token, -30.0) for place, token in enumerate(tokens)]
        assert each.log_probs == pytest.approx(expected)
        assert each.score == pytest.approx(sum(expected) / (len(forced) + len(tokens)))


def test_what_is_given_is_not_counted_although_it_is_written_again() -> None:
    best, *_ = search(saying(10, 11, 12), ((40,),), begin=(20, 21, 22), target_prefix=(20,))

    assert best.ids[:3] == (20, 21, 22)
    assert best.log_probs[:3] == (0.0, *(saying(10, 11, 12)((20, 21)[:n])[20 + n] for n in (1, 2)))


def test_a_term_is_not_said_again() -> None:
    network = saying(10, 11, 40, 12)

    assert search(network, ((40,),))[0].ids.count(40) == 1
    again = search(saying(10, 40, 11, 40, 12), ((40,),), ((30,),))
    assert all(each.ids.count(40) == 1 for each in again)
    assert search(saying(10, 40, 11, 40, 12), ((40,),), ((40,),))[0].ids == (10, 40, 11, 40, 12)


def test_the_prefix_of_the_target_is_no_part_of_a_term() -> None:
    best, *_ = search(lambda before: saying(10, 11)(before[1:]), ((40,),), forced_prefix=(40,))

    assert 40 in best.ids


@pytest.mark.parametrize("prefix", [(40, 41), (40,), (9, 40, 41)])
def test_terms_may_begin_or_stand_in_what_is_given(prefix: tuple[int, ...]) -> None:
    best, *_ = search(lambda before: saying(10, 11)(before[len(prefix) :]), ((40, 41),), target_prefix=prefix)

    assert best.ids[: len(prefix)] == prefix
    assert [pair for pair in itertools.pairwise(best.ids) if 40 in pair and 41 in pair] == [(40, 41)], "once"


def test_a_limit_ends_a_sentence_without_its_terms_and_those_with_more_are_better() -> None:
    found = search(saying(*range(10, 30)), ((40, 41),), ((42,),), max_tokens=4)

    assert {each.finish_reason for each in found} == {FinishReason.LENGTH}
    levels = [(40, 41) in itertools.pairwise(each.ids) for each in found]
    assert levels == sorted(levels, reverse=True)
    assert levels[0]


@pytest.mark.parametrize("number", ["singular", "plural"])
def test_the_likelier_of_two_forms_is_written_although_the_other_is_longer(number: str) -> None:
    part, end = (-6.0, -0.5) if number == "singular" else (-0.5, -6.0)

    def network(before: tuple[int, ...]) -> Mapping[int, float]:
        if before[-1:] == (40,):
            return {**dict.fromkeys(range(4, 60), -9.0), EOS: -12.0, PART: part, 12: end}
        return saying(10, 11, 12)(before[:2] + before[3:] if PART in before else before)

    best, *_ = search(network, ((40,), (40, PART)), replaced=((11,),))
    assert (PART in best.ids) == (number == "plural")


@pytest.mark.parametrize(("likelihood", "is_longer"), [(-0.2, True), (-9.0, False)])
def test_a_term_begins_a_longer_word_if_the_network_would_go_on(likelihood: float, is_longer: bool) -> None:
    def network(before: tuple[int, ...]) -> Mapping[int, float]:
        if before[-1:] == (40,):
            return {**dict.fromkeys(range(4, 60), -9.5), EOS: -12.0, PART: likelihood, 12: -2.0}
        return saying(10, 11, 12)(before[:2] + before[3:] if PART in before else before)

    assert (PART in search(network, ((40,),), joined=(((40,),),), replaced=((11,),))[0].ids) == is_longer
    assert PART not in search(network, ((40,),), replaced=((11,),))[0].ids, "a term that must stay a word"


def test_placeholders_are_charged_for_as_without_terms() -> None:
    network = saying(10, 11, 12, others={20: -0.5})
    best, *_ = search(network, ((40,),), placeholders={20: 1})

    assert {20, 40} <= set(best.ids)
    assert best.ids.count(20) == 1


def test_scores_are_those_of_the_tokens() -> None:
    network = saying(10, 11, 12)
    for each in search(network, ((40,),), replaced=((11,),)):
        tokens = [*each.ids, EOS]
        expected = [network(tuple(tokens[:place])).get(token, -30.0) for place, token in enumerate(tokens)]
        assert each.log_probs == pytest.approx(expected)
        assert each.score == pytest.approx(sum(expected) / len(tokens))


def test_a_term_with_a_banned_token_is_given_up_and_the_others_are_written() -> None:
    network = saying(10, 11, 12, others={40: BANNED, 42: BANNED})

    (best, *_) = search(network, ((40, 41), (41, 42)), ((20,),), suppressed=((40,), (42,)))

    assert (best.ids, best.finish_reason) == ((10, 11, 20), FinishReason.STOP)


def test_a_term_that_no_ngram_may_repeat_is_written_once() -> None:
    def network(before: tuple[int, ...]) -> Mapping[int, float]:
        own = saying(10, 11, 12)(tuple(token for token in before if token not in {40, 41}))
        is_there_already = before[-1:] == (40,) and (40, 41) in itertools.pairwise(before)
        return {**own, 41: BANNED} if is_there_already else own

    (best, *_) = search(network, ((40, 41),), ((40, 41),), no_repeat_ngram_size=2)

    assert [token for token in best.ids if token not in {40, 41}] == [10, 11, 12]
    assert list(itertools.pairwise(best.ids)).count((40, 41)) == 1
    assert (best.ids.count(40), best.finish_reason) == (1, FinishReason.STOP)


def test_no_beam_ends_within_a_term_that_may_go_on() -> None:
    def network(before: tuple[int, ...]) -> Mapping[int, float]:
        likely = {(): 10, (10,): 40, (10, 40): 41}.get(before, EOS)
        return {42: -9.0, EOS: -8.0, likely: -0.1}

    found = search(network, ((40, 41, 42),), no_repeat_ngram_size=2)

    assert found[0].ids == (10, 40, 41, 42)
    assert (10, 40, 41) not in [each.ids for each in found]


def test_a_search_in_which_nothing_may_follow_ends_with_what_it_has() -> None:
    def network(before: tuple[int, ...]) -> Mapping[int, float]:
        return {10: -0.1, 11: -0.2, 40: BANNED} if not before else {EOS: -0.1, 12: BANNED, 40: BANNED}

    found = search(network, ((40,),))

    assert {each.finish_reason for each in found} == {FinishReason.LENGTH}
    assert {each.ids for each in found} <= {(10,), (11,)}


def test_a_forced_eos_ends_beams_at_the_limit() -> None:
    best, *_ = search(saying(10, 11, 12, 13, 14), ((40,),), max_tokens=5, rules=SearchRules(forced_eos=True))

    assert (40 in best.ids, len(best.ids)) == (True, 4)


@pytest.mark.parametrize("seed", range(20))
def test_random_terms_are_always_written(seed: int) -> None:
    generator = random.Random(seed)
    values = {(last, token): generator.uniform(-9, 0) for last in range(60) for token in range(3, 60)}

    def network(before: tuple[int, ...]) -> Mapping[int, float]:
        return {token: values[before[-1] if before else BOS, token] for token in range(3, 60)}

    terms = [
        tuple(tuple(generator.sample(range(4, 49), generator.randint(1, 3))) for _ in range(generator.randint(1, 3)))
        for _ in range(generator.randint(1, 4))
    ]
    for each in search(network, *terms, max_tokens=40):
        if each.finish_reason is FinishReason.STOP:
            parts = {each.ids[a:b] for a in range(len(each.ids)) for b in range(a + 1, len(each.ids) + 1)}
            assert all(parts.intersection(forms) for forms in terms)
