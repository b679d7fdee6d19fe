"""The statuses of gRPC that calls end with."""

import functools

import grpc
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status

from server.errors import Code

STATUS_CODES = {code: grpc.StatusCode[code.name] for code in Code}


@functools.lru_cache(maxsize=1024)
def retry_details(code: grpc.StatusCode, milliseconds: int) -> bytes:
    """Returns a status with `google.rpc.RetryInfo`, for clients that read it but not gRPC's own pushback."""
    retry = RetryInfo()
    retry.retry_delay.FromMilliseconds(milliseconds)
    status = Status(code=code.value[0])
    status.details.add().Pack(retry)
    return status.SerializeToString()
