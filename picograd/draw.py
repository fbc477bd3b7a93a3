"""draw_dot: pictures of a tensor's graph, of its kernels, and of the plan that runs them.

A graph shows what was recorded: values as boxes with their names, numbers (of small ones) and
gradients, operations as circles with the kinds and axes of reductions, modules as frames.

The text of the picture (Graphviz `dot` language) is always written; it depends on nothing but the
graph, so two runs write the same bytes. SVG, PNG or PDF come from the `dot` program, or from the
`pygraphviz` wheel, which bundles it.
"""

import shutil
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from html import escape
from itertools import count
from pathlib import Path
from typing import Any

import graphviz
import numpy as np

from picograd.engine import pending
from picograd.engine.inspect import PlanView
from picograd.engine.realize import make_plan, pending_roots
from picograd.errors import PicogradError, ValueRangeError, check_known, writing
from picograd.graph.interpret import interpret
from picograd.graph.node import Node, toposort
from picograd.graph.row import Role
from picograd.late_methods import dataclass
from picograd.runtime.log import say
from picograd.schedule.plan import CopyStep, HostStep, LoopStep, Plan, PlanSlot, Step
from picograd.tensor.tensor import Tensor

LEVELS = ("graph", "kernels", "plan")
FORMATS = (".svg", ".png", ".pdf", ".dot")
# dot's layout is slower than linear: 0.3 s for 1,000 nodes, minutes for 10,000.
LAYOUT_LIMIT = 3000
SHORT = 24  # characters of the argument of an operation that is shown
SMALL = 6  # elements of arrays whose numbers are shown
SHOWN_NODES, SHOWN_ELEMENTS = 500, 100_000  # of a graph that is computed to show them
DRAWN = "pass tensors, a plan, or a module with inputs=x"
INSTALL = "install Graphviz (`apt-get install graphviz`) or `pip install 'picograd[viz]'`"
HEADER = """digraph picograd {
  rankdir=LR; node [fontname="Helvetica", fontsize=10]; edge [color="#666666", arrowsize=0.6];
"""


@dataclass(eq=False)
class Frame:
    """A frame around the nodes of one call of a module; frames lie in frames."""

    label: str
    inside: list["Frame"] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def text(self, numbers: Iterator[int], indent: str = "  ") -> list[str]:
        """Write the lines of the frame, and of those inside."""
        found = [indent + line for line in self.lines]
        for frame in self.inside:
            head = f'{indent}subgraph cluster_{next(numbers)} {{ label="{_escape(frame.label)}";'
            found += [head, *frame.text(numbers, indent + "  "), indent + "}"]
        return found


@dataclass
class Picture:
    """Nodes in frames, and arrows; nodes are named by number in order of first mention."""

    whole: Frame = field(default_factory=lambda: Frame(""))
    arrows: list[str] = field(default_factory=list)
    count: int = 0

    def add(self, label: Sequence[str], style: str, frame: Frame | None = None) -> str:
        """Add a node of several lines of text, in a frame if one is given; return its name."""
        name = f"n{self.count}"
        self.count += 1
        text = "\\n".join(_escape(line) for line in label)
        (frame or self.whole).lines.append(f'{name} [label="{text}", {style}];')
        return name

    def connect(self, start: str, end: str) -> None:
        """Add an arrow."""
        self.arrows.append(f"  {start} -> {end};")

    def text(self) -> str:
        """Write the whole dot file."""
        return HEADER + "\n".join([*self.whole.text(count()), *self.arrows]) + "\n}\n"


BOX = 'shape=box, style="rounded,filled", fillcolor="#eef3fa"'
LEAF = 'shape=box, style="rounded,filled", fillcolor="#dddddd"'
OP = 'shape=circle, style=filled, fillcolor="orange"'
KERNEL = 'shape=box, style="filled", fillcolor="#ffd8a8"'


class PicturePath(type(Path())):  # type: ignore[misc]
    """This class is the path of a picture, which a notebook shows."""

    def _repr_html_(self) -> str:
        content = self.read_bytes()
        if self.suffix == ".svg":
            return content[content.index(b"<svg") :].decode()
        if self.suffix == ".png":
            return f'<img src="data:image/png;base64,{b64encode(content).decode()}">'
        return f"<pre>{escape(self.read_text() if self.suffix == '.dot' else str(self))}</pre>"


def draw_dot(
    tensor_or_plan: Any,
    path: str | Path = "graph.svg",
    level: str | None = None,
    inputs: Any = None,
    values: bool = True,
) -> Path:
    """Draw tensors or a plan; return the path of the picture, or of the text if only that exists.

    `level`: "graph" (every operation; default for tensors), "kernels" (what fusion made of it) or
    "plan" (kernels in launch order with their buffers; default for a plan). The suffix of the path
    chooses the format: `.svg` (also without one), `.png`, `.pdf` or `.dot`; the `.dot` text is
    written beside the others.

    A graph has the names of tensors, gradients after `backward`, and with `values` the numbers of
    small tensors, computed aside: drawing computes nothing that the program has not. A module is
    called with its `inputs` and drawn with a frame around each module inside.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "graph.dot")
    >>> draw_dot(Tensor([1.0, 2.0]) + 1, path).read_text().splitlines()[0]
    'digraph picograd {'
    """
    target = PicturePath(_target(path))
    picture = picture_of(tensor_or_plan, level, inputs, values)
    source = PicturePath(target.with_suffix(".dot"))
    with writing("draw_dot", source):
        target.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(picture.text())
    if target == source:
        return source
    if picture.count > LAYOUT_LIMIT:
        return _only_text(source, f"{picture.count} nodes are too many for a layout")
    return target if render(source, target) else _only_text(source, f"to see it, {INSTALL}")


def picture_of(
    tensor_or_plan: Any, level: str | None = None, inputs: Any = None, values: bool = True
) -> Picture:
    """Build the picture of tensors or of a plan at a level."""
    calls = Calls()
    if inputs is not None:
        tensor_or_plan = calls.watch(tensor_or_plan, inputs)
    if isinstance(tensor_or_plan, PlanView):
        tensor_or_plan = tensor_or_plan.plan
    is_plan = isinstance(tensor_or_plan, Plan)
    level = level or ("plan" if is_plan else "graph")
    check_known("draw_dot", "level", level, LEVELS)
    if is_plan and level == "graph":
        raise ValueRangeError("draw_dot", "a plan has no graph", 'pass the tensor or level="plan"')
    if level == "graph":
        return graph_picture([t.node for t in _tensors(tensor_or_plan)], calls, values)
    return plan_picture(_plan_of(tensor_or_plan), with_buffers=level == "plan")


class Calls:
    """This class notes the calls of a module's parts, and frames what each computed."""

    def __init__(self) -> None:
        self.whole = Frame("")
        self.names: dict[int, str] = {}  # of parameters and buffers, by node
        self.frames: dict[int, Frame] = {}  # by node

    def watch(self, model: Any, inputs: Any) -> Any:
        """Call a module with its inputs; returns what it gives, as a list of tensors."""
        if not hasattr(model, "named_modules"):
            problem = f"inputs are given, but a {type(model).__name__} is no module"
            raise ValueRangeError("draw_dot", problem, "pass the module and its inputs")
        stack = [self.whole]
        handles = []
        for name, module in model.named_modules():
            title = f"{name}: {type(module).__name__}" if name else type(module).__name__
            handles += self.hook(module, title, stack)
        try:
            found = model(*inputs) if isinstance(inputs, (list, tuple)) else model(inputs)
        finally:
            for handle in handles:
                handle.remove()
        named = [*model.named_parameters(), *model.named_buffers()]
        self.names = {id(tensor.node): name for name, tensor in named}
        return _flat(found)

    def hook(self, module: Any, title: str, stack: list[Frame]) -> list[Any]:
        """Let a module open a frame when it is called, and close it after."""

        def enter(module: Any, inputs: Any) -> None:
            frame = Frame(title)
            stack[-1].inside.append(frame)
            stack.append(frame)

        def leave(module: Any, inputs: Any, result: Any) -> None:
            frame, given = stack.pop(), {id(tensor.node) for tensor in _flat(inputs)}
            made = toposort([t.node for t in _flat(result)], lambda node: id(node) in given)
            for node in made:
                if id(node) not in given:
                    self.frames.setdefault(id(node), frame)

        return [module.register_forward_pre_hook(enter), module.register_forward_hook(leave)]


def graph_picture(roots: Sequence[Node], calls: Calls, values: bool = True) -> Picture:
    """Draw every value as a box and every operation as an orange circle before it."""
    picture, names = Picture(calls.whole), {}
    order = toposort(list(roots), lambda node: id(node) in calls.names)
    numbers = small_values(order) if values else {}
    for node in order:
        is_leaf = not node.inputs or id(node) in calls.names
        frame = calls.frames.get(id(node))
        label = value_label(node, calls.names.get(id(node), ""), numbers)
        box = picture.add(label, LEAF if is_leaf else BOX, frame)
        names[id(node)] = box
        if is_leaf:
            continue
        circle = picture.add(_operation(node), OP, frame)
        picture.connect(circle, box)
        for operand in node.inputs:
            picture.connect(names[id(operand)], circle)
    return picture


def small_values(order: Sequence[Node]) -> dict[int, np.ndarray[Any, Any]]:
    """Compute a graph in NumPy, if that is little work and its memory is this machine's."""
    elements = sum(node.size for node in order)
    if len(order) > SHOWN_NODES or elements > SHOWN_ELEMENTS:
        return {}
    wanted = [node for node in order if node.size <= SMALL and node.row.role is not Role.LOOP]
    try:
        found = interpret(wanted)
    except PicogradError:  # on another device, or a failure that is the program's to meet
        return {}
    return {id(node): value for node, value in zip(wanted, found)}


def value_label(node: Node, name: str, numbers: Mapping[int, np.ndarray[Any, Any]]) -> list[str]:
    """Describe a value: its name, shape, numbers and gradient."""
    tensor = pending.owner(node)
    name = name or getattr(tensor, "name", "")
    argument = str(node.arg) if node.op in ("const", "iota") else ""  # others differ between runs
    label = [f"{node.op} {argument}".strip()] if not node.inputs and not name else [name]
    label += [str(node.shape), f"{node.dtype.name} {node.device}"]
    if id(node) in numbers and node.op != "const":
        label.append(f"data {_numbers(numbers[id(node)])}")
    gradient = None if tensor is None else tensor._grad  # drawing asks for none, nor warns
    if gradient is not None:
        found = small_values(toposort([gradient.node])) if numbers else {}
        value = found.get(id(gradient.node))
        label.append("grad" if value is None else f"grad {_numbers(value)}")
    return [line for line in label if line]


def plan_picture(plan: Plan, with_buffers: bool) -> Picture:
    """Draw the steps in launch order, joined by the arrays they share or directly.

    With buffers, every version of an array is a box of its own, so that the picture has no cycle.
    """
    picture = Picture()
    holders: dict[int, str] = {}  # plan slot -> node that holds its newest version
    for number, step in enumerate(plan.steps):
        reads, writes = step_slots(step)
        box = picture.add(_step_label(number, step), KERNEL)
        for slot in reads:
            if slot not in holders:
                holders[slot] = picture.add(_slot_label(slot, plan.slots[slot]), LEAF)
            picture.connect(holders[slot], box)
        for slot in writes:
            holders[slot] = box
            if with_buffers:
                holders[slot] = picture.add(_slot_label(slot, plan.slots[slot]), BOX)
                picture.connect(box, holders[slot])
    return picture


def step_slots(step: Step) -> tuple[list[int], list[int]]:
    """List the plan slots a step reads and those it writes."""
    if isinstance(step, CopyStep):
        return [step.source], [step.target]
    if isinstance(step, HostStep):
        return list(step.reads), [step.target]
    if isinstance(step, LoopStep):
        return list(step.reads), list(step.writes)
    roles = [(number, slot.role) for number, slot in zip(step.slots, step.kernel.slots)]
    reads = [number for number, role in roles if role in ("in", "inout")]
    return reads, [number for number, role in roles if role in ("out", "inout")]


def _step_label(number: int, step: Step) -> list[str]:
    if isinstance(step, CopyStep):
        return [f"{number}: copy"]
    if isinstance(step, HostStep):
        return [f"{number}: host {step.call}", step.device]
    if isinstance(step, LoopStep):
        names = [kernel.name for kernel in step.body.kernels]
        return [f"{number}: loop of {step.length} steps", *names, step.device]
    return [f"{number}: {step.kernel.name}", step.kernel.hero, step.device]


def _slot_label(number: int, slot: PlanSlot) -> list[str]:
    place = f" at {slot.offset}" if slot.offset >= 0 else ""
    size = f"{slot.nbytes} bytes{place}"
    return [f"p{number} {slot.kind}", f"{slot.shape} {slot.dtype.name} {slot.device}", size]


def render(source: Path, target: Path) -> bool:
    """Turn dot text into a picture by the first means that exists; False if there is none."""
    if shutil.which("dot"):
        try:
            graphviz.render("dot", target.suffix[1:], source, outfile=target, quiet=True)
            return True
        except graphviz.CalledProcessError:
            pass  # a broken installation: the wheel may still work
    try:
        import pygraphviz
    except ImportError:
        return False
    graph = pygraphviz.AGraph(filename=str(source))
    # Bytes: Python 3.11.2, for one, refuses to open a file as this package asks it to.
    target.write_bytes(graph.draw(None, format=target.suffix[1:], prog="dot"))
    return True


def _target(path: str | Path) -> Path:
    target = Path(path)
    if target.suffix and target.suffix not in FORMATS:
        problem = f"{target.name} has the unknown format {target.suffix}"
        raise ValueRangeError("draw_dot", problem, f"use one of {', '.join(FORMATS)}")
    return target if target.suffix else target.with_name(target.name + ".svg")


def _only_text(source: Path, reason: str) -> Path:
    say(f"draw_dot: wrote {source} (text only: {reason})")
    return source


def _tensors(value: Any) -> list[Tensor]:
    tensors = [value] if isinstance(value, Tensor) else value
    if not isinstance(tensors, Iterable):
        problem = f"cannot draw a {type(value).__name__}"
        raise ValueRangeError("draw_dot", problem, DRAWN)
    return [_checked(tensor) for tensor in tensors]


def _plan_of(value: Any) -> Plan:
    if isinstance(value, Plan):
        return value
    roots = pending_roots([tensor.node for tensor in _tensors(value)])
    if not roots:
        problem = "every tensor given is computed already, so there is no plan"
        raise ValueRangeError("draw_dot", problem, 'draw before reading, or use level="graph"')
    return make_plan(roots)


def _checked(value: Any) -> Tensor:
    if not isinstance(value, Tensor):
        problem = f"cannot draw a {type(value).__name__}"
        raise ValueRangeError("draw_dot", problem, DRAWN)
    return value


def _operation(node: Node) -> list[str]:
    """Name an operation; a host call by its function, a reduction by its kind and axes."""
    role = node.row.role
    if role is Role.HOST:
        return [f"host {node.arg.name}"]
    if role is Role.REDUCE:
        kind, axes = node.arg[:2]
        word = "axis" if len(axes) == 1 else "axes"
        return [kind, f"{word} {', '.join(map(str, axes))}"]
    given = str(node.arg) if role is Role.COMPOSITE and node.arg is not None else ""
    return [node.op, given] if 0 < len(given) <= SHORT else [node.op]


def _numbers(value: Any) -> str:
    """Write the numbers of a small array, as micrograd does those of a scalar."""
    flat = np.asarray(value).reshape(-1).tolist()
    texts = [f"{each:.4f}" if isinstance(each, float) else str(each) for each in flat]
    return ", ".join(texts)


def _flat(value: Any) -> list[Tensor]:
    """List the tensors in what a module takes or gives."""
    if isinstance(value, Tensor):
        return [value]
    parts = value.values() if isinstance(value, Mapping) else value
    is_many = isinstance(parts, (list, tuple)) or isinstance(value, Mapping)
    return [tensor for part in parts for tensor in _flat(part)] if is_many else []


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
