"""What KServe's protocol v2 and Triton's extensions tell of a server and its models."""

import importlib.metadata
from collections.abc import Callable

from babelserve.v1 import translation_pb2 as pb
from server.errors import InvalidRequest, ModelNotFound
from server.fronts.v1 import kserve_pb2 as kserve
from server.translation.rules import shown

INPUT, BYTES = "text", "BYTES"
OUTPUTS = {"translation": BYTES, "score": "FP32", "finish_reason": BYTES, "detected_language_code": BYTES}

_TYPES = {BYTES: kserve.TYPE_STRING, "FP32": kserve.TYPE_FP32}
_PLATFORM = "babelserve"


def find_model(served: pb.ListModelsResponse, name: str, version: str) -> pb.ModelInfo:
    """Returns the description of a model. Raises ModelNotFound in Triton's words.

    Args:
        served: all models.
        name: of the model.
        version: of the model; empty for any.
    """
    for model in served.models:
        if model.name == name and version in ("", model.version):
            return model
    if any(model.name == name for model in served.models):
        raise ModelNotFound(f"Request for unknown model: '{shown(name)}' version {shown(version)} is not found")
    raise ModelNotFound(f"Request for unknown model: '{shown(name)}' is not found")


def write_server_metadata() -> kserve.ServerMetadataResponse:
    """Returns what this server is."""
    extensions = ["binary_tensor_data", "model_configuration", "model_repository", "parameters"]
    try:
        version = importlib.metadata.version(_PLATFORM)
    except importlib.metadata.PackageNotFoundError:  # run from a checkout that is not installed
        version = "unknown"
    return kserve.ServerMetadataResponse(name=_PLATFORM, version=version, extensions=extensions)


def write_metadata(model: pb.ModelInfo) -> kserve.ModelMetadataResponse:
    """Returns the tensors of a model."""
    tensor = kserve.ModelMetadataResponse.TensorMetadata
    return kserve.ModelMetadataResponse(
        name=model.name,
        versions=[model.version],
        platform=_PLATFORM,
        inputs=[tensor(name=INPUT, datatype=BYTES, shape=[-1])],
        outputs=[tensor(name=name, datatype=kind, shape=[-1]) for name, kind in OUTPUTS.items()],
    )


def write_config(model: pb.ModelInfo) -> kserve.ModelConfigResponse:
    """Returns Triton's description of a model. Streams answer each request with many responses."""
    config = kserve.ModelConfig(
        name=model.name,
        platform=_PLATFORM,
        backend=_PLATFORM,
        input=[kserve.ModelInput(name=INPUT, data_type=_TYPES[BYTES], dims=[-1])],
        output=[kserve.ModelOutput(name=name, data_type=_TYPES[kind], dims=[-1]) for name, kind in OUTPUTS.items()],
        model_transaction_policy=kserve.ModelConfig.TransactionPolicy(decoupled=True),
    )
    return kserve.ModelConfigResponse(config=config)


def write_index(
    asked: kserve.RepositoryIndexRequest, served: pb.ListModelsResponse, is_ready: Callable[[str], bool]
) -> kserve.RepositoryIndexResponse:
    """Returns the list of models. Raises InvalidRequest.

    Args:
        asked: the request.
        served: the models.
        is_ready: says whether requests for a model are welcome.
    """
    if asked.repository_name:
        raise InvalidRequest("repository_name", "must be empty: this server has one repository")
    index = kserve.RepositoryIndexResponse.ModelIndex
    states = [(model, is_ready(model.name)) for model in served.models]
    return kserve.RepositoryIndexResponse(
        models=[
            index(name=model.name, version=model.version, state="READY" if ready else "UNAVAILABLE")
            for model, ready in states
            if ready or not asked.ready
        ]
    )
