"""Kernels are given the hero that fits their memory, a readable name, and 16-bit sums are wide."""

import pytest
from plan_support import TARGET, check_plan, leaf, spread

from picograd.dtype import float16, float32, int64
from picograd.graph import build
from picograd.graph.node import RESULT, Node
from picograd.graph.sorting import sort
from picograd.schedule.assemble import hero_of, is_chain, is_product, is_row_contiguous
from picograd.schedule.index import Axis, Dynamic, Index, atom_index, axis_index
from picograd.schedule.loop import Compute, Expr, Part, const
from picograd.schedule.schedule import schedule

X = leaf(6, 8)
I, J, K = Axis("i", 4), Axis("j", 8), Axis("k", 16)  # noqa: E741


def load(index: Index, slot: int = 0) -> Expr:
    return Expr("load", (), (slot, index), float32)


def softmax() -> Node:
    return build.softmax(X, 1)


@pytest.mark.parametrize(
    ("root", "hero"),
    [
        (X + 1.0, "map"),
        (X.reduce("sum", (1,)), "reduce.row"),
        (X.reduce("sum", (0,)), "reduce.col"),
        (X.reduce("sum", (0, 1)), "reduce.all"),
        (softmax(), "reduce.row"),
        (build.matmul(X, leaf(8, 3)), "contract"),
        (build.matmul(X, build.const(1.0, (8, 3), float32, "cpu")), "reduce.row"),
    ],
    ids=["map", "row", "column", "all", "chain", "matmul", "product with a constant"],
)
def test_hero(root: Node, hero: str) -> None:
    (kernel,) = schedule([root], TARGET).kernels
    assert kernel.hero == hero
    assert kernel.name.startswith(hero.replace(".", "_"))
    check_plan([root], 1)


def test_where_nothing_is_written_or_sorted_no_kernel_runs() -> None:
    scattered = X.scatter(leaf(0, 8), (leaf(0, dtype=int64),), (0,), "sum")
    assert [kernel.hero for kernel in schedule([scattered], TARGET).kernels] == ["map"]
    assert not schedule([sort(leaf(0, 8), 0)], TARGET).kernels


def test_half_sums_are_wide_and_rounded_once() -> None:
    x = leaf(4, 16, dtype=float16)
    (kernel,) = schedule([x.reduce("sum", (1,))], TARGET).kernels
    reductions = [c for c in kernel.parts[0].computes if c.reduce]
    assert [c.dtype for c in reductions] == [float32]
    (product,) = schedule([build.matmul(x, leaf(16, 4, dtype=float16))], TARGET).kernels
    assert product.parts[0].computes[0].dtype is float32


def test_names_do_not_tell_how_what_is_read_was_made() -> None:
    """Below a gradient that was computed there may be a formula, which is no op."""
    whole = Node("formula", (X,), None, (), float32, "cpu")
    gradient = build.detach(Node(RESULT, (whole,), 0, (6, 8), float32, "cpu"))
    gradient.realized = X.arg.buffer
    (kernel,) = schedule([build.contiguous(gradient)], TARGET).kernels
    (same,) = schedule([build.contiguous(X)], TARGET).kernels
    assert kernel.name == same.name


def test_nothing_to_compute_is_no_kernel() -> None:
    assert schedule([leaf(0, 3) + 1.0], TARGET).kernels == ()
    empty = spread(leaf(0).reduce("sum", (0,)), (3,))
    check_plan([empty], 1)


def test_is_product_wants_two_arrays() -> None:
    one = load(axis_index(J))
    both = Expr("mul", (one, load(axis_index(I), 1)), None, float32)
    assert is_product(Compute((I,), (J,), "sum", both, float32))
    constant = Expr("mul", (one, const(2.0, float32)), None, float32)
    assert not is_product(Compute((I,), (J,), "sum", constant, float32))


def test_all_sums_have_a_say_in_what_lies_next_to_one_another() -> None:
    """The first sum reads an array by rows and one by columns, the second another by columns."""
    rows, columns = load(axis_index(I) * 8 + axis_index(J)), axis_index(J) * 4 + axis_index(I)
    both = Expr("add", (rows, load(columns, 1)), None, float32)
    wide = Expr("mul", (both, load(columns, 2)), None, float32)
    first, second = (Compute((I,), (J,), "sum", body, float32) for body in (both, wide))
    assert hero_of("reduce", Part((I,), (first,))) == "reduce.row"
    assert hero_of("reduce", Part((I,), (first, second))) == "reduce.col"


def test_is_chain_wants_elements_after_a_row_value() -> None:
    total = Compute((I,), (J,), "sum", load(axis_index(I) * 8 + axis_index(J)), float32)
    use = Expr("add", (load(axis_index(J)), Expr("ref", (), 0, float32)), None, float32)
    assert is_chain(Part((I,), (total, Compute((I, J), (), None, use, float32))))
    assert not is_chain(Part((I,), (total,)))


def test_contiguous_side_is_that_of_the_unit_stride() -> None:
    by_row = load(axis_index(I) * 8 + axis_index(J))
    by_column = load(axis_index(J) * 4 + axis_index(I))
    assert is_row_contiguous([by_row], [J])
    assert not is_row_contiguous([by_column], [J])
    assert is_row_contiguous([by_column], [J], least=5)  # columns too few to work on together


def test_what_is_read_to_know_where_to_read_has_no_vote() -> None:
    places = load(axis_index(I) * 8 + axis_index(J))  # contiguous along the reduced axis
    row = atom_index(Dynamic(places, 0, 9))
    assert not is_row_contiguous([load(row * 16 + axis_index(K), 1)], [J])
