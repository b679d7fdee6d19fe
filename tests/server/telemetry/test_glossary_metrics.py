from prometheus_client import CollectorRegistry, generate_latest

from server.telemetry.glossary_metrics import GlossaryMetrics


def test_a_refusal_shows_until_a_load_succeeds_and_a_glossary_that_goes_leaves_the_page() -> None:
    registry = CollectorRegistry()
    metrics = GlossaryMetrics(registry)

    def sample(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"babelserve_glossary_{name}", labels)

    assert [sample("loads_total", outcome=outcome) for outcome in ("ok", "refused")] == [0, 0]
    seen = []
    for is_successful in (False, True):
        metrics.count_load("it", is_successful=is_successful)
        seen.append((sample("last_load_successful", glossary="it"), sample("terms", glossary="it")))
    assert seen == [(0, 0), (1, 0)]
    assert [sample("loads_total", outcome=outcome) for outcome in ("ok", "refused")] == [1, 1]

    metrics.remove("it")

    assert b'glossary="it"' not in generate_latest(registry)
