"""Maps compute what those after them put one behind another: gradients of slices of an array."""

from dataclasses import replace

import numpy as np
from plan_support import TARGET, check_plan, leaf

from picograd.dtype import float32
from picograd.graph.gradient import gradient
from picograd.graph.node import Node
from picograd.schedule.folding import fold_maps
from picograd.schedule.index import Axis, Index, axis_index
from picograd.schedule.interpret import interpret
from picograd.schedule.loop import Compute, Expr, Kernel, Part, Slot, const
from picograd.schedule.plan import KernelLaunch, Plan, PlanSlot
from picograd.schedule.schedule import schedule
from picograd.schedule.verify import verify
from picograd.target import cuda_target

GPU = cuda_target("sm_90a")
ROWS, UNITS = 6, 8


def gates(x: Node, axis: int, count: int) -> list[Node]:
    """Cut an array in equal slices along an axis."""
    size = x.shape[axis] // count
    whole = [(0, n, 1) for n in x.shape]
    pieces = [(n * size, (n + 1) * size, 1) for n in range(count)]
    return [x.slice((*whole[:axis], piece, *whole[axis + 1 :])) for piece in pieces]


def cell(axis: int, is_flipped: bool = False, units: int = UNITS) -> list[Node]:
    """List the gradients of one step of an LSTM: of its state, and of all gates as one array."""
    shape = (ROWS, 4 * units) if axis else (4 * units, ROWS)
    x, kept = leaf(*shape), leaf(*((ROWS, units) if axis else (units, ROWS)))
    turned = x.flip((0,)) if is_flipped else x
    enter, forget, new, leave = gates(turned + leaf(*shape), axis, 4)
    state = forget.unary("sigmoid") * kept + enter.unary("sigmoid") * new.unary("tanh")
    hidden = leave.unary("sigmoid") * state.unary("tanh")
    first, second, third = (leaf(*kept.shape) for _ in range(3))
    of_x, of_state = gradient([(hidden, first + second), (state, third)], [x, kept])
    assert of_x is not None and of_state is not None
    return [of_state, of_x]


def read(slot: int, index: Index) -> Expr:
    return Expr("load", (), (slot, index), float32)


def guard(value: Expr, index: Index, lo: int, hi: int) -> Expr:
    return Expr("guard", (value, const(0.0, float32)), ((index, lo, hi),), float32)


def made(name: str, axes: tuple[Axis, ...], *values: Expr, store: tuple[int, Index]) -> Part:
    body = Expr(name, values, None, float32)
    return Part(axes, (Compute(axes, (), None, body, float32, store),))


def launch(slots: tuple[int, ...], sizes: tuple[int, ...], *parts: Part) -> KernelLaunch:
    """Run a map of the parts: its first slot is read."""
    own = [Slot(float32, sizes[n], "out" if place else "in") for place, n in enumerate(slots)]
    return KernelLaunch(Kernel("k", "map", tuple(own), (), parts), slots, (), "gpu")


def stored(plan: Plan) -> list[int]:
    """Count the elements of what each kernel stores."""
    return [sum(s.size for s in each.slots if s.role == "out") for each in plan.kernels]


def test_gates_of_one_unit() -> None:
    """A piece is one place, with which its guard begins and ends."""
    for axis in (1, 0):
        assert stored(check_plan(cell(axis, units=1), target=GPU)) == [5 * ROWS]


def test_gradients_of_gates_are_one_kernel() -> None:
    """Columns of rows, and rows: the first map has one axis where nothing tells its rows apart."""
    for axis in (1, 0):
        plan = check_plan(cell(axis), 1, target=GPU)
        assert stored(plan) == [5 * ROWS * UNITS]  # nothing that was only put behind another
        (part,) = plan.kernels[0].parts
        assert not any("guard" in repr(each.body) for each in part.computes)


def test_two_cells_side_by_side_are_one_kernel() -> None:
    """Each is a part of the first map, and of the second: layers of a network at one step."""
    plan = check_plan([*cell(1), *cell(1)], 1, target=GPU)
    assert len(plan.kernels[0].parts) == 2 and stored(plan) == [2 * 5 * ROWS * UNITS]


def test_gates_that_are_kept_are_read_where_they_are_made() -> None:
    """The first map has a point for each gate of a unit, the second one for all."""
    x = leaf(ROWS, 4 * UNITS) + leaf(ROWS, 4 * UNITS)
    enter, forget, new, leave = gates(x, 1, 4)
    state = forget.unary("sigmoid") + enter.unary("sigmoid") * new.unary("tanh")
    plan = check_plan([x, leave.unary("sigmoid") * state.unary("tanh")], target=GPU)
    assert stored(plan) == [5 * ROWS * UNITS]


def test_a_part_of_as_many_points_is_computed_with_it() -> None:
    """In whatever shape it is: a cast of all elements has one axis."""
    i, j, flat = Axis("i", ROWS), Axis("j", UNITS), Axis("k", ROWS * UNITS)
    wide = Axis("w", 2 * UNITS)
    row, column, at = axis_index(i), axis_index(j), axis_index(wide)
    first = made("exp", (i, j), read(0, row * UNITS + column), store=(1, row * UNITS + column))
    halves = [guard(read(0, row * UNITS + at - n), at, n, n + UNITS - 1) for n in (0, UNITS)]
    second = made("add", (i, wide), *halves, store=(1, row * 2 * UNITS + at))
    whole = axis_index(flat)
    third = made("neg", (flat,), read(0, whole), store=(2, whole))
    kinds = "input", "temporary", "output", "output"
    counts = ROWS * UNITS, ROWS * UNITS, 2 * ROWS * UNITS, ROWS * UNITS
    slots = [PlanSlot(kind, float32, n, "gpu", (n,), (1,)) for kind, n in zip(kinds, counts)]
    steps = [launch((0, 1), counts, first), launch((1, 2, 3), counts, second, third)]
    (found,) = fold_maps(slots, steps, [], GPU)
    assert isinstance(found, KernelLaunch) and found.slots == (0, 2, 3)
    verify(found.kernel)
    x = np.random.default_rng(0).normal(size=(ROWS, UNITS)).astype(np.float32)
    outputs = [x.reshape(-1), *(np.empty(n, np.float32) for n in counts[2:])]
    interpret(found.kernel, outputs)
    np.testing.assert_allclose(outputs[1].reshape(ROWS, -1), np.exp(np.hstack([x, x])), rtol=1e-6)
    np.testing.assert_allclose(outputs[2], -np.exp(x.reshape(-1)), rtol=1e-6)


def test_what_shares_a_launch_alone_stays_behind() -> None:
    """A part of other arrays, of points that no piece has, is a launch of its own then."""
    i, j, other = Axis("i", ROWS), Axis("j", UNITS), Axis("k", 7)
    wide = Axis("w", 2 * UNITS)
    row, column, at, apart = map(axis_index, (i, j, wide, other))
    first = made("exp", (i, j), read(0, row * UNITS + column), store=(1, row * UNITS + column))
    halves = [guard(read(0, row * UNITS + at - n), at, n, n + UNITS - 1) for n in (0, UNITS)]
    second = made("add", (i, wide), *halves, store=(1, row * 2 * UNITS + at))
    third = made("neg", (other,), read(2, apart), store=(3, apart))
    kinds = "input", "temporary", "output", "input", "output"
    counts = ROWS * UNITS, ROWS * UNITS, 2 * ROWS * UNITS, 7, 7
    slots = [PlanSlot(kind, float32, n, "gpu", (n,), (1,)) for kind, n in zip(kinds, counts)]
    both = launch((1, 2, 3, 4), counts, second, third)
    own = both.kernel.slots[:2] + (Slot(float32, 7, "in"), Slot(float32, 7, "out"))
    both = replace(both, kernel=replace(both.kernel, slots=own))
    found = fold_maps(slots, [launch((0, 1), counts, first), both], [], GPU)
    assert [each.slots for each in found if isinstance(each, KernelLaunch)] == [(3, 4), (0, 2)]
    x = np.random.default_rng(0).normal(size=(ROWS, UNITS)).astype(np.float32)
    outputs = [x.reshape(-1), np.empty(counts[2], np.float32)]
    interpret(found[1].kernel, outputs)  # type: ignore[union-attr]
    np.testing.assert_allclose(outputs[1].reshape(ROWS, -1), np.exp(np.hstack([x, x])), rtol=1e-6)


def test_what_others_read_is_stored_too() -> None:
    of_state, of_x = cell(1)
    new = gates(of_x, 1, 4)[2]
    check_plan([of_state, of_x, new.reduce("sum", (0,))], target=GPU)


def test_a_map_that_reads_at_other_points_stays_apart() -> None:
    """Rows upside down."""
    names = [each.name for each in check_plan(cell(1, True), target=GPU).kernels]
    assert len(names) == 2, names


def test_a_cpu_has_loops_for_pieces() -> None:
    assert len(schedule(cell(1), TARGET).kernels) > 1
