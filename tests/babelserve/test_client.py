import inspect

import grpc
import pytest

import babelserve
from babelserve import Client
from babelserve.errors import (
    DeadlineExceeded,
    ModelNotFound,
    Unavailable,
)
from babelserve.results import FinishReason, Hypothesis, KeptPart, ModelInfo, Placement
from tests.babelserve.scripted_server import ScriptedService


def test_translations_come_back_in_order_with_all_their_facts(client: Client) -> None:
    result = client.translate(["zwei", "ä\u2028b", ""], target="de", num_hypotheses=2, include_sentences=True)

    assert [translation.text for translation in result.translations] == ["ZWEI", "Ä\u2028B", ""]
    first = result.translations[0]
    assert first.hypotheses == (Hypothesis(text="ZWEI", score=-0.25),) * 2
    assert first.finish_reason is FinishReason.STOP
    assert first.sentences[0].finish_reason is FinishReason.LENGTH
    assert (first.source_tokens, first.error) == (4, None)
    assert (result.model, result.model_version, result.timings.queue_seconds) == ("scripted", "1", 0.125)
    assert (result.source, result.target) == ("en", "de")


def test_what_the_model_was_not_shown_is_told(client: Client) -> None:
    plain, copied = client.translate(["zwei", "***"], target="de").translations

    assert plain.kept == ()
    assert copied.finish_reason is FinishReason.COPIED
    assert copied.kept == tuple(KeptPart(text="***", placement=placement) for placement in Placement)


def test_one_bad_text_fails_alone(client: Client) -> None:
    good, bad = client.translate(["good", "!INVALID_ARGUMENT too odd"], target="de").translations

    assert good.text == "GOOD"
    assert bad.error is not None
    assert (bad.error.code, bad.error.message) == (grpc.StatusCode.INVALID_ARGUMENT, "too odd")


def test_a_deadline_ends_the_wait_and_the_servers_work(client: Client, service: ScriptedService) -> None:
    service.before_answer = lambda request: service.is_closing.wait()

    with pytest.raises(DeadlineExceeded):
        client.translate(["a"], target="de", deadline_seconds=1.0)

    assert service.cancelled.wait(20)


def test_nobody_at_the_address_is_unavailable(dead_address: str) -> None:
    with Client(dead_address) as client, pytest.raises(Unavailable):
        client.translate(["a"], target="de")


def test_a_stream_brings_each_sentence_with_its_place(client: Client) -> None:
    items = list(client.translate_stream(["a", " ", "!INTERNAL oops"], target="de"))

    assert [item.content_index for item in items] == [2, 1, 0]
    failed, blank, done = items
    assert failed.error is not None
    assert failed.error.message == "oops"
    assert (blank.sentence, blank.leading, blank.sentence_count) == (None, " ", 0)
    assert done.sentence is not None
    assert done.sentence.text == "A"
    assert (done.model, done.model_version) == ("scripted", "1")


def test_a_stream_that_fails_raises_a_typed_error(client: Client, service: ScriptedService) -> None:
    service.failures.append((grpc.StatusCode.NOT_FOUND, "no such model", ()))

    with pytest.raises(ModelNotFound):
        list(client.translate_stream(["a"], target="de"))


def test_models_are_listed(client: Client) -> None:
    assert client.list_models() == (
        ModelInfo(
            name="scripted",
            version="1",
            variant="cpu-fp32",
            language_pairs=(("en", "de"),),
            max_beam_size=8,
            max_source_tokens=0,
            max_target_tokens=0,
            has_shortlist=False,
            source_languages=("en",),
            target_languages=("de",),
        ),
    )


def test_languages_between_are_listed(client: Client, service: ScriptedService) -> None:
    service.pivots = ["en", "de"]

    assert client.list_pivots() == ("en", "de")


def test_what_the_package_exports_is_what_its_methods_give_and_raise() -> None:
    own = {
        name
        for module in (babelserve.results, babelserve.terms, babelserve.errors)
        for name, value in vars(module).items()
        if inspect.isclass(value) and value.__module__ == module.__name__
    }

    assert set(babelserve.__all__) == own | {"AsyncClient", "Client", "TlsOptions"}
