"""Graphs are read once: constants of branches have places of their own, and are parameters."""

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from runtime_support import compare, model_of, output  # noqa: E402

import picograd.onnx  # noqa: E402
from picograd import Tensor  # noqa: E402
from picograd.onnx.graph import read_body, read_node  # noqa: E402

X = np.array([1.0, 2.0], np.float32)


def branch(factor: float, is_node: bool) -> Any:
    """Make a branch that multiplies; both branches call their constant `c`."""
    array = np.array([factor, factor], np.float32)
    constant = helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(array))
    nodes = [helper.make_node("Mul", ["x", "c"], ["y"])]
    initial = [] if is_node else [numpy_helper.from_array(array, "c")]
    return helper.make_graph([constant] * is_node + nodes, "part", [], [output("y")], initial)


def choosing(is_node: bool) -> Any:
    """Make a model that multiplies by 2 or by 3."""
    parts = dict(then_branch=branch(2.0, is_node), else_branch=branch(3.0, is_node))
    node = helper.make_node("If", ["is_first"], ["y"], **parts)
    arrays = {"is_first": np.array(True), "x": X}
    return model_of([node], arrays, [output("y")])


@pytest.mark.parametrize("is_node", [False, True])
def test_branches_have_constants_of_their_own(is_node: bool) -> None:
    model = choosing(is_node)
    for is_first in (True, False):
        compare(model, {"is_first": np.array(is_first), "x": X}, is_jitted=False)
    ours = picograd.onnx.load(model, check=False)
    names = [name for name, _ in ours.named_parameters()]
    assert names == ["weights.c", "weights.c.2"]
    step = picograd.jit(ours)
    for is_first, wanted in ((True, [2.0, 4.0]), (False, [3.0, 6.0])) * 2:  # a choice of Python
        assert step(is_first, Tensor(X)).tolist() == wanted
    ours(False, Tensor(X)).sum().backward()
    gradients = [parameter.grad for parameter in ours.parameters()]
    assert gradients[0] is not None and gradients[1] is None  # `else_branch` is read first


def test_attributes() -> None:
    node = read_node(
        helper.make_node(
            "Any", ["x", ""], ["y"], domain="ai.onnx", words=["a", "b"], text="t",
            numbers=[1, 2], array=numpy_helper.from_array(X), part=branch(2.0, True),
        )
    )  # fmt: skip
    assert node.domain == "" and node.inputs == ("x", "") and node.outputs == ("y",)
    assert node.attributes["words"] == ["a", "b"] and node.attributes["text"] == "t"
    assert node.attributes["numbers"] == [1, 2] and node.attributes["array"].tolist() == [1, 2]
    assert node.attributes["part"].constants["c"].tolist() == [2.0, 2.0]


def test_bodies_inside() -> None:
    body = read_body(choosing(True).graph)
    assert [len(each.constants) for each in body.inner()] == [0, 1, 1]
    assert body.input == ("is_first", "x") and not body.is_function


def test_sparse_constants() -> None:
    values = numpy_helper.from_array(np.array([5.0, 6.0], np.float32), "s")
    places = numpy_helper.from_array(np.array([1, 3]))
    sparse = helper.make_sparse_tensor(values, places, [4])
    node = helper.make_node("Add", ["x", "s"], ["y"])
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy"]
    graph = helper.make_graph([node], "net", info[:1], info[1:], sparse_initializer=[sparse])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    assert picograd.onnx.load(model)(np.ones(4, np.float32)).tolist() == [1.0, 6.0, 1.0, 7.0]
