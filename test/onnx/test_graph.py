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
from picograd.errors import DataError  # noqa: E402
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


def refer(node: Any, **outer: Any) -> Any:
    """Let attributes of a node be those of a call of its function."""
    for name, (attribute, kind) in outer.items():
        node.attribute.add(name=name, ref_attr_name=attribute, type=kind)
    return node


def calling(nodes: Any, arrays: Any, declared: Any = (), overload: str = "", **given: Any) -> Any:
    """Make a model that calls a function of its own, `mine.f`, from its inputs to `y`."""
    opsets = [helper.make_opsetid("", 23), helper.make_opsetid("mine", 1)]
    function = helper.make_function(
        "mine", "f", list(arrays), ["y"], nodes, opsets, [*given, *declared], overload=overload
    )
    node = helper.make_node("f", list(arrays), ["y"], domain="mine", overload=overload, **given)
    model = model_of([node], arrays, [output("y")], opset=23)
    model.functions.append(function)
    model.opset_import.append(opsets[1])
    model.ir_version = 10
    return model


def test_constants_that_a_call_names() -> None:
    kinds = onnx.AttributeProto
    for name, kind, value in (
        ("value_float", kinds.FLOAT, 2.5),
        ("value_floats", kinds.FLOATS, [1.0, 3.0]),
        ("value", kinds.TENSOR, numpy_helper.from_array(X * 3)),
    ):
        constant = refer(helper.make_node("Constant", [], ["c"]), **{name: ("a", kind)})
        model = calling([constant, helper.make_node("Mul", ["x", "c"], ["y"])], {"x": X}, a=value)
        compare(model, {"x": X})
    constant = refer(helper.make_node("Constant", [], ["c"]), value_ints=("a", kinds.INTS))
    total = helper.make_node("ReduceSum", ["x", "c"], ["y"], keepdims=0)
    rows = np.arange(6, dtype=np.float32).reshape(2, 3)
    compare(calling([constant, total], {"x": rows}, a=[1]), {"x": rows})
    with pytest.raises(DataError, match="the value of an attribute that the call"):
        picograd.onnx.load(calling([constant, total], {"x": rows}, ["a"]), check=False)(rows)


def test_operators_whose_body_follows_from_attributes_that_a_call_names() -> None:
    """ONNX makes the body of such an operator from its node."""
    kind = onnx.AttributeProto.INT
    x = np.random.default_rng(0).standard_normal((2, 4, 8)).astype(np.float32)
    node = helper.make_node("Attention", ["x", "x", "x"], ["y"])
    heads = ("heads", kind)
    refer(node, q_num_heads=heads, kv_num_heads=heads, is_causal=("causal", kind))
    for causal in (0, 1):
        compare(calling([node], {"x": x}, heads=2, causal=causal), {"x": x})
    arrays = {"x": x, "c": x[:, :, :2].copy(), "s": x[:, :, 2:4].copy()}
    node = helper.make_node("RotaryEmbedding", list(arrays), ["y"])
    refer(node, num_heads=heads, interleaved=("interleaved", kind))
    for interleaved in (0, 1):
        compare(calling([node], arrays, heads=2, interleaved=interleaved), arrays)


def test_branches_and_bodies_name_attributes_of_a_call() -> None:
    kind = onnx.AttributeProto.FLOAT
    parts = []
    for op in ("Elu", "ThresholdedRelu"):
        node = refer(helper.make_node(op, ["x"], ["z"]), alpha=("a", kind))
        parts.append(helper.make_graph([node], "part", [], [output("z")]))
    node = helper.make_node("If", ["is_first"], ["y"], then_branch=parts[0], else_branch=parts[1])
    for is_first in (True, False):
        arrays = {"is_first": np.array(is_first), "x": X - 1.5}
        compare(calling([node], arrays, a=0.3), arrays, is_jitted=False)
    node = refer(helper.make_node("Elu", ["e"], ["z"]), alpha=("a", kind))
    given = helper.make_tensor_value_info("e", TensorProto.FLOAT, None)
    body = helper.make_graph([node], "part", [given], [output("z")])
    nodes = [
        helper.make_node("SequenceConstruct", ["x", "x"], ["many"]),
        helper.make_node("SequenceMap", ["many"], ["mapped"], body=body),
        helper.make_node("ConcatFromSequence", ["mapped"], ["y"], axis=0),
    ]
    compare(calling(nodes, {"x": X - 1.5}, a=0.3), {"x": X - 1.5}, is_jitted=False)


def test_functions_of_one_name_are_told_apart_by_their_overload() -> None:
    model = calling([helper.make_node("Neg", ["x"], ["y"])], {"x": X}, overload="first")
    other = calling([helper.make_node("Abs", ["x"], ["y"])], {"x": X}, overload="second")
    model.functions.append(other.functions[0])
    assert compare(model, {"x": X})[0].tolist() == [-1.0, -2.0]


def test_the_own_domain_has_two_names() -> None:
    node = helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)  # axes: from opset 13
    model = model_of(
        [node], {"x": X}, [output("y")], [numpy_helper.from_array(np.array([0]), "axes")]
    )
    model.opset_import[0].domain = "ai.onnx"
    assert compare(model, {"x": X})[0].item() == 3.0
