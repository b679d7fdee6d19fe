from prometheus_client import CollectorRegistry

from server.telemetry.catalogue_metrics import LOAD_OUTCOMES, MODEL_STATES, UNLOAD_REASONS, CatalogueMetrics


def test_a_models_series_are_there_from_the_start() -> None:
    registry = CollectorRegistry()
    CatalogueMetrics(registry).add_model("m")

    def sample(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"babelserve_{name}", labels)

    assert [sample("model_loads_total", model="m", outcome=outcome) for outcome in LOAD_OUTCOMES] == [0, 0]
    assert [sample("model_unloads_total", model="m", reason=reason) for reason in UNLOAD_REASONS] == [0, 0, 0]
    assert [sample("models", state=state) for state in MODEL_STATES] == [0, 0, 0]
    assert sample("model_last_load_successful", model="m") == 1


def test_a_refusal_shows_until_a_load_succeeds() -> None:
    registry = CollectorRegistry()
    metrics = CatalogueMetrics(registry)
    metrics.add_model("m")
    seen = []
    for is_successful in (False, True):
        metrics.count_load("m", is_successful=is_successful)
        seen.append(registry.get_sample_value("babelserve_model_last_load_successful", {"model": "m"}))

    assert seen == [0, 1]
    assert registry.get_sample_value("babelserve_model_loads_total", {"model": "m", "outcome": "refused"}) == 1
