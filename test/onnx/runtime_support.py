"""One node, or a graph, beside ONNX Runtime."""

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

from onnx import helper  # noqa: E402

import picograd  # noqa: E402
import picograd.onnx  # noqa: E402
from picograd import Tensor  # noqa: E402


def model_of(nodes: Any, arrays: Any, outputs: Any, initial: Any = (), opset: int = 17) -> Any:
    """Make a model; shapes and dtypes of outputs are left open."""
    inputs = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(each.dtype), [None] * each.ndim
        )
        for name, each in arrays.items()
    ]
    graph = helper.make_graph(nodes, "net", inputs, outputs, list(initial))
    opsets = [("", opset), ("ai.onnx.ml", 3), ("com.microsoft", 1)]
    made = [helper.make_opsetid(*each) for each in opsets]
    return helper.make_model(graph, opset_imports=made, ir_version=8)


def output(name: str, dtype: Any = np.float32) -> Any:
    """Declare an output."""
    return helper.make_tensor_value_info(
        name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), None
    )


def compare(model: Any, arrays: Any, tolerance: float = 1e-5, is_jitted: bool = True) -> list[Any]:
    """Run a model in ONNX Runtime, and in picograd with and without jit; gives its outputs."""
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    wanted = session.run(None, arrays)
    ours = picograd.onnx.load(model, check=False).eval()  # shapes of outputs are open
    given = [each if each.dtype.kind in "OU" else Tensor(each) for each in arrays.values()]
    step = picograd.jit(ours)
    with picograd.no_grad():
        for run in (ours, step, step) if is_jitted else (ours,):
            found = run(*given)
            found = found if isinstance(found, tuple) else (found,)
            for mine, theirs in zip(found, wanted, strict=True):
                mine = mine.numpy() if isinstance(mine, Tensor) else mine
                if isinstance(theirs, list) or theirs.dtype.kind in "OU":
                    assert list(mine) == list(theirs)
                else:
                    assert mine.dtype == theirs.dtype and mine.shape == theirs.shape
                    np.testing.assert_allclose(mine, theirs, tolerance, tolerance)
    return list(wanted)


def compare_node(
    name: str, arrays: Any, outputs: Any, domain: str = "ai.onnx.ml", **settings: Any
) -> list[Any]:
    """Compare one operator; `outputs` are dtypes."""
    is_jitted = settings.pop("is_jitted", True)
    gives = [f"y{place}" for place in range(len(outputs))]
    node = helper.make_node(name, list(arrays), gives, domain=domain, **settings)
    declared = [output(each, dtype) for each, dtype in zip(gives, outputs)]
    return compare(model_of([node], arrays, declared), arrays, is_jitted=is_jitted)
