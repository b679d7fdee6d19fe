"""The data about German: what it must be like."""

import itertools

from server.text.german import DETERMINERS, JOINED, NOUNS


def test_no_end_has_two_genders() -> None:
    ends = list(itertools.chain.from_iterable(each.split() for each in NOUNS.values()))

    assert [*NOUNS] == ["m", "f", "n", "p", ""]
    assert sorted(set(ends)) == sorted(ends)
    assert all(end == end.lower() and end.isalpha() for end in ends)


def test_each_determiner_has_a_form_for_each_case_and_gender() -> None:
    for stems, ends, adjectives in DETERMINERS:
        assert stems
        assert (len(ends.split()), len(adjectives.split())) == (16, 16)


def test_what_is_joined_is_a_preposition_and_an_article() -> None:
    (_, ends, _), *_ = DETERMINERS
    articles = {f"d{end}" for end in ends.split()}

    assert {parts.split()[1] for parts in JOINED} <= articles
    assert len(set(JOINED.values())) == len(JOINED)
