import pytest

from server.telemetry.metrics import Metrics
from server.text.masked import Placement


def count(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(f"babelserve_{name}", {"model": "m", "version": "1", **labels})


def test_what_a_translation_looks_like_is_noted(metrics: Metrics) -> None:
    translations = metrics.of_model("m", "1").translations

    translations.observe(10, 2, range(12), 0.024, is_truncated=True)
    translations.observe(0, 0, (), 0.0, is_truncated=False, is_looped=True)

    assert count(metrics, "sentence_source_tokens_sum") == 10
    assert count(metrics, "sentence_target_tokens_sum") == 12
    assert count(metrics, "length_ratio_count") == 2
    assert count(metrics, "length_ratio_sum") == 1.2
    assert count(metrics, "time_per_output_token_seconds_count") == 1
    assert count(metrics, "time_per_output_token_seconds_sum") == 0.002
    assert count(metrics, "truncated_sentences_total") == 1
    assert count(metrics, "looped_sentences_total") == 1
    assert count(metrics, "unknown_source_tokens_total") == 2
    assert count(metrics, "repetitive_sentences_total") == 0


@pytest.mark.parametrize(
    ("ids", "is_repetitive"),
    [
        ([1, 2, 3] * 20, True),
        ([5] * 11, True),
        ([5] * 10, False),  # too short to tell
        ([1, 2, 3, 4, 5, 6, 7, 8] * 2, False),  # said twice: 5 of 13 4-grams
        ([1, 2, 3, 4, 5, 6, 7, 8] * 3, True),
        ([1, 2, 1, 3, 1, 4, 1, 5, 1, 6, 1, 7, 1, 8], False),  # often the same token, never the same 4-gram
        (list(range(100)), False),
    ],
)
def test_translations_that_repeat_themselves_are_counted(metrics: Metrics, ids: list[int], is_repetitive: bool) -> None:
    metrics.of_model("m", "1").translations.observe(10, 0, ids, 0.1, is_truncated=False)

    assert count(metrics, "repetitive_sentences_total") == is_repetitive


def test_parts_are_counted_by_who_placed_them(metrics: Metrics) -> None:
    translations = metrics.of_model("m", "1").translations

    translations.count_kept(["by_model", "by_position", "by_model"])
    translations.repeated_total.inc()
    translations.garbled_total.inc()

    kept = [count(metrics, "kept_parts_total", placement=each) for each in ("by_model", "by_position", "missing")]
    assert kept == [2, 1, 0]
    assert count(metrics, "repeated_sentences_total") == 1
    assert count(metrics, "garbled_sentences_total") == 1


def test_terms_are_counted_by_whether_translations_have_them(metrics: Metrics) -> None:
    translations = metrics.of_model("m", "1").translations
    seen = [[count(metrics, "terms_total", outcome=each) for each in ("applied", "missed")]]

    translations.count_terms([True, False, True])
    seen.append([count(metrics, "terms_total", outcome=each) for each in ("applied", "missed")])

    assert seen == [[0, 0], [2, 1]]


def test_every_placement_has_a_series(metrics: Metrics) -> None:
    for placement in Placement:
        assert count(metrics, "kept_parts_total", placement=placement.value) is None
    metrics.of_model("m", "1")

    assert [count(metrics, "kept_parts_total", placement=each.value) for each in Placement] == [0, 0, 0]
