"""Plans without running anything: an engine that only schedules, and a plan as a short text.

    with only_plans(target) as plans:    # nothing is compiled or computed while this is open
        loss.backward()
        optimizer.step()                 # plans[-1] is the plan of the step

Values are never computed, so nothing may be read; memory is allocated and never written.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby

from picograd.buffer import Buffer
from picograd.engine import backends, pending, realize
from picograd.engine.plan_key import GraphKey, leaf_buffer, walk_pending, with_scalars
from picograd.graph.formula import unfolded
from picograd.graph.node import Node
from picograd.runtime.null import NullDevice
from picograd.schedule.loop import Compute, Kernel, Part, walk
from picograd.schedule.plan import CopyStep, HostStep, KernelLaunch, Plan, Step
from picograd.schedule.schedule import schedule
from picograd.target import Target, cuda_target, is_host

# Fixed, so that plans do not depend on the machine they are made on.
TARGETS = {"cpu": Target("llvm", "x86-64", 64, threads=8), "cuda:0": cuda_target("sm_90a")}
PLAIN = {"load", "ref", "element", "const", "scalar", "index", "guard"}
PARTS_SHOWN = 2


class Plans(list[Plan]):
    """The plans made so far; nothing is planned while `is_open` is not set."""

    is_open = False


class Unrun:
    """This class stands for a compiled plan: it gives memory for what would be computed."""

    may_follow = False  # no way ends in it

    def __init__(self, roots: Sequence[Node]) -> None:
        self.roots = roots

    def run(self, *_: object) -> list[Buffer]:
        """Give the buffer of each root: its target's for a write."""
        return [memory_of(root) for root in self.roots]


def memory_of(node: Node) -> Buffer:
    """Find the memory of what a write writes, or allocate a value's."""
    target = node
    while target.op == "assign":
        target = target.inputs[0]
    if target is not node:
        found = leaf_buffer(target)
        if found is not None:
            return found
    if is_host(node.device):  # it may be copied to another device, which reads it
        return backends.get_device(node.device).new_buffer(node.dtype, node.size)
    return Buffer(node.device, node.dtype, node.size, 0)


@contextmanager
def only_plans(device: str) -> Iterator[Plans]:
    """Schedule what is computed in this block for a device, and compute nothing.

    A CUDA device need not be there.
    """
    pending.realize_all()
    plans, find, opened = Plans(), realize.find_plan, backends.OPEN.get(device)
    checks = len(realize.CHECKS)

    def plan_only(found: GraphKey, roots: Sequence[Node], limits: object = None) -> Unrun:
        if plans.is_open:
            whole = unfolded(roots, found.order)
            known = replace(found, order=walk_pending(whole))
            plans.append(schedule(with_scalars(whole, known), TARGETS[device], verify=False))
        return Unrun(roots)

    realize.find_plan = plan_only  # type: ignore[assignment]
    if device != "cpu":
        absent = NullDevice(TARGETS[device])
        absent.name = device
        backends.OPEN[device] = absent
    try:
        yield plans
    finally:
        pending.realize_all()
        pending.compute_checks()
        realize.find_plan = find
        del realize.CHECKS[checks:]  # of values that nobody computed
        if opened is not None:
            backends.OPEN[device] = opened
        elif device != "cpu":
            del backends.OPEN[device]


def plan_text(plan: Plan) -> str:
    """Write a plan: its kernels, a line each, then the reasons of fusion."""
    arena = sum(plan.arenas.values())
    count, others = len(plan.kernels), len(plan.steps) - len(plan.kernels)
    head = f"{count} kernel{'s' * (count != 1)}"
    head += f", {others} other steps" if others else ""
    head += f", {size_text(arena)} of temporaries" if arena else ""
    runs = groupby(line for step in plan.steps for line in step_lines(plan, step))
    lines = [times(len(list(run)), line) for line, run in runs]
    said = [times(count, text) for text, count in Counter(plan.reasons).items()]
    return "\n".join([head, *lines, *(f"  - {text}" for text in said)]) + "\n"


def times(count: int, text: str) -> str:
    """Write a line that stands for several."""
    return f"{count} x {text}" if count > 1 else text


def step_lines(plan: Plan, step: Step) -> list[str]:
    """Write one step; the body of a loop below it."""
    if isinstance(step, KernelLaunch):
        return [kernel_line(plan, step)]
    if isinstance(step, CopyStep):
        return [f"copy {size_text(plan.slots[step.source].nbytes)}"]
    if isinstance(step, HostStep):
        return [f"host {step.call}"]
    body = [line for inner in step.body.steps for line in step_lines(step.body, inner)]
    return [f"loop of {step.length} steps", *(f"  {line}" for line in body)]


def kernel_line(plan: Plan, step: KernelLaunch) -> str:
    """Write a kernel: hero, domain, computes in order, operations, slots and bytes."""
    kernel = step.kernel
    shown = [part_text(part) for part in kernel.parts[:PARTS_SHOWN]]
    hidden = len(kernel.parts) - len(shown)
    shown += [f"and {hidden} parts"] if hidden else []
    slots = {"in": 0, "out": 0}
    sizes = {"in": 0, "out": 0}
    for slot, number in zip(kernel.slots, step.slots, strict=True):
        for way in ("in", "out"):
            if way in (slot.role[:2], slot.role[-3:]):
                slots[way] += 1
                sizes[way] += plan.slots[number].nbytes
    moved = ", ".join(f"{slots[way]} {way} {size_text(sizes[way])}" for way in slots)
    return f"{kernel.name}: {kernel.hero} {'; '.join(shown)} | {operations(kernel)} | {moved}"


def part_text(part: Part) -> str:
    """Write the rows of a part and what is computed over them; * marks what is stored."""
    rows = "x".join(str(axis.size) for axis in part.rows)
    if part.scatter or part.along:
        return type(part.scatter or part.along).__name__.lower()
    return f"({rows}) " + " ".join(compute_text(part, compute) for compute in part.computes)


def compute_text(part: Part, compute: Compute) -> str:
    """Write one compute: its reduction, or the axes that it has inside the rows."""
    over = [axis for axis in compute.axes if axis not in part.rows]
    axes = compute.reduce or over
    sizes = "x".join(str(axis.size) for axis in axes)
    return f"{compute.monoid or 'map'}{f'[{sizes}]' if sizes else ''}{'*' * bool(compute.store)}"


def operations(kernel: Kernel) -> str:
    """Count the scalar operations in the text of a kernel, by name."""
    found: Counter[str] = Counter()
    for part in kernel.parts:
        bodies = [compute.body for compute in part.computes]
        bodies += [step.body for step in (part.scatter, part.along) if step]
        nodes = {id(expr): expr for body in bodies for expr in walk(body)}
        found.update(expr.op for expr in nodes.values() if expr.op not in PLAIN)
    return " ".join(f"{op}{f'*{n}' if n > 1 else ''}" for op, n in sorted(found.items())) or "-"


def size_text(count: int) -> str:
    """Write a number of bytes with a unit."""
    for unit in ("B", "KB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000  # type: ignore[assignment]
    return f"{count:.3g} GB"
