"""The terms of a sentence."""

from server.decoding.terms import Replaced, Terms


def test_terms_take_as_many_tokens_as_their_longest_forms() -> None:
    forms = (((10,), (10, 11, 12)), ((20, 21),))

    assert Terms(forms, Replaced(((), ()), ())).num_tokens == 5
