"""Every call of tritonclient over gRPC that is served; run in its own environment, with the server's address."""

import asyncio
import functools
import queue
import sys
from collections.abc import AsyncIterator, Callable
from typing import Any

import numpy as np
import tritonclient.grpc
import tritonclient.grpc.aio
from tritonclient.utils import InferenceServerException

CLIENT = tritonclient.grpc.InferenceServerClient(sys.argv[1])


def tensors(*texts: str, shape: tuple[int, ...] | None = None) -> list[Any]:
    """Returns the input of a request."""
    values = np.array([text.encode() for text in texts], dtype=object).reshape(shape or (len(texts),))
    tensor = tritonclient.grpc.InferInput("text", values.shape, "BYTES")
    return [tensor.set_data_from_numpy(values)]


def texts_of(result: Any, name: str = "translation") -> Any:
    """Returns a tensor of an answer as lists of texts."""
    return np.vectorize(bytes.decode, otypes=[object])(result.as_numpy(name)).tolist()


def refused(call: Callable[[], Any], code: str, words: str) -> None:
    """Checks that a call fails."""
    try:
        call()
    except InferenceServerException as error:
        assert error.status() == f"StatusCode.{code}", error
        assert words in error.message(), error
    else:
        raise AssertionError(words)


def check_descriptions() -> None:
    """Checks what the server tells of itself and its models."""
    assert CLIENT.is_server_live()
    assert CLIENT.is_server_ready()
    assert CLIENT.get_server_metadata().name == "babelserve"
    index = CLIENT.get_model_repository_index().models
    assert [(each.name, each.state) for each in index] == [("de-en", "READY"), ("en-de", "READY")]
    version = index[1].version
    assert CLIENT.is_model_ready("en-de")
    assert CLIENT.is_model_ready("en-de", version)
    assert not CLIENT.is_model_ready("en-de", "0")
    assert not CLIENT.is_model_ready("no")
    metadata = CLIENT.get_model_metadata("en-de", version)
    assert [(each.name, each.datatype, list(each.shape)) for each in metadata.inputs] == [("text", "BYTES", [-1])]
    config = CLIENT.get_model_config("en-de", as_json=True)["config"]
    assert config["input"] == [{"name": "text", "data_type": "TYPE_STRING", "dims": ["-1"]}]
    assert config["model_transaction_policy"] == {"decoupled": True}


def check_answers() -> None:
    """Checks what ModelInfer answers."""
    result = CLIENT.infer("en-de", tensors("A dog runs.", "A man sits.", shape=(2, 1)), request_id="7")
    assert texts_of(result) == [["Ein Hund läuft."], ["Ein Mann sitzt."]]
    assert result.get_response().id == "7"
    names = ("translation", "score", "finish_reason", "detected_language_code")
    result = CLIENT.infer(
        "",
        tensors("Das ist ein kleines Haus."),
        outputs=[tritonclient.grpc.InferRequestedOutput(name) for name in names],
        parameters={"target_language_code": "en", "source_language_code": "auto", "beam_size": 2},
        priority=1,
        timeout=30_000_000,
        compression_algorithm="gzip",
        headers={"authorization": "Bearer any"},
    )
    assert texts_of(result) == ["This is a small house."]
    assert texts_of(result, "finish_reason") == ["STOP"]
    assert texts_of(result, "detected_language_code") == ["de"]
    assert result.as_numpy("score").dtype == np.float32
    options = {"length_penalty": 0.8, "no_repeat_ngram_size": 3, "end_loops": False, "mime_type": "text/html"}
    typed = CLIENT.infer(
        "en-de", tensors("<b>A dog runs.</b>"), parameters=options, timeout=30_000_000, client_timeout=30.0, priority=3
    )
    assert texts_of(typed) == ["<b>Ein Hund läuft.</b>"]
    answers: queue.Queue[Any] = queue.Queue()
    CLIENT.async_infer("en-de", tensors("A dog runs."), lambda result, error: answers.put((result, error)))
    later, error = answers.get(timeout=30)
    assert (texts_of(later), error) == (["Ein Hund läuft."], None)


def check_stream() -> None:
    """Checks that a stream brings the sentences in their order, and errors of requests."""
    answers: queue.Queue[Any] = queue.Queue()
    CLIENT.start_stream(lambda result, error: answers.put((result, error)))
    CLIENT.async_stream_infer("en-de", tensors("A dog runs. A man sits."), request_id="1")
    CLIENT.async_stream_infer("no", tensors("A dog runs."), request_id="2", enable_empty_final_response=True)
    first, second, (_, error) = [answers.get(timeout=30) for _ in range(3)]
    CLIENT.stop_stream()
    assert texts_of(first[0]) + texts_of(second[0]) == ["Ein Hund läuft. ", "Ein Mann sitzt."]
    finals = [each[0].get_response().parameters["triton_final_response"].bool_param for each in (first, second)]
    assert finals == [False, True]
    assert "no is not served here" in error.message()


def check_errors() -> None:
    """Checks the errors of calls that fail."""
    wrong = tritonclient.grpc.InferInput("INPUT0", [1], "INT32")
    wrong.set_data_from_numpy(np.array([1], dtype=np.int32))
    shared = tritonclient.grpc.InferInput("text", [1], "BYTES")
    shared.set_shared_memory("region", 8)
    classes = [tritonclient.grpc.InferRequestedOutput("translation", class_count=1)]
    text = tensors("A dog runs.")
    refused(lambda: CLIENT.infer("no", text), "NOT_FOUND", "model_name: no is not served here")
    refused(lambda: CLIENT.infer("en-de", text, model_version="0"), "NOT_FOUND", "Request for unknown model: 'en-de'")
    refused(lambda: CLIENT.infer("en-de", [wrong]), "INVALID_ARGUMENT", "inputs: ")
    refused(lambda: CLIENT.infer("en-de", [shared]), "INVALID_ARGUMENT", "text.parameters: ")
    refused(lambda: CLIENT.infer("en-de", text, outputs=classes), "INVALID_ARGUMENT", "outputs.parameters: ")
    refused(lambda: CLIENT.infer("", text), "INVALID_ARGUMENT", "parameters.target_language_code: ")
    for parameters, name in (({"beam_size": 99}, "beam_size"), ({"zz": 1}, "zz"), ({"mime_type": "a"}, "mime_type")):
        words = f"parameters.{name}: "
        call = functools.partial(CLIENT.infer, "en-de", text, parameters=parameters)
        refused(call, "INVALID_ARGUMENT", words)
    refused(lambda: CLIENT.infer("en-de", text, sequence_id=1), "INVALID_ARGUMENT", "parameters.sequence_")
    refused(
        lambda: CLIENT.get_model_metadata("simple"), "NOT_FOUND", "Request for unknown model: 'simple' is not found"
    )
    refused(lambda: CLIENT.get_model_config("simple"), "NOT_FOUND", "Request for unknown model: 'simple' is not found")
    for unserved in (
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
        functools.partial(CLIENT.unload_model, "en-de"),
    ):
        refused(unserved, "UNIMPLEMENTED", "is not served here")
    refused(lambda: CLIENT.load_model("en-de"), "UNIMPLEMENTED", "RepositoryModelLoad is not served here")


async def check_asyncio() -> None:
    """Checks the client for asyncio."""
    async with tritonclient.grpc.aio.InferenceServerClient(sys.argv[1]) as client:
        assert await client.is_server_ready()
        assert (await client.get_model_metadata("en-de")).name == "en-de"
        assert texts_of(await client.infer("en-de", tensors("A dog runs."))) == ["Ein Hund läuft."]

        async def requests() -> AsyncIterator[dict[str, Any]]:
            yield {"model_name": "en-de", "inputs": tensors("A dog runs. A man sits."), "request_id": "1"}

        texts = []
        async for result, error in client.stream_infer(requests()):
            assert error is None
            texts += texts_of(result)
        assert texts == ["Ein Hund läuft. ", "Ein Mann sitzt."]


check_descriptions()
check_answers()
check_stream()
check_errors()
asyncio.run(check_asyncio())
