"""A loaded ONNX model: an `nn.Module` whose forward pass records the nodes of its graph."""

from collections import ChainMap
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import onnx
from onnx import defs

from picograd.dtype import DType
from picograd.errors import DataError, PicogradError, ShapeError
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
    trees,
    values,
)
from picograd.onnx.graph import Body, Node, opsets_of, read_attribute, read_body, resolved
from picograd.onnx.known import Known
from picograd.onnx.table import HOSTED, Value, find_operator
from picograd.tensor.public import full
from picograd.tensor.tensor import Tensor

ON_HOST = ("Shape", "Size", "Loop", "If", "Scan", "SequenceMap")  # these look at values themselves
RANDOM = ("RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial", "Dropout")
WRONG = (ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError, MemoryError)
Names = MutableMapping[str, Value]


class Constants(Module):
    """This class has the constants of a model, by their names in the file."""

    def __getitem__(self, name: str) -> Any:
        return vars(self)[name]


class Model(Module):
    """This class is a network read from an ONNX file: call it with its inputs.

    Inputs come by place, in the order of the graph, or by name: tensors, arrays, lists of them (a
    sequence), None for one that is left out. One output is given as it is, several as a tuple.
    Constants of floats are parameters, `weights.` and their names in the file, in branches and
    loops too; they are trainable. `inputs` and `outputs` list the names.

    Raises DataError for a model that ONNX's checker refuses and for an operator that is not known,
    ShapeError for missing inputs.

    Source: the Open Neural Network Exchange specification.
    """

    def __init__(self, proto: Any, folder: str = "") -> None:
        super().__init__()
        self.proto = proto
        self.opsets = opsets_of(proto)
        self.body = read_body(proto.graph, folder)
        self.functions = {(each.domain, each.name, each.overload): each for each in proto.functions}
        self.bodies = {key: read_body(each, folder) for key, each in self.functions.items()}
        self.expansions: dict[bytes, Body] = {}  # of operators without a row, by their texts
        self.weights = Constants()
        self.known = Known()
        for body in (self.body, *self.bodies.values()):
            for each in body.inner():
                self.keep(each)
        initial = {each.name for each in proto.graph.initializer}
        self.inputs = [name for name in self.body.input if name not in initial]
        self.outputs = list(self.body.output)
        kinds = {each.name: each.type.tensor_type.elem_type for each in proto.graph.input}
        self.dtypes = {name: values.dtype_of_onnx(kind) for name, kind in kinds.items()}

    def keep(self, body: Body) -> None:
        """Keep the constants of a body; those of floats are parameters."""
        for name, array in body.constants.items():
            value, key, count = values.constant(array), name, 2
            while hasattr(self.weights, key):
                key, count = f"{name}.{count}", count + 1
            if isinstance(value, Tensor) and value.is_floating_point():
                value = Parameter(value)
            self.known.remember(value, array)
            setattr(self.weights, key, value)
            body.kept[name] = key
        body.constants.clear()

    def forward(self, *inputs: Any, **named: Any) -> Any:
        """Compute the outputs."""
        given = dict(zip(self.inputs, inputs)) | named
        names: dict[str, Value] = {
            name: self.number(name, value) if isinstance(value, (int, float)) else as_value(value)
            for name, value in given.items()
        }
        missing = [name for name in self.inputs if name not in names]
        wanted = {name for name in missing if not is_optional(self.proto.graph, name)}
        if wanted or len(inputs) > len(self.inputs):
            text = f"takes {', '.join(self.inputs)}; {len(names)} were given"
            raise ShapeError("onnx", text, "pass them in this order, or by name")
        found = Run(self).body(self.body, names, self.opsets, {})
        found = [values.to_tensor(each) if values.is_held(each) else each for each in found]
        return found[0] if len(found) == 1 else tuple(found)

    def number(self, name: str, value: Any) -> Value:
        """Take a number of Python: an int stays on the host, as a size or a choice."""
        dtype = self.dtypes.get(name)
        if isinstance(value, int) and (dtype is None or not dtype.is_float):
            return np.asarray(int(value), dtype.numpy if dtype is not None else np.int64)
        return full((), value, dtype=dtype)


class Run:
    """This class is one call of a model: what is known on the host, of weights and on the way."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.known = Known(model.known)

    def body(
        self, body: Body, scope: Names, opsets: Mapping[str, int], given: Mapping[str, Any]
    ) -> list[Value]:
        """Compute the nodes of a body in order; gives its outputs."""
        for name, key in body.kept.items():
            scope.setdefault(name, vars(self.model.weights)[key])
        for name, array in body.constants.items():
            scope[name] = values.constant(array)
            self.known.remember(scope[name], array)
        for node in body.nodes:
            step = Step(self, node, scope, opsets, given)
            try:
                results = step.compute()
            except WRONG as error:
                if isinstance(error, PicogradError):
                    raise
                raise step.failed(error) from error
            for name, value in zip(node.outputs, results):
                if name:
                    scope[name] = value
        if body.is_function:  # one leaves out what nobody wants
            return [scope.get(name) for name in body.output]
        return [scope[name] for name in body.output]


class Step:
    """This class computes one node; rows of the table see it as their `call`."""

    def __init__(
        self,
        run: Run,
        node: Node,
        scope: Names,
        opsets: Mapping[str, int],
        given: Mapping[str, Any],
    ) -> None:
        self.process, self.read, self.node = run, node, node.proto
        self.scope, self.opsets, self.given = scope, opsets, given
        self.opset = opsets.get(node.domain, 1)
        self.attributes = dict(node.attributes)
        for name, outer in node.references.items():
            if outer in given:
                self.attributes[name] = given[outer]

    @property
    def outputs(self) -> int:
        """Count the outputs that are wanted."""
        return sum(1 for name in self.read.outputs if name)

    @property
    def function(self) -> tuple[str, str, str]:
        """Name the function of the model that this node calls, if there is one."""
        return self.node.domain, self.node.op_type, self.node.overload

    def compute(self) -> Sequence[Value]:
        """Compute the outputs."""
        name, domain = self.node.op_type, self.read.domain
        inputs = [self.scope[each] if each else None for each in self.read.inputs]
        function = self.process.model.bodies.get(self.function)
        if function is not None:
            return self.called(function, inputs)
        operator = find_operator(name, self.opset, domain)
        is_hosted = name in HOSTED or (operator is None and domain == "ai.onnx.ml")
        if is_hosted or (is_all_held(inputs) and name not in ON_HOST):
            return self.hosted(inputs)
        if operator is None:
            return self.expanded(inputs)
        found = operator.computed(self, inputs, self.attributes)
        results = found if isinstance(found, tuple) else (found,)
        if name not in (*ON_HOST, *RANDOM) and self.process.known.has_all(inputs):
            self.note(inputs, results)
        return results

    def failed(self, error: Exception) -> DataError:
        """Word what Python, NumPy or the `onnx` package say of a node that does not fit."""
        node, known = self.node, (self.scope.get(each) for each in self.read.inputs)
        given = ", ".join(str(getattr(each, "shape", type(each).__name__)) for each in known)
        reason = f"{type(error).__name__}: {error}".rstrip(".")
        name = f"{node.op_type} (node {node.name or node.output[0]!r}, opset {self.opset})"
        text = f"the operator {name} fails with inputs of {given or 'nothing'}: {reason}"
        return DataError("onnx", text, "mend the node's inputs and attributes, or the data")

    def note(self, inputs: Sequence[Value], results: Sequence[Value]) -> None:
        """Note that the host can compute the results too: their inputs are known there."""
        arrays: list[Any] = []

        def computed(place: int) -> Any:
            if not arrays:
                known = [None if each is None else self.host(each) for each in inputs]
                arrays.extend(self.computed(known))
            return arrays[place]

        for place, value in enumerate(results):
            if isinstance(value, Tensor):
                self.process.known.remember(value, partial(computed, place))

    def once(self, make: Callable[[], Any]) -> Any:
        """Give what is made of the attributes of the node, made once."""
        if self.read.references:  # each call of its function may say others
            return make()
        if not self.read.made:
            self.read.made.append(make())
        return self.read.made[0]

    def host(self, value: Value) -> Any:
        """Give the values of an input on the host, as an array."""
        return self.process.known.array(value)

    def tensor(self, value: Value) -> Any:
        """Give an input as a tensor."""
        return values.to_tensor(value) if values.is_held(value) else value

    def run(self, body: Any, inputs: Sequence[Value]) -> list[Value]:
        """Run a subgraph on inputs; it sees the values around the node."""
        names = dict(zip(body.input, inputs))
        return self.process.body(body, ChainMap(names, self.scope), self.opsets, self.given)

    def on_host(self, name: str, *inputs: Value, **attributes: Any) -> Value:
        """Let the `onnx` package compute an operator."""
        try:
            found = values.computed_on_host(name, "", self.opset, inputs, attributes, 1)[0]
        except NotImplementedError as error:
            raise unknown(self.node, self.opset) from error
        return values.to_tensor(found)

    def computed(self, inputs: Sequence[Value]) -> list[Any]:
        """Let it compute this node: arrays."""
        name, count = self.node.op_type, len(self.read.outputs)
        try:
            return values.computed_on_host(
                name, self.read.domain, self.opset, inputs, self.attributes, count
            )
        except NotImplementedError as error:
            raise unknown(self.node, self.opset) from error

    def hosted(self, inputs: Sequence[Value]) -> list[Value]:
        """Compute on the host; what has sizes and axes stays there."""
        found = self.computed(inputs)
        found = [each.astype(object) if is_text(each) else each for each in found]
        is_small = all(isinstance(each, np.ndarray) and each.size <= 1024 for each in found)
        is_whole = is_small and all(each.dtype.kind in "biuOU" for each in found)
        if is_all_held(inputs) and is_whole:
            return found
        results = [values.to_tensor(each) for each in found]
        if is_all_held(inputs) and is_small:
            for value, array in zip(results, found):
                self.process.known.remember(value, array)
        return results

    def called(self, body: Body, inputs: Sequence[Value]) -> list[Value]:
        """Run a function."""
        names = dict.fromkeys(body.input) | dict(zip(body.input, inputs))
        function = self.process.model.functions.get(self.function)
        opsets, given = dict(self.opsets), self.attributes
        if function is not None:
            opsets |= opsets_of(function)
            defaults = {each.name: read_attribute(each) for each in function.attribute_proto}
            given = defaults | given
        return self.process.body(body, ChainMap({}, names), opsets, given)

    def expanded(self, inputs: Sequence[Value]) -> list[Value]:
        """Run the function body that an operator's schema has."""
        node = resolved(self.node, self.given)
        try:
            schema = defs.get_schema(node.op_type, self.opset, node.domain)
        except defs.SchemaError as error:
            raise unknown(node, self.opset) from error
        text = text_of(schema, node, self.opset, inputs)
        if not text:
            raise unknown(node, self.opset)
        body = self.process.model.expansions.get(text)
        if body is None:
            function = onnx.FunctionProto()
            function.ParseFromString(text)
            body = self.process.model.expansions[text] = read_body(function)
        declared = {
            name: read_attribute(each.default_value)
            for name, each in schema.attributes.items()
            if each.default_value.type
        }
        self.attributes = declared | self.attributes
        return self.called(body, inputs)


def text_of(schema: Any, node: Any, opset: int, inputs: Sequence[Value]) -> Any:
    """Find the function body of a schema for a node, as bytes; None without one."""
    if schema.has_context_dependent_function:
        types = [type_of(value).SerializeToString() for value in inputs]
        versions = [v for v in schema.context_dependent_function_opset_versions if v <= opset]
        text = schema.get_context_dependent_function_with_opset_version(
            max(versions, default=schema.since_version), node.SerializeToString(), types
        )
    elif schema.has_function:
        versions = [v for v in schema.function_opset_versions if v <= opset]
        text = schema.get_function_with_opset_version(max(versions, default=schema.since_version))
    else:
        text = None
    return text


def type_of(value: Value) -> Any:
    """Describe a value as ONNX does."""
    if value is None:
        return onnx.TypeProto()
    if isinstance(value, list):
        return onnx.helper.make_sequence_type_proto(type_of(value[0]))
    kind = values.NAMES[value.dtype] if isinstance(value.dtype, DType) else (
        onnx.helper.np_dtype_to_tensor_dtype(value.dtype))  # fmt: skip
    return onnx.helper.make_tensor_type_proto(kind, list(value.shape))


def is_all_held(inputs: Sequence[Value]) -> bool:
    """Tell whether there are inputs, and all are on the host."""
    given = [value for value in inputs if value is not None]
    return bool(given) and all(values.is_held(value) for value in given)


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
    return values.to_tensor(np.asarray(given))


def unknown(node: Any, opset: int) -> DataError:
    """Word that an operator is not known."""
    name = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
    text = f"the operator {name} (node {node.name or node.output[0]!r}, opset {opset}) is not known"
    fix = "add a row for it with picograd.onnx.table.operator, or export the model without it"
    return DataError("onnx", text, fix)
