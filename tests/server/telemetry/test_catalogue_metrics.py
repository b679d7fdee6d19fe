from prometheus_client import CollectorRegistry, generate_latest

from server.telemetry.catalogue_metrics import (
    LOAD_OUTCOMES,
    MODEL_STATES,
    MOST_MODELS,
    UNLOAD_REASONS,
    CatalogueMetrics,
)


def test_a_models_series_are_there_from_the_start() -> None:
    registry = CollectorRegistry()
    CatalogueMetrics(registry).add_model("m")

    def sample(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"babelserve_{name}", labels)

    assert [sample("model_loads_total", model="m", outcome=outcome) for outcome in LOAD_OUTCOMES] == [0, 0]
    assert [sample("model_unloads_total", model="m", reason=reason) for reason in UNLOAD_REASONS] == [0, 0, 0]
    assert [sample("models", state=state) for state in MODEL_STATES] == [0, 0, 0]
    assert sample("model_last_load_successful", model="m") == 1


def test_the_page_names_the_versions_that_are_there() -> None:
    registry = CollectorRegistry()
    metrics = CatalogueMetrics(registry)

    def told() -> set[str]:
        lines = generate_latest(registry).decode().splitlines()
        return {line for line in lines if line.startswith(("babelserve_model_info{", "babelserve_model_traffic"))}

    metrics.set_models({"loaded": 2}, {("m", "1", "abc"): 100, ("n", "1", "def"): 100})
    metrics.set_models({"loaded": 3}, {("m", "2", "fed"): 90, ("m", "3", "fed"): 10, ("n", "1", "def"): 100})

    assert told() == {
        'babelserve_model_info{model="m",sha256="fed",version="2"} 1.0',
        'babelserve_model_info{model="m",sha256="fed",version="3"} 1.0',
        'babelserve_model_traffic_percent{model="m",version="2"} 90.0',
        'babelserve_model_traffic_percent{model="m",version="3"} 10.0',
        'babelserve_model_traffic_percent{model="n",version="1"} 100.0',
        'babelserve_model_info{model="n",sha256="def",version="1"} 1.0',
    }


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


def test_the_series_of_a_model_go_with_its_folder_and_come_with_it() -> None:
    registry = CollectorRegistry()
    metrics = CatalogueMetrics(registry)
    for name in ("m", "n"):
        metrics.add_model(name)
        metrics.count_load(name, is_successful=False)

    metrics.forget_model("m")
    metrics.count_unload("m", "removed")  # it leaves memory later than its folder has gone

    assert {
        sample.labels["model"] for metric in registry.collect() for sample in metric.samples if "model" in sample.labels
    } == {"n"}
    metrics.add_model("m")
    assert registry.get_sample_value("babelserve_model_last_load_successful", {"model": "m"}) == 1


def test_of_very_many_models_some_have_no_series() -> None:
    registry = CollectorRegistry()
    metrics = CatalogueMetrics(registry)
    for number in range(MOST_MODELS + 10):
        metrics.add_model(f"m{number}")
        metrics.count_load(f"m{number}", is_successful=False)

    (family,) = (each for each in registry.collect() if each.name == "babelserve_model_last_load_successful")
    assert len(family.samples) == MOST_MODELS


def test_versions_of_so_many_models_have_series_at_most() -> None:
    registry = CollectorRegistry()
    CatalogueMetrics(registry).set_models({}, {(f"m{index}", "1", "abc"): 100 for index in range(MOST_MODELS + 1)})

    page = generate_latest(registry).decode()
    assert page.count("\nbabelserve_model_info{") == page.count("\nbabelserve_model_traffic_percent{") == MOST_MODELS
