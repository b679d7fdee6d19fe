"""The use cases without any protocol; the engine echoes."""

import pytest

from babelserve.v1 import translation_pb2 as pb
from server.access.tenants import Tenant
from server.access.token_bucket import TokenBucket
from server.api.handlers import Api
from server.errors import DeadlineExceeded, InvalidRequest, Overloaded
from server.models.model import Model
from server.telemetry.log import begin_request, facts
from server.translation.calls import let_in
from server.translation.translator import Translator
from tests.server.models.catalogued import named

REQUEST = pb.TranslateRequest(contents=["A dog runs.", "A man sits."], target_language_code="de")


@pytest.fixture
def api(translator: Translator) -> Api:
    begin_request("my-id")
    return Api(translator)


async def test_texts_are_translated_and_their_tokens_are_noted(api: Api) -> None:
    response = await api.translate(REQUEST, None)

    assert [each.text for each in response.translations] == list(REQUEST.contents)
    assert facts()["target_tokens"] == sum(each.target_tokens for each in response.translations) > 0


async def test_a_stream_has_each_sentence_and_the_errors_of_texts(api: Api) -> None:
    request = pb.TranslateStreamRequest(request=REQUEST)

    responses = [each async for each in api.translate_stream(request, None)]

    assert sorted(each.sentence.text for each in responses) == sorted(REQUEST.contents)


async def test_pairs_are_scored(api: Api) -> None:
    pair = pb.ScorePair(source="A dog runs.", target="A dog runs.")

    response = await api.score(pb.ScoreRequest(pairs=[pair], target_language_code="de"), None)

    assert len(response.scores) == 1
    assert response.model == "echo"


async def test_models_and_glossaries_are_listed(api: Api) -> None:
    models = await api.list_models(pb.ListModelsRequest())
    glossaries = await api.list_glossaries(pb.ListGlossariesRequest())

    assert [each.name for each in models.models] == ["echo"]
    assert list(glossaries.glossaries) == []


async def test_models_are_described_again_when_they_change(api: Api, translator: Translator, model: Model) -> None:
    first = await api.list_models(pb.ListModelsRequest())
    again = await api.list_models(pb.ListModelsRequest())
    translator.catalogue.put(named(model, "other"))

    changed = await api.list_models(pb.ListModelsRequest())

    assert again is first
    assert [each.name for each in changed.models] == ["echo", "other"]


async def test_a_caller_who_has_left_in_time_is_not_served(api: Api) -> None:
    with pytest.raises(DeadlineExceeded):
        await api.translate(REQUEST, 0.0)


async def test_errors_pass(api: Api) -> None:
    with pytest.raises(InvalidRequest, match="target_language_code"):
        await api.translate(pb.TranslateRequest(contents=["a"]), None)


async def test_a_tenant_in_debt_is_refused_unread(api: Api) -> None:
    api.check_open(None)
    bucket = TokenBucket(rate=1.0, burst=1.0)
    bucket.take(100.0)
    let_in(Tenant(name="billing", bucket=bucket), "")

    with pytest.raises(Overloaded, match="quota of tenant billing"):
        api.check_open(None)
    let_in(Tenant(name="other"), "")


async def test_languages_are_detected(api: Api) -> None:
    response = await api.detect_languages(pb.DetectLanguagesRequest(contents=["A dog runs."]))

    assert list(response.detections) == [pb.Detection(language_code="en", confidence=0.0)]
