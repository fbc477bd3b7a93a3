"""Sums over rows join the maps that store what they sum in pieces."""

from dataclasses import replace

import numpy as np
import pytest
from plan_support import TARGET, check_plan, conv_norm, leaf

from picograd.dtype import float32
from picograd.graph import conv_winograd
from picograd.graph.gradient import gradient
from picograd.graph.node import Node
from picograd.schedule import summed_pieces
from picograd.schedule.index import Axis, Index, axis_index
from picograd.schedule.interpret import interpret
from picograd.schedule.loop import Compute, Expr, Kernel, Part, Slot, const, walk
from picograd.schedule.plan import KernelLaunch, Plan, PlanSlot
from picograd.schedule.summed_pieces import sum_pieces
from picograd.schedule.verify import verify
from picograd.target import cuda_target

GPU = cuda_target("sm_90a")
IMAGES, CHANNELS, SIZE = 2, 3, 7  # of 7 x 7, in pieces of 2 x 2 of 8 x 8
FEW = 16  # channels of a convolution, for which 4 images have patches enough


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conv_winograd, "LAUNCHED", -1e9)
    monkeypatch.setattr(conv_winograd, "MOVED", 0)


def read(slot: int, index: Index) -> Expr:
    return Expr("load", (), (slot, index), float32)


def both(op: str, a: Expr, b: Expr) -> Expr:
    return Expr(op, (a, b), None, float32)


def pieces() -> KernelLaunch:
    """Store four elements a point of an image: x, x + 1, x + 2, x + 3."""
    row, column = Axis("i", IMAGES * CHANNELS * 4), Axis("i", 4)
    rows, here = (row, column), axis_index(row) * 4 + axis_index(column)
    first = axis_index(row) * 16 + axis_index(column) * 2
    bodies = [both("add", read(0, here), const(float(n), float32)) for n in range(4)]
    stores = [(1, first + 8 * (n // 2) + n % 2) for n in range(4)]
    computes = [
        Compute(rows, (), None, body, float32, store)
        for body, store in zip(bodies, stores, strict=True)
    ]
    size = IMAGES * CHANNELS * 64
    slots = Slot(float32, size // 4, "in"), Slot(float32, size, "out")
    kernel = Kernel("map", "map", slots, (), (Part(rows, tuple(computes)),))
    return KernelLaunch(kernel, (0, 1), (), "gpu")


def sums(is_chain: bool, step: int = 1) -> KernelLaunch:
    """Sum each channel of an image's corner, weighted, and take the sum off its elements."""
    channel, image = Axis("c", CHANNELS), Axis("n", IMAGES)
    y, x = Axis("y", SIZE), Axis("x", SIZE)
    c, n, inner = axis_index(channel), axis_index(image), (image, y, x)
    place = n * (CHANNELS * 64) + c * 64 + axis_index(y) * 8 + axis_index(x) * step
    own = (n * CHANNELS + c) * SIZE**2 + axis_index(y) * SIZE + axis_index(x)
    body = both("mul", read(0, place), read(1, own))
    computes = [Compute((channel,), inner, "sum", body, float32, (2, c))]
    if is_chain:
        total = Expr("ref", (), 0, float32)
        made = both("sub", read(0, place), total)
        computes += [Compute((channel, *inner), (), None, made, float32, (3, own))]
    sizes = IMAGES * CHANNELS * 64, IMAGES * CHANNELS * SIZE**2, CHANNELS, IMAGES * CHANNELS * 49
    roles = "in", "in", "out", "out"
    slots = [Slot(float32, *each) for each in zip(sizes, roles, strict=True)]
    kept = slots if is_chain else slots[:3]
    kernel = Kernel("sum", "reduce.row", tuple(kept), (), (Part((channel,), tuple(computes)),))
    return KernelLaunch(kernel, tuple(range(1, 1 + len(kept))), (), "gpu")


def plan_slots() -> list[PlanSlot]:
    sizes = 96, 384, 294, 3, 294
    kinds = "input", "temporary", "input", "output", "output"
    return [PlanSlot(k, float32, n, "gpu", (n,), (1,)) for k, n in zip(kinds, sizes, strict=True)]


def results(steps: list[KernelLaunch], sizes: list[int]) -> list[np.ndarray]:
    """Run launches on whole numbers; what nobody wrote is -1."""
    random = np.random.default_rng(0)
    held = [random.integers(-4, 5, size).astype(np.float32) for size in sizes]
    for number in (1, 3, 4):
        held[number][:] = -1
    for step in steps:
        interpret(verify(step.kernel), [held[slot] for slot in step.slots], [])
    return held


@pytest.mark.parametrize("is_chain", [False, True])
def test_values_are_as_they_were(is_chain: bool) -> None:
    steps = [pieces(), sums(is_chain)]
    (made,) = sum_pieces(plan_slots(), steps, [], GPU)
    sizes = [slot.size for slot in plan_slots()]
    wanted, found = results(steps, sizes), results([made], sizes)
    for number in (3, 4):
        np.testing.assert_array_equal(found[number], wanted[number])
    assert (found[1] == -1).all(), "a temporary that nobody reads later is not stored"
    (kept,) = sum_pieces(plan_slots(), steps, [replace(made, slots=(1, *made.slots[1:]))], GPU)
    np.testing.assert_array_equal(results([kept], sizes)[1], wanted[1])


def test_what_is_stored_twice_is_stored_twice() -> None:
    """A map whose first piece goes to one array, and under another name to a second one."""
    steps = [pieces(), sums(True)]
    (part,) = steps[0].kernel.parts
    again = Expr("ref", (), 0, float32)
    place = axis_index(part.rows[0]) * 4 + axis_index(part.rows[1])
    more = Compute(part.rows, (), None, again, float32, (2, place))
    wider = replace(part, computes=(*part.computes, more))
    slots = (*steps[0].kernel.slots, Slot(float32, IMAGES * CHANNELS * 16, "out"))
    kernel = replace(steps[0].kernel, parts=(wider,), slots=slots)
    steps[0] = replace(steps[0], kernel=kernel, slots=(0, 1, 5))
    known = [*plan_slots(), PlanSlot("output", float32, 96, "gpu", (96,), (1,))]
    known[1] = replace(known[1], kind="output")
    (made,) = sum_pieces(known, steps, [], GPU)
    sizes = [slot.size for slot in known]
    for found, wanted in zip(results([made], sizes), results(steps, sizes), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_what_does_not_fit_is_left() -> None:
    """Other places of elements, rows that several pieces share, and workers of a CPU."""
    steps = [pieces(), sums(True, step=2)]
    assert sum_pieces(plan_slots(), steps, [], GPU) == steps
    steps = [pieces(), sums(True)]
    assert sum_pieces(plan_slots(), steps, [], TARGET) == steps
    assert sum_pieces(plan_slots(), steps[::-1], [], GPU) == steps[::-1]
    whole = steps[0].kernel
    fewer = replace(whole.parts[0], computes=whole.parts[0].computes[:3])
    steps[0] = replace(steps[0], kernel=replace(whole, parts=(fewer,)))
    assert sum_pieces(plan_slots(), steps, [], GPU) == steps, "others store the rest"


def test_rows_that_registers_do_not_hold_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summed_pieces, "HELD", IMAGES * SIZE**2 - 1)
    steps = [pieces(), sums(True)]
    assert sum_pieces(plan_slots(), steps, [], GPU) == steps
    assert len(sum_pieces(plan_slots(), [pieces(), sums(False)], [], GPU)) == 1


def windowed(size: int, apart: int) -> list[KernelLaunch]:
    """Store what windows that begin so far apart add up to, and sum each of 3 rows of that."""
    row, column, near = Axis("i", 3), Axis("i", 20), Axis("w", size)
    rows, here = (row, column), axis_index(row) * 20 + axis_index(column)
    places = axis_index(row) * 24 + axis_index(column) // apart + axis_index(near)
    inside = axis_index(column) % apart + axis_index(near) * apart
    value = read(0, places), const(0.0, float32)
    met = Expr("guard", value, ((inside, 0, apart),), float32)
    window = Compute(rows, (near,), "sum", met, float32)
    double = both("add", Expr("ref", (), 0, float32), Expr("ref", (), 0, float32))
    stored = Compute(rows, (), None, double, float32, (1, here))
    slots = Slot(float32, 72, "in"), Slot(float32, 60, "out")
    kernel = Kernel("map", "map", slots, (), (Part(rows, (window, stored)),))
    line, place = Axis("r", 3), Axis("k", 20)
    body = read(0, axis_index(line) * 20 + axis_index(place))
    total = Compute((line,), (place,), "sum", body, float32, (1, axis_index(line)))
    own = Slot(float32, 60, "in"), Slot(float32, 3, "out")
    other = Kernel("sum", "reduce.row", own, (), (Part((line,), (total,)),))
    return [KernelLaunch(kernel, (0, 1), (), "gpu"), KernelLaunch(other, (1, 3), (), "gpu")]


@pytest.mark.parametrize(
    ("size", "apart", "count"), [(2, 2, 1), (4, 5, 1), (5, 2, 2), (2, 1, 2), (2, 3, 2)]
)
def test_small_windows_are_cut_where_they_begin(size: int, apart: int, count: int) -> None:
    steps = windowed(size, apart)
    made = sum_pieces(plan_slots(), steps, [], GPU)
    assert len(made) == count
    if count == 1:
        first, *rest = made[0].kernel.parts[0].computes
        guards = [expr for each in (first, *rest) for expr in walk(each.body) if expr.op == "guard"]
        assert not guards, "what a window adds up to is known of each piece"
    sizes = 72, 60, 1, 3, 1
    np.testing.assert_array_equal(results(made, [*sizes])[3], results(steps, [*sizes])[3])


def summing(plan: Plan) -> list[Kernel]:
    """List the kernels whose points store several elements of what rows are reduced to."""
    found = []
    for kernel in plan.kernels:
        computes = [each for part in kernel.parts for each in part.computes]
        slots = [each.store[0] for each in computes if each.store and each.axes]
        if kernel.hero == "reduce.row" and max(map(slots.count, slots), default=0) >= 16:
            found.append(kernel)
    return found


def network(size: int, channels: int = FEW, images: int = 4) -> tuple[Node, list[Node]]:
    params: list[Node] = []
    x = leaf(images, channels, size, size)
    made = conv_norm(x, channels, params, []).unary("exp")
    return made, [x, *params]


@pytest.mark.parametrize("size", [8, 7])
def test_statistics_and_sums_of_gradients(size: int) -> None:
    made, _ = network(size)
    assert len(summing(check_plan([made], target=GPU))) == 1


def test_rows_enough_are_computed_to_their_end() -> None:
    """The norm is computed where its statistics are, of patches of 8 x 8 for images of 7 x 7."""
    made, _ = network(7, channels=144, images=4)
    (kernel,) = summing(check_plan([made], target=GPU, tolerance=2e-3))
    seen = [each for part in kernel.parts for each in part.computes if each.seen]
    assert seen and all(each.store for each in seen)


@pytest.mark.parametrize("size", [8, 7])
def test_gradients(size: int) -> None:
    made, inputs = network(size)
    wanted = gradient([(made, leaf(*made.shape))], inputs)
    roots = [each for each in wanted if each is not None]
    assert summing(check_plan(roots, target=GPU, tolerance=2e-3))
