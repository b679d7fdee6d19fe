"""What the translator lets tenants have, and which of their calls it refuses unread."""

import dataclasses
from typing import Any

import pytest

from server.access.tenants import Priority, Tenant
from server.access.token_bucket import TokenBucket
from server.errors import Overloaded
from server.models.model import Model
from server.models.traffic_split import TrafficSplit
from server.telemetry.metrics import Metrics
from server.translation.translator import Translator
from tests.server.echo_engine import EchoEngine, catalogue_of, idle_supervisor
from tests.server.translation.parts import of_tenant, request


async def test_a_tenants_requests_are_a_flow_of_its_weight(translator: Translator, engine: EchoEngine) -> None:
    billing = Tenant(name="billing", weight=2.5)
    of_billing = dataclasses.replace(request("One dog."), tenant=billing, priority=Priority.LOW)
    for given in (request("One dog."), of_billing):
        with await translator.accept(given):
            pass

    assert [(flow.name, flow.weight, flow.rank) for flow in engine.flows] == [
        ("anonymous", 1.0, Priority.NORMAL),
        ("billing", 2.5, Priority.LOW),
    ]


async def test_a_tenant_pays_by_tokens_and_beam_until_its_quota_is_used_up(
    translator: Translator, metrics: Metrics
) -> None:
    bucket = TokenBucket(rate=0.1, burst=1.0)
    with await translator.accept(of_tenant(bucket, "One dog. " * 10)) as job:
        num_tokens = sum(sentence.num_tokens for sentence in job.answers[0].split.sentences)

    with pytest.raises(Overloaded, match="quota of tenant billing") as caught:
        await translator.accept(of_tenant(bucket, "One dog."))

    cost = 4.0 * num_tokens
    assert caught.value.reason == "quota"
    assert caught.value.retry_after_seconds == pytest.approx((cost - 1.0) / 0.1, abs=1.0)
    count = metrics.registry.get_sample_value
    assert count("babelserve_tenant_cost_seconds_total", {"tenant": "billing"}) == pytest.approx(cost)


class FullEngine(EchoEngine):
    """Seems to have room, and then has none."""

    def submit(self, *_: Any, **__: Any) -> Any:
        raise Overloaded("full", "tokens")


async def test_what_the_engine_refuses_costs_nothing(translator: Translator, model: Model) -> None:
    bucket = TokenBucket(rate=0.001, burst=0.01)
    translator.catalogue = catalogue_of(dataclasses.replace(model, engine=FullEngine()))

    for _ in range(5):
        with pytest.raises(Overloaded, match="full"):
            await translator.accept(of_tenant(bucket, "One dog."))


async def test_after_a_refusal_the_tenant_is_refused_unread(translator: Translator, engine: EchoEngine) -> None:
    billing, search = Tenant(name="billing"), Tenant(name="search")
    translator.check_open(billing, 30.0)
    engine.refuses = Overloaded("full", "tokens", lasts_seconds=60.0)
    with pytest.raises(Overloaded):
        await translator.accept(dataclasses.replace(request("One dog."), tenant=billing))

    translator.check_open(search, 30.0)
    with pytest.raises(Overloaded, match="full"):
        translator.check_open(billing, None)


async def test_a_tenant_in_debt_is_refused_before_anything_is_read(translator: Translator) -> None:
    bucket = TokenBucket(rate=0.1, burst=1.0)
    bucket.take(5.0)

    with pytest.raises(Overloaded, match="quota of tenant billing") as refusal:
        translator.check_open(Tenant(name="billing", bucket=bucket), 30.0)

    assert refusal.value.reason == "quota"
    assert refusal.value.retry_after_seconds == pytest.approx(40.0, rel=0.01)


async def test_a_server_without_a_model_refuses_nothing_unread(translator: Translator) -> None:
    translator.catalogue = catalogue_of()

    translator.check_open(Tenant(name="billing"), 30.0)


async def test_a_busy_version_refuses_nothing_for_another(
    translator: Translator, model: Model, engine: EchoEngine
) -> None:
    manifest = dataclasses.replace(model.manifest, version="8")
    idle = dataclasses.replace(model, manifest=manifest, engine=EchoEngine(), supervisor=idle_supervisor(manifest))
    translator.catalogue.add(idle)
    translator.catalogue.split("echo", TrafficSplit.of({"7": 50, "8": 50}))
    engine.refuses = Overloaded("full", "tokens", lasts_seconds=60.0)
    keys = [f"key {number}" for number in range(10)]
    refused = 0
    for key in keys:
        translator.check_open(Tenant(name="anonymous"), 30.0)
        try:
            with await translator.accept(dataclasses.replace(request("One dog."), traffic_key=key)) as job:
                await job.finish()
        except Overloaded:
            refused += 1

    assert 0 < refused < len(keys)


async def test_a_busy_model_refuses_nothing_for_another(
    translator: Translator, model: Model, engine: EchoEngine
) -> None:
    other = dataclasses.replace(model, manifest=dataclasses.replace(model.manifest, name="other"), engine=EchoEngine())
    translator.catalogue = catalogue_of(model, other)
    engine.refuses = Overloaded("full", "tokens", lasts_seconds=60.0)
    with pytest.raises(Overloaded):
        await translator.accept(request("One dog.", model="echo"))

    translator.check_open(Tenant(name="anonymous"), 30.0)
    with await translator.accept(request("One dog.", model="other")) as job:
        await job.finish()

    assert job.routes[0][0].model.manifest.name == "other"
