import contextlib
import inspect
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status

import client
from client import AsyncClient, Client
from client.channel import TlsOptions
from client.errors import (
    DeadlineExceeded,
    InvalidRequest,
    ModelNotFound,
    Overloaded,
    PermissionDenied,
    ServerFailed,
    Unauthenticated,
    Unavailable,
)
from client.messages import TranslateOptions
from client.results import FinishReason, Hypothesis, ModelInfo
from protos import translation_pb2
from tests.client.scripted_server import ScriptedServer, ScriptedService

TLS = Path(__file__).parent / "tls"


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


def test_options_reach_the_server_and_absent_ones_stay_absent(client: Client, service: ScriptedService) -> None:
    client.translate(
        ["a"], source="en", target="de", model="m", beam_size=2, length_penalty=0.5, priority="low", traffic_key="k"
    )
    client.translate(["a"], target="de", beam_size=1, with_scores=False)

    request, spared = service.requests
    assert (request.source_language_code, request.target_language_code, request.model) == ("en", "de", "m")
    assert (request.decoding.beam_size, request.decoding.length_penalty) == (2, 0.5)
    assert (request.priority, request.traffic_key, spared.traffic_key) == (translation_pb2.PRIORITY_LOW, "k", "")
    assert not request.decoding.HasField("num_hypotheses")
    assert not request.decoding.HasField("max_output_tokens")
    assert not request.decoding.HasField("with_scores")
    assert (spared.decoding.HasField("with_scores"), spared.decoding.with_scores) == (True, False)


def test_one_bad_text_fails_alone(client: Client) -> None:
    good, bad = client.translate(["good", "!INVALID_ARGUMENT too odd"], target="de").translations

    assert good.text == "GOOD"
    assert bad.error is not None
    assert (bad.error.code, bad.error.message) == (grpc.StatusCode.INVALID_ARGUMENT, "too odd")


def test_unavailable_is_retried(client: Client, service: ScriptedService) -> None:
    service.failures.extend([(grpc.StatusCode.UNAVAILABLE, "draining", ())] * 3)

    assert client.translate(["a"], target="de").translations[0].text == "A"
    assert service.num_attempts == 4
    assert service.metadata[-1]["grpc-previous-rpc-attempts"] == "3"


def test_a_large_request_is_retried_too(client: Client, service: ScriptedService) -> None:
    service.failures.append((grpc.StatusCode.UNAVAILABLE, "draining", ()))

    assert len(client.translate(["a" * 2**20], target="de").translations[0].text) == 2**20


def test_overload_is_retried_after_the_servers_pushback(client: Client, service: ScriptedService) -> None:
    pushback = (("grpc-retry-pushback-ms", "1"),)
    service.failures.extend([(grpc.StatusCode.RESOURCE_EXHAUSTED, "full", pushback)] * 2)

    client.translate(["a"], target="de")

    assert service.num_attempts == 3


def test_a_negative_pushback_forbids_retries(client: Client, service: ScriptedService) -> None:
    service.failures.append((grpc.StatusCode.RESOURCE_EXHAUSTED, "full", (("grpc-retry-pushback-ms", "-1"),)))

    with pytest.raises(Overloaded, match="full") as caught:
        client.translate(["a"], target="de")

    assert service.num_attempts == 1
    assert caught.value.retry_after_seconds is None


def test_overload_that_lasts_says_when_to_come_back(client: Client, service: ScriptedService) -> None:
    service.failures.extend(
        [(grpc.StatusCode.RESOURCE_EXHAUSTED, "full", (("grpc-retry-pushback-ms", "40"),))] * 4,
    )

    with pytest.raises(Overloaded) as caught:
        client.translate(["a"], target="de")

    assert caught.value.retry_after_seconds == 0.04
    assert caught.value.request_id == "request-7"


def test_retries_can_be_switched_off(server: ScriptedServer, service: ScriptedService) -> None:
    service.failures.append((grpc.StatusCode.UNAVAILABLE, "draining", ()))

    with Client(server.address, max_attempts=1) as client, pytest.raises(Unavailable, match="draining"):
        client.translate(["a"], target="de")

    assert service.num_attempts == 1


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (grpc.StatusCode.INVALID_ARGUMENT, InvalidRequest),
        (grpc.StatusCode.NOT_FOUND, ModelNotFound),
        (grpc.StatusCode.INTERNAL, ServerFailed),
        (grpc.StatusCode.UNAUTHENTICATED, Unauthenticated),
        (grpc.StatusCode.PERMISSION_DENIED, PermissionDenied),
        (grpc.StatusCode.DATA_LOSS, ServerFailed),
    ],
)
def test_other_failures_are_typed_and_not_retried(
    client: Client, service: ScriptedService, code: grpc.StatusCode, error: type[Exception]
) -> None:
    service.failures.append((code, "no", ()))

    with pytest.raises(error, match="no") as caught:
        client.translate(["a"], target="de")

    assert getattr(caught.value, "code", None) is code
    assert service.num_attempts == 1


async def test_an_api_key_goes_with_every_call(server: ScriptedServer, service: ScriptedService) -> None:
    with Client(server.address, api_key="secret") as client:
        client.translate(["a"], target="de")
        list(client.translate_stream(["a"], target="de"))
    async with AsyncClient(server.address, api_key="secret") as asynchronous:
        await asynchronous.translate(["a"], target="de")

    assert [metadata.get("authorization") for metadata in service.metadata] == ["Bearer secret"] * 3


def test_without_an_api_key_none_is_sent(client: Client, service: ScriptedService) -> None:
    client.translate(["a"], target="de")

    assert "authorization" not in service.metadata[0]


@pytest.mark.parametrize("key", ["", " ", "two\nlines", "sch\xf6n"])
def test_an_api_key_that_no_header_can_carry_is_refused_and_not_repeated(key: str) -> None:
    with pytest.raises(ValueError, match=r"^an API key must be printable ASCII$"):
        Client("localhost:1", api_key=key)


def test_a_deadline_ends_the_wait_and_the_servers_work(client: Client, service: ScriptedService) -> None:
    service.before_answer = lambda request: service.is_closing.wait()

    with pytest.raises(DeadlineExceeded):
        client.translate(["a"], target="de", deadline_seconds=0.2)

    assert service.cancelled.wait(20)


def test_nobody_at_the_address_is_unavailable(dead_address: str) -> None:
    with Client(dead_address) as client, pytest.raises(Unavailable):
        client.translate(["a"], target="de")


def test_a_server_that_is_not_serving_gets_no_calls(server: ScriptedServer, service: ScriptedService) -> None:
    server.set_serving(False)

    with Client(server.address) as client, pytest.raises(Unavailable):
        client.translate(["a"], target="de")

    assert service.num_attempts == 0


def test_a_client_that_does_not_watch_health_calls_all_the_same(server: ScriptedServer) -> None:
    server.set_serving(False)

    with Client(server.address, watch_health=False) as client:
        result = client.translate(["a"], target="de")

    assert result.translations[0].text == "A"


async def test_so_does_an_asynchronous_one(server: ScriptedServer) -> None:
    server.set_serving(False)

    async with AsyncClient(server.address, watch_health=False) as client:
        result = await client.translate(["a"], target="de")

    assert result.translations[0].text == "A"


def test_one_string_in_place_of_a_list_is_refused(client: Client) -> None:
    with pytest.raises(TypeError, match="sequence of texts"):
        client.translate("hello", target="de")


@pytest.mark.parametrize(
    ("contents", "target", "options", "message"),
    [
        ([None], "de", {}, r"contents\[0\] must be a string, not NoneType"),
        (["a", b"b"], "de", {}, r"contents\[1\] must be a string, not bytes"),
        (b"ab", "de", {}, "contents must be a sequence of texts, not one string"),
        (None, "de", {}, "contents must be a sequence of texts, not NoneType"),
        (["a"], None, {}, "target must be a string, not NoneType"),
        (["a"], "de", {"source": 1}, "source must be a string, not int"),
        (["a"], "de", {"beam_size": 2.0}, "beam_size must be a whole number, not float"),
        (["a"], "de", {"beam_size": True}, "beam_size must be a whole number, not bool"),
        (["a"], "de", {"length_penalty": "1"}, "length_penalty must be a number, not str"),
        (["a"], "de", {"with_scores": 1}, "with_scores must be True or False, not int"),
        (["a"], "de", {"priority": 3}, "priority must be a string, not int"),
    ],
)
def test_what_has_another_type_is_refused_by_its_name(
    client: Client, contents: Any, target: Any, options: Any, message: str
) -> None:
    with pytest.raises(TypeError, match=f"^{message}"):
        client.translate(contents, target=target, **options)


def test_none_is_as_if_an_option_were_not_there(client: Client, service: ScriptedService) -> None:
    names: Any = dict.fromkeys(TranslateOptions.__annotations__)
    client.translate(("a",), target="de", **names)
    client.translate(iter("a"), target="de", length_penalty=1)  # type: ignore[arg-type]

    plain, penalised = service.requests
    assert plain == translation_pb2.TranslateRequest(
        contents=["a"],
        target_language_code="de",
        decoding=translation_pb2.DecodingOptions(),
        output=translation_pb2.OutputOptions(),
    )
    assert penalised.decoding.length_penalty == 1.0


def test_a_request_that_is_too_long_is_no_overload(client: Client, service: ScriptedService) -> None:
    with pytest.raises(InvalidRequest, match=r"^contents: the request has \d+ bytes; the limit is 4194304$"):
        client.translate(["a" * 2**20] * 4, target="de")
    assert service.num_attempts == 0

    too_long = "SERVER: Received message larger than max (5 vs. 4)"  # of another limit, a proxy's perhaps
    service.failures.extend([(grpc.StatusCode.RESOURCE_EXHAUSTED, too_long, ())] * 4)
    with pytest.raises(InvalidRequest, match="larger than max") as caught:
        client.translate(["a"], target="de")
    assert caught.value.code is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_retry_info_tells_when_to_come_back_too(server: ScriptedServer, service: ScriptedService) -> None:
    retry = RetryInfo()
    retry.retry_delay.FromMilliseconds(2500)
    status = Status(code=grpc.StatusCode.RESOURCE_EXHAUSTED.value[0])
    status.details.add().Pack(retry)
    for details in (status.SerializeToString(), Status().SerializeToString(), b"\xff"):
        service.failures.append((grpc.StatusCode.RESOURCE_EXHAUSTED, "full", (("grpc-status-details-bin", details),)))

    with Client(server.address, max_attempts=1) as client:
        for seconds in (2.5, None, None):
            with pytest.raises(Overloaded) as caught:
                client.translate(["a"], target="de")
            assert caught.value.retry_after_seconds == seconds


def test_a_misspelt_option_is_refused(client: Client) -> None:
    with pytest.raises(TypeError, match="unknown option: beam"):
        client.translate(["hello"], target="de", beam=1)  # type: ignore[call-arg]


def test_what_protobuf_cannot_carry_is_an_invalid_request(client: Client, service: ScriptedService) -> None:
    with pytest.raises(InvalidRequest, match=r"contents\[1\].*surrogate"):
        client.translate(["a", "b\udcff"], target="de")
    with pytest.raises(InvalidRequest, match=r"target is not valid Unicode"):
        client.translate(["a"], target="d\udcff")
    with pytest.raises(InvalidRequest, match="-1"):
        client.translate(["a"], target="de", beam_size=-1)
    with pytest.raises(InvalidRequest, match="priority must be one of high, normal, low"):
        client.translate(["a"], target="de", priority="urgent")

    assert service.num_attempts == 0


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


def test_tls_with_a_name_of_its_own() -> None:
    certificate, key = (TLS / "cert.pem").read_bytes(), (TLS / "key.pem").read_bytes()
    server = ScriptedServer(grpc.ssl_server_credentials([(key, certificate)]))
    tls = TlsOptions(ca_file=TLS / "cert.pem", server_name="babelserve.test")

    with contextlib.closing(server), Client(server.address, tls=tls) as client:
        assert client.translate(["a"], target="de").translations[0].text == "A"


def test_a_server_that_nobody_vouches_for_is_refused() -> None:
    certificate, key = (TLS / "cert.pem").read_bytes(), (TLS / "key.pem").read_bytes()
    server = ScriptedServer(grpc.ssl_server_credentials([(key, certificate)]))

    with contextlib.closing(server), Client(server.address, tls=TlsOptions()) as client, pytest.raises(Unavailable):
        client.translate(["a"], target="de")


def test_arguments_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="max_attempts"):
        Client("localhost:1", max_attempts=6)
    with pytest.raises(ValueError, match="together"):
        Client("localhost:1", tls=TlsOptions(key_file=TLS / "key.pem"))


def test_what_the_package_exports_is_what_its_methods_give_and_raise() -> None:
    own = {
        name
        for module in (client.results, client.errors)
        for name, value in vars(module).items()
        if inspect.isclass(value) and value.__module__ == module.__name__
    }

    assert set(client.__all__) == own | {"AsyncClient", "Client", "TlsOptions"}
