"""Values of ONNX models: dtypes, tensors of the host, and what the `onnx` package computes there.

A value is a `Tensor`, or an array of the host: sizes, axes and texts, which Python has to know to
record a graph. What has inputs of the host alone is computed on the host.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from picograd.conversion import from_bits
from picograd.dtype import ALL, BY_NAME, DType, bfloat16, float8_e4m3fn, float8_e5m2
from picograd.onnx.graph import as_attribute
from picograd.tensor.tensor import Tensor

KIND = onnx.TensorProto
CALLED = {"float32": "FLOAT", "float64": "DOUBLE"}  # others have the same name in capitals
DTYPES: dict[Any, DType] = {
    getattr(KIND, CALLED.get(each.name, each.name.upper().replace("_", ""))): each for each in ALL
}
WITHOUT_NUMPY = (bfloat16, float8_e4m3fn, float8_e5m2)
NAMES: dict[Any, Any] = {dtype: number for number, dtype in DTYPES.items()}
SMALL = 1024  # elements of integer constants that stay on the host


def dtype_of_onnx(number: int) -> DType | None:
    """Find the dtype of ONNX's number; None for one that picograd has not."""
    return DTYPES.get(number)


def is_held(value: Any) -> bool:
    """Tell whether a value is on the host."""
    return isinstance(value, np.ndarray)


def to_tensor(array: Any) -> Any:
    """Make a tensor of an array; text and dtypes that picograd has not stay arrays."""
    if isinstance(array, list):
        return [to_tensor(each) for each in array]
    if not isinstance(array, np.ndarray):
        array = np.asarray(array)
    known = BY_NAME.get(array.dtype.name)
    if known in WITHOUT_NUMPY:
        bits = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")
        shaped = bits.reshape(array.shape)
        values = np.asarray(from_bits(shaped, known))
        return Tensor(values, dtype=known)
    is_plain = known is not None and array.dtype.kind in "biuf"
    return Tensor(np.require(array, requirements="C")) if is_plain else array


def to_array(value: Any) -> Any:
    """Give a value as the `onnx` package wants it: an array, or a list of arrays."""
    if isinstance(value, list):
        return [to_array(each) for each in value]
    if not isinstance(value, Tensor):
        return value
    if value.dtype in WITHOUT_NUMPY:
        kind = onnx.helper.tensor_dtype_to_np_dtype(NAMES[value.dtype])
        return value.detach().float().numpy().astype(kind)
    return value.detach().numpy()


def constant(array: Any) -> Any:
    """Keep a constant: integers of few elements and text for the host, others as a Tensor."""
    if array.dtype.kind in "biu" and array.size <= SMALL:
        return array
    return to_tensor(array)


def computed_on_host(
    name: str,
    domain: str,
    opset: int,
    inputs: Sequence[Any],
    attributes: Mapping[str, Any],
    outputs: int,
) -> list[Any]:
    """Let the `onnx` package compute a node on the host."""
    takes = [f"x{place}" if value is not None else "" for place, value in enumerate(inputs)]
    gives = [f"y{place}" for place in range(outputs)]
    settings = {key: as_attribute(value) for key, value in attributes.items()}
    node = onnx.helper.make_node(name, takes, gives, domain=domain, **settings)
    feeds = {key: to_array(value) for key, value in zip(takes, inputs) if key}
    return list(evaluator(node.SerializeToString(), opset).run(None, feeds))


@lru_cache(maxsize=1024)
def evaluator(text: bytes, opset: int) -> ReferenceEvaluator:
    """Make what computes a node on the host."""
    node = onnx.NodeProto()
    node.ParseFromString(text)
    takes = [onnx.ValueInfoProto(name=key) for key in node.input if key]
    gives = [onnx.ValueInfoProto(name=key) for key in node.output]
    graph = onnx.helper.make_graph([node], node.op_type, takes, gives)
    versions = {"": onnx.defs.onnx_opset_version(), node.domain: opset}
    opsets = [onnx.helper.make_opsetid(key, version) for key, version in versions.items()]
    return ReferenceEvaluator(onnx.helper.make_model(graph, opset_imports=opsets))
