import pytest

from babelserve.v1 import translation_pb2 as pb
from server.errors import InvalidRequest, ModelNotFound
from server.fronts.kserve_models import find_model, write_config, write_index, write_metadata, write_server_metadata
from server.fronts.v1 import kserve_pb2 as kserve

MODELS = pb.ListModelsResponse(models=[pb.ModelInfo(name="a", version="1"), pb.ModelInfo(name="b", version="2")])


def test_a_model_is_found_by_its_name_and_version() -> None:
    assert find_model(MODELS, "b", "") == find_model(MODELS, "b", "2") == MODELS.models[1]


@pytest.mark.parametrize(
    ("name", "version", "words"),
    [
        ("c", "", "Request for unknown model: 'c' is not found"),
        ("c", "1", "Request for unknown model: 'c' is not found"),
        ("a", "2", "Request for unknown model: 'a' version 2 is not found"),
    ],
)
def test_another_is_refused_in_tritons_words(name: str, version: str, words: str) -> None:
    with pytest.raises(ModelNotFound) as caught:
        find_model(MODELS, name, version)

    assert str(caught.value) == words


def test_metadata_and_configuration_tell_the_same_tensors() -> None:
    metadata, config = write_metadata(MODELS.models[0]), write_config(MODELS.models[0]).config

    assert (metadata.name, list(metadata.versions), config.name) == ("a", ["1"], "a")
    assert [(each.name, each.datatype, list(each.shape)) for each in metadata.inputs] == [("text", "BYTES", [-1])]
    assert [(each.name, each.datatype) for each in metadata.outputs] == [
        ("translation", "BYTES"),
        ("score", "FP32"),
        ("finish_reason", "BYTES"),
        ("detected_language_code", "BYTES"),
    ]
    types = {"BYTES": kserve.TYPE_STRING, "FP32": kserve.TYPE_FP32}
    assert [(each.name, each.data_type) for each in config.output] == [
        (each.name, types[each.datatype]) for each in metadata.outputs
    ]
    assert config.model_transaction_policy.decoupled


def test_the_server_tells_its_name_and_version() -> None:
    metadata = write_server_metadata()

    assert metadata.name == "babelserve"
    assert metadata.version


def test_the_index_tells_which_models_are_ready() -> None:
    everything = write_index(kserve.RepositoryIndexRequest(), MODELS, lambda name: name == "b")
    ready = write_index(kserve.RepositoryIndexRequest(ready=True), MODELS, lambda name: name == "b")

    facts = [(each.name, each.version, each.state) for each in everything.models]
    assert facts == [("a", "1", "UNAVAILABLE"), ("b", "2", "READY")]
    assert [each.name for each in ready.models] == ["b"]
    with pytest.raises(InvalidRequest, match="repository_name"):
        write_index(kserve.RepositoryIndexRequest(repository_name="r"), MODELS, lambda _: True)
