"""Every call of tritonclient over HTTP that is served; run in its own environment, with the server's address."""

import asyncio
import functools
import sys
import urllib.request
from collections.abc import Callable
from typing import Any

import numpy as np
import tritonclient.http
import tritonclient.http.aio
from tritonclient.http import InferRequestedOutput
from tritonclient.utils import InferenceServerException

ADDRESS = sys.argv[1].removeprefix("http://")
CLIENT = tritonclient.http.InferenceServerClient(ADDRESS)


def tensors(*texts: str, shape: tuple[int, ...] | None = None, binary: bool = True) -> list[Any]:
    """Returns the input of a request."""
    values = np.array([text.encode() for text in texts], dtype=object).reshape(shape or (len(texts),))
    tensor = tritonclient.http.InferInput("text", values.shape, "BYTES")
    return [tensor.set_data_from_numpy(values, binary_data=binary)]


def texts_of(result: Any, name: str = "translation") -> Any:
    """Returns a tensor of an answer as lists of texts; those that came as JSON are strings already."""
    values = result.as_numpy(name)
    return np.vectorize(lambda each: each.decode() if isinstance(each, bytes) else each, otypes=[object])(
        values
    ).tolist()


def refused(call: Callable[[], Any], status: str, words: str) -> None:
    """Checks that a call fails."""
    try:
        call()
    except InferenceServerException as error:
        assert error.status() == status, error
        assert words in error.message(), error
    else:
        raise AssertionError(words)


def check_descriptions() -> None:
    """Checks what the server tells of itself and its models."""
    assert CLIENT.is_server_live()
    assert CLIENT.is_server_ready()
    assert CLIENT.get_server_metadata()["name"] == "babelserve"
    index = CLIENT.get_model_repository_index()
    assert [(each["name"], each["state"]) for each in index] == [("de-en", "READY"), ("en-de", "READY")]
    version = index[1]["version"]
    assert CLIENT.is_model_ready("en-de")
    assert CLIENT.is_model_ready("en-de", version)
    assert not CLIENT.is_model_ready("en-de", "0")
    assert not CLIENT.is_model_ready("no")
    assert CLIENT.get_model_metadata("en-de", version)["inputs"] == [
        {"name": "text", "datatype": "BYTES", "shape": [-1]}
    ]
    config = CLIENT.get_model_config("en-de")
    assert config["input"] == [{"name": "text", "data_type": "TYPE_STRING", "dims": [-1]}]


def check_answers() -> None:
    """Checks what infer answers, with JSON and with bytes both ways, and packed."""
    for binary_in in (True, False):
        for binary_out in (True, False):
            result = CLIENT.infer(
                "en-de",
                tensors("A dog runs.", "A man sits.", shape=(2, 1), binary=binary_in),
                outputs=[InferRequestedOutput("translation", binary_data=binary_out)],
                request_id="7",
            )
            assert texts_of(result) == [["Ein Hund läuft."], ["Ein Mann sitzt."]]
            assert result.get_response()["id"] == "7"
    names = ("translation", "score", "finish_reason", "detected_language_code")
    for packing in ("gzip", "deflate"):
        result = CLIENT.infer(
            "de-en",
            tensors("Das ist ein kleines Haus."),
            outputs=[InferRequestedOutput(name, binary_data=name != "finish_reason") for name in names],
            parameters={"source_language_code": "auto", "beam_size": 2},
            priority=1,
            timeout=30_000_000,
            request_compression_algorithm=packing,
            response_compression_algorithm=packing,
            headers={"authorization": "Bearer any"},
        )
        assert texts_of(result) == ["This is a small house."]
        assert texts_of(result, "finish_reason") == ["STOP"]
        assert texts_of(result, "detected_language_code") == ["de"]
        assert result.as_numpy("score").dtype == np.float32
    assert texts_of(CLIENT.infer("en-de", tensors("A dog runs."))) == ["Ein Hund läuft."]
    options = {"length_penalty": 0.8, "no_repeat_ngram_size": 3, "end_loops": False, "mime_type": "text/html"}
    assert texts_of(CLIENT.infer("en-de", tensors("<b>A dog runs.</b>"), parameters=options)) == [
        "<b>Ein Hund läuft.</b>"
    ]
    body, size = CLIENT.generate_request_body(tensors("A dog runs."), request_id="8")
    head = {"Inference-Header-Content-Length": str(size)}
    asked = urllib.request.Request(f"{sys.argv[1]}/v2/models/en-de/infer", body, head)
    with urllib.request.urlopen(asked) as answer:  # the test's server
        length = int(answer.headers["Inference-Header-Content-Length"])
        parsed = CLIENT.parse_response_body(answer.read(), header_length=length)
    assert texts_of(parsed) == ["Ein Hund läuft."]
    later = CLIENT.async_infer("en-de", tensors("A dog runs."))
    assert texts_of(later.get_result(timeout=30)) == ["Ein Hund läuft."]


def check_errors() -> None:
    """Checks the errors of calls that fail."""
    wrong = tritonclient.http.InferInput("INPUT0", [1], "INT32")
    wrong.set_data_from_numpy(np.array([1], dtype=np.int32))
    shared = tritonclient.http.InferInput("text", [1], "BYTES")
    shared.set_shared_memory("region", 8)
    classes = [InferRequestedOutput("translation", class_count=1)]
    text = tensors("A dog runs.")
    refused(lambda: CLIENT.infer("no", text), "400", "model_name: no is not served here")
    refused(lambda: CLIENT.infer("en-de", text, model_version="0"), "400", "Request for unknown model: 'en-de'")
    refused(lambda: CLIENT.infer("en-de", [wrong]), "400", "inputs: ")
    refused(lambda: CLIENT.infer("en-de", [shared]), "400", "text.parameters: ")
    refused(lambda: CLIENT.infer("en-de", text, outputs=classes), "400", "outputs.parameters: ")
    refused(lambda: CLIENT.infer("en-de", text, parameters={"beam_size": 99}), "400", "parameters.beam_size: ")
    refused(lambda: CLIENT.infer("en-de", text, parameters={"zz": 1}), "400", "parameters.zz: ")
    refused(lambda: CLIENT.get_model_metadata("simple"), "400", "Request for unknown model: 'simple' is not found")
    refused(lambda: CLIENT.get_model_config("simple"), "400", "Request for unknown model: 'simple' is not found")
    unserved = (
        CLIENT.get_inference_statistics,
        CLIENT.get_log_settings,
        CLIENT.get_trace_settings,
        CLIENT.get_system_shared_memory_status,
        CLIENT.get_cuda_shared_memory_status,
        CLIENT.unregister_system_shared_memory,
        CLIENT.unregister_cuda_shared_memory,
        functools.partial(CLIENT.update_log_settings, {"log_info": True}),
        functools.partial(CLIENT.update_trace_settings, settings={"trace_rate": "1"}),
        functools.partial(CLIENT.register_system_shared_memory, "a", "/a", 8),
        functools.partial(CLIENT.register_cuda_shared_memory, "a", b"YQ==", 0, 8),
    )
    for call in unserved:
        refused(call, "501", "this server has no ")
    refused(lambda: CLIENT.get_inference_statistics("en-de"), "501", "this server has no ")
    refused(lambda: CLIENT.load_model("en-de"), "501", "this server has no ")
    refused(lambda: CLIENT.unload_model("en-de"), "501", "this server has no ")


async def check_asyncio() -> None:
    """Checks the client for asyncio."""
    async with tritonclient.http.aio.InferenceServerClient(ADDRESS) as client:
        assert await client.is_server_ready()
        assert await client.is_model_ready("en-de")
        assert (await client.get_model_metadata("en-de"))["name"] == "en-de"
        index = await client.get_model_repository_index()
        assert [each["state"] for each in index] == ["READY", "READY"]
        assert texts_of(await client.infer("en-de", tensors("A dog runs."))) == ["Ein Hund läuft."]


check_descriptions()
check_answers()
check_errors()
asyncio.run(check_asyncio())
