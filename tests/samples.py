"""Sums of samples, whatever models or other labels they are counted by."""

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Metric


def total(families: CollectorRegistry | Iterable[Metric], name: str, **labels: str) -> float:
    """Returns the sum of a sample over all label sets that hold these labels; there must be one.

    Args:
        families: a registry, or a page that has been parsed.
        name: of the sample, such as "babelserve_sentences_total".
        labels: what to select.
    """
    families = families.collect() if isinstance(families, CollectorRegistry) else families
    values = [
        sample.value
        for family in families
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    ]
    assert values, f"no sample {name} {labels}"
    return sum(values)
