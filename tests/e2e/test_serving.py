"""What a live server answers: the happy path, each error, and what becomes of callers who leave."""

import contextlib
import json
import resource
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_channelz.v1 import channelz_pb2, channelz_pb2_grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from babelserve.v1 import translation_pb2 as pb
from babelserve.v1.translation_pb2_grpc import TranslationServiceStub
from export.subject import DevSet
from server.bundle.bundle import Bundle
from tests.acceptance.bad_requests import SECRET, BadRequest, bad_requests
from tests.acceptance.calls import open_stub
from tests.acceptance.server_process import ServerProcess
from tests.babelserve.command_line import with_closed
from tests.e2e.conftest import Start, metric, wait_for_metric

TIMEOUT = 200.0


def request(*contents: str, **fields: Any) -> pb.TranslateRequest:
    return pb.TranslateRequest(contents=contents, target_language_code="de", **fields)


def stream_request(*contents: str) -> pb.TranslateStreamRequest:
    return pb.TranslateStreamRequest(request=request(*contents))


def translate(server: ServerProcess, *contents: str, **fields: Any) -> list[str]:
    with open_stub(server.address) as stub:
        response = stub.Translate(request(*contents, **fields), timeout=TIMEOUT)
    return [translation.text for translation in response.translations]


def test_sentences_known_by_heart_are_translated(server: ServerProcess, dev_set: DevSet) -> None:
    texts = translate(server, *dev_set.sources[:20])

    num_same = sum(text == reference for text, reference in zip(texts, dev_set.references, strict=False))
    assert num_same >= 10


def test_texts_keep_their_form_and_their_order(server: ServerProcess, dev_set: DevSet) -> None:
    one, two = dev_set.sources[:2]
    eins, zwei = translate(server, one, two)

    texts = translate(server, f"  {one} {two}\n\n***\t{one}\n", "", "\n", two)

    assert texts == [f"  {eins} {zwei}\n\n***\t{eins}\n", "", "\n", zwei]


def test_scores_can_be_declined_for_greedy_search(server: ServerProcess, dev_set: DevSet) -> None:
    texts = dev_set.sources[:10]
    with open_stub(server.address) as stub:
        scored, spared = (
            stub.Translate(
                request(*texts, decoding=pb.DecodingOptions(beam_size=1, with_scores=with_scores)), timeout=TIMEOUT
            ).translations
            for with_scores in (True, False)
        )

    assert [translation.text for translation in spared] == [translation.text for translation in scored]
    assert all(translation.score < 0 for translation in scored)
    assert all(translation.score == 0 for translation in spared)


def test_stream_and_unary_give_the_same(server: ServerProcess, dev_set: DevSet) -> None:
    texts = [" ".join(dev_set.sources[:12]), dev_set.sources[12], ""]
    with open_stub(server.address) as stub:
        messages = list(stub.TranslateStream(stream_request(*texts), timeout=TIMEOUT))

    joined = ["", "", ""]
    for message in sorted(messages, key=lambda m: (m.content_index, m.sentence_index)):
        joined[message.content_index] += message.leading + message.sentence.text + message.sentence.separator
    assert joined == translate(server, *texts)
    assert [m.sentence_count for m in messages if m.content_index == 2] == [0]


@pytest.mark.parametrize("case", bad_requests(), ids=lambda case: case.name)
def test_a_bad_request_has_its_own_clear_error(server: ServerProcess, case: BadRequest) -> None:
    with grpc.insecure_channel(server.address) as channel, pytest.raises(grpc.RpcError) as caught:
        case.send(channel)

    error: Any = caught.value
    assert error.code() == case.code
    assert [word for word in case.mentions if word not in error.details()] == []
    assert SECRET not in error.details()


def test_a_text_that_is_too_long_fails_alone(server: ServerProcess, dev_set: DevSet) -> None:
    good = dev_set.sources[0]
    with open_stub(server.address) as stub:
        response = stub.Translate(request(good, "x" * (2 << 20) + "y", good), timeout=TIMEOUT)

    assert [t.status.code for t in response.translations] == [0, grpc.StatusCode.INVALID_ARGUMENT.value[0], 0]
    assert response.translations[0].text == response.translations[2].text != ""


def test_a_caller_who_leaves_frees_the_rows(server: ServerProcess, dev_set: DevSet) -> None:
    before = metric(server, "sentences_total", outcome="cancelled")
    with open_stub(server.address) as stub:
        call = stub.TranslateStream(stream_request(*dev_set.sources * 5))
        next(call)
        call.cancel()

    wait_for_metric(server, 0, "lane_rows_used")
    wait_for_metric(server, 0, "queue_depth")
    wait_for_metric(server, 0, "requests_in_flight", method="TranslateStream")
    assert metric(server, "sentences_total", outcome="cancelled") > before


def test_the_servers_own_time_limit_counts_too(start: Start, dev_set: DevSet) -> None:
    server = start("--max-request-seconds", "0.05")

    with open_stub(server.address) as stub, pytest.raises(grpc.RpcError) as caught:
        stub.Translate(request(" ".join(dev_set.sources * 10)), timeout=TIMEOUT)

    error: Any = caught.value
    assert error.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    wait_for_metric(server, 0, "lane_rows_used")


def test_a_full_queue_refuses_with_the_time_to_come_back(start: Start, dev_set: DevSet) -> None:
    server = start("--max-waiting-sentences", "1", "--max-rows", "16")
    with open_stub(server.address) as stub:
        long = stub.TranslateStream(stream_request(*dev_set.sources * 5))
        next(long)
        with pytest.raises(grpc.RpcError) as caught:
            stub.Translate(request(*dev_set.sources * 5), timeout=TIMEOUT)
        short = stub.Translate(request("A dog runs."), timeout=TIMEOUT)  # of another flow, which has its share
        healthy = stub_of_health(server).Check(HealthCheckRequest(), timeout=TIMEOUT)
        long.cancel()
        wait_for_metric(server, 0, "queue_depth")
        after = stub.Translate(request(dev_set.sources[0]), timeout=TIMEOUT)

    error: Any = caught.value
    assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert int(dict(error.trailing_metadata())["grpc-retry-pushback-ms"]) > 0
    assert healthy.status == HealthCheckResponse.SERVING
    assert metric(server, "queue_rejected_total", reason="sentences") == 1
    assert short.translations[0].text
    assert after.translations[0].text


def stub_of_health(server: ServerProcess) -> HealthStub:
    return HealthStub(grpc.insecure_channel(server.health_address))


@pytest.mark.parametrize("name", ["", "babelserve.v1.TranslationService", "readiness", "liveness"])
def test_health_is_told_on_both_ports(server: ServerProcess, name: str) -> None:
    for address in (server.address, server.health_address):
        with grpc.insecure_channel(address) as channel:
            answer = HealthStub(channel).Check(HealthCheckRequest(service=name), timeout=TIMEOUT)

        assert answer.status == HealthCheckResponse.SERVING


def is_answered(server: ServerProcess) -> bool:
    """Whether new connections for health, on both ports, and for metrics are served."""
    try:
        for address in (server.address, server.health_address):
            with grpc.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
                HealthStub(channel).Check(HealthCheckRequest(service="readiness"), timeout=1)
        with urllib.request.urlopen(server.metrics_url, timeout=1) as page:
            return bool(page.read())
    except (grpc.RpcError, OSError):
        return False


def test_a_server_that_could_open_no_files_answers_when_it_can_again(start: Start) -> None:
    server = start()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.ExitStack() as stack:
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (24, hard))
        for port in (server.port, server.health_port, server.metrics_port) * 4:
            stack.enter_context(socket.create_connection((server.host, port)))
        was_answered = is_answered(server)
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (hard, hard))
    end = time.monotonic() + 11
    while not (answered := is_answered(server)) and time.monotonic() < end:
        time.sleep(0.1)

    assert (was_answered, answered) == (False, True)


def test_reflection_lists_the_services_when_asked_for(server: ServerProcess) -> None:
    with grpc.insecure_channel(server.address) as channel:
        services = set(ProtoReflectionDescriptorDatabase(channel).get_services())

    assert {"babelserve.v1.TranslationService", "grpc.health.v1.Health"} <= services


def test_reflection_is_off_by_default_and_channelz_is_on_the_admin_port(start: Start) -> None:
    server = start()

    with grpc.insecure_channel(server.address) as channel, pytest.raises(grpc.RpcError) as caught:
        ProtoReflectionDescriptorDatabase(channel).get_services()
    with grpc.insecure_channel(f"127.0.0.1:{server.admin_port}") as channel:
        answer = channelz_pb2_grpc.ChannelzStub(channel).GetServers(channelz_pb2.GetServersRequest(), timeout=TIMEOUT)

    error: Any = caught.value
    assert error.code() == grpc.StatusCode.UNIMPLEMENTED
    assert answer.server


def test_tls_is_served_where_there_is_a_certificate(start: Start, dev_set: DevSet) -> None:
    folder = Path(__file__).parents[1] / "babelserve" / "tls"
    server = start("--tls-cert", str(folder / "cert.pem"), "--tls-key", str(folder / "key.pem"))
    credentials = grpc.ssl_channel_credentials((folder / "cert.pem").read_bytes())

    options = [("grpc.ssl_target_name_override", "babelserve.test")]
    with grpc.secure_channel(server.address, credentials, options=options) as channel:
        response = TranslationServiceStub(channel).Translate(request(dev_set.sources[0]), timeout=TIMEOUT)
    with open_stub(server.address) as stub, pytest.raises(grpc.RpcError):
        stub.Translate(request("Hi."), timeout=TIMEOUT)

    assert response.translations[0].text


@pytest.mark.parametrize("flag", ["--make-key", "--list"])
def test_what_is_printed_needs_an_open_stdout(flag: str) -> None:
    done = with_closed(">&-", [sys.executable, "-m", "server", flag])

    assert done == (2, b"", b"babelserve: stdout is closed\n")


def test_a_good_bundle_is_proved_though_stderr_is_closed(tiny_bundle: Bundle) -> None:
    code, told, _ = with_closed("2>&-", [sys.executable, "-m", "server", "--check", str(tiny_bundle.directory)])

    assert (code, told.count(b"\n") > 1) == (0, True)


def test_keys_are_made_asked_for_and_renewed_while_the_server_runs(
    start: Start, dev_set: DevSet, tmp_path: Path
) -> None:
    def made() -> tuple[str, str]:
        command = [sys.executable, "-m", "server", "--make-key"]
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        return lines[1], "\n".join(["[tenants.reader]", *lines[-2:]]).replace("NAME", "reader")

    def code(key: str) -> grpc.StatusCode:
        with open_stub(server.address) as stub:
            call: Any = stub.Translate.future(
                request(dev_set.sources[0]), timeout=TIMEOUT, metadata=(("x-api-key", key),)
            )
            return call.code()  # type: ignore[no-any-return]

    (old, old_file), (new, new_file) = made(), made()
    keys = tmp_path / "keys.toml"
    keys.write_text(old_file)
    server = start("--keys", str(keys))
    before = [code(old), code(new)]
    keys.write_text(new_file)
    server.process.send_signal(signal.SIGHUP)
    wait_for_metric(server, 1, "reloads_total", files="keys", outcome="ok")
    after = [code(old), code(new)]

    assert before == [grpc.StatusCode.OK, grpc.StatusCode.UNAUTHENTICATED]
    assert after == [grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.OK]


def test_the_log_is_json_lines_without_any_text(start: Start) -> None:
    server = start()
    with open_stub(server.address) as stub:
        stub.Translate(request(SECRET), timeout=TIMEOUT, metadata=(("x-request-id", "id-1"),))
        with pytest.raises(grpc.RpcError):
            stub.Translate(request(SECRET, mime_type=SECRET * 9), timeout=TIMEOUT)

    assert server.stop() == 0
    output = server.stderr()
    lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    requests = [line for line in lines if line["event"] == "request"]
    assert [(line["code"], line["texts"]) for line in requests[:1]] == [("OK", 1)]
    assert requests[0]["request_id"] == "id-1"
    assert [line["code"] for line in requests] == ["OK", "INVALID_ARGUMENT"]
    assert SECRET not in output
    assert f"SERVING tiny 0 (cpu-fp32, lanes: 1) on 127.0.0.1:{server.port}" in output
