import grpc
import pytest
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status

from babelserve import Client
from babelserve.errors import (
    InvalidRequest,
    ModelNotFound,
    Overloaded,
    PermissionDenied,
    ServerFailed,
    Unauthenticated,
    Unavailable,
)
from tests.babelserve.scripted_server import ScriptedServer, ScriptedService


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


def test_overload_that_lasts_says_when_to_come_back(client: Client, service: ScriptedService) -> None:
    service.failures.extend(
        [(grpc.StatusCode.RESOURCE_EXHAUSTED, "full", (("grpc-retry-pushback-ms", "40"),))] * 4,
    )

    with pytest.raises(Overloaded) as caught:
        client.translate(["a"], target="de")

    assert caught.value.retry_after_seconds == 0.04
    assert caught.value.request_id == "request-7"


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


@pytest.mark.parametrize(
    ("seconds", "nanos", "waits"),
    [
        (2**62, 0, 86_400.0),
        (-(2**62), 0, 0.0),
        (2**63 - 1, 2**31 - 1, 86_400.0),
        (-(2**63), -(2**31), 0.0),
        (1, 500_000_000, 1.5),
        (0, 2**31 - 1, 2.147483647),
    ],
)
def test_no_time_is_too_long_to_come_back(
    server: ScriptedServer, service: ScriptedService, seconds: int, nanos: int, waits: float
) -> None:
    retry = RetryInfo()
    retry.retry_delay.seconds, retry.retry_delay.nanos = seconds, nanos
    status = Status()
    status.details.add().Pack(retry)
    trailing = (("grpc-status-details-bin", status.SerializeToString()),)
    service.failures.append((grpc.StatusCode.RESOURCE_EXHAUSTED, "full", trailing))

    with Client(server.address, max_attempts=1) as client, pytest.raises(Overloaded) as caught:
        client.translate(["a"], target="de")

    assert caught.value.retry_after_seconds == waits


@pytest.mark.parametrize(("number", "waits"), [("9999999999999", 86_400.0), ("1500", 1.5), ("9" * 5000, None)])
def test_nor_is_a_pushback(server: ScriptedServer, service: ScriptedService, number: str, waits: float | None) -> None:
    """GRPC itself leaves out a number that is too long for it."""
    service.failures.append((grpc.StatusCode.RESOURCE_EXHAUSTED, "full", (("grpc-retry-pushback-ms", number),)))

    with Client(server.address, max_attempts=1) as client, pytest.raises(Overloaded) as caught:
        client.translate(["a"], target="de")

    assert caught.value.retry_after_seconds == waits


def test_errors_are_one_line_without_control_characters(client: Client, service: ScriptedService) -> None:
    service.failures.append((grpc.StatusCode.NOT_FOUND, "no\x1b]0;t\x07\nbabelserve: \x9b2J \u202e", ()))

    with pytest.raises(ModelNotFound) as caught:
        client.translate(["a"], target="de")
    error = client.translate(["!INTERNAL a\x1b[2J\nb"], target="de").translations[0].error

    assert str(caught.value) == r"no\x1b]0;t\x07\nbabelserve: \x9b2J \u202e"
    assert error is not None
    assert error.message == r"a\x1b[2J\nb"


@pytest.mark.parametrize(
    ("details", "shown"),
    [
        ("last error: ipv6:%5B::1%5D:50051: Connection refused", "last error: ipv6:[::1]:50051: Connection refused"),
        ("ipv6:%5Bfe80::1%25eth0%5D:1: timed out", "ipv6:[fe80::1%eth0]:1: timed out"),
        ("unix:/tmp/a%20b: no", "unix:/tmp/a b: no"),
        ("unix:/tmp/%1B%5B2J%0A%C2%9B: no", r"unix:/tmp/\x1b[2J\n\x9b: no"),
        ("model nope%5D: 5%25", "model nope%5D: 5%25"),
    ],
)
def test_addresses_are_shown_as_people_write_them(
    server: ScriptedServer, service: ScriptedService, details: str, shown: str
) -> None:
    service.failures.append((grpc.StatusCode.UNAVAILABLE, details, ()))

    with Client(server.address, max_attempts=1) as client, pytest.raises(Unavailable) as caught:
        client.translate(["a"], target="de")

    assert str(caught.value) == shown


def test_a_request_that_is_too_long_is_no_overload(client: Client, service: ScriptedService) -> None:
    with pytest.raises(InvalidRequest, match=r"^contents: the request has \d+ bytes; the limit is 4194304$"):
        client.translate(["a" * 2**20] * 4, target="de")
    assert service.num_attempts == 0

    too_long = "SERVER: Received message larger than max (5 vs. 4)"  # of another limit, a proxy's perhaps
    service.failures.extend([(grpc.StatusCode.RESOURCE_EXHAUSTED, too_long, ())] * 4)
    with pytest.raises(InvalidRequest, match="larger than max") as caught:
        client.translate(["a"], target="de")
    assert caught.value.code is grpc.StatusCode.RESOURCE_EXHAUSTED
