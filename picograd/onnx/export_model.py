"""Export: a function of tensors is traced, and its Graph IR written as an ONNX model.

Sizes of axes in `dynamic` are traced numbers in all shapes of the graph
(`picograd/traced_number.py`), so that the model computes what follows from them; what compares or
reads one is a guard, which has to hold for other sizes too, or the export is refused.
"""

import os
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper

from picograd.engine.debug import user_line
from picograd.engine.plan_key import leaf_buffer
from picograd.engine.tracing import noting, tracing
from picograd.errors import (
    DataError,
    DTypeError,
    PicogradError,
    TraceError,
    ValueRangeError,
    writing,
)
from picograd.graph.node import Node, toposort
from picograd.nn.module import Module
from picograd.nn.state import replace_file
from picograd.onnx import export_bits  # noqa: F401 (its rows)
from picograd.onnx.export_elementwise import ROWS as ELEMENTWISE
from picograd.onnx.export_loops import info
from picograd.onnx.export_rows import ROWS
from picograd.onnx.torch_options import IDLE, dynamic_of, rename
from picograd.onnx.values import to_array
from picograd.onnx.writer import Writer, Written, same_shape, traced_of
from picograd.target import SERIAL
from picograd.tensor.core.recording import wrap
from picograd.tensor.public import zeros
from picograd.tensor.tensor import Tensor
from picograd.tensor.transforms.jit import BoundJitted, Jitted, realize_live, realized
from picograd.tensor.transforms.jit_arguments import Flattener, names_of, rebuilt, signature_of
from picograd.tensor.transforms.jit_sizes import Dim, Marked, Sizes, marks_of, read_dynamic
from picograd.tensor.transforms.jit_state import Reach
from picograd.tensor.transforms.jit_trace import Tracer
from picograd.traced_number import (
    Difference,
    Numbers,
    Program,
    TracedNumber,
    math_followed,
    program,
)

OPSETS = range(18, onnx.defs.onnx_opset_version() + 1)
OPSET = 20  # ONNX of 2023: what runs models knows it
LARGEST = 2_000_000_000  # bytes of a model in one file: protobuf ends at 2 GiB
MANY = 1 << 16  # the largest size that is tried
# Sizes at which what was traced has to hold, from the size that it was traced at.
OTHERS: tuple[Callable[[int], int], ...] = (
    lambda n: n + 1, lambda n: 2 * n + 1, lambda n: 3 * n, lambda n: 2,
)  # fmt: skip
EXAMPLES = (7, 11, 13, 17, 19, 23)  # sizes to trace with that no other axis has


def export(
    model: Callable[..., Any], args: Any, path: Any = None, dynamic: Any = None, opset: int = OPSET,
    external: bool | None = None, *, input_names: Sequence[str] = (),
    output_names: Sequence[str] = (), dynamic_axes: Mapping[str, Any] | None = None,
    opset_version: int | None = None, **options: Any,
) -> Any:  # fmt: skip
    """Write a module, a function or a jitted one as an ONNX model; gives the `ModelProto`.

    `args` are the arguments of an example call: a tensor, or a tuple. Modules are written as they
    compute in `eval` mode. Inputs have the names of the function's parameters, weights those of
    `state_dict`. `dynamic={"input": {0: "batch"}}` leaves the sizes of axes open; axes of one name
    have one size, and `picograd.Dim` bounds it. `external` puts weights into a file beside the
    model: None does above 2 GB. `path` may be an open file. `onnx.checker` checks what is written.
    The words after it, and `f` for the path, are those of `torch.onnx.export`; an `opset_version`
    below 18 is written as 18.
    Raises DataError for an operation without ONNX operator, naming it and its line, TraceError
    where Python depends on an open size, ValueRangeError for an opset it cannot write.

    >>> layer = picograd.nn.Linear(3, 2)
    >>> made = picograd.onnx.export(layer, picograd.ones(4, 3), dynamic={"input": {0: "batch"}})
    >>> [each.name for each in made.graph.input], [each.name for each in made.graph.initializer][:2]
    (['input'], ['weight', 'bias'])
    """
    opset = opset if opset_version is None else max(opset_version, OPSETS[0])
    check_options(opset, options)
    arguments = args if isinstance(args, tuple) else (args,)
    if dynamic_axes:
        dynamic = dynamic_of(model, len(arguments), input_names, dynamic_axes)
    with evaluating(model):
        made = Export(model, opset).run(arguments, dynamic)
    rename(made.graph, input_names, output_names)
    save(made, options.get("f", path), external)
    return made


def check_options(opset: int, options: Mapping[str, Any]) -> None:
    """Raise TypeError for words that `torch.onnx.export` has not, and for a strange opset."""
    unknown = [name for name in options if name not in (*IDLE, "f")]
    if unknown:
        raise TypeError(f"onnx.export() got an unexpected keyword argument {unknown[0]!r}")
    if opset not in OPSETS:
        text = f"opset {opset} is not one of {OPSETS[0]} to {OPSETS[-1]}"
        raise ValueRangeError("onnx.export", text, f"leave it out: {OPSET} is written then")


def save(made: Any, path: Any, external: bool | None) -> None:
    """Check a model, and write it if there is a path or an open file."""
    size = sum(len(each.raw_data) for each in made.graph.initializer)
    is_apart = size > LARGEST if external is None else external
    if path is None:
        if size <= LARGEST:
            onnx.checker.check_model(made, full_check=True)
        return
    if hasattr(path, "write"):
        onnx.checker.check_model(made, full_check=True)
        path.write(made.SerializeToString())
        return
    target = Path(os.fspath(path))
    with writing("onnx.export", target):
        if is_apart:
            beside = target.with_name(f"{target.name}.data")
            beside.unlink(missing_ok=True)
            where: dict[str, Any] = {"location": beside.name, "size_threshold": 1024}
            onnx.save_model(made, str(target), save_as_external_data=True, **where)
        else:
            replace_file(target, lambda file: file.write(made.SerializeToString()))
    onnx.checker.check_model(str(target), full_check=True)


@contextmanager
def evaluating(model: Any) -> Iterator[None]:
    """Put a module into `eval` mode in this block."""
    modules = list(model.modules()) if isinstance(model, Module) else []
    modes = [each.training for each in modules]
    try:
        if modules:
            model.eval()
        yield
    finally:
        for each, mode in zip(modules, modes):
            each.training = mode


class Lines(list[Any]):
    """This class is the tensors that a function makes, and the lines of the user's that did."""

    def __init__(self) -> None:
        self.of: dict[int, str] = {}

    def append(self, reference: Any) -> None:
        """Note a tensor, and where it is made."""
        super().append(reference)
        node = getattr(reference(), "_node", None)
        self.of[id(node)] = user_line()


class Export:
    """This class is one export: the trace, and what is written of each node."""

    def __init__(self, model: Any, opset: int) -> None:
        self.function, self.owners = unwrapped(model)
        self.writer = Writer(opset, ELEMENTWISE)
        self.values: Any = {}  # what is written, by node
        self.alive: list[Node] = []  # expansions: their identities are keys
        self.outcomes: dict[int, list[Node]] = {}  # by loop
        self.loops: dict[int, Any] = {}  # what a loop was given, and what it computes
        self.order: list[Node] = []
        self.lines: Lines = Lines()
        self.dims: dict[int, str] = {}  # names of sizes that are left open

    def run(self, arguments: tuple[Any, ...], dynamic: Any) -> Any:
        """Trace and write."""
        signature = signature_of(self.function)
        marks = open_axes(dynamic, signature)
        flattener = Flattener()
        flattener.flatten(arguments)
        names = names_of(signature, ((), arguments, {}), None)
        found = marks_of(marks, names, flattener.tensors) if marks else []
        examples = example_inputs(flattener.tensors, found)
        realize_live()
        marked = Marked(found, lambda: names, examples, len(flattener.numbers))
        for n, axis, dim in found:
            size = marked.axes[n, axis]
            self.dims.setdefault(size, f"{names[n]}_{axis}" if dim is None else dim.name)
        numbers = Numbers([*flattener.numbers, *marked.values], user_line)
        numbers.follows_state = False
        try:
            tracer = self.tracer(examples, numbers, Sizes(numbers, marked))
            result = self.traced(tracer, arguments)
            made = self.written_model(tracer, result, unique(names), marked)
            test = program(numbers, ())
        finally:
            numbers.close()
        self.check_sizes(test, arguments, examples, marked)
        return made

    def tracer(self, examples: list[Tensor], numbers: Numbers, sizes: Any) -> Tracer:
        """Make stand-ins of the arguments."""
        realized(examples)
        count = len(numbers.slots) if sizes is None else sizes.marked.first
        return Tracer(examples, lambda each: False, numbers, set(range(count)), sizes)

    def check_sizes(self, test: Program, arguments: Any, examples: Any, marked: Marked) -> None:
        """Raise TraceError where what was traced does not hold for other sizes.

        Sizes that the function itself refuses are no such case.
        """
        for change in OTHERS:
            values = list(test.slots[: test.arguments])
            shapes = [list(each.shape) for each in examples]
            for place, limit in enumerate(marked.limits, marked.first):
                values[place] = min(change(values[place]), limit or MANY)
            for (n, axis), place in marked.axes.items():
                shapes[n][axis] = values[place]
            found = test.run(values)
            if isinstance(found, Difference) and not self.refuses(arguments, examples, shapes):
                sizes = [marked.names[place - marked.first] for place in found.sources]
                text = f"what is traced depends on {', '.join(sizes)}: {found.text}"
                fix = "leave that axis out of dynamic, or compute with tensors what follows from it"
                raise TraceError("onnx.export", text, fix)

    def refuses(self, arguments: Any, examples: Sequence[Tensor], shapes: Any) -> bool:
        """Tell whether the function raises an error for arguments of some shapes."""
        others = [zeros(shape, dtype=each.dtype) for shape, each in zip(shapes, examples)]
        try:
            self.traced(self.tracer(others, Numbers([], user_line), None), arguments)
        except Exception:
            return True
        return False

    def traced(self, tracer: Tracer, arguments: tuple[Any, ...]) -> Any:
        """Call the function on stand-ins of its arguments; gives its outputs by their names."""
        reach = Reach(self.function, [])
        waiting = iter(tracer.twins)
        inside = rebuilt(arguments, lambda tensor: next(waiting))
        with noting() as noted:
            noted.made = self.lines
            try:
                with tracing(), math_followed(reach.math):
                    outputs = named_outputs(self.function(*inside))
                    nodes = {name: each._node for name, each in outputs.items()}
            finally:
                changed = list(noted.changed.values())
                tracer.before.undo(noted)
        own = noted.own | {id(twin) for twin in tracer.twins}
        if any(id(each) not in own for each in changed):
            text = "the function writes a tensor from outside, which no ONNX model does"
            raise TraceError("onnx.export", text, "return the new value instead")
        return nodes

    def written_model(self, tracer: Tracer, outputs: Any, names: list[str], marked: Marked) -> Any:
        """Write the graph, and put the model together."""
        w = self.writer
        w.places = {place: (names[n], axis) for (n, axis), place in marked.axes.items()}
        inputs: list[Any] = []
        for twin, name in zip(tracer.twins, names):
            node = tracer.first.get(len(inputs), twin._node)
            self.values[id(node)] = Written(name, node.shape, node.dtype)
            inputs.append(self.described(name, node))
        self.names = initial_names(self.owners, names)
        self.order = toposort(list(outputs.values()), lambda node: id(node) in self.values)
        self.write(self.order)
        ends = []
        for name, node in outputs.items():
            w.nodes.append(helper.make_node("Identity", [self.whole(node).name], [name]))
            ends.append(self.described(name, node))
        nodes = needed(w.heads + w.nodes, [each.name for each in ends])
        used = {name for node in nodes for name in names_read(node)}
        constants = [each for name, each in w.constants.items() if name in used]
        graph = helper.make_graph(nodes, "picograd", inputs, ends, constants)
        opsets = [helper.make_opsetid("", w.opset)]
        version = helper.find_min_ir_version_for(opsets)
        return helper.make_model(
            graph, opset_imports=opsets, ir_version=version, producer_name="picograd"
        )

    def described(self, name: str, node: Node) -> Any:
        """Describe an input or output, with the names of its open sizes."""
        found = info(name, node.dtype, node.shape)
        for axis, size in enumerate(node.shape):
            traced = traced_of(size)
            if type(traced) is TracedNumber and traced.slot in self.dims:
                found.type.tensor_type.shape.dim[axis].dim_param = self.dims[traced.slot]
        return found

    # nodes

    def write(self, order: Sequence[Node]) -> None:
        """Write nodes, each after its inputs."""
        for node in order:
            if node.op == "outcome":
                self.outcomes.setdefault(id(node.inputs[0]), []).append(node)
        for node in order:
            if id(node) not in self.values:
                self.values[id(node)] = self.of(node)

    def of(self, node: Node) -> Written:
        """Write one node, by its row."""
        if leaf_buffer(node) is not None:
            return self.initial(node)
        values = [self.values[id(each)] for each in node.inputs]
        since, row = ROWS.get(node.op, (0, None))
        if row is not None and self.writer.opset >= since:
            return row(self, node, *values)
        elementwise = ELEMENTWISE.get(node.op)
        if elementwise is not None:
            return elementwise(self.writer, node.dtype, *values)
        if node.row.may_expand:
            return self.expanded(node)
        raise self.unknown(node)

    def expanded(self, node: Node) -> Written:
        """Write what a composite is made of."""
        made = node.row.expansion(node, SERIAL)
        if made is None or made is node:
            raise self.unknown(node)
        return self.written(made)

    def written(self, root: Node) -> Written:
        """Write a node that is not of the trace."""
        self.alive.append(root)
        self.write(toposort([root], lambda node: id(node) in self.values))
        return self.values[id(root)]

    def whole(self, node: Node) -> Written:
        """Give a value in the shape of its node."""
        value: Written = self.values[id(node)]
        if same_shape(value.shape, node.shape):
            return value
        self.values[id(node)] = found = self.writer.full(value, node.shape)
        return found

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Forget in the end what is written in this block: the body of a loop."""
        before, self.values = self.values, ChainMap({}, self.values)
        try:
            yield
        finally:
            self.values = before

    def initial(self, node: Node) -> Written:
        """Add a tensor from outside."""
        array = np.asarray(to_array(wrap(node, False)))
        buffer = leaf_buffer(node)
        name = self.names.pop((id(buffer), tuple(node.shape)), "")
        return Written(self.writer.constant(array, name), node.shape, node.dtype)

    def unknown(self, node: Node) -> DataError:
        """Word that an op has no row, with the line that made it or what reads it."""
        places = [self.lines.of.get(id(each), "") for each in self.order]
        known = {id(each): number for number, each in enumerate(self.order)}
        later = places[known.get(id(node), 0) :]
        line = next((each for each in later if each), "")
        shapes = ", ".join(f"{each.dtype.name}{tuple(each.shape)}" for each in node.inputs)
        op = f"{node.op} {node.arg}" if node.op == "host_call" else node.op
        text = f"{op} of ({shapes}) has no ONNX operator{f', at {line}' if line else ''}"
        fix = "compute it outside the function and pass it as an argument"
        if node.op == "random_bits":
            fix = "pass random numbers as an argument, or switch dropout off with eval()"
        return DataError("onnx.export", text, fix)


def unwrapped(model: Any) -> tuple[Any, dict[str, Module]]:
    """Find the function to trace, and the modules whose weights it has, by their prefixes."""
    if isinstance(model, (Jitted, BoundJitted)):
        bound = getattr(model, "__self__", None)
        function = model.function if bound is None else model.function.__get__(bound)
        return unwrapped(function)
    if isinstance(model, Module):
        return model, {"": model}
    owner = getattr(model, "__self__", None)
    if isinstance(owner, Module):
        return model, {"": owner}
    code = getattr(model, "__code__", None)
    cells = zip(code.co_freevars, model.__closure__ or ()) if code else ()
    found = {name: cell.cell_contents for name, cell in cells}
    found |= {name: model.__globals__.get(name) for name in (code.co_names if code else ())}
    return model, {f"{k}.": each for k, each in found.items() if isinstance(each, Module)}


def initial_names(owners: Mapping[str, Module], taken: Sequence[str]) -> dict[Any, str]:
    """Name the memory of weights as `state_dict` does."""
    found: dict[Any, str] = {}
    for prefix, module in owners.items():
        for name, tensor in module.state_dict().items():
            node = tensor._node
            while leaf_buffer(node) is None and node.op == "detach":
                node = node.inputs[0]
            key = id(leaf_buffer(node)), tuple(node.shape)
            label = f"{prefix}{name}"
            found.setdefault(key, f"{label}_" if label in taken else label)
    return found


def open_axes(dynamic: Any, signature: Any) -> Any:
    """Read which sizes are open: as `jit` does, and texts that name dimensions."""
    found = dynamic
    if isinstance(dynamic, Mapping):
        found = dict(dynamic)
        for name, axes in dynamic.items():
            rows = axes.items() if isinstance(axes, Mapping) else ()
            named = {axis: Dim(each) if isinstance(each, str) else each for axis, each in rows}
            found[name] = named or axes
    try:
        return read_dynamic(found, signature)
    except PicogradError as error:
        raise type(error)("onnx.export", error.problem, error.fix) from None


def example_inputs(tensors: Sequence[Tensor], marks: Any) -> list[Tensor]:
    """Give arguments whose open sizes are 2 or more, and no other size there is.

    What Python compares then tells apart what is equal by chance.
    """
    shapes = [list(tensor.shape) for tensor in tensors]
    open_axes = {(n, axis) for n, axis, _ in marks}
    taken = {size for n, shape in enumerate(shapes) for axis, size in enumerate(shape)
             if (n, axis) not in open_axes}  # fmt: skip
    chosen: dict[Any, int] = {}
    for n, axis, dim in marks:
        key = (n, axis) if dim is None else dim.name
        if key not in chosen:
            size = shapes[n][axis]
            most = None if dim is None else dim.max
            others = [each for each in EXAMPLES if each not in taken and (not most or each <= most)]
            is_plain = size > 1 and size not in taken
            chosen[key] = size if is_plain or not others else others[0]
            taken.add(chosen[key])
    for n, axis, dim in marks:
        shapes[n][axis] = chosen[(n, axis) if dim is None else dim.name]
    pairs = zip(tensors, shapes)
    return [each if list(each.shape) == shape else zeros(shape, dtype=each.dtype)
            for each, shape in pairs]  # fmt: skip


def unique(names: Sequence[str]) -> list[str]:
    """Number the tensors of one argument."""
    counts = {name: names.count(name) for name in names}
    found, seen = [], dict.fromkeys(names, 0)
    for name in names:
        found.append(name if counts[name] == 1 else f"{name}_{seen[name]}")
        seen[name] += 1
    return found


def named_outputs(result: Any) -> dict[str, Tensor]:
    """Name the tensors that a function returns: by their keys in a dict, else by their number."""
    if isinstance(result, Tensor):
        return {"output": result}
    if isinstance(result, Mapping) and all(isinstance(each, Tensor) for each in result.values()):
        return {str(key): each for key, each in result.items()}
    flattener = Flattener()
    flattener.flatten(result)
    if not flattener.tensors:
        text = f"the function returns {type(result).__name__}, and no tensor"
        raise DTypeError("onnx.export", text, "return tensors, or tuples and dicts of them")
    return {f"output_{number}": each for number, each in enumerate(flattener.tensors)}


def names_read(node: Any) -> list[str]:
    """List the names that a node reads, in its bodies too."""
    found = list(node.input)
    for each in node.attribute:
        for inner in each.g.node if each.HasField("g") else ():
            found += names_read(inner)
    return found


def needed(nodes: Sequence[Any], outputs: Sequence[str]) -> list[Any]:
    """Leave out nodes whose values nobody reads."""
    wanted, found = set(outputs), []
    for node in reversed(nodes):
        if wanted.intersection(node.output):
            wanted.update(names_read(node))
            found.append(node)
    return found[::-1]
