import json
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from babelserve.v1 import translation_pb2 as pb
from server.errors import InvalidRequest, ModelNotFound
from server.fronts.kserve import read_infer as read_tensors
from server.fronts.kserve_http import FRONT, json_length, plain, read_infer, write_infer
from server.fronts.kserve_models import write_config, write_metadata
from server.fronts.v1 import kserve_pb2 as kserve

MODEL = pb.ModelInfo(name="a", version="1", source_language_codes=["en"], target_language_codes=["de"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | st.just("text") | st.just("BYTES"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "inputs", "outputs", "parameters", "name", "shape", "datatype", "data"])
            | st.sampled_from(["binary_data_size", "binary_data", "binary_data_output", "timeout"]),
            inner,
        )
    ),
    max_leaves=12,
)


def asked(data: Any = None, **fields: Any) -> dict[str, Any]:
    tensor = {"name": "text", "datatype": "BYTES", "shape": [1], "data": ["A"] if data is None else data}
    return {"inputs": [tensor], **fields}


def packed(*texts: bytes) -> bytes:
    return b"".join(struct.pack("<I", len(text)) + text for text in texts)


def binary(size: Any) -> dict[str, Any]:
    tensor = {"name": "text", "datatype": "BYTES", "shape": [1], "parameters": {"binary_data_size": size}}
    return {"inputs": [tensor]}


def answer(**names: Any) -> kserve.ModelInferResponse:
    response = kserve.ModelInferResponse(model_name="a", model_version="1", **names)
    text = response.outputs.add(name="translation", datatype="BYTES", shape=[2])
    text.contents.bytes_contents.extend(["ä".encode(), b""])
    response.outputs.add(name="score", datatype="FP32", shape=[2]).contents.fp32_contents.extend([0.5, -1.0])
    return response


@pytest.mark.parametrize("data", [["A", "B", "C", "D"], [["A", "B"], ["C", "D"]], [[["A"], ["B"]], [["C"], ["D"]]]])
def test_lists_may_be_flat_or_nested(data: Any) -> None:
    found = read_infer(asked(data, id="7", parameters={"beam_size": 2, "a": True, "b": 0.5, "c": "x"}), b"", "a", "1")

    message = found.message
    assert list(message.inputs[0].contents.bytes_contents) == [b"A", b"B", b"C", b"D"]
    assert (message.model_name, message.model_version, message.id) == ("a", "1", "7")
    parameters = message.parameters
    assert (parameters["beam_size"].int64_param, parameters["a"].bool_param) == (2, True)
    assert (parameters["b"].double_param, parameters["c"].string_param) == (0.5, "x")


def test_bytes_behind_the_json_are_a_tensor() -> None:
    tail = packed(b"A dog.")
    found = read_infer(binary(len(tail)), tail, "a", "")

    served = pb.ListModelsResponse(models=[MODEL])
    assert list(read_tensors(found.message, served).contents) == ["A dog."]


def test_outputs_come_as_they_are_wanted() -> None:
    wanted = [{"name": "translation"}, {"name": "score", "parameters": {"binary_data": True}}]
    found = read_infer(asked(outputs=wanted), b"", "a", "")
    value, tail = write_infer(found, answer(id="7"))

    assert [output.name for output in found.message.outputs] == ["translation", "score"]
    assert value == {
        "model_name": "a",
        "model_version": "1",
        "id": "7",
        "outputs": [
            {"name": "translation", "datatype": "BYTES", "shape": [2], "data": ["ä", ""]},
            {"name": "score", "datatype": "FP32", "shape": [2], "parameters": {"binary_data_size": 8}},
        ],
    }
    assert struct.unpack("<2f", tail) == (0.5, -1.0)


def test_all_outputs_may_be_wanted_as_bytes() -> None:
    found = read_infer(asked(parameters={"binary_data_output": True}), b"", "a", "")
    value, tail = write_infer(found, answer())

    assert tail == packed("ä".encode(), b"") + struct.pack("<2f", 0.5, -1.0)
    assert not any("data" in output for output in value["outputs"])
    assert not found.message.parameters


@pytest.mark.parametrize(
    ("value", "tail", "field"),
    [
        ([], b"", "body"),
        ({}, b"", "inputs"),
        (asked(id=1), b"", "id"),
        (asked(parameters=[]), b"", "parameters"),
        (asked(parameters={"a": None}), b"", "parameters.a"),
        (asked(parameters={"a": 1 << 64}), b"", "parameters.a"),
        (asked(parameters={"binary_data_output": 1}), b"", "parameters.binary_data_output"),
        (asked([1]), b"", "inputs[0].data"),
        (asked(outputs=[{}]), b"", "outputs[0].name"),
        (asked(outputs=[1]), b"", "outputs[0]"),
        (
            asked(outputs=[{"name": "score", "parameters": {"binary_data": 1}}]),
            b"",
            "outputs[0].parameters.binary_data",
        ),
        (binary(9), b"12345678", "inputs[0].parameters.binary_data_size"),
        (binary(True), b"1", "inputs[0].parameters.binary_data_size"),
        (binary(4), b"12345", "binary_data_size"),
        ({"inputs": [{"name": "text", "datatype": "BYTES", "shape": [0], "data": []}]}, b"", "inputs[0].shape"),
        ({"inputs": [{"name": "text", "datatype": "BYTES", "shape": [1.0]}]}, b"", "inputs[0].shape"),
    ],
)
def test_what_is_wrong_is_named(value: Any, tail: bytes, field: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read_infer(value, tail, "a", "")

    assert caught.value.field == field
    assert FRONT.body(caught.value, str(caught.value), 400) == {"error": str(caught.value)}


@pytest.mark.parametrize("header", ["", "0", "-1", "4", "1.0", "9" * 20, "²"])
def test_a_wrong_length_of_the_json_is_refused(header: str) -> None:
    assert json_length(None, b"{} ") == 3
    assert json_length("2", b"{} ") == 2
    with pytest.raises(InvalidRequest):
        json_length(header, b"{} ")


def test_descriptions_have_numbers_and_all_fields() -> None:
    assert plain(write_metadata(MODEL))["inputs"] == [{"name": "text", "datatype": "BYTES", "shape": [-1]}]
    config = plain(write_config(MODEL).config)
    assert config["input"] == [{"name": "text", "data_type": "TYPE_STRING", "dims": [-1]}]
    assert (config["max_batch_size"], config["model_transaction_policy"]) == (0, {"decoupled": True})


@given(value=JSON | st.lists(JSON, max_size=2).map(lambda inputs: asked(inputs=inputs)), tail=st.binary(max_size=9))
def test_anything_is_understood_or_refused(value: Any, tail: bytes) -> None:
    try:
        found = read_infer(value, tail, "a", "")
        read_tensors(found.message, pb.ListModelsResponse(models=[MODEL]))
    except (InvalidRequest, ModelNotFound):
        return
    assert json.dumps(write_infer(found, answer())[0])
