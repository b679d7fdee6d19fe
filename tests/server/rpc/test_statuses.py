import grpc
import pytest
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status

from server.errors import Code
from server.rpc.statuses import STATUS_CODES, retry_details


@pytest.mark.parametrize("code", Code)
def test_every_code_has_the_status_of_its_name(code: Code) -> None:
    assert STATUS_CODES[code].name == code.name


def test_details_say_when_to_come_back() -> None:
    status = Status.FromString(retry_details(grpc.StatusCode.RESOURCE_EXHAUSTED, 250))

    retry = RetryInfo()
    assert status.code == grpc.StatusCode.RESOURCE_EXHAUSTED.value[0]
    assert status.details[0].Unpack(retry)
    assert retry.retry_delay.ToMilliseconds() == 250
