"""Loaded models: parameters, names, files, functions, errors; jitted and trained."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

import picograd  # noqa: E402
import picograd.onnx  # noqa: E402
from picograd import Tensor, nn  # noqa: E402
from picograd.errors import DataError, MissingFileError, ShapeError  # noqa: E402

RANDOM = np.random.default_rng(0)
WEIGHT = RANDOM.standard_normal((4, 3)).astype(np.float32)
BIAS = RANDOM.standard_normal(3).astype(np.float32)


def network(op: str = "Relu", opset: int = 17) -> Any:
    """Make `relu(reshape(x, (0, -1)) @ weight + bias)`."""
    nodes = [
        helper.make_node("Reshape", ["x", "sizes"], ["rows"]),
        helper.make_node("Gemm", ["rows", "fc.weight", "fc.bias"], ["sums"]),
        helper.make_node(op, ["sums"], ["y"], name="last"),
    ]
    arrays = {"fc.weight": WEIGHT, "fc.bias": BIAS, "sizes": np.array([0, -1])}
    initial = [numpy_helper.from_array(each, name) for name, each in arrays.items()]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2, 2])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 3])]
    graph = helper.make_graph(nodes, "net", inputs, outputs, initial)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def wanted(x: Any) -> Any:
    return np.maximum(x.reshape(len(x), -1) @ WEIGHT + BIAS, 0)


def test_a_model_is_a_module_that_jit_takes(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    onnx.save(network(), path)
    x = RANDOM.standard_normal((5, 2, 2)).astype(np.float32)
    for source in (path, str(path), path.read_bytes(), io.BytesIO(path.read_bytes()), network()):
        model = picograd.onnx.load(source)
        assert isinstance(model, nn.Module) and model.inputs == ["x"] and model.outputs == ["y"]
        np.testing.assert_allclose(model(x).numpy(), wanted(x), 1e-5, 1e-6)
    np.testing.assert_allclose(model(x=Tensor(x)).numpy(), wanted(x), 1e-5, 1e-6)
    step = picograd.jit(model)
    for _ in range(3):
        np.testing.assert_allclose(step(Tensor(x)).numpy(), wanted(x), 1e-5, 1e-6)
    assert [name for name, _ in model.named_parameters()] == [
        "weights.fc.weight",
        "weights.fc.bias",
    ]


def test_a_model_learns() -> None:
    model = picograd.onnx.load(network())
    x = Tensor(RANDOM.standard_normal((5, 2, 2)).astype(np.float32))
    optimizer = nn.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(3):
        loss = ((model(x) - 1) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[2] < losses[1] < losses[0]


def test_constants_named_as_what_a_module_has() -> None:
    """They are weights under another name, and hide no method."""
    add = helper.make_node("Add", ["x", "parameters"], ["y"])
    given = [numpy_helper.from_array(BIAS, "parameters")]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])
    graph = helper.make_graph([add], "net", [x], [y], given)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model = picograd.onnx.load(made.SerializeToString())
    assert [name for name, _ in model.named_parameters()] == ["weights.parameters.2"]
    assert len(list(model.weights.parameters())) == 1
    np.testing.assert_array_equal(model(np.zeros(3, np.float32)).numpy(), BIAS)


def test_weights_in_files_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    onnx.save(network(), path, save_as_external_data=True, size_threshold=0)
    x = RANDOM.standard_normal((2, 2, 2)).astype(np.float32)
    np.testing.assert_allclose(picograd.onnx.load(path)(x).numpy(), wanted(x), 1e-5, 1e-6)


def test_functions_of_a_model() -> None:
    body = helper.make_function(
        "mine", "twice", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])],
        [helper.make_opsetid("", 17)],
    )  # fmt: skip
    node = helper.make_node("twice", ["x"], ["y"], domain="mine")
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in "xy"]
    graph = helper.make_graph([node], "net", info[:1], info[1:])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
    model = helper.make_model(graph, functions=[body], opset_imports=opsets)
    assert picograd.onnx.load(model)(np.ones(3, np.float32)).tolist() == [2.0, 2.0, 2.0]


def test_errors_say_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match=r"cannot read .*nowhere"):
        picograd.onnx.load(tmp_path / "nowhere.onnx")
    with pytest.raises(DataError, match="no ONNX model"):
        picograd.onnx.load(b"nonsense")
    with pytest.raises(ShapeError, match="takes x; 0 were given"):
        picograd.onnx.load(network())()
    unknown = picograd.onnx.load(network("Unheard"), check=False)
    with pytest.raises(DataError, match=r"operator Unheard \(node 'last', opset 17\) is not known"):
        unknown(np.ones((1, 2, 2), np.float32))


@pytest.mark.parametrize(
    ("op", "inputs", "said"),
    [
        ("Range", (0, 5, 0), r"Range \(node 'y', opset 18\) .* \(\), \(\), \(\): Zero"),
        ("ConstantOfShape", ([-5],), r"ConstantOfShape .* inputs of \(1,\): ValueError: negative"),
        ("Relu", ("x",), r"Relu .* inputs of NoneType: AttributeError"),
    ],
)
def test_a_node_that_fails_is_named(op: str, inputs: Any, said: str) -> None:
    given = [each if isinstance(each, str) else f"w{at}" for at, each in enumerate(inputs)]
    held = [
        numpy_helper.from_array(np.array(each), name)
        for name, each in zip(given, inputs)
        if not isinstance(each, str)
    ]
    node = helper.make_node(op, given, ["y"])
    x, y = (helper.make_tensor_value_info(name, 1, [None]) for name in "xy")
    graph = helper.make_graph([node], "g", [x], [y], held)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    with pytest.raises(DataError, match=said):
        picograd.onnx.load(made)(None)
