"""KServe's protocol v2 over HTTP with Triton's binary tensors, in the messages of `server.fronts.kserve`.

A body is JSON. With binary tensors it goes on with their bytes, and a header says how long its JSON is.
"""

import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import Message

from server.errors import Code, InvalidRequest, TranslationError
from server.fronts.front import Front, check_text
from server.fronts.kserve_models import BYTES
from server.fronts.v1 import kserve_pb2 as kserve
from server.telemetry.metrics import KSERVE
from server.translation.rules import MAX_TEXTS, shown

BINARY_SIZE, BINARY_DATA, BINARY_OUTPUT = "binary_data_size", "binary_data", "binary_data_output"
_LENGTH = struct.Struct("<I")  # of an element of BYTES, before its bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Infer:
    """A request to infer.

    Attributes:
        message: what it means.
        is_binary: says of outputs by name whether they are wanted as bytes.
        is_binary_else: the same of outputs that the request does not name.
    """

    message: kserve.ModelInferRequest
    is_binary: Mapping[str, bool]
    is_binary_else: bool


def json_length(header: str | None, body: bytes) -> int:
    """Returns how many bytes of a body are JSON.

    Args:
        header: `Inference-Header-Content-Length`; None if the whole body is JSON.
        body: whole.

    Raises:
        InvalidRequest: the header is not as it must be.
    """
    if header is None:
        return len(body)
    if not (header.isascii() and header.isdigit() and len(header) <= 9) or not 0 < int(header) <= len(body):
        name = "Inference-Header-Content-Length"
        raise InvalidRequest(name, f"must be 1 to the length of the body, {len(body)}")
    return int(header)


def read_infer(value: Any, tail: bytes, name: str, version: str) -> Infer:
    """Returns what a request to infer means.

    Args:
        value: its JSON.
        tail: what follows that.
        name: of the model.
        version: of the model; empty for any.

    Raises:
        InvalidRequest: it is no such request.
    """
    fields = _object("body", value)
    message = kserve.ModelInferRequest(model_name=name, model_version=version)
    if fields.get("id") is not None:
        message.id = check_text("id", fields["id"])
    parameters = dict(_object("parameters", fields.get("parameters", {})))
    is_binary_else = _boolean(f"parameters.{BINARY_OUTPUT}", parameters.pop(BINARY_OUTPUT, False))
    for key, each in parameters.items():
        _set_parameter(message.parameters, "parameters", key, each)
    begin = 0
    for index, each in enumerate(_list("inputs", fields.get("inputs"))):
        begin = _add_input(message, f"inputs[{index}]", each, tail, begin)
    if begin != len(tail):
        raise InvalidRequest(BINARY_SIZE, f"must together be the {len(tail)} bytes behind the JSON, not {begin}")
    is_binary = {}
    for index, each in enumerate(_list("outputs", fields.get("outputs", []))):
        place = f"outputs[{index}]"
        output = message.outputs.add(name=check_text(f"{place}.name", _object(place, each).get("name")))
        options = dict(_object(f"{place}.parameters", each.get("parameters", {})))
        wanted = options.pop(BINARY_DATA, is_binary_else)
        is_binary[output.name] = _boolean(f"{place}.parameters.{BINARY_DATA}", wanted)
        for key, option in options.items():
            _set_parameter(output.parameters, f"{place}.parameters", key, option)
    return Infer(message=message, is_binary=is_binary, is_binary_else=is_binary_else)


def write_infer(asked: Infer, response: kserve.ModelInferResponse) -> tuple[dict[str, Any], bytes]:
    """Returns the JSON of an answer, and the bytes that follow it.

    Args:
        asked: the request.
        response: with its values in `contents`.
    """
    outputs = []
    tail = bytearray()
    for tensor in response.outputs:
        output: dict[str, Any] = {"name": tensor.name, "datatype": tensor.datatype, "shape": list(tensor.shape)}
        texts, numbers = tensor.contents.bytes_contents, tensor.contents.fp32_contents  # one of them is empty
        if asked.is_binary.get(tensor.name, asked.is_binary_else):
            packed = b"".join(_LENGTH.pack(len(each)) + each for each in texts) or _floats(numbers)
            output["parameters"] = {BINARY_SIZE: len(packed)}
            tail += packed
        else:
            output["data"] = [each.decode() for each in texts] or list(numbers)
        outputs.append(output)
    names = {name: getattr(response, name) for name in ("model_name", "model_version", "id")}
    return {**{name: value for name, value in names.items() if value}, "outputs": outputs}, bytes(tail)


def plain(message: Message) -> dict[str, Any]:
    """Returns a message as KServe's JSON has it: all fields, names as they are, numbers as numbers, enums by name."""
    return {each.name: _plain(each, getattr(message, each.name)) for each in message.DESCRIPTOR.fields}


def _plain(each: Any, value: Any) -> Any:
    if each.is_repeated:
        return [_plain_one(each, one) for one in value]
    return _plain_one(each, value)


def _plain_one(each: Any, value: Any) -> Any:
    if each.message_type is not None:
        return plain(value)
    return each.enum_type.values_by_number[value].name if each.enum_type is not None else value


def _add_input(message: kserve.ModelInferRequest, place: str, value: Any, tail: bytes, begin: int) -> int:
    """Adds an input tensor; returns where its bytes end in the tail."""
    fields = _object(place, value)
    tensor = message.inputs.add(name=check_text(f"{place}.name", fields.get("name")))
    tensor.datatype = check_text(f"{place}.datatype", fields.get("datatype"))
    for size in _list(f"{place}.shape", fields.get("shape")):
        if isinstance(size, bool) or not isinstance(size, int) or not 0 < size <= MAX_TEXTS:
            raise InvalidRequest(f"{place}.shape", f"must be of whole numbers from 1 to {MAX_TEXTS}")
        tensor.shape.append(size)
    parameters = dict(_object(f"{place}.parameters", fields.get("parameters", {})))
    size = parameters.pop(BINARY_SIZE, None)
    for key, each in parameters.items():
        _set_parameter(tensor.parameters, f"{place}.parameters", key, each)
    if size is None:
        if tensor.datatype == BYTES and not parameters:  # shared memory, which is refused, has no data here
            tensor.contents.bytes_contents.extend(_elements(f"{place}.data", fields.get("data")))
        return begin
    if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size <= len(tail) - begin:
        rule = f"must be 0 to {len(tail) - begin}, the bytes that are left behind the JSON"
        raise InvalidRequest(f"{place}.parameters.{BINARY_SIZE}", rule)
    message.raw_input_contents.append(tail[begin : begin + size])
    return begin + size


def _elements(place: str, value: Any) -> Iterator[bytes]:
    """Yields the elements of a tensor, whose lists may be nested as its shape is, or flat."""
    waiting = [iter(_list(place, value))]
    while waiting:
        for each in waiting[-1]:
            if isinstance(each, list):
                waiting.append(iter(each))
                break
            yield check_text(place, each).encode()
        else:
            waiting.pop()


def _set_parameter(parameters: Any, place: str, name: str, value: Any) -> None:
    check_text(f"{place}'s names", name)
    try:
        if isinstance(value, bool):
            parameters[name].bool_param = value
        elif isinstance(value, int):
            parameters[name].int64_param = value
        elif isinstance(value, float) and math.isfinite(value):
            parameters[name].double_param = value
        else:
            parameters[name].string_param = check_text(f"{place}.{shown(name)}", value)
    except ValueError:
        raise InvalidRequest(f"{place}.{shown(name)}", "must be a number of 64 bits") from None


def _boolean(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidRequest(name, "must be true or false")
    return value


def _object(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InvalidRequest(name, "must be an object")
    return value


def _list(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise InvalidRequest(name, "must be a list")
    return value


def _floats(values: Sequence[float]) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


def _error_body(_: TranslationError, words: str, __: int) -> dict[str, str]:
    return {"error": words}


FRONT = Front(name=KSERVE, body=_error_body, statuses={Code.NOT_FOUND: 400})
