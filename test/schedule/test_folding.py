"""Maps compute what those after them put one behind another: gradients of slices of an array."""

from plan_support import TARGET, check_plan, leaf

from picograd.graph.gradient import gradient
from picograd.graph.node import Node
from picograd.schedule.plan import Plan
from picograd.schedule.schedule import schedule
from picograd.target import cuda_target

GPU = cuda_target("sm_90a")
ROWS, UNITS = 6, 8


def gates(x: Node, axis: int, count: int) -> list[Node]:
    """Cut an array in equal slices along an axis."""
    size = x.shape[axis] // count
    whole = [(0, n, 1) for n in x.shape]
    pieces = [(n * size, (n + 1) * size, 1) for n in range(count)]
    return [x.slice((*whole[:axis], piece, *whole[axis + 1 :])) for piece in pieces]


def cell(axis: int, is_flipped: bool = False) -> list[Node]:
    """List the gradients of one step of an LSTM: of its state, and of all gates as one array."""
    shape = (ROWS, 4 * UNITS) if axis else (4 * UNITS, ROWS)
    x, kept = leaf(*shape), leaf(*((ROWS, UNITS) if axis else (UNITS, ROWS)))
    turned = x.flip((0,)) if is_flipped else x
    enter, forget, new, leave = gates(turned + leaf(*shape), axis, 4)
    state = forget.unary("sigmoid") * kept + enter.unary("sigmoid") * new.unary("tanh")
    hidden = leave.unary("sigmoid") * state.unary("tanh")
    first, second, third = (leaf(*kept.shape) for _ in range(3))
    of_x, of_state = gradient([(hidden, first + second), (state, third)], [x, kept])
    assert of_x is not None and of_state is not None
    return [of_state, of_x]


def stored(plan: Plan) -> list[int]:
    """Count the elements of what each kernel stores."""
    return [sum(s.size for s in each.slots if s.role == "out") for each in plan.kernels]


def test_gradients_of_gates_are_one_kernel() -> None:
    """Columns of rows, and rows: the first map has one axis where nothing tells its rows apart."""
    for axis in (1, 0):
        plan = check_plan(cell(axis), 1, target=GPU)
        assert stored(plan) == [5 * ROWS * UNITS]  # nothing that was only put behind another
        (part,) = plan.kernels[0].parts
        assert not any("guard" in repr(each.body) for each in part.computes)


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
