"""Graphs of ONNX files, read once: nodes with attributes as Python has them, bodies, constants."""

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

import numpy as np
import onnx

from picograd.errors import DataError
from picograd.late_methods import dataclass

MADE_OF = {"value_int": np.int64, "value_ints": np.int64, "value_float": np.float32,
           "value_floats": np.float32}  # fmt: skip


@dataclass(frozen=True)
class Node:
    """This class is a node: `references` are attributes that a call of its function has."""

    proto: Any  # onnx.NodeProto
    domain: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    references: Mapping[str, str]
    made: list[Any] = field(default_factory=list)  # of the attributes, by the operator's row


@dataclass
class Body:
    """This class is a graph, a branch, the body of a loop or a function.

    `constants` are arrays by name; a model keeps them as `weights`, under the names of `kept`.
    """

    input: tuple[str, ...]
    output: tuple[str, ...]
    nodes: tuple[Node, ...]
    constants: dict[str, Any]
    is_function: bool
    kept: dict[str, str] = field(default_factory=dict)

    def inner(self) -> Iterator["Body"]:
        """List this body and those inside it."""
        yield self
        for node in self.nodes:
            for value in node.attributes.values():
                for each in value if isinstance(value, list) else (value,):
                    if isinstance(each, Body):
                        yield from each.inner()


def read_body(proto: Any, folder: str = "") -> Body:
    """Read a graph or a function."""
    is_function = isinstance(proto, onnx.FunctionProto)
    constants: dict[str, Any] = {}
    if not is_function:
        for tensor in proto.initializer:
            constants[tensor.name] = read_tensor(tensor, folder)
        for sparse in proto.sparse_initializer:
            constants[sparse.values.name] = dense(sparse)
    nodes = []
    for each in proto.node:
        node = read_node(each, folder)
        if each.op_type == "Constant" and not node.domain and not node.references:
            constants[node.outputs[0]] = constant_of(node.attributes)
        else:
            nodes.append(node)
    names = [
        tuple(each if is_function else each.name for each in listed)
        for listed in (proto.input, proto.output)
    ]
    return Body(names[0], names[1], tuple(nodes), constants, is_function)


def read_node(proto: Any, folder: str = "") -> Node:
    """Read a node and what is inside it."""
    attributes, references = {}, {}
    for each in proto.attribute:
        if each.ref_attr_name:
            references[each.name] = each.ref_attr_name
        else:
            attributes[each.name] = read_attribute(each, folder)
    names = tuple(proto.input), tuple(proto.output)
    return Node(proto, domain_of(proto), *names, attributes, references)


def resolved(proto: Any, given: Mapping[str, Any]) -> Any:
    """Copy a node, and what is inside it, with the attributes that a call of its function has.

    `axis = @a` -> `axis = 1` where `a` is 1; it is left out where the call has no `a`.
    """
    found = onnx.NodeProto()
    found.CopyFrom(proto)
    found.ClearField("attribute")
    for each in proto.attribute:
        outer = each.ref_attr_name
        if outer in given:
            value = as_attribute(given[outer])
            found.attribute.append(onnx.helper.make_attribute(each.name, value, None, each.type))
        elif not outer:
            kept = found.attribute.add()
            kept.CopyFrom(each)
            for graph in (*kept.graphs, *([kept.g] if kept.HasField("g") else [])):
                nodes = [resolved(inner, given) for inner in graph.node]
                del graph.node[:]
                graph.node.extend(nodes)
    return found


def as_attribute(value: Any) -> Any:
    """Give an attribute's value as ONNX keeps it."""
    return onnx.numpy_helper.from_array(value) if isinstance(value, np.ndarray) else value


def domain_of(proto: Any) -> str:
    """Give a domain; ONNX's own has two names."""
    return "" if proto.domain == "ai.onnx" else str(proto.domain)


def opsets_of(proto: Any) -> dict[str, int]:
    """Read which opsets a model or a function takes, by domain."""
    return {domain_of(each): each.version for each in proto.opset_import}


def read_attribute(proto: Any, folder: str = "") -> Any:
    """Read an attribute: texts are decoded, tensors are arrays, graphs are bodies."""
    value = onnx.helper.get_attribute_value(proto)
    return [read_value(each, folder) for each in value] if isinstance(value, list) else (
        read_value(value, folder))  # fmt: skip


def read_value(value: Any, folder: str) -> Any:
    """Read one value of an attribute."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, onnx.TensorProto):
        return read_tensor(value, folder)
    return read_body(value, folder) if isinstance(value, onnx.GraphProto) else value


def read_tensor(proto: Any, folder: str = "") -> Any:
    """Read a tensor as an array; large ones may be in files of the folder."""
    return np.asarray(onnx.numpy_helper.to_array(proto, folder))


def constant_of(attributes: Mapping[str, Any]) -> Any:
    """Give the array of a `Constant` node."""
    if not attributes:
        text = "a Constant has the value of an attribute that the call of its function leaves out"
        raise DataError("onnx", text, "give the attribute where the function is called")
    key, value = next(iter(attributes.items()))
    if key == "sparse_value":
        return dense(value)
    return value if key == "value" else np.asarray(value, MADE_OF.get(key))


def dense(sparse: Any) -> Any:
    """Spread a sparse tensor."""
    values = np.asarray(onnx.numpy_helper.to_array(sparse.values))
    places = np.asarray(onnx.numpy_helper.to_array(sparse.indices))
    whole = np.zeros(tuple(sparse.dims), values.dtype)
    if places.ndim == 1:
        whole.reshape(-1)[places] = values
    else:
        whole[tuple(places.T)] = values
    return whole
