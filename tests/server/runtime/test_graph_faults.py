"""Graphs against the contract: what is said of those that are not as they should be."""

import dataclasses
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest

from server.bundle.bundle import Bundle
from server.bundle.graphs import CHOSEN_NAMES, LOGITS, PLAIN_STEP, StepForm, cache_outputs, step_forms
from server.bundle.manifest import Dimensions
from server.bundle.shortlist import Shortlist
from server.bundle.states import attention_states, ssru_states
from server.bundle.variants import VARIANTS
from server.errors import BundleError
from server.runtime.graph_faults import (
    MAX_GRAPH_BYTES,
    ONNX_TYPES,
    content_faults,
    refuse,
    shortlist_faults,
    step_faults,
    tensor_faults,
)
from tests.runners import open_host_runner
from tests.server.runtime.conftest import field, with_file

SIZES = Dimensions(vocab_size=50, d_model=16, num_heads=2, head_dim=8, encoder_layers=1, decoder_layers=1)
STATES = attention_states(1, 2, 8)


@dataclass
class Tensor:
    name: str
    shape: list[int | str]


@dataclass
class Graph:
    """Stands in for a session of ONNX Runtime, of which only names and shapes are asked."""

    inputs: list[Tensor]
    outputs: list[Tensor]

    def get_inputs(self) -> list[Tensor]:
        return self.inputs

    def get_outputs(self) -> list[Tensor]:
        return self.outputs


def graph_of(inputs: list[str], outputs: list[str]) -> Graph:
    """A graph whose caches have the shapes that `SIZES` says."""
    shape: list[int | str] = ["rows", SIZES.num_heads, "positions", SIZES.head_dim]
    return Graph([Tensor(name, shape) for name in inputs], [Tensor(name, shape) for name in outputs])


def step_graph(form: StepForm) -> Graph:
    caches = cache_outputs(STATES, SIZES.decoder_layers)
    outputs = [*CHOSEN_NAMES, form.projected, *(f"new_{name}" for name in caches)]
    graph = graph_of([*form.input_names, *caches], outputs)
    graph.outputs = [Tensor(t.name, ["rows", 50]) if t.name == LOGITS else t for t in graph.outputs]
    return graph


def test_without_faults_nothing_is_refused() -> None:
    refuse(Path("encoder.onnx"), [])


def test_every_fault_of_a_file_is_told_with_its_path() -> None:
    with pytest.raises(BundleError) as caught:
        refuse(Path("cpu-fp32/encoder.onnx"), ["one", "two"])

    assert caught.value.faults == ["cpu-fp32/encoder.onnx: one", "cpu-fp32/encoder.onnx: two"]


def test_tensors_that_lack_or_are_unknown_are_named() -> None:
    graph = graph_of(["a", "surprise", "another"], ["x", "more"])

    assert tensor_faults(graph, ["a", "b"], ["x", "y"]) == [
        "the graph lacks input b",
        "the graph has an unknown input another",
        "the graph has an unknown input surprise",
        "the graph lacks output y",
    ]


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("dtype", ["float32", "int8", "float16"])
def test_an_embedding_of_another_type_is_named_with_both(tiny_bundle: Bundle, variant: str, dtype: str) -> None:
    own = VARIANTS[variant].dtype
    fault = f"embedding is {own}, by the manifest it is {dtype}"

    for form in step_forms(variant, has_shortlist=False):
        for file in ("encoder.onnx", form.file):
            faults = content_faults(tiny_bundle.read(f"{variant}/{file}"), dtype, None)
            assert faults == ([] if dtype == own else [fault]), file


NAME, DOUBLE, FLOAT = field(8, b"embedding"), field(2, 11), field(2, 1)


@pytest.mark.parametrize(
    "fields",
    [DOUBLE + NAME, NAME + DOUBLE, DOUBLE + field(1, 0) + NAME, FLOAT + NAME + DOUBLE, NAME + b"\x10\x8b\x00"],
    ids=["as written", "name first", "apart", "twice", "longer than need be"],
)
def test_the_embeddings_type_is_read_wherever_its_field_stands(fields: bytes) -> None:
    graph = field(7, field(5, fields))

    assert content_faults(graph, "float32", 0) == ["embedding is of ONNX's type 11, by the manifest it is float32"]


def test_the_embeddings_type_is_read_of_messages_in_parts_and_of_graphs_within() -> None:
    in_parts = field(7, field(5, FLOAT + field(8, b"other"))) + field(7, field(5, NAME + DOUBLE))
    within = field(7, field(1, field(5, field(6, field(5, NAME + DOUBLE)))))

    for graph in (in_parts, within):
        assert content_faults(graph, "float32", 0) == ["embedding is of ONNX's type 11, by the manifest it is float32"]


def external(name: str, dims: list[int], data_type: int = 1, **place: str) -> onnx.TensorProto:
    tensor = onnx.TensorProto(name=name, dims=dims, data_type=data_type, data_location=onnx.TensorProto.EXTERNAL)
    for key, value in place.items():
        tensor.external_data.add(key=key, value=value)
    return tensor


@pytest.mark.parametrize(
    ("tensor", "words"),
    [
        (external("w", [3], location="weights.bin", length="12"), ""),
        (external("w", [], location="weights.bin"), ""),
        (external("w", [4], location="weights.bin", offset="4"), "ends at 20, behind the weights, which have 16 bytes"),
        (external("w", [3], 11, location="weights.bin"), "ends at 24, behind the weights"),
        (external("w", [3], 11, location="weights.bin", length="12"), r"\[3\], 24 bytes; .* with '12' bytes"),
        (external("w", [3], location="weights.bin", offset="-4"), "said to be '-4'"),
        (external("w", [3], location="weights.bin", offset="9" * 4400), "said to be '9999"),
        (external("w", [-3, -1], location="weights.bin"), r"has sizes \[-3, -1\]"),
        (external("w", [1 << 62] * 50_000, location="weights.bin"), "at most 8 can be"),
        (external("w", [3], 8, location="weights.bin"), "which weights cannot have"),
        (external("w", [3], location="../../../secret"), "in another file than weights.bin"),
        (external("w", [3], location="*/_ORT_MEM_ADDR_/*"), "in another file than weights.bin"),
        (external("w", [3]), "in another file than weights.bin"),
        (external("w", [3], location="weights.bin", prepacked_0="k|0|99999|;"), "not its file, offset and length"),
    ],
)
def test_a_tensor_lies_within_the_weights_to_the_byte(tensor: onnx.TensorProto, words: str) -> None:
    graph = onnx.ModelProto(graph=onnx.GraphProto(initializer=[tensor]))

    faults = content_faults(graph.SerializeToString(), "float32", 16)

    assert len(faults) == bool(words)
    assert re.search(words, "".join(faults))


def test_weights_in_the_attributes_of_nodes_are_refused() -> None:
    tensor = external("w", [3], location="weights.bin")
    nodes = [
        onnx.helper.make_node("Constant", [], ["c"], value=tensor),
        onnx.helper.make_node("Other", [], ["d"], values=[tensor]),
    ]
    graph = onnx.ModelProto(graph=onnx.GraphProto(node=nodes))

    assert len(content_faults(graph.SerializeToString(), "float32", 16)) == len(nodes)


def test_a_loop_at_any_depth_and_functions_are_refused() -> None:
    loop = onnx.helper.make_node("Loop", ["", "yes"], ["x"], body=onnx.GraphProto())
    branch = onnx.helper.make_node("If", ["yes"], ["x"], then_branch=onnx.GraphProto(node=[loop]))
    function = onnx.FunctionProto(name="Innocent", node=[loop])

    for nodes in ([loop], [branch]):
        model = onnx.ModelProto(graph=onnx.GraphProto(node=nodes))
        (fault,) = content_faults(model.SerializeToString(), "float32", 0)
        assert "a Loop, which may never end" in fault
    (fault,) = content_faults(onnx.ModelProto(functions=[function]).SerializeToString(), "float32", 0)
    assert "functions of its own" in fault


def test_sparse_tensors_and_what_is_no_graph_are_refused() -> None:
    sparse = onnx.SparseTensorProto(values=onnx.TensorProto(dims=[1], data_type=1), dims=[1 << 40])
    node = onnx.helper.make_node("Constant", [], ["c"], sparse_value=sparse)
    graphs = [onnx.GraphProto(sparse_initializer=[sparse]), onnx.GraphProto(node=[node])]

    for graph in graphs:
        faults = content_faults(onnx.ModelProto(graph=graph).SerializeToString(), "float32", 0)
        assert faults == ["it has sparse tensors, which no export makes"]
    assert content_faults(b"no graph", "float32", 0) == ["it is no ONNX graph"]


def test_a_graph_of_many_bytes_is_not_read_and_many_faults_are_summed_up() -> None:
    many = onnx.GraphProto(initializer=[external(f"w{i}", [3], location="elsewhere") for i in range(30)])

    assert content_faults(bytes(MAX_GRAPH_BYTES + 1), "float32", 0) == [
        f"it has {MAX_GRAPH_BYTES + 1} bytes, at most {MAX_GRAPH_BYTES} are read"
    ]
    assert content_faults(onnx.ModelProto(graph=many).SerializeToString(), "float32", 0)[20:] == ["and 10 faults more"]


def test_every_variants_type_is_known_by_the_number_that_onnx_gives_it() -> None:
    known = {onnx.helper.np_dtype_to_tensor_dtype(np.dtype(kind.dtype)): kind.dtype for kind in VARIANTS.values()}

    assert known == ONNX_TYPES


@pytest.mark.parametrize("form", [StepForm(*flags) for flags in ((False, False), (False, True), (True, True))])
def test_a_step_is_well_that_has_the_tensors_of_its_form_and_no_others(form: StepForm) -> None:
    other = StepForm(not form.has_shortlist, form.shares_slots)

    assert step_faults(step_graph(form), form, SIZES, STATES) == []
    assert step_faults(step_graph(other), form, SIZES, STATES)


def test_a_step_of_fewer_layers_lacks_their_caches() -> None:
    deeper = dataclasses.replace(SIZES, decoder_layers=2)

    faults = step_faults(step_graph(PLAIN_STEP), PLAIN_STEP, deeper, attention_states(2, 2, 8))

    assert [fault for fault in faults if "input" in fault] == [
        "the graph lacks input self_key.1",
        "the graph lacks input self_value.1",
        "the graph lacks input cross_key.1",
        "the graph lacks input cross_value.1",
    ]
    assert len(faults) == 4 + 4


@pytest.mark.parametrize("shape", [["rows", 4, "positions", 4], ["rows", 2], []])
def test_a_cache_of_another_shape_is_named_with_both(shape: list[int | str]) -> None:
    graph = step_graph(PLAIN_STEP)
    graph.inputs[-1].shape = shape

    assert step_faults(graph, PLAIN_STEP, SIZES, STATES) == [
        f"input cross_value.0 is {shape}, by the manifest it is [rows, 2, positions, 8]"
    ]


@pytest.mark.parametrize("shape", [["rows", 2, 3, 16], ["rows", 2, "layers", 16], ["rows", 1, 1, 16], ["rows", 2, 1]])
def test_states_of_another_shape_are_named_with_both(shape: list[int | str]) -> None:
    names = [
        name for name in step_graph(PLAIN_STEP).inputs if "self_key" not in name.name and "self_value" not in name.name
    ]
    graph = step_graph(PLAIN_STEP)
    graph.inputs = [*names, Tensor("self_state", ["rows", 2, 1, 16])]
    graph.outputs.append(Tensor("new_self_state", []))
    assert step_faults(graph, PLAIN_STEP, SIZES, ssru_states(1, 16)) == []

    graph.inputs[-1].shape = shape

    assert step_faults(graph, PLAIN_STEP, SIZES, ssru_states(1, 16)) == [
        f"input self_state is {shape}, by the manifest it is [rows, 2, 1, 16]"
    ]


def test_logits_of_another_vocabulary_are_named_with_both() -> None:
    wider = dataclasses.replace(SIZES, vocab_size=51)

    assert step_faults(step_graph(PLAIN_STEP), PLAIN_STEP, wider, STATES) == [
        "output logits is ['rows', 50], by the manifest it is [rows, 51]"
    ]


def shortlist_of(*common: int) -> Shortlist:
    return Shortlist(np.zeros((50, 1), np.int32), np.array(common, np.int32))


def test_common_tokens_must_do_for_the_widest_beam_and_end_a_sentence() -> None:
    assert shortlist_faults(shortlist_of(3, 4, 5, 6), max_beam_size=2, eos_id=3) == []
    assert shortlist_faults(shortlist_of(3, 4, 5), max_beam_size=2, eos_id=3) == ["it has 3 common tokens, it needs 4"]
    assert shortlist_faults(shortlist_of(7, 7, 7, 7), max_beam_size=2, eos_id=3) == [
        "it has 1 common tokens, it needs 4",
        "the end of a sentence, 3, is none of the common tokens",
    ]


def test_graph_with_other_names_is_a_bundle_error(tiny_bundle: Bundle) -> None:
    graph = onnx.load_from_string(tiny_bundle.read("cpu-fp32/encoder.onnx"))
    for node in graph.graph.node:
        node.output[:] = ["cross_query.0" if name == "cross_key.0" else name for name in node.output]
    graph.graph.output[0].name = "cross_query.0"
    bundle = with_file(tiny_bundle, "cpu-fp32/encoder.onnx", graph.SerializeToString())

    with pytest.raises(BundleError, match=r"the graph lacks output cross_key.0"):
        open_host_runner(bundle)


def test_graph_of_other_dimensions_is_a_bundle_error(tiny_bundle: Bundle) -> None:
    manifest = tiny_bundle.manifest
    wide = dataclasses.replace(manifest.dimensions, num_heads=2, head_dim=16)
    bundle = dataclasses.replace(tiny_bundle, manifest=dataclasses.replace(manifest, dimensions=wide))

    with pytest.raises(BundleError, match=r"cross_key.0 is .*, by the manifest it is \[rows, 2, positions, 16\]"):
        open_host_runner(bundle)
