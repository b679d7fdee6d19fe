"""What beams have written of terms."""

import itertools
import math
from collections.abc import Sequence

import pytest

from server.decoding.term_trie import TermTrie, Written
from server.decoding.terms import Form, Replaced, ReplacedWord, Terms

PART = 50  # goes on with a word
EOS = 3


def trie(*terms: tuple[Form, ...], replaced: Sequence[Sequence[int]] = ()) -> TermTrie:
    """Terms in the place of words that begin with these tokens, of which none stands elsewhere, in their order."""
    return TermTrie(Terms(terms, replaced_by(replaced or ((),) * len(terms)), {PART: 2}), EOS)


def replaced_by(
    tokens: Sequence[Sequence[int]],
    gone: frozenset[Form] = frozenset(),
    staying: tuple[int, ...] = (),
    begin: Form = (),
) -> Replaced:
    """What is replaced: for each term the first tokens of words."""
    places = itertools.count()
    return Replaced(
        tuple(tuple(ReplacedWord(next(places), token, 0) for token in own) for own in tokens), staying, gone, begin
    )


def write(terms: TermTrie, *tokens: int) -> Written:
    written = Written()
    for token in tokens:
        written = terms.after(written, token, -1.0)
    return written


def test_a_term_is_written_once_its_word_ends() -> None:
    terms = trie(((10, 11),))

    assert [terms.level(write(terms, *[9, 10, 11, 12][:end])) for end in range(5)] == [0, 0, 1, 2, 2]
    assert not terms.is_done(write(terms, 10, 11))
    assert terms.is_done(write(terms, 10, 11, 12))
    assert terms.is_done(write(terms, 10, 11, EOS))


@pytest.mark.parametrize("tokens", [(10, 11, PART, 12), (10, 12), (11, 12), (10, 10, 12)])
def test_other_words_are_not_the_term(tokens: tuple[int, ...]) -> None:
    terms = trie(((10, 11),))

    assert not terms.is_done(write(terms, *tokens, EOS))


@pytest.mark.parametrize("tokens", [(10,), (10, PART), (20, 21)])
def test_any_form_will_do(tokens: tuple[int, ...]) -> None:
    terms = trie(((10,), (10, PART), (20, 21)))

    assert terms.is_done(write(terms, *tokens, 9))


def test_a_term_that_is_there_twice_must_be_written_twice() -> None:
    terms = trie(((10,),), ((10,),))

    assert not terms.is_done(write(terms, 10, 9))
    assert terms.is_done(write(terms, 10, 9, 10, 9))
    assert terms.is_done(write(terms, 10, 10, 9))


def test_the_next_tokens_of_terms_are_wanted() -> None:
    terms = trie(((10, 11),), ((20,), (21, 22)))

    assert terms.wanted(Written()) == [10, 20, 21]
    assert terms.wanted(write(terms, 10)) == [11]
    assert terms.wanted(write(terms, 10, 11)) == [20, 21], "the first may be done"
    assert terms.wanted(write(terms, 20, 9)) == [10]
    assert terms.wanted(write(terms, 20, 10, 11, 9)) == []


def test_only_the_first_token_of_a_term_is_not_spared() -> None:
    terms = trie(((10, 11),))

    assert write(terms, 9, 10, 11, 12) == Written(done=1, cost=-2.0, spared=-1.0, num_tokens=2)
    assert write(terms, 9, 10, 11)[2:] == (0.0, 0.0, 0, -2.0, -1.0, 2, 0)
    assert write(terms, 9, 10, 12) == Written(), "it has left the term"


def test_tokens_count_in_which_forms_differ() -> None:
    terms = trie(((10, 11), (10, 11, PART), (10, 12, 13)))

    assert write(terms, 10, 11, 9) == Written(done=1, cost=-1.0, num_tokens=1)
    assert write(terms, 10, 11, PART, 9) == Written(done=1, cost=-1.0, num_tokens=1)
    assert write(terms, 10, 12, 13, 9) == Written(done=1, cost=-2.0, spared=-1.0, num_tokens=2)


def test_a_token_is_spared_for_as_much_as_it_costs_the_beam_that_it_fits_best() -> None:
    terms = trie(((10, 11),))
    behind_the_right_article = behind_the_wrong_one = write(terms, 10)
    terms.note(behind_the_right_article, {11: -0.25, 12: -3.0})
    terms.note(behind_the_wrong_one, {11: -4.0})

    assert terms.after(behind_the_right_article, 11, -0.25).spared_here == -0.25
    assert terms.after(behind_the_wrong_one, 11, -4.0).spared_here == -0.25
    assert terms.after(behind_the_wrong_one, 11, -4.0).cost_here == -5.0


def test_nothing_is_noted_where_a_beam_may_choose() -> None:
    terms = trie(((10, 11), (10, 12)), ((20,),))
    for written in (Written(), write(terms, 10), write(terms, 20)):
        terms.note(written, {})


def test_a_beam_has_begun_a_term_that_it_is_in_or_has_written() -> None:
    terms = trie(((10, 11),), ((20,),))

    assert [terms.has_begun(write(terms, *tokens), 0) for tokens in ((), (10,), (10, 9), (10, 11, 9), (20,))] == [
        False,
        True,
        False,
        True,
        False,
    ]


def test_a_term_is_as_likely_as_the_word_that_it_replaces() -> None:
    terms = trie(((10, 11),))

    written = terms.after(Written(), 10, -9.0, -0.5)
    assert (written.cost_here, written.spared_here) == (-9.0, -8.5)
    written = terms.after(Written(), 10, -0.25, -0.5)
    assert (written.cost_here, written.spared_here) == (-0.25, 0.0), "it is likelier by itself"
    written = terms.after(Written(), 10, -9.0, -math.inf)
    assert (written.cost_here, written.spared_here) == (-9.0, 0.0)


def test_words_are_replaced_until_their_term_is_written_and_not_within_one() -> None:
    terms = trie(((10, 11),), ((20,),), replaced=((30, 10), (31,)))

    assert terms.replaced(Written(), ()) == {30: (0, frozenset({10})), 31: (1, frozenset({20}))}, (
        "10 begins the term itself"
    )
    assert terms.replaced(write(terms, 10), ()) == {}
    assert terms.replaced(write(terms, 10, 11), ()) == {31: (1, frozenset({20}))}
    assert terms.replaced(write(terms, 10, 11, 9), ()) == {31: (1, frozenset({20}))}
    assert terms.replaced(write(terms, 10, 11, 20, 9), ()) == {}


def test_a_word_is_replaced_where_it_stood_and_no_other_of_its_token() -> None:
    """The translation has the token 30 twice, and its second word stands for the term."""
    told = Replaced(((ReplacedWord(5, 30, 1),),), ())
    terms = TermTrie(Terms((((10,),),), told), EOS)

    assert [terms.replaced(Written(), prefix) for prefix in ((), (9, 30), (30, 9, 30))] == [
        {},
        {30: (0, frozenset({10}))},
        {},
    ]


def test_of_two_terms_in_the_place_of_equal_tokens_the_first_comes_first() -> None:
    told = Replaced(((ReplacedWord(7, 30, 0),), (ReplacedWord(2, 30, 0),)), ())
    terms = TermTrie(Terms((((10,),), ((20,),)), told), EOS)

    assert terms.replaced(Written(), ()) == {30: (1, frozenset({20}))}
    assert terms.replaced(write(terms, 20, 9), ()) == {30: (0, frozenset({10}))}


def test_a_form_that_begins_as_the_word_that_it_replaces_is_not_left_for_that_word() -> None:
    terms = trie(((10, 11), (12, 13)), replaced=((10,),))

    assert [terms.forbids(write(terms, 10), token) for token in (11, 12, PART, 9)] == [False, True, True, True]
    assert [terms.forbids(write(terms, 10, 11), token) for token in (PART, 9, EOS)] == [True, False, False]
    assert not terms.forbids(write(terms, 12), 9)
    assert not terms.forbids(Written(), 9)


def test_a_form_is_written_once_for_each_of_its_terms() -> None:
    terms = trie(((10,), (10, 41), (20, 21)), ((20, 21),))

    assert not terms.repeats(Written(), (), 10), "no term is written"
    assert not terms.repeats(write(terms, 10, 9), (10, 9, 20), 21), "the other term is left"
    assert terms.repeats(write(terms, 10, 9), (10, 9), 10)
    assert terms.repeats(write(terms, 10), (10,), 10), "right behind it"
    assert not terms.repeats(write(terms, 10), (10,), 41), "it goes on with the form"
    both = write(terms, 10, 9, 20, 21, 9)
    assert [terms.repeats(both, (10, 9, 20, 21, 9, token), 21) for token in (20, 22)] == [True, False]


def test_a_form_may_be_repeated_if_a_word_has_it_that_stays() -> None:
    terms = TermTrie(Terms((((10, 11),), ((20,),)), replaced_by(((), ()), staying=(5, 10, 11, -1, 6))), EOS)
    done = write(terms, 10, 11, 20, 9)

    assert not terms.repeats(done, (10, 11, 20, 9, 10), 11)
    assert terms.repeats(done, (10, 11, 20, 9), 20)


def joining(*, replaced: Sequence[Sequence[int]] = ((),)) -> TermTrie:
    """A term that may begin a longer word; `PART` has 2 letters, 51 has 4, and 52 links words."""
    forms = ((10, 11), (10, 11, 52))
    return TermTrie(Terms((((10, 11),),), replaced_by(replaced), {PART: 2, 51: 4, 52: 1}, (forms,)), EOS)


@pytest.mark.parametrize(
    ("tokens", "is_done"),
    [
        ((10, 11), True),
        ((10, 11, 51), True),
        ((10, 11, PART, PART), True),
        ((10, 11, 52, 51), True),
        ((10, 11, PART), False),
        ((10, 11, 52), False),
        ((10, 51), False),
        ((10, 11, PART, 9, PART), False),
        ((10, 11, PART, 10, 11), True),
    ],
)
def test_a_longer_word_has_the_term_that_it_begins_with_if_it_has_enough_letters(
    tokens: tuple[int, ...], is_done: bool
) -> None:
    terms = joining()

    assert terms.is_done(write(terms, *tokens, 9)) == is_done


def test_a_beam_that_goes_on_behind_a_term_is_within_it_until_the_word_has_enough_letters() -> None:
    terms = joining()
    growing = write(terms, 10, 11, PART)

    assert [terms.level(write(terms, *tokens)) for tokens in ((10, 11), (10, 11, PART), (10, 11, 51))] == [2, 1, 2]
    assert (terms.wanted(growing), terms.replaced(growing, ())) == ([], {})
    assert terms.has_begun(growing, 0)
    assert [terms.may_join(write(terms, *tokens)) for tokens in ((10,), (10, 11), (10, 11, 51))] == [False, True, False]
    terms.note(growing, {})


def test_a_longer_word_costs_what_its_other_part_costs() -> None:
    terms = joining()

    assert write(terms, 10, 11, 51) == Written(done=1, cost=-2.0, spared=-1.0, num_tokens=2)


def test_a_term_may_begin_a_longer_word_although_it_begins_as_the_word_that_it_replaces() -> None:
    terms = joining(replaced=((10,),))

    assert [terms.forbids(write(terms, 10, 11), token) for token in (PART, 51, 52, 9)] == [False] * 4
    assert [terms.forbids(write(terms, 10, 11, PART), token) for token in (PART, 9)] == [False, True]
    assert [terms.forbids(write(terms, 10, 11, 52), token) for token in (51, 9)] == [False, True]


def test_beams_at_the_same_place_of_the_terms_share_what_may_follow() -> None:
    terms = trie(((10, 11),), ((20,),))
    within = write(terms, 10)

    assert terms.ahead(within) is terms.ahead(within._replace(cost=-5.0, cost_here=-5.0))
    assert terms.ahead(within).wanted == [11]
    assert terms.ahead(within._replace(rest=1)).wanted == []
    assert terms.ahead(Written()).wanted == [10, 20]
    assert terms.ahead(Written(done=1)).wanted == [20]
