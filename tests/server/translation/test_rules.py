"""The rules on plain values, each at its limits and beyond."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from server.access.tenants import Priority, Tenant
from server.bundle.manifest import Manifest
from server.decoding.options import DecodingOptions, Sampling
from server.errors import InvalidRequest, PermissionDenied
from server.translation.request import DecodingRequest
from server.translation.rules import (
    check_alignment,
    check_answer,
    check_confidence,
    check_glossary,
    check_priority,
    check_scores,
    check_texts,
    check_traffic_key,
    count_search_nodes,
    decoding_options,
)

SECRET = "secret text"


def decoding(manifest: Manifest, *, has_shortlist: bool = False, **fields: Any) -> DecodingOptions:
    """Checks what a request may ask of a server whose default is a beam of 4; the widest is 8."""
    return decoding_options(
        DecodingRequest(**fields), DecodingOptions(beam_size=4), manifest.limits, has_shortlist=has_shortlist
    )


@pytest.mark.parametrize(
    ("rule", "named"),
    [
        (lambda _: check_texts(0), ["contents", "1024", "0"]),
        (lambda _: check_texts(1025), ["contents", "1024", "1025"]),
        (lambda _: check_answer(1 << 20, 9), ["decoding.num_hypotheses", "at most 8", "1048576 characters", "9"]),
        (lambda m: decoding(m, beam_size=0), ["decoding.beam_size", "1 to 8", "0"]),
        (lambda m: decoding(m, beam_size=9), ["decoding.beam_size", "1 to 8", "9"]),
        (lambda m: decoding(m, num_hypotheses=0), ["decoding.num_hypotheses", "1 to 4"]),
        (lambda m: decoding(m, beam_size=2, num_hypotheses=3), ["decoding.num_hypotheses", "1 to 2", "3"]),
        (lambda m: decoding(m, length_penalty=-0.5), ["decoding.length_penalty", "0 to 10", "-0.5"]),
        (lambda m: decoding(m, length_penalty=10.5), ["decoding.length_penalty", "0 to 10", "10.5"]),
        (lambda m: decoding(m, length_penalty=float("nan")), ["decoding.length_penalty", "nan"]),
        (lambda m: decoding(m, length_penalty=float("inf")), ["decoding.length_penalty", "inf"]),
        (lambda m: decoding(m, max_output_tokens=0), ["decoding.max_output_tokens", "1 to 100", "0"]),
        (lambda m: decoding(m, max_output_tokens=101), ["decoding.max_output_tokens", "101"]),
        (lambda m: decoding(m, use_shortlist=True), ["decoding.use_shortlist", "no shortlist"]),
        (lambda m: decoding(m, repetition_penalty=0.5), ["decoding.repetition_penalty", "1 to 10", "0.5"]),
        (lambda m: decoding(m, repetition_penalty=float("nan")), ["decoding.repetition_penalty", "nan"]),
        (lambda m: decoding(m, patience=11.0), ["decoding.patience", "1 to 10", "11"]),
        (lambda m: decoding(m, no_repeat_ngram_size=101), ["decoding.no_repeat_ngram_size", "0 to 100", "101"]),
        (lambda m: decoding(m, min_output_tokens=100), ["decoding.min_output_tokens", "0 to 99", "100"]),
        (
            lambda m: decoding(m, min_output_tokens=9, max_output_tokens=9),
            ["decoding.min_output_tokens", "0 to 8 tokens", "9"],
        ),
        (lambda m: decoding(m, sampling=Sampling(), beam_size=2), ["decoding.beam_size", "must be 1", "not 2"]),
        (
            lambda m: decoding(m, sampling=Sampling(), num_hypotheses=9),
            ["decoding.num_hypotheses", "1 to 8 samples", "9"],
        ),
        (lambda m: decoding(m, sampling=Sampling(top_p=0.0)), ["decoding.sampling.top_p", "over 0", "not 0"]),
        (lambda m: decoding(m, sampling=Sampling(top_p=float("nan"))), ["decoding.sampling.top_p", "nan"]),
        (
            lambda m: decoding(m, sampling=Sampling(temperature=0.0)),
            ["decoding.sampling.temperature", "0.01 to 100", "not 0"],
        ),
        (
            lambda m: check_glossary(m, True, DecodingOptions(sampling=Sampling()), is_only=True),
            ["glossary", "must be empty", "sampling"],
        ),
        (
            lambda m: check_glossary(m, True, DecodingOptions(return_alternatives=True), is_only=True),
            ["glossary", "must be empty", "return_alternatives"],
        ),
        (lambda m: decoding(m, min_length_ratio=11.0), ["decoding.min_length_ratio", "0 to 10", "11"]),
        (lambda m: decoding(m, max_length_ratio=0.0), ["decoding.max_length_ratio", "0.01", "10", "not 0"]),
        (lambda m: decoding(m, max_length_ratio=float("nan")), ["decoding.max_length_ratio", "nan"]),
        (
            lambda m: decoding(m, min_length_ratio=2.0, max_length_ratio=1.0),
            ["decoding.max_length_ratio", "from 2 (or min_length_ratio) to 10", "not 1"],
        ),
        (lambda m: decoding(m, coverage_penalty=-1.0), ["decoding.coverage_penalty", "0 to 10", "not -1"]),
        (lambda m: decoding(m, prefix_bias_beta=1.0), ["decoding.prefix_bias_beta", "0 to 0.999", "not 1"]),
        (
            lambda m: decoding(m, min_alternative_expansion_prob=1.5),
            ["decoding.min_alternative_expansion_prob", "0 to 1", "1.5"],
        ),
        (
            lambda m: decoding(m, return_alternatives=True, beam_size=3, num_hypotheses=3),
            ["decoding.num_hypotheses", "from 1 to 2 alternatives with beam_size 3", "not 3"],
        ),
        (
            lambda m: decoding(m, return_alternatives=True, num_hypotheses=9),
            ["decoding.num_hypotheses", "from 1 to 8 alternatives with beam_size 1", "not 9"],
        ),
        (
            lambda m: decoding(m, return_alternatives=True, sampling=Sampling()),
            ["decoding.return_alternatives", "must be false", "sampling"],
        ),
        (
            lambda m: decoding(m, return_alternatives=True, coverage_penalty=0.2),
            ["decoding.return_alternatives", "must be false", "coverage_penalty"],
        ),
        (
            lambda m: decoding(m, return_alternatives=True, prefix_bias_beta=0.2),
            ["decoding.return_alternatives", "must be false", "prefix_bias_beta"],
        ),
        (lambda _: check_alignment(None), ["output.include_alignment", "false", "aligned"]),
        (lambda _: check_confidence(None), ["output.include_confidence", "false", "sure"]),
        (lambda _: check_texts(0, "pairs", "pairs"), ["pairs", "from 1 to 1024 pairs", "0"]),
        (
            lambda _: check_scores(DecodingOptions(beam_size=1, with_scores=False)),
            ["decoding.with_scores", "output.include_tokens", "not false"],
        ),
        (
            lambda _: check_scores(DecodingOptions(return_alternatives=True), with_search=True),
            ["output.include_search", "must be false", "return_alternatives"],
        ),
        (lambda _: count_search_nodes(4, [22] * 745), ["output.include_search", "over 65536", "it is 65560"]),
        (lambda _: count_search_nodes(8, [8193]), ["output.include_search", "over 65536", "it is 65544"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_field_that_breaks_a_rule_is_named_with_limit_and_value(
    manifest: Manifest, rule: Callable[[Manifest], object], named: list[str]
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        rule(manifest)

    details = str(caught.value)
    assert [word for word in named if word not in details] == []
    assert details.startswith(f"{caught.value.field}: ")
    assert caught.value.field == named[0]
    assert SECRET not in details


@pytest.mark.parametrize(
    "fields",
    [
        {"beam_size": 1},
        {"beam_size": 8, "num_hypotheses": 8},
        {"num_hypotheses": 4},
        {"length_penalty": 0.0},
        {"length_penalty": 10.0},
        {"max_output_tokens": 1},
        {"max_output_tokens": 100},
        {"with_scores": False},
        {"use_shortlist": False},
        {"repetition_penalty": 10.0},
        {"no_repeat_ngram_size": 100},
        {"min_output_tokens": 99},
        {"min_output_tokens": 8, "max_output_tokens": 9},
        {"patience": 10.0},
        {"end_loops": False},
    ],
    ids=str,
)
def test_what_is_given_counts_up_to_its_limits_and_the_rest_is_the_servers(
    manifest: Manifest, fields: dict[str, Any]
) -> None:
    assert decoding(manifest, **fields) == dataclasses.replace(DecodingOptions(beam_size=4), **fields)


def test_a_shortlist_may_be_asked_for_where_there_is_one(manifest: Manifest) -> None:
    assert decoding(manifest, has_shortlist=True, use_shortlist=True).use_shortlist


def test_a_forced_prefix_and_a_forced_eos_leave_less_to_ask_for(manifest: Manifest) -> None:
    defaults = DecodingOptions(forced_prefix=(5, 6))

    def checked(max_output_tokens: int) -> DecodingOptions:
        asked = DecodingRequest(max_output_tokens=max_output_tokens)
        return decoding_options(asked, defaults, manifest.limits, has_shortlist=False, least_tokens=2)

    assert [checked(number).max_output_tokens for number in (2, 98)] == [2, 98]
    for number in (1, 99):
        with pytest.raises(InvalidRequest, match=f"max_output_tokens: must be from 2 to 98, not {number}"):
            checked(number)
    assert checked(50).forced_prefix == (5, 6)


def test_so_many_texts_are_taken_and_no_more() -> None:
    for num_texts in (1, 1024):
        check_texts(num_texts)


def test_a_tenant_may_ask_for_its_best_priority_and_less() -> None:
    tenant = Tenant(name="bulk", priority=Priority.NORMAL)

    check_priority(Priority.NORMAL, tenant)
    check_priority(Priority.LOW, tenant)
    with pytest.raises(PermissionDenied, match="priority: HIGH is better than tenant bulk may ask for, NORMAL"):
        check_priority(Priority.HIGH, tenant)


def test_a_traffic_key_is_short_and_is_not_repeated() -> None:
    for length in (0, 256):
        check_traffic_key("k" * length)
    with pytest.raises(InvalidRequest, match="traffic_key: must be from 0 to 256 characters, not 257"):
        check_traffic_key(SECRET + "k" * (257 - len(SECRET)))


def test_samples_have_a_beam_each(manifest: Manifest) -> None:
    sampling = Sampling(seed=7)

    options = [decoding(manifest, sampling=sampling, num_hypotheses=number) for number in (None, 1, 8)]
    assert [(each.beam_size, each.num_hypotheses, each.sampling) for each in options] == [
        (1, 1, sampling),
        (1, 1, sampling),
        (8, 8, sampling),
    ]
    assert decoding(manifest, sampling=sampling, beam_size=1, num_hypotheses=3).beam_size == 3


def test_a_tree_has_at_most_a_node_of_each_beam_and_step() -> None:
    assert count_search_nodes(4, [22, 36]) == 4 * (22 + 36)
    assert count_search_nodes(4, []) == 0
