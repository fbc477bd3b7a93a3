"""Maps compute what those after them put one behind another: gradients of slices of an array."""

from dataclasses import replace

import numpy as np
import pytest
from plan_support import TARGET, check_plan, leaf

from picograd.dtype import float32
from picograd.graph.gradient import gradient
from picograd.graph.node import Node
from picograd.schedule.chaining import joined
from picograd.schedule.folding import fold_maps, numbered
from picograd.schedule.index import Axis, Index, axis_index
from picograd.schedule.interpret import interpret
from picograd.schedule.loop import Compute, Expr, Kernel, Part, Slot, const
from picograd.schedule.plan import KernelLaunch, Plan, PlanSlot, Step
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


def exponents(size: int, slot: int) -> Part:
    """A map of 2 x size numbers, of a slot to the next."""
    i, j = Axis("i", 2), Axis("j", size)
    place = axis_index(i) * size + axis_index(j)
    return made("exp", (i, j), read(slot, place), store=(slot + 1, place))


def rows_of_halves(size: int, slot: int) -> Part:
    """A map that puts rows in others twice as long, of a slot to the next."""
    i, wide = Axis("i", 2), Axis("w", 2 * size)
    row, at = axis_index(i), axis_index(wide)
    halves = [guard(read(slot, row * size + at - n), at, n, n + size - 1) for n in (0, size)]
    return made("add", (i, wide), *halves, store=(slot + 1, row * 2 * size + at))


def negated(size: int, slot: int) -> Part:
    """A map of so many numbers, of a slot to the next."""
    k = Axis("k", size)
    return made("neg", (k,), read(slot, axis_index(k)), store=(slot + 1, axis_index(k)))


def plan_slots(kinds: str, sizes: tuple[int, ...]) -> list[PlanSlot]:
    """Arrays of a plan: i of the input, t temporary, o of the output."""
    names = {"i": "input", "t": "temporary", "o": "output"}
    return [PlanSlot(names[k], float32, n, "gpu", (n,), (1,)) for k, n in zip(kinds, sizes)]


def launch_of(places: tuple[int, ...], sizes: tuple[int, ...], roles: str, *parts: Part) -> Step:
    own = [Slot(float32, sizes[p], {"r": "in", "w": "out"}[r]) for p, r in zip(places, roles)]
    return KernelLaunch(Kernel("k", "map", tuple(own), (), parts), places, (), "gpu")


def slots_found(steps: list[Step], kinds: str, sizes: tuple[int, ...]) -> list[tuple[int, ...]]:
    folded = fold_maps(plan_slots(kinds, sizes), steps, [], GPU)
    return [each.slots for each in folded if isinstance(each, KernelLaunch)]


@pytest.mark.parametrize(
    ("places", "roles", "expected"),
    [
        ((3, 4), "rw", [(0, 2), (3, 4)]),  # has nothing to do with either
        ((1, 4), "rw", [(0, 1, 2), (1, 4)]),  # reads what is folded: that is stored
        ((2, 4), "rw", [(0, 1), (2, 4), (1, 2)]),  # reads what was there before
        ((3, 1), "rw", [(0, 1), (3, 2)]),  # writes what is read, and is what is folded
    ],
)
def test_what_stands_between_runs_after_both_if_it_may(
    places: tuple[int, int], roles: str, expected: list[tuple[int, ...]]
) -> None:
    sizes = 2 * UNITS, 2 * UNITS, 4 * UNITS, 2 * UNITS, 2 * UNITS
    steps = [
        launch_of((0, 1), sizes, "rw", exponents(UNITS, 0)),
        launch_of(places, sizes, roles, negated(2 * UNITS, 0)),
        launch_of((1, 2), sizes, "rw", rows_of_halves(UNITS, 0)),
    ]
    assert slots_found(steps, "itoio", sizes) == expected


def test_pieces_along_two_axes() -> None:
    """Four arrays of 3 x 5 in the squares of one of 6 x 10."""
    i, j, tall, wide = Axis("i", 3), Axis("j", 5), Axis("t", 6), Axis("w", 10)
    row, column, down, across = map(axis_index, (i, j, tall, wide))
    names = "exp", "sin", "cos", "neg"
    place = row * 5 + column
    computes = [
        made(name, (i, j), read(0, place), store=(n + 1, place)) for n, name in enumerate(names)
    ]
    first = Part((i, j), tuple([part.computes[0] for part in computes]))
    total = const(0.0, float32)
    for n in range(4):
        low, left = n // 2 * 3, n % 2 * 5
        value = read(n, (down - low) * 5 + across - left)
        value = guard(guard(value, down, low, low + 2), across, left, left + 4)
        total = Expr("add", (total, value), None, float32)
    second = Part(
        (tall, wide), (Compute((tall, wide), (), None, total, float32, (4, down * 10 + across)),)
    )
    sizes = 15, 15, 15, 15, 15, 60
    steps = [
        launch_of((0, 1, 2, 3, 4), sizes, "rwwww", first),
        launch_of((1, 2, 3, 4, 5), sizes, "rrrrw", second),
    ]
    (found,) = fold_maps(plan_slots("itttto", sizes), steps, [], GPU)
    assert isinstance(found, KernelLaunch) and found.slots == (0, 5)
    verify(found.kernel)
    x = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
    outputs = [x.reshape(-1), np.empty(60, np.float32)]
    interpret(found.kernel, outputs)
    expected = np.block([[np.exp(x), np.sin(x)], [np.cos(x), -x]])
    np.testing.assert_allclose(outputs[1].reshape(6, 10), expected, rtol=1e-6)


def test_a_map_of_the_whole_array_is_computed_in_its_pieces() -> None:
    """Behind rows of halves each element is negated, and read with another array."""
    sizes = 2 * UNITS, 2 * UNITS, 4 * UNITS, 4 * UNITS, 4 * UNITS, 4 * UNITS
    flat = Axis("k", 4 * UNITS)
    place = axis_index(flat)
    for shift, expected in ((0, [(0, 3, 4)]), (1, [(0, 2), (2, 3, 4)])):
        turned = read(0, (place + shift) % flat.size)
        third = made("sub", (flat,), turned, read(1, place), store=(2, place))
        steps = [
            launch_of((0, 1), sizes, "rw", exponents(UNITS, 0)),
            launch_of((1, 2), sizes, "rw", rows_of_halves(UNITS, 0)),
            launch_of((2, 3, 4), sizes, "rrw", third),
        ]
        found = fold_maps(plan_slots("ittio", sizes[:5]), steps, [], GPU)
        assert [each.slots for each in found if isinstance(each, KernelLaunch)] == expected
        if shift:
            continue
        verify(found[0].kernel)  # type: ignore[union-attr]
        random = np.random.default_rng(0)
        x, y = (random.normal(size=(2, n * UNITS)).astype(np.float32) for n in (1, 2))
        outputs = [x.reshape(-1), y.reshape(-1), np.empty(4 * UNITS, np.float32)]
        interpret(found[0].kernel, outputs)  # type: ignore[union-attr]
        result = np.hstack([np.exp(x)] * 2) - y
        np.testing.assert_allclose(outputs[2].reshape(2, -1), result, rtol=1e-5, atol=1e-6)


def test_a_map_of_more_than_is_stored_stays_apart() -> None:
    """Four points store eight of ten elements: what else is there another kernel has written."""
    axis = Axis("i", 4)
    value = Expr("exp", (read(0, axis_index(axis)),), None, float32)
    places = [(1, axis_index(axis) * 2 + n) for n in range(2)]
    computes = [Compute((axis,), (), None, value, float32, place) for place in places]
    for size, expected in ((8, [(0, 2)]), (10, [(0, 1), (1, 2)])):
        sizes = 4, size, size
        first = launch_of((0, 1), sizes, "rw", Part((axis,), tuple(computes)))
        steps = [first, launch_of((1, 2), sizes, "rw", negated(size, 0))]
        assert slots_found(steps, "ito", sizes) == expected


def test_numbers_that_the_second_map_is_passed_are_passed_to_both() -> None:
    """Not in a chain, nor if the first one has some, too."""
    sizes = 2 * UNITS, 2 * UNITS, 4 * UNITS
    given = launch_of((1, 2), sizes, "rw", rows_of_halves(UNITS, 0))
    assert isinstance(given, KernelLaunch)
    second = replace(given, scalars=(7,), kernel=replace(given.kernel, scalars=(float32,)))
    first = launch_of((0, 1), sizes, "rw", exponents(UNITS, 0))
    (found,) = fold_maps(plan_slots("ito", sizes), [first, second], [], GPU)
    assert isinstance(found, KernelLaunch) and isinstance(first, KernelLaunch)
    assert found.scalars == (7,) and found.kernel.scalars == (float32,)
    assert joined(numbered(first, second), set()) is None
    both = replace(first, scalars=(7,), kernel=replace(first.kernel, scalars=(float32,)))
    assert len(fold_maps(plan_slots("ito", sizes), [both, second], [], GPU)) == 2


def test_parts_are_folded_each_at_its_own_points() -> None:
    """Those that nothing reads at once stay parts of the kernel."""
    sizes = 2 * UNITS, 2 * UNITS, 4 * UNITS, 6, 6, 12, 5, 5
    before = exponents(UNITS, 0), exponents(3, 2), negated(5, 4)
    after = rows_of_halves(UNITS, 0), rows_of_halves(3, 2)
    steps = [
        launch_of((0, 1, 3, 4, 6, 7), sizes, "rwrwrw", *before),
        launch_of((1, 2, 4, 5), sizes, "rwrw", *after),
    ]
    slots = plan_slots("itoitoio", sizes)
    (found,) = fold_maps(slots, steps, [], GPU)
    assert isinstance(found, KernelLaunch) and len(found.kernel.parts) == 3
    verify(found.kernel)
    random = np.random.default_rng(0)
    arrays = {slot: random.normal(size=sizes[slot]).astype(np.float32) for slot in found.slots}
    given = {slot: arrays[slot].copy() for slot in found.slots}
    interpret(found.kernel, [arrays[slot] for slot in found.slots])
    for source, result in ((0, 2), (3, 5)):
        x = np.exp(given[source].reshape(2, -1))
        np.testing.assert_allclose(arrays[result].reshape(2, -1), np.hstack([x, x]), rtol=1e-6)
    np.testing.assert_allclose(arrays[7], -given[6], rtol=1e-6)


def test_kernels_that_come_again_are_folded_as_before() -> None:
    """Layers of a network: other arrays, and of one what is folded is read later."""
    sizes = (2 * UNITS, 2 * UNITS, 4 * UNITS) * 3 + (2 * UNITS,)
    first, second, last = exponents(UNITS, 0), rows_of_halves(UNITS, 0), negated(2 * UNITS, 0)
    once = launch_of((0, 1), sizes, "rw", first), launch_of((1, 2), sizes, "rw", second)
    steps: list[Step] = []
    for n in (0, 3, 6):
        for place, each in enumerate(once):
            assert isinstance(each, KernelLaunch)
            steps.append(replace(each, slots=(n + place, n + place + 1)))
    steps.append(launch_of((7, 9), sizes, "rw", last))
    folded = fold_maps(plan_slots("itoitoitoo", sizes), steps, [], GPU)
    kernels = [each.kernel for each in folded if isinstance(each, KernelLaunch)]
    assert [each.slots for each in folded if isinstance(each, KernelLaunch)] == [
        (0, 2),
        (3, 5),
        (6, 7, 8),
        (7, 9),
    ]
    assert kernels[0] is kernels[1] and kernels[0] is not kernels[2]


def test_kernels_that_come_again_on_arrays_in_common_are_folded_anew() -> None:
    """The second map reads another array, or what the first one reads."""
    flat = Axis("k", 2 * UNITS)
    place = axis_index(flat)
    halves = [guard(read(0, place), place, n, n + UNITS - 1) for n in (0, UNITS)]
    total = made("add", (flat,), *halves, store=(2, place))
    (compute,) = total.computes
    body = Expr("sub", (compute.body, read(1, place)), None, float32)
    second = Part((flat,), (replace(compute, body=body),))
    axis = Axis("i", UNITS)
    value = Expr("exp", (read(0, axis_index(axis)),), None, float32)
    places = [(1, axis_index(axis) + n) for n in (0, UNITS)]
    first = Part((axis,), tuple([Compute((axis,), (), None, value, float32, at) for at in places]))
    sizes = (2 * UNITS,) * 4 + (2 * UNITS,) * 3
    both = launch_of((0, 1), sizes, "rw", first), launch_of((1, 2, 3), sizes, "rrw", second)
    steps: list[Step] = []
    for own, other in (((0, 1), (1, 2, 3)), ((4, 5), (5, 4, 6))):
        for each, slots in zip(both, (own, other)):
            assert isinstance(each, KernelLaunch)
            steps.append(replace(each, slots=slots))
    assert slots_found(steps, "itioito", sizes) == [(0, 2, 3), (4, 6)]


def test_a_kernel_that_comes_again_is_parted_by_what_it_reads() -> None:
    """The other of its two maps reads what is stored before it."""
    sizes = (2 * UNITS, 2 * UNITS, 4 * UNITS, 2 * UNITS, 4 * UNITS) * 2
    first = launch_of((0, 1), sizes, "rw", exponents(UNITS, 0))
    both = launch_of((1, 2, 3, 4), sizes, "rwrw", *(rows_of_halves(UNITS, n) for n in (0, 2)))
    assert isinstance(first, KernelLaunch) and isinstance(both, KernelLaunch)
    again = replace(first, slots=(5, 6)), replace(both, slots=(8, 9, 6, 7))
    found = slots_found([first, both, *again], "itoioitoio", sizes)
    assert found == [(3, 4), (0, 2), (8, 9), (5, 7)]


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
