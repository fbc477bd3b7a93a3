"""Cases of ONNX's own node tests, run through picograd."""

import functools
import warnings
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

import onnx.backend.test.loader as loader  # noqa: E402

import picograd.onnx  # noqa: E402
from picograd import Tensor  # noqa: E402
from picograd.onnx.values import to_array  # noqa: E402


@functools.cache
def cases() -> dict[str, Any]:
    """List the node tests by name, without "test_"."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {each.name[5:]: each for each in loader.load_model_tests(kind="node")}


def listed(text: str) -> list[str]:
    """List the words of a text."""
    return text.split()


def read(proto: Any) -> Any:
    """Read an input or output of a test."""
    if isinstance(proto, onnx.TensorProto):
        return onnx.numpy_helper.to_array(proto)
    if isinstance(proto, onnx.SequenceProto):
        return list(onnx.numpy_helper.to_list(proto))
    if isinstance(proto, onnx.OptionalProto):
        return onnx.numpy_helper.to_optional(proto)
    return proto


def check_same(found: Any, wanted: Any, case: Any) -> None:
    """Compare a value with what ONNX's reference gives."""
    if isinstance(wanted, list):
        assert isinstance(found, list) and len(found) == len(wanted)
        for one, other in zip(found, wanted):
            check_same(one, other, case)
    elif wanted is None:
        assert found is None
    else:
        array = np.asarray(to_array(found) if isinstance(found, Tensor) else found)
        assert array.shape == wanted.shape and array.dtype == wanted.dtype
        if wanted.dtype.kind not in "fV":
            np.testing.assert_array_equal(array, wanted)
            return
        pair = (array.astype(np.float64), np.asarray(wanted).astype(np.float64))
        np.testing.assert_allclose(*pair, rtol=case.rtol, atol=case.atol)


def run(name: str) -> None:
    """Run a node test."""
    case = cases()[name]
    model = picograd.onnx.load(case.model)
    for inputs, outputs in case.data_sets:
        found = model(*map(read, inputs))
        found = found if isinstance(found, tuple) else (found,)
        for one, other in zip(found, outputs):
            check_same(one, read(other), case)


def of_attributes(kind: str, opset: int, x: Any, **attributes: Any) -> Any:
    """Compute an operator of one input in a model of an opset."""
    node = onnx.helper.make_node(kind, ["x"], ["y"], **attributes)
    given, made = (
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in "xy"
    )
    graph = onnx.helper.make_graph([node], "one", [given], [made])
    opsets = [onnx.helper.make_opsetid("", opset)]
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)
    return picograd.onnx.load(model, check=False)(Tensor(x)).tolist()
