import onnx

from export.graph import before_reshapes, used_names

NODES = [
    onnx.helper.make_node("Gemm", ["x", "w", "b"], ["y"]),
    onnx.helper.make_node("Split", ["y"], ["y1", "y2"]),
    onnx.helper.make_node("Reshape", ["y2", "shape"], ["z"]),
    onnx.helper.make_node("Transpose", ["z"], ["turned"]),
]
PRODUCERS = {output: node for node in NODES for output in node.output}


def test_numbers_are_traced_to_what_computes_them() -> None:
    assert [before_reshapes(PRODUCERS, name) for name in ("turned", "z", "y1", "y", "x")] == ["y"] * 4 + ["x"]


def test_names_of_branches_are_used_too() -> None:
    branch = onnx.helper.make_graph([onnx.helper.make_node("Add", ["inner", "outer"], ["sum"])], "branch", [], [])
    node = onnx.helper.make_node("If", ["condition"], ["chosen"], then_branch=branch, else_branch=branch)

    assert used_names([*NODES[:1], node]) == {"x", "w", "b", "condition", "inner", "outer"}
