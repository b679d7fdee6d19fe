import itertools
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from babelserve.v1 import translation_pb2 as pb
from server.errors import InvalidRequest, ModelNotFound, TranslationError
from server.fronts.kserve import Pieces, read_infer, read_timeout, write_infer, write_piece, write_stream_error
from server.fronts.v1 import kserve_pb2 as kserve

MODELS = pb.ListModelsResponse(
    models=[
        pb.ModelInfo(name="a", version="1", source_language_codes=["en"], target_language_codes=["de"]),
        pb.ModelInfo(name="b", version="2", source_language_codes=["en"], target_language_codes=["de", "fr"]),
    ]
)
FAILED = pb.Status(code=3, message="contents[0]: is wrong")
RESPONSE = pb.TranslateResponse(
    translations=[
        pb.Translation(text="ä", score=-1.5, finish_reason=pb.FINISH_REASON_STOP),
        pb.Translation(text="", score=0.5, finish_reason=pb.FINISH_REASON_COPIED, detected_language_code="fr"),
    ],
    model="a",
    model_version="1",
    source_language_code="en",
)

Request = kserve.ModelInferRequest


def tensor(*texts: bytes, shape: list[int] | None = None, **fields: Any) -> kserve.ModelInferRequest.InferInputTensor:
    contents = kserve.InferTensorContents(bytes_contents=texts) if texts else None
    shape = [len(texts)] if shape is None else shape
    return Request.InferInputTensor(
        **({"name": "text", "datatype": "BYTES", "shape": shape, "contents": contents} | fields)
    )


def asked(*texts: str, outputs: tuple[str, ...] = (), **parameters: Any) -> kserve.ModelInferRequest:
    request = Request(model_name="a", id="7", inputs=[tensor(*(text.encode() for text in texts))])
    request.outputs.extend(Request.InferRequestedOutputTensor(name=name) for name in outputs)
    fields = {bool: "bool_param", int: "int64_param", str: "string_param", float: "double_param"}
    for name, value in parameters.items():
        setattr(request.parameters[name], fields[type(value)], value)
    return request


def raw(*texts: str, shape: list[int] | None = None) -> kserve.ModelInferRequest:
    elements = [text.encode() for text in texts]
    data = b"".join(struct.pack("<I", len(element)) + element for element in elements)
    shape = [len(texts)] if shape is None else shape
    return Request(model_name="a", inputs=[tensor(shape=shape)], raw_input_contents=[data])


@pytest.mark.parametrize("request_", [asked("ä", "", "b"), raw("ä", "", "b"), raw("ä", "", "b", shape=[1, 3, 1])])
def test_texts_are_read_from_both_forms_of_a_tensor(request_: kserve.ModelInferRequest) -> None:
    message = read_infer(request_, MODELS)

    assert list(message.contents) == ["ä", "", "b"]
    assert (message.model, message.target_language_code) == ("a", "de")


def test_sizes_of_bytes_change_nothing() -> None:
    request = raw("a")
    request.inputs[0].parameters["binary_data_size"].int64_param = 5
    request.outputs.add(name="translation").parameters["binary_data"].bool_param = True

    assert list(read_infer(request, MODELS).contents) == ["a"]


def test_a_tensor_without_dimensions_is_one_text() -> None:
    assert list(read_infer(raw("a", shape=[]), MODELS).contents) == ["a"]


def test_parameters_are_fields_of_ours() -> None:
    request = asked(
        "a",
        source_language_code="en",
        target_language_code="fr",
        mime_type="text/html",
        priority=1,
        traffic_key="k",
        refuse_unknown_scripts=True,
        beam_size=2,
        length_penalty=1,
        top_k=3,
        glossaries="it,law",
        timeout=5,
        triton_enable_empty_final_response=True,
    )

    assert read_infer(request, MODELS) == pb.TranslateRequest(
        contents=["a"],
        model="a",
        source_language_code="en",
        target_language_code="fr",
        mime_type="text/html",
        priority=pb.PRIORITY_HIGH,
        traffic_key="k",
        text=pb.TextOptions(refuse_unknown_scripts=True),
        decoding=pb.DecodingOptions(beam_size=2, length_penalty=1, sampling=pb.Sampling(top_k=3)),
        glossary=pb.Glossary(names=["it", "law"]),
        output=pb.OutputOptions(text_once=True),
    )


def test_a_target_that_several_models_or_a_model_of_several_leave_open_stays_open() -> None:
    request = asked("a")
    request.model_name = "b"

    assert read_infer(request, MODELS).target_language_code == ""
    request.model_name = ""
    assert read_infer(request, MODELS).target_language_code == ""


def test_a_version_must_be_that_of_the_model() -> None:
    request = asked("a")
    request.model_version = "1"
    read_infer(request, MODELS)
    request.model_version = "2"

    with pytest.raises(ModelNotFound):
        read_infer(request, MODELS)


def with_output(**fields: Any) -> kserve.ModelInferRequest:
    request = asked("a")
    request.outputs.add(**fields)
    return request


SHARED = {"shared_memory_region": kserve.InferParameter(string_param="r")}


@pytest.mark.parametrize(
    ("request_", "named"),
    [
        (Request(), "inputs"),
        (Request(inputs=[tensor(b"a"), tensor(b"b")]), "inputs"),
        (Request(inputs=[tensor(b"a", name="INPUT0")]), "inputs"),
        (Request(inputs=[tensor(b"a", datatype="INT32")]), "text.datatype"),
        (Request(inputs=[tensor(b"a", parameters=SHARED)]), "text.parameters"),
        (Request(inputs=[tensor(b"a", shape=[0])]), "text.shape"),
        (Request(inputs=[tensor(b"a", shape=[-1, -1])]), "text.shape"),
        (Request(inputs=[tensor(b"a", shape=[1025])]), "text.shape"),
        (Request(inputs=[tensor(b"a", shape=[2**62] * 1000)]), "text.shape"),
        (Request(inputs=[tensor(b"a", shape=[1] * 65)]), "text.shape"),
        (Request(inputs=[tensor(b"a", shape=[2])]), "text"),
        (Request(inputs=[tensor(b"\xff")]), "text"),
        (Request(inputs=[tensor(b"a")], raw_input_contents=[b""]), "raw_input_contents"),
        (Request(inputs=[tensor(shape=[1])], raw_input_contents=[b"", b""]), "raw_input_contents"),
        (Request(inputs=[tensor(shape=[1])], raw_input_contents=[b"\0\0\0"]), "raw_input_contents"),
        (Request(inputs=[tensor(shape=[1])], raw_input_contents=[b"\2\0\0\0a"]), "raw_input_contents"),
        (Request(inputs=[tensor(shape=[1])], raw_input_contents=[b"\xff\xff\xff\xffa"]), "raw_input_contents"),
        (Request(inputs=[tensor(shape=[1])], raw_input_contents=[b"\0\0\0\0" * 9]), "text"),
        (asked("a", zz=1), "parameters.zz"),
        (asked("a", model="b"), "parameters.model"),
        (asked("a", num_hypotheses=2), "parameters.num_hypotheses"),
        (asked("a", beam_size="x"), "parameters.beam_size"),
        (asked("a", beam_size=-1), "parameters.beam_size"),
        (asked("a", beam_size=True), "parameters.beam_size"),
        (asked("a", priority=2**40), "parameters.priority"),
        (asked("a", glossaries=1), "parameters.glossaries"),
        (Request(inputs=[tensor(b"a")], parameters={"beam_size": kserve.InferParameter()}), "parameters.beam_size"),
        (asked("a", outputs=("zz",)), "outputs"),
        (asked("a", outputs=("score",) * 5), "outputs"),
        (with_output(name="translation", parameters={"classification": kserve.InferParameter()}), "outputs.parameters"),
    ],
)
def test_what_means_nothing_is_refused_by_its_field(request_: kserve.ModelInferRequest, named: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read_infer(request_, MODELS)

    assert caught.value.field == named


def test_a_timeout_is_told_in_microseconds() -> None:
    assert read_timeout(asked("a", timeout=1_500_000)) == 1.5
    assert read_timeout(asked("a", timeout=0)) is None
    assert read_timeout(asked("a")) is None
    assert read_timeout(asked("a"), 2.0) == 2.0
    assert read_timeout(asked("a", timeout=0), 2.0) == 2.0
    assert [read_timeout(asked("a", timeout=1_500_000), seconds) for seconds in (1.0, 2.0)] == [1.0, 1.5]


@pytest.mark.parametrize("timeout", [-1, 1.5, True, "1"])
def test_another_timeout_is_refused(timeout: Any) -> None:
    with pytest.raises(InvalidRequest, match=r"parameters\.timeout"):
        read_timeout(asked("a", timeout=timeout))


def test_an_answer_has_what_the_request_wants_in_its_shape() -> None:
    request = asked("a", "b", outputs=("score", "detected_language_code", "finish_reason", "score"))
    request.inputs[0].shape[:] = [2, 1]

    answer = write_infer(request, RESPONSE)

    assert (answer.model_name, answer.model_version, answer.id) == ("a", "1", "7")
    assert [(each.name, each.datatype, list(each.shape)) for each in answer.outputs] == [
        ("score", "FP32", [2, 1]),
        ("detected_language_code", "BYTES", [2, 1]),
        ("finish_reason", "BYTES", [2, 1]),
    ]
    assert list(answer.outputs[0].contents.fp32_contents) == [-1.5, 0.5]
    assert list(answer.outputs[1].contents.bytes_contents) == [b"en", b"fr"]
    assert list(answer.outputs[2].contents.bytes_contents) == [b"STOP", b"COPIED"]
    assert not answer.raw_output_contents


def test_bytes_are_answered_with_bytes() -> None:
    request = raw("a", "b")
    request.outputs.extend(Request.InferRequestedOutputTensor(name=name) for name in ("translation", "score"))

    answer = write_infer(request, RESPONSE)

    assert list(answer.raw_output_contents) == [b"\2\0\0\0\xc3\xa4\0\0\0\0", struct.pack("<2f", -1.5, 0.5)]
    assert not any(each.HasField("contents") for each in answer.outputs)


def test_a_request_that_wants_nothing_gets_the_translation() -> None:
    (output,) = write_infer(asked("a", "b"), RESPONSE).outputs

    assert (output.name, list(output.contents.bytes_contents)) == ("translation", ["ä".encode(), b""])


def test_a_text_that_failed_fails_the_request() -> None:
    with pytest.raises(TranslationError, match="is wrong"):
        write_infer(asked("a"), pb.TranslateResponse(translations=[pb.Translation(status=FAILED)]))
    with pytest.raises(TranslationError, match="is wrong"):
        write_piece(asked("a"), pb.TranslateStreamResponse(status=FAILED), is_final=False)


def test_a_piece_has_its_white_space_and_its_place() -> None:
    sentence = pb.Sentence(text="A.", separator="\n", score=-1)
    part = pb.TranslateStreamResponse(
        content_index=1, sentence_count=2, leading=" ", sentence=sentence, model="a", model_version="1"
    )

    answer = write_piece(asked("a"), part, is_final=True).infer_response

    assert list(answer.outputs[0].contents.bytes_contents) == [b" A.\n"]
    assert (list(answer.outputs[0].shape), answer.id, answer.model_name) == ([1], "7", "a")
    places = {name: each.int64_param for name, each in answer.parameters.items() if each.HasField("int64_param")}
    assert places == {"content_index": 1, "sentence_index": 0, "sentence_count": 2}
    assert answer.parameters["triton_final_response"].bool_param


def test_an_error_of_a_stream_is_the_last_response_to_its_request() -> None:
    answer = write_stream_error(asked("a"), "text: is wrong")

    assert (answer.error_message, answer.infer_response.id) == ("text: is wrong", "7")
    assert answer.infer_response.parameters["triton_final_response"].bool_param


@pytest.mark.parametrize("order", list(itertools.permutations([(0, 0), (0, 1), (0, 2), (1, 0), (2, 0)])))
def test_sentences_come_in_the_order_of_reading(order: list[tuple[int, int]]) -> None:
    counts = [3, 0, 1]  # a text without a sentence has one piece
    pieces, told = Pieces(len(counts)), []
    for text, sentence in order:
        assert not pieces.is_finished
        part = pb.TranslateStreamResponse(content_index=text, sentence_index=sentence, sentence_count=counts[text])
        told += [(each.content_index, each.sentence_index) for each in pieces.add(part)]

    assert pieces.is_finished
    assert [place for place in told if place[0] == 0] == [(0, 0), (0, 1), (0, 2)]
    assert sorted(told) == sorted(order)


def test_the_error_of_a_text_comes_at_once() -> None:
    pieces = Pieces(1)
    list(pieces.add(pb.TranslateStreamResponse(sentence_count=3)))

    assert list(pieces.add(pb.TranslateStreamResponse(status=FAILED))) == [pb.TranslateStreamResponse(status=FAILED)]
    assert not pieces.is_finished


VALUES = st.one_of(
    st.builds(kserve.InferParameter, bool_param=st.booleans()),
    st.builds(kserve.InferParameter, int64_param=st.integers(-(2**63), 2**63 - 1)),
    st.builds(kserve.InferParameter, uint64_param=st.integers(0, 2**64 - 1)),
    st.builds(kserve.InferParameter, double_param=st.floats()),
    st.builds(kserve.InferParameter, string_param=st.text()),
    st.just(kserve.InferParameter()),
)
NAMES = st.sampled_from(
    ["beam_size", "length_penalty", "priority", "seed", "mime_type", "end_loops", "glossaries", "timeout", "x"]
)
TENSORS = st.builds(
    Request.InferInputTensor,
    name=st.just("text") | st.text(),
    datatype=st.just("BYTES") | st.text(),
    shape=st.lists(st.integers(-1, 4) | st.integers(-(2**63), 2**63 - 1), max_size=3),
    contents=st.builds(kserve.InferTensorContents, bytes_contents=st.lists(st.binary(max_size=4), max_size=4)),
)


@given(
    st.builds(
        Request,
        model_name=st.sampled_from(["a", "b", ""]) | st.text(),
        model_version=st.sampled_from(["", "1"]),
        inputs=st.lists(TENSORS, min_size=1, max_size=2),
        parameters=st.dictionaries(NAMES, VALUES, max_size=3),
        raw_input_contents=st.lists(st.binary(max_size=16), max_size=2),
    )
)
def test_any_request_is_read_or_refused(request: kserve.ModelInferRequest) -> None:
    try:
        message = read_infer(request, MODELS)
        seconds = read_timeout(request)
    except (InvalidRequest, ModelNotFound):
        return
    assert 1 <= len(message.contents) <= 1024
    assert seconds is None or seconds > 0
