"""KServe's protocol v2 with Triton's extensions (https://kserve.github.io/open-inference-protocol) in our messages.

A model takes one tensor, `text`, of type BYTES and of any shape. It gives tensors of the same shape: `translation`, on
request the others of `server.fronts.kserve_models.OUTPUTS`. All else that a request says is a parameter, which has the
name of a field of ours.
"""

import math
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from google.protobuf.message import Message

from babelserve.v1 import translation_pb2 as pb
from server.errors import InvalidRequest
from server.fronts.front import FailedText, raise_failure
from server.fronts.kserve_models import BYTES, INPUT, OUTPUTS, find_model
from server.fronts.languages import standard_code
from server.fronts.v1 import kserve_pb2 as kserve
from server.text.glossary import MAX_NAMES
from server.translation.rules import MAX_TEXTS, shown

SERVICE_NAME = "inference.GRPCInferenceService"
FIELDS: Mapping[str, str] = {
    "contents": "text",
    "model": "model_name",
    "decoding.sampling.": "parameters.",
    "decoding.": "parameters.",
    "text.": "parameters.",
    "glossary.names": "parameters.glossaries",
    "source_language_code": "parameters.source_language_code",
    "target_language_code": "parameters.target_language_code",
    "mime_type": "parameters.mime_type",
    "priority": "parameters.priority",
    "traffic_key": "parameters.traffic_key",
}

_FINAL, _TIMEOUT = "triton_final_response", "timeout"
_UNUSED = frozenset({"triton_enable_empty_final_response", "binary_data_output"})  # parameters that change nothing
_TENSOR_PARAMETERS = frozenset({"binary_data", "binary_data_size"})  # likewise, of tensors
_NO_PARAMETERS = frozenset({"model", "num_hypotheses"})  # `model_name` says it; an answer has one translation of a text
_MICROSECONDS = 1e6
_MOST_DIMENSIONS = 64  # as of numpy's arrays
_LENGTH = struct.Struct("<I")  # of an element of BYTES, before its bytes


def _parameters(kind: type[Message], part: str) -> dict[str, str]:
    """Returns the plain fields of a message, each with the part of our request that has it."""
    return {each.name: part for each in kind.DESCRIPTOR.fields if not each.is_repeated and each.message_type is None}


_PARAMETERS: Mapping[str, str] = {
    **_parameters(pb.TranslateRequest, ""),
    **_parameters(pb.TextOptions, "text"),
    **_parameters(pb.DecodingOptions, "decoding"),
    **_parameters(pb.Sampling, "decoding.sampling"),
}


class Pieces:
    """Puts the sentences of one request in the order of reading, within each text.

    Args:
        num_texts: of the request.
    """

    def __init__(self, num_texts: int) -> None:
        self._num_unfinished = num_texts
        self._next = [0] * num_texts
        self._waiting: dict[tuple[int, int], pb.TranslateStreamResponse] = {}

    @property
    def is_finished(self) -> bool:
        """Whether all sentences have been returned."""
        return not self._num_unfinished

    def add(self, part: pb.TranslateStreamResponse) -> Iterator[pb.TranslateStreamResponse]:
        """Yields the sentences that can be read now that one more is done; the error of a text at once."""
        text = part.content_index
        if part.HasField("status"):
            yield part
            return
        self._waiting[text, part.sentence_index] = part
        while (ready := self._waiting.pop((text, self._next[text]), None)) is not None:
            self._next[text] += 1
            self._num_unfinished -= self._next[text] >= ready.sentence_count
            yield ready


def read_infer(asked: kserve.ModelInferRequest, served: pb.ListModelsResponse) -> pb.TranslateRequest:
    """Returns what a request means.

    Args:
        asked: the request.
        served: the models, of which the request may name one with its version. Its only target need not be named.

    Raises:
        InvalidRequest: a tensor or a parameter is not as it must be.
        ModelNotFound: the model, or this version of it, is not served.
    """
    message = pb.TranslateRequest(
        contents=_texts(asked), model=asked.model_name, output=pb.OutputOptions(text_once=True)
    )
    for name, parameter in asked.parameters.items():
        _set(message, name, _value(name, parameter))
    _wanted(asked)
    if asked.model_version:
        find_model(served, asked.model_name, asked.model_version)
    if not message.target_language_code:
        message.target_language_code = _only_target(served, asked.model_name)
    message.source_language_code = standard_code(message.source_language_code)
    message.target_language_code = standard_code(message.target_language_code)
    return message


def read_timeout(asked: kserve.ModelInferRequest, seconds: float | None = None) -> float | None:
    """Returns the seconds within which a request must be answered; None for ever.

    Args:
        asked: may have a time of its own.
        seconds: that the caller waits in any case; None for ever. The shorter time counts.

    Raises:
        InvalidRequest: the request's time is none.
    """
    if _TIMEOUT not in asked.parameters:
        return seconds
    value = _value(_TIMEOUT, asked.parameters[_TIMEOUT])
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidRequest(f"parameters.{_TIMEOUT}", "must be a whole number of microseconds, at least 0")
    own = value / _MICROSECONDS or None
    return min((each for each in (own, seconds) if each is not None), default=None)


def write_infer(asked: kserve.ModelInferRequest, response: pb.TranslateResponse) -> kserve.ModelInferResponse:
    """Returns the answer to a request. Raises TranslationError if a text failed."""
    raise_failure(response.translations)
    source = response.source_language_code
    rows = [
        (each.text, each.score, each.finish_reason, each.detected_language_code or source)
        for each in response.translations
    ]
    answer = kserve.ModelInferResponse(model_name=response.model, model_version=response.model_version, id=asked.id)
    _add_outputs(answer, asked, asked.inputs[0].shape, rows)
    return answer


def write_piece(
    asked: kserve.ModelInferRequest, part: pb.TranslateStreamResponse, *, is_final: bool
) -> kserve.ModelStreamInferResponse:
    """Returns a response of a stream with one sentence, and the white space round it.

    The pieces of a text, in their order, are its translation. Raises TranslationError if the text failed.
    """
    if part.HasField("status"):
        raise FailedText(part.status)
    sentence = part.sentence
    text = part.leading + sentence.text + sentence.separator
    answer = kserve.ModelInferResponse(model_name=part.model, model_version=part.model_version, id=asked.id)
    row = (text, sentence.score, sentence.finish_reason, part.detected_language_code)
    _add_outputs(answer, asked, [1], [row])
    for name in ("content_index", "sentence_index", "sentence_count"):
        answer.parameters[name].int64_param = getattr(part, name)
    answer.parameters[_FINAL].bool_param = is_final
    return kserve.ModelStreamInferResponse(infer_response=answer)


def write_stream_error(asked: kserve.ModelInferRequest, words: str) -> kserve.ModelStreamInferResponse:
    """Returns the last response to a request of a stream that has failed."""
    answer = kserve.ModelInferResponse(model_name=asked.model_name, id=asked.id)
    answer.parameters[_FINAL].bool_param = True
    return kserve.ModelStreamInferResponse(error_message=words, infer_response=answer)


def _texts(asked: kserve.ModelInferRequest) -> list[str]:
    """Returns the elements of the input tensor."""
    if len(asked.inputs) != 1 or asked.inputs[0].name != INPUT:
        raise InvalidRequest("inputs", f'must be one tensor with the name "{INPUT}"')
    (tensor,) = asked.inputs
    if tensor.datatype != BYTES:
        raise InvalidRequest(f"{INPUT}.datatype", f"must be {BYTES}, not {shown(tensor.datatype)}")
    if tensor.parameters.keys() - _TENSOR_PARAMETERS:
        raise InvalidRequest(f"{INPUT}.parameters", "must be empty: this server has no shared memory")
    if len(tensor.shape) > _MOST_DIMENSIONS:
        raise InvalidRequest(f"{INPUT}.shape", f"must have at most {_MOST_DIMENSIONS} sizes, not {len(tensor.shape)}")
    num_texts = math.prod(tensor.shape)
    if min(tensor.shape, default=1) < 1 or num_texts > MAX_TEXTS:
        raise InvalidRequest(f"{INPUT}.shape", f"must be of 1 to {MAX_TEXTS} elements")
    elements: Sequence[bytes] = tensor.contents.bytes_contents
    if asked.raw_input_contents:
        if len(asked.raw_input_contents) > 1 or elements:
            raise InvalidRequest("raw_input_contents", "must be one tensor, without contents beside it")
        elements = _split(asked.raw_input_contents[0], num_texts)
    if len(elements) != num_texts:
        raise InvalidRequest(INPUT, f"must have as many elements as its shape, {num_texts}, not {len(elements)}")
    try:
        return [element.decode() for element in elements]
    except UnicodeDecodeError:
        raise InvalidRequest(INPUT, "must be UTF-8") from None


def _split(raw: bytes, most: int) -> list[bytes]:
    """Returns the elements of a tensor of BYTES, at most one more than `most`."""
    elements: list[bytes] = []
    place = 0
    while place < len(raw) and len(elements) <= most:
        begin = place + _LENGTH.size
        if begin > len(raw) or (place := begin + _LENGTH.unpack_from(raw, place)[0]) > len(raw):
            raise InvalidRequest("raw_input_contents", "must have the length of each element in 4 bytes before it")
        elements.append(raw[begin:place])
    return elements


def _value(name: str, parameter: kserve.InferParameter) -> Any:
    choice = parameter.WhichOneof("parameter_choice")
    if choice is None:
        raise InvalidRequest(f"parameters.{shown(name)}", "must have a value")
    return getattr(parameter, choice)


def _set(message: pb.TranslateRequest, name: str, value: Any) -> None:
    """Sets the field of our request that a parameter means."""
    if name == _TIMEOUT or name in _UNUSED:
        return
    try:
        if name == "glossaries":
            message.glossary.names.extend(value.split(",", MAX_NAMES))
            return
        if name not in _PARAMETERS or name in _NO_PARAMETERS:
            raise InvalidRequest(f"parameters.{shown(name)}", "is unknown to this server")
        part: Any = message
        for each in filter(None, _PARAMETERS[name].split(".")):
            part = getattr(part, each)
        setattr(part, name, value)
    except (AttributeError, TypeError, ValueError):
        raise InvalidRequest(f"parameters.{name}", "is of the wrong type, or out of its range") from None


def _only_target(served: pb.ListModelsResponse, name: str) -> str:
    """Returns the language that a model translates into, or all models; empty if there are several."""
    models = [model for model in served.models if name in ("", model.name)]
    targets = {code for model in models for code in model.target_language_codes}
    return targets.pop() if len(targets) == 1 else ""


def _wanted(asked: kserve.ModelInferRequest) -> list[str]:
    """Returns the names of the tensors that a request wants. Raises InvalidRequest."""
    if len(asked.outputs) > len(OUTPUTS):
        raise InvalidRequest("outputs", f"must be at most {len(OUTPUTS)}, not {len(asked.outputs)}")
    for output in asked.outputs:
        if output.name not in OUTPUTS:
            raise InvalidRequest("outputs", f"must be among {', '.join(OUTPUTS)}, not {shown(output.name)}")
        if output.parameters.keys() - _TENSOR_PARAMETERS:
            raise InvalidRequest(
                "outputs.parameters", "must be empty: neither classification nor shared memory is here"
            )
    return list(dict.fromkeys(output.name for output in asked.outputs)) or ["translation"]


def _add_outputs(
    answer: kserve.ModelInferResponse,
    asked: kserve.ModelInferRequest,
    shape: Iterable[int],
    rows: Sequence[tuple[str, float, int, str]],
) -> None:
    """Adds the tensors that a request wants, as bytes if its own came so. A row has the values of a text in order."""
    columns = dict(zip(OUTPUTS, zip(*rows, strict=True), strict=True))
    for name in _wanted(asked):
        tensor = answer.outputs.add(name=name, datatype=OUTPUTS[name], shape=shape)
        values: Iterable[Any] = columns[name]
        if name == "score":
            if asked.raw_input_contents:
                answer.raw_output_contents.append(struct.pack(f"<{len(rows)}f", *values))
            else:
                tensor.contents.fp32_contents.extend(values)
            continue
        if name == "finish_reason":
            values = (pb.FinishReason.Name(each).removeprefix("FINISH_REASON_") for each in values)
        elements = [each.encode() for each in values]
        if asked.raw_input_contents:
            answer.raw_output_contents.append(b"".join(_LENGTH.pack(len(each)) + each for each in elements))
        else:
            tensor.contents.bytes_contents.extend(elements)
