"""Loop IR: structural equality, walks in order, substitution, and text."""

from picograd.dtype import float32, int64
from picograd.schedule.index import Axis, Dynamic, atom_index, axis_index, constant
from picograd.schedule.loop import (
    Compute,
    Expr,
    Kernel,
    Part,
    Scatter,
    Slot,
    const,
    dynamic_children,
    dynamics_of,
    format_expr,
    has_load,
    indices_of,
    rewrite,
    rewrite_all,
    walk,
    walk_all,
)

I, J = Axis("i", 4), Axis("j", 4)  # noqa: E741
ROW = Expr("load", (), (1, axis_index(I)), int64)
GATHERED = Expr("load", (), (0, atom_index(Dynamic(ROW, 0, 7)) * 4 + axis_index(J)), float32)


def add(a: Expr, b: Expr) -> Expr:
    return Expr("add", (a, b), None, a.dtype)


def test_equality_is_structural() -> None:
    assert add(GATHERED, GATHERED) == add(GATHERED, GATHERED)
    assert add(GATHERED, const(1.0, float32)) != add(const(1.0, float32), GATHERED)
    assert const(1, float32) != const(1.0, float32) != const(True, float32)
    assert len({const(2, int64), const(2, int64), const(3, int64)}) == 2


def test_equality_is_linear_in_the_nodes() -> None:
    """Two ladders of 200 shared steps: compared path by path this would never end."""

    def ladder(first: float) -> Expr:
        step = const(first, float32)
        for _ in range(200):
            step = add(step, step)
        return step

    assert ladder(1.0) == ladder(1.0)
    assert ladder(1.0) != ladder(2.0)


def test_what_is_compared_stays_as_it_is_walked() -> None:
    """Nodes that are found equal keep their arguments, which are listed and rewritten later."""
    ours, others = (add(add(const(1.0, float32), GATHERED), const(2.0, float32)) for _ in "ab")
    order = walk(others)
    assert ours == others and ours == add(add(const(1.0, float32), GATHERED), const(2.0, float32))
    assert walk(others) == order and all(map(lambda a, b: a is b, walk(others), order))
    assert rewrite(others, {J: axis_index(I)}) == rewrite(ours, {J: axis_index(I)})


def test_walk_yields_shared_nodes_once_and_what_is_inside_indices() -> None:
    order = list(walk(add(GATHERED, GATHERED)))
    assert [expr.op for expr in order] == ["load", "load", "add"]
    assert order[0] is ROW, "the position is computed before the load that needs it"


def test_a_walk_that_is_kept_lists_what_a_new_one_would() -> None:
    for root in (add(add(ROW, const(2, int64)), ROW), add(GATHERED, ROW)):
        found = rewrite(root, {I: axis_index(J) * 2})
        fresh = walk_all([found])
        assert all(map(lambda a, b: a is b, walk(found), fresh)) and len(walk(found)) == len(fresh)
    assert walk_all([root], set(map(id, walk(ROW)))) == [GATHERED, root]


def test_what_reads_memory() -> None:
    known: set[int] = set()
    plain = add(const(1, int64), Expr("ref", (), 0, int64))
    inside = Expr("index", (), GATHERED.arg[1], int64)
    assert not has_load(plain, known) and len(known) == 3
    assert has_load(add(plain, ROW), known) and has_load(inside)


def test_indices_and_their_run_time_atoms() -> None:
    guard = Expr("guard", (ROW, const(0, int64)), ((axis_index(I), 0, 2),), int64)
    assert indices_of(guard) == (axis_index(I),) and indices_of(const(1, int64)) == ()
    assert dynamic_children(GATHERED) == (ROW,)
    nested = (GATHERED.arg[1] // 3) % 2
    assert [atom.expr for atom in dynamics_of(nested)] == [ROW]


def test_rewrite_reaches_into_indices() -> None:
    found = rewrite(add(GATHERED, ROW), {I: constant(3), J: axis_index(I)})
    assert found.args[1].arg == (1, constant(3))
    assert dynamic_children(found.args[0])[0].arg == (1, constant(3))
    ones = rewrite(add(ROW, ROW), {}, lambda e: const(1, int64) if e.op == "load" else None)
    assert ones == add(const(1, int64), const(1, int64))


def test_what_several_expressions_share_is_walked_and_rewritten_once() -> None:
    both = add(GATHERED, const(1.0, float32))
    roots = [add(both, GATHERED), add(both, both)]
    assert walk_all(roots) == [*walk(roots[0]), roots[1]]
    assert walk_all(roots[1:], {id(each) for each in walk(roots[0])}) == [roots[1]]
    first, second = rewrite_all(roots, {J: constant(3)})
    assert [first, second] == [rewrite(root, {J: constant(3)}) for root in roots]
    assert first.args[0] is second.args[0] is second.args[1] and first.args[0] is not both


def test_a_large_expression_is_printed_once_per_node() -> None:
    value = ROW
    for _ in range(200):
        value = add(value, value)
    text = format_expr(value)
    assert len(text) < 20_000 and "t0 = " in text
    assert max(map(len, text.splitlines())) < 100


def test_kernel_text_names_everything() -> None:
    compute = Compute((I,), (J,), "sum", GATHERED, float32, (2, axis_index(I)))
    step = Scatter((I,), (J,), None, const(1.0, float32), 2, axis_index(J))
    slots = (Slot(float32, 32, "in"), Slot(int64, 4, "in"), Slot(float32, 4, "out"))
    parts = (Part((I,), (compute,)), Part((), (), step))
    text = repr(Kernel("rows", "reduce.row", slots, (), parts))
    for piece in ("kernel rows (reduce.row)", "s1: in int64[4]", "sum[j:4]", "-> s2[", "set"):
        assert piece in text
