"""A loaded ONNX model: an `nn.Module` whose forward pass records the nodes of its graph."""

from collections import ChainMap
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import defs

from picograd.dtype import DType
from picograd.errors import DataError, ShapeError
from picograd.nn.module import Module
from picograd.nn.parameter import Parameter
from picograd.onnx import (  # noqa: F401 (their rows)
    control,
    elementwise,
    network,
    pictures,
    quantized,
    recurrent,
    reductions,
    shaping,
    signals,
    training,
)
from picograd.onnx.table import HOSTED, Value, find_operator
from picograd.onnx.values import (
    NAMES,
    attributes_of,
    computed_on_host,
    constant,
    is_held,
    to_array,
    to_tensor,
)
from picograd.tensor.tensor import Tensor

ON_HOST = ("Shape", "Size", "Loop", "If", "Scan", "SequenceMap")  # these look at values themselves
Names = MutableMapping[str, Value]


class Model(Module):
    """This class is a network read from an ONNX file: call it with its inputs.

    Inputs come by place, in the order of the graph, or by name: tensors, arrays, lists of them (a
    sequence), None for one that is left out. One output is given as it is, several as a tuple.
    Constants of floats are parameters, `weights.` and their names in the file; they are trainable.
    `inputs` and `outputs` list the names.

    Raises DataError for a model that ONNX's checker refuses and for an operator that is not known,
    ShapeError for missing inputs.

    Source: the Open Neural Network Exchange specification.
    """

    def __init__(self, proto: Any, folder: str = "") -> None:
        super().__init__()
        self.proto = proto
        self.opsets = {each.domain or "": each.version for each in proto.opset_import}
        self.functions = {(each.domain, each.name): each for each in proto.functions}
        self.weights: dict[str, Value] = {}
        self.known: dict[int, Any] = {}  # small constants on the host, by the id of their tensor
        for tensor in proto.graph.initializer:
            self.keep(tensor.name, constant(tensor, folder))
        for sparse in proto.graph.sparse_initializer:
            self.keep(sparse.values.name, to_tensor(dense(sparse)))
        initial = set(self.weights)
        self.inputs = [each.name for each in proto.graph.input if each.name not in initial]
        self.outputs = [each.name for each in proto.graph.output]

    def keep(self, name: str, value: Value) -> None:
        """Keep a constant; one of floats is a parameter."""
        known = (
            value.detach().numpy() if isinstance(value, Tensor) and value.numel() <= 64 else None
        )
        if isinstance(value, Tensor) and value.is_floating_point():
            value = Parameter(value)
        if known is not None:
            self.known[id(value)] = known
        self.weights[name] = value

    def forward(self, *inputs: Any, **named: Any) -> Any:
        """Compute the outputs."""
        names: dict[str, Value] = dict(zip(self.inputs, map(as_value, inputs)))
        names |= {name: as_value(value) for name, value in named.items()}
        missing = [name for name in self.inputs if name not in names]
        wanted = {name for name in missing if not is_optional(self.proto.graph, name)}
        if wanted or len(inputs) > len(self.inputs):
            text = f"takes {', '.join(self.inputs)}; {len(names)} were given"
            raise ShapeError("onnx", text, "pass them in this order, or by name")
        scope: Names = ChainMap(names, self.weights)
        found = self.run(self.proto.graph, scope, self.opsets)
        found = [to_tensor(each) if is_held(each) else each for each in found]
        return found[0] if len(found) == 1 else tuple(found)

    def run(
        self, graph: Any, scope: Names, opsets: Mapping[str, int], given: Any = None
    ) -> list[Value]:
        """Compute the nodes of a graph or function in order; gives its outputs."""
        for tensor in getattr(graph, "initializer", ()):
            if graph is not self.proto.graph:
                scope[tensor.name] = constant(tensor)
        for node in graph.node:
            step = Step(self, node, scope, opsets, given or {})
            results = step.compute()
            for name, value in zip(node.output, results):
                if name:
                    scope[name] = value
        names = [each if isinstance(each, str) else each.name for each in graph.output]
        if isinstance(graph, onnx.FunctionProto):  # a body leaves out what nobody wants
            return [scope.get(name) for name in names]
        return [scope[name] for name in names]


class Step:
    """This class computes one node; rows of the table see it as their `call`."""

    def __init__(
        self, model: Model, node: Any, scope: Names, opsets: Mapping[str, int], given: Any
    ) -> None:
        self.model, self.node, self.scope, self.opsets = model, node, scope, opsets
        self.domain = "" if node.domain == "ai.onnx" else node.domain
        self.opset = opsets.get(self.domain, 1)
        self.outputs = sum(1 for name in node.output if name)
        self.attributes = attributes_of(node, given)

    def compute(self) -> Sequence[Value]:
        """Compute the outputs."""
        node = self.node
        if node.op_type == "Constant" and not self.domain:
            return [self.kept()]
        inputs = [self.scope[name] if name else None for name in node.input]
        function = self.model.functions.get((node.domain, node.op_type))
        if function is not None:
            return self.called(function, inputs)
        operator = find_operator(node.op_type, self.opset)
        is_hosted = node.op_type in HOSTED or self.domain == "ai.onnx.ml"
        if is_hosted or (is_all_held(inputs) and node.op_type not in ON_HOST):
            return self.hosted(inputs)
        if operator is None:
            return self.expanded(inputs)
        if not operator.takes_call:
            inputs = [self.tensor(each) for each in inputs]
        arguments = ([self] if operator.takes_call else []) + inputs
        found = operator.definition(*arguments, **self.attributes)
        return found if isinstance(found, tuple) else [found]

    def kept(self) -> Value:
        """Give the value of a `Constant` node, made once."""
        name = f"{self.node.output[0]} of {id(self.node)}"
        if name not in self.model.weights:
            key, value = next(iter(self.attributes.items()))
            if key == "value" and isinstance(value, np.ndarray):
                value = constant(onnx.numpy_helper.from_array(value))
            elif key == "sparse_value":
                value = to_tensor(dense(value))
            else:
                value = np.asarray(value, np.float32 if key.startswith("value_float") else None)
            if isinstance(value, Tensor):
                self.model.known[id(value)] = value.detach().numpy()
            self.model.weights[name] = value
        return self.model.weights[name]

    def host(self, value: Value) -> Any:
        """Give the values of an input on the host, as an array."""
        known = self.model.known.get(id(value))
        return to_array(value) if known is None else known

    def tensor(self, value: Value) -> Any:
        """Give an input as a tensor."""
        return to_tensor(value) if is_held(value) else value

    def run(self, graph: Any, inputs: Sequence[Value]) -> list[Value]:
        """Run a subgraph on inputs; it sees the values around the node."""
        names = {each.name: value for each, value in zip(graph.input, inputs)}
        return self.model.run(graph, ChainMap(names, self.scope), self.opsets)

    def on_host(self, name: str, *inputs: Value, **attributes: Any) -> Value:
        """Let the `onnx` package compute an operator."""
        try:
            found = computed_on_host(name, "", self.opset, inputs, attributes, 1)[0]
        except NotImplementedError as error:
            raise unknown(self.node, self.opset) from error
        return to_tensor(found)

    def hosted(self, inputs: Sequence[Value]) -> list[Value]:
        """Compute on the host; what has sizes and axes stays there."""
        node, count = self.node, len(self.node.output)
        found = computed_on_host(
            node.op_type, node.domain, self.opset, inputs, self.attributes, count
        )
        found = [each.astype(object) if is_text(each) else each for each in found]
        is_small = all(isinstance(each, np.ndarray) and each.size <= 1024 for each in found)
        is_whole = is_small and all(each.dtype.kind in "biuOU" for each in found)
        return found if is_all_held(inputs) and is_whole else [to_tensor(each) for each in found]

    def called(self, function: Any, inputs: Sequence[Value]) -> list[Value]:
        """Run a function of the model."""
        names = dict(zip(function.input, inputs))
        names |= {name: None for name in function.input if name not in names}
        defaults = {a.name: attributes_of_one(a) for a in function.attribute_proto}
        opsets = dict(self.opsets) | {each.domain: each.version for each in function.opset_import}
        scope: Names = ChainMap(names)
        return self.model.run(function, scope, opsets, defaults | self.attributes)

    def expanded(self, inputs: Sequence[Value]) -> list[Value]:
        """Run the function body that an operator's schema has."""
        node = self.node
        try:
            schema = defs.get_schema(node.op_type, self.opset, node.domain)
        except defs.SchemaError as error:
            raise unknown(node, self.opset) from error
        body = body_of(schema, node, self.opset, inputs)
        if body is None:
            raise unknown(node, self.opset)
        declared = {
            name: attributes_of_one(each.default_value)
            for name, each in schema.attributes.items()
            if each.default_value.type
        }
        self.attributes = declared | self.attributes
        return self.called(body, inputs)


def body_of(schema: Any, node: Any, opset: int, inputs: Sequence[Value]) -> Any:
    """Find the function body of a schema for a node; None without one."""
    if schema.has_context_dependent_function:
        types = [type_of(value).SerializeToString() for value in inputs]
        versions = [v for v in schema.context_dependent_function_opset_versions if v <= opset]
        version = max(versions, default=schema.since_version)
        text = schema.get_context_dependent_function_with_opset_version(
            version, node.SerializeToString(), types
        )
    elif schema.has_function:
        versions = [v for v in schema.function_opset_versions if v <= opset]
        text = schema.get_function_with_opset_version(max(versions, default=schema.since_version))
    else:
        return None
    if not text:
        return None
    body = onnx.FunctionProto()
    body.ParseFromString(text)
    return body


def type_of(value: Value) -> Any:
    """Describe a value as ONNX does."""
    if value is None:
        return onnx.TypeProto()
    if isinstance(value, list):
        return onnx.helper.make_sequence_type_proto(type_of(value[0]))
    kind = NAMES[value.dtype] if isinstance(value.dtype, DType) else (
        onnx.helper.np_dtype_to_tensor_dtype(value.dtype))  # fmt: skip
    return onnx.helper.make_tensor_type_proto(kind, list(value.shape))


def attributes_of_one(attribute: Any) -> Any:
    """Read the value of one attribute."""
    node = onnx.NodeProto()
    node.attribute.append(attribute)
    return attributes_of(node, {})[attribute.name]


def is_all_held(inputs: Sequence[Value]) -> bool:
    """Tell whether there are inputs, and all are on the host."""
    given = [value for value in inputs if value is not None]
    return bool(given) and all(is_held(value) for value in given)


def is_text(value: Value) -> bool:
    """Tell whether a value is an array of texts of limited length."""
    return isinstance(value, np.ndarray) and value.dtype.kind in "US"


def is_optional(graph: Any, name: str) -> bool:
    """Tell whether an input of the graph may be left out."""
    declared = next(each for each in graph.input if each.name == name)
    return bool(declared.type.HasField("optional_type"))


def as_value(given: Any) -> Value:
    """Turn what a user passes into a value."""
    if given is None or isinstance(given, Tensor):
        return given
    if isinstance(given, (list, tuple)) and any(hasattr(each, "shape") for each in given):
        return [as_value(each) for each in given]
    return to_tensor(np.asarray(given))


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


def unknown(node: Any, opset: int) -> DataError:
    """Word that an operator is not known."""
    name = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
    text = f"the operator {name} (node {node.name or node.output[0]!r}, opset {opset}) is not known"
    fix = "add a row for it with picograd.onnx.table.operator, or export the model without it"
    return DataError("onnx", text, fix)
