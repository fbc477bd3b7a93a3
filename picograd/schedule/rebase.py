"""rebase: kernels that differ in where they begin to read an array become one kernel.

    k1: y = f(x[128*a + b + 32])    k2: y = f(x[128*a + b + 64])    two kernels
    k1: y = f(p[128*a + b])         k2: y = f(q[128*a + b])         one, over parts p and q of x

A loop that is written out reads a row of one array in each step: the gradients of a stack of its
outcomes. A part is a slot of the plan, so that the launch, not the kernel, says where it begins.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from picograd.schedule.canonical import canonical_key
from picograd.schedule.loop import Compute, Expr, Kernel, Part, dynamics_of, rewrite, walk
from picograd.schedule.memory import Part as Place
from picograd.schedule.plan import KernelLaunch, PlanSlot, Step

LINE = 64  # bytes: a part begins at a cache line of its array, where vectors lie as before

Span = tuple[int, int]  # of a kernel's slot: where the part that it reads begins, and its size
Parts = dict[tuple[int, Span], int]  # the slot of the plan that is a part of another


def rebase(slots: list[PlanSlot], steps: Sequence[Step]) -> tuple[list[Step], list[Place]]:
    """Let launches read parts where they share a kernel then: the steps, and the parts added."""
    families: dict[object, dict[int, Kernel]] = {}
    for step in steps:
        if isinstance(step, KernelLaunch):
            kernel = step.kernel
            family = families.setdefault((kernel.name, kernel.hero, kernel.slots), {})
            family[id(kernel)] = kernel
    moved: dict[int, tuple[Kernel, dict[int, Span]]] = {}
    for family in families.values():
        moved |= moved_kernels([*family.values()]) if len(family) > 1 else {}
    known: Parts = {}
    made = [moved_step(step, moved, slots, known) for step in steps]
    parts = [(n, slot, at * slots[n].dtype.itemsize) for (slot, (at, _)), n in known.items()]
    return made, parts


def moved_kernels(kernels: Sequence[Kernel]) -> dict[int, tuple[Kernel, dict[int, Span]]]:
    """Find the kernels that are equal over parts: by identity, that kernel and the parts."""
    found: dict[str, list[tuple[Kernel, Kernel, dict[int, Span]]]] = {}
    begun = [spans_of(kernel) for kernel in kernels]
    for kernel, spans in zip(kernels, begun) if any(begun) else ():
        over = over_parts(kernel, spans) if spans else kernel
        found.setdefault(canonical_key(over), []).append((kernel, over, spans))
    moved: dict[int, tuple[Kernel, dict[int, Span]]] = {}
    for alike in found.values():
        if len(alike) > 1 and any(spans for _, _, spans in alike):
            _, shared, _ = alike[0]
            moved |= {id(kernel): (shared, spans) for kernel, _, spans in alike}
    return moved


def spans_of(kernel: Kernel) -> dict[int, Span]:
    """Find the slots of which a kernel reads nothing near their beginning."""
    if not all(map(is_plain, kernel.parts)):
        return {}
    lows: dict[int, int] = {}
    highs: dict[int, int] = {}
    for compute in computes_of(kernel):
        for expr in walk(compute.body):
            if expr.op == "load":
                slot, index = expr.arg
                lows[slot] = min(lows.get(slot, index.lo), index.lo)
                highs[slot] = max(highs.get(slot, index.hi), index.hi)
    spans = {}
    for slot, low in lows.items():
        facts = kernel.slots[slot]
        begin = low - low % max(LINE // facts.dtype.itemsize, 1)
        if facts.role == "in" and 0 < begin < facts.size:
            spans[slot] = begin, min(highs[slot] + 1, facts.size) - begin
    return spans


def computes_of(kernel: Kernel) -> Iterator[Compute]:
    """Yield the computes of all parts."""
    for part in kernel.parts:
        yield from part.computes


def is_plain(part: Part) -> bool:
    """Tell whether a part reads memory in the bodies of its computes alone."""
    stores = [each.store[1] for each in part.computes if each.store is not None]
    is_fixed = not any([*dynamics_of(place)] for place in stores)
    is_whole = not any(each.seen for each in part.computes)
    return is_fixed and is_whole and part.scatter is None and part.along is None


def over_parts(kernel: Kernel, spans: dict[int, Span]) -> Kernel:
    """Write a kernel over parts of its slots."""

    def load(expr: Expr) -> Expr | None:
        if expr.op != "load" or expr.arg[0] not in spans:
            return None
        slot, index = expr.arg
        return Expr("load", (), (slot, index - spans[slot][0]), expr.dtype)

    parts = []
    for part in kernel.parts:
        computes = [replace(x, body=rewrite(x.body, {}, load)) for x in part.computes]
        parts.append(replace(part, computes=tuple(computes)))
    slots = [*kernel.slots]
    for slot, (_, size) in spans.items():
        slots[slot] = replace(slots[slot], size=size)
    return replace(kernel, slots=tuple(slots), parts=tuple(parts))


def moved_step(
    step: Step,
    moved: dict[int, tuple[Kernel, dict[int, Span]]],
    slots: list[PlanSlot],
    known: Parts,
) -> Step:
    """Launch the kernel that is shared, on parts, if all of them are of temporaries."""
    if not isinstance(step, KernelLaunch) or id(step.kernel) not in moved:
        return step
    kernel, spans = moved[id(step.kernel)]
    if any(slots[step.slots[place]].kind != "temporary" for place in spans):
        return step
    given = list(step.slots)
    for place, span in spans.items():
        key = given[place], span
        if key not in known:
            known[key] = len(slots)
            whole, size = slots[given[place]], span[1]
            slots.append(replace(whole, size=size, shape=(size,), strides=(1,)))
        given[place] = known[key]
    return replace(step, kernel=kernel, slots=tuple(given))
