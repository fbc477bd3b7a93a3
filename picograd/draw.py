"""draw_dot: pictures of a tensor's graph, of its kernels, and of the plan that runs them.

The text of the picture (Graphviz `dot` language) is always written; it depends on nothing but the
graph, so two runs write the same bytes. SVG, PNG or PDF come from the `dot` program, or from the
`pygraphviz` wheel, which bundles it.
"""

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import graphviz

from picograd.engine.inspect import PlanView
from picograd.engine.realize import make_plan, pending_roots
from picograd.errors import DataError, ValueRangeError
from picograd.graph.node import Node, toposort
from picograd.runtime.log import say
from picograd.schedule.plan import CopyStep, HostStep, LoopStep, Plan, PlanSlot, Step
from picograd.tensor.tensor import Tensor

LEVELS = ("graph", "kernels", "plan")
FORMATS = (".svg", ".png", ".pdf", ".dot")
# dot's layout is slower than linear: 0.3 s for 1,000 nodes, minutes for 10,000.
LAYOUT_LIMIT = 3000
INSTALL = "install Graphviz (`apt-get install graphviz`) or `pip install 'picograd[viz]'`"
HEADER = """digraph picograd {
  rankdir=LR; node [fontname="Helvetica", fontsize=10]; edge [color="#666666", arrowsize=0.6];
"""


@dataclass
class Picture:
    """Lines of dot text; nodes are named by number in order of first mention."""

    lines: list[str] = field(default_factory=list)
    count: int = 0

    def add(self, label: Sequence[str], style: str) -> str:
        """Add a node of several lines of text; return its name."""
        name = f"n{self.count}"
        self.count += 1
        text = "\\n".join(_escape(line) for line in label)
        self.lines.append(f'  {name} [label="{text}", {style}];')
        return name

    def connect(self, start: str, end: str) -> None:
        """Add an arrow."""
        self.lines.append(f"  {start} -> {end};")

    def text(self) -> str:
        """Write the whole dot file."""
        return HEADER + "\n".join(self.lines) + "\n}\n"


BOX = 'shape=box, style="rounded,filled", fillcolor="#eef3fa"'
LEAF = 'shape=box, style="rounded,filled", fillcolor="#dddddd"'
OP = 'shape=circle, style=filled, fillcolor="orange"'
KERNEL = 'shape=box, style="filled", fillcolor="#ffd8a8"'


def draw_dot(tensor_or_plan: Any, path: str | Path = "graph.svg", level: str | None = None) -> Path:
    """Draw tensors or a plan; return the path of the picture, or of the text if only that exists.

    `level`: "graph" (every operation; default for tensors), "kernels" (what fusion made of it) or
    "plan" (kernels in launch order with their buffers; default for a plan). A path without a
    suffix gets `.svg`; the `.dot` text is written beside it.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "graph.dot")
    >>> draw_dot(Tensor([1.0, 2.0]) + 1, path).read_text().splitlines()[0]
    'digraph picograd {'
    """
    target = _target(path)
    picture = picture_of(tensor_or_plan, level)
    source = target.with_suffix(".dot")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(picture.text())
    except OSError as error:
        problem = f"cannot write {source}: {error.strerror}"
        raise DataError("draw_dot", problem, "check the folder") from error
    if target == source:
        return source
    if picture.count > LAYOUT_LIMIT:
        return _only_text(source, f"{picture.count} nodes are too many for a layout")
    return target if render(source, target) else _only_text(source, f"to see it, {INSTALL}")


def picture_of(tensor_or_plan: Any, level: str | None = None) -> Picture:
    """Build the picture of tensors or of a plan at a level."""
    if isinstance(tensor_or_plan, PlanView):
        tensor_or_plan = tensor_or_plan.plan
    is_plan = isinstance(tensor_or_plan, Plan)
    level = level or ("plan" if is_plan else "graph")
    if level not in LEVELS:
        problem = f"level={level!r} is unknown"
        raise ValueRangeError("draw_dot", problem, f"use one of {', '.join(LEVELS)}")
    if is_plan and level == "graph":
        raise ValueRangeError("draw_dot", "a plan has no graph", 'pass the tensor or level="plan"')
    if level == "graph":
        return graph_picture([tensor.node for tensor in _tensors(tensor_or_plan)])
    return plan_picture(_plan_of(tensor_or_plan), with_buffers=level == "plan")


def graph_picture(roots: Sequence[Node]) -> Picture:
    """Draw every value as a box and every operation as an orange circle before it."""
    picture, names = Picture(), {}
    for node in toposort(list(roots)):
        is_leaf = not node.inputs
        place = f"{node.dtype.name} {node.device}"
        label = [f"{node.op} {_argument(node)}".strip()] if is_leaf else []
        box = picture.add([*label, str(node.shape), place], LEAF if is_leaf else BOX)
        names[id(node)] = box
        if is_leaf:
            continue
        circle = picture.add([_operation(node)], OP)
        picture.connect(circle, box)
        for operand in node.inputs:
            picture.connect(names[id(operand)], circle)
    return picture


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
    reads = [number for number, role in roles if role != "out"]
    return reads, [number for number, role in roles if role != "in"]


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
    pygraphviz.AGraph(filename=str(source)).draw(str(target), prog="dot")
    return True


def _target(path: str | Path) -> Path:
    target = Path(path)
    if target.suffix in FORMATS:
        return target
    return target.with_name(target.name + ".svg")


def _only_text(source: Path, reason: str) -> Path:
    say(f"draw_dot: wrote {source} (text only: {reason})")
    return source


def _tensors(value: Any) -> list[Tensor]:
    tensors = [value] if isinstance(value, Tensor) else value
    if not isinstance(tensors, Iterable):
        problem = f"cannot draw a {type(value).__name__}"
        raise ValueRangeError("draw_dot", problem, "pass tensors or a plan")
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
        raise ValueRangeError("draw_dot", problem, "pass tensors or a plan")
    return value


def _operation(node: Node) -> str:
    """Name an operation; a host call by its function."""
    return f"host {node.arg.name}" if node.op == "host_call" else node.op


def _argument(node: Node) -> str:
    """Show the argument of a constant; other leaves hold objects that differ between runs."""
    return str(node.arg) if node.op in ("const", "iota") else ""


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
