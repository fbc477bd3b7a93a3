"""Of two writes of one array in turn the first is not made, if elementwise work alone reads it."""

import numpy as np
import pytest
from plan_support import TARGET, VALUES, check_plan, copies, leaf, run, schedule

from picograd.graph import build
from picograd.graph.interpret import interpret
from picograd.graph.node import Node, toposort
from picograd.schedule.joined_writes import join_writes, read_values
from picograd.target import cuda_target


def averaged(count: int) -> tuple[list[Node], list[Node]]:
    """Averages that move in two or three writes each: all writes, and the last ones."""
    writes, last = list[Node](), list[Node]()
    for number in range(count):
        mean, x = leaf(4, 5 + number), leaf(4, 5 + number)
        first = build.assign(mean, mean * 0.9)
        second = build.assign(first, first + x * 0.1)
        writes += [first, second]
        if number % 2:
            second = build.assign(second, second * second)
            writes.append(second)
        last.append(second)
    return writes, last


@pytest.mark.parametrize("target", [TARGET, cuda_target("sm_90a")], ids=["cpu", "gpu"])
def test_averages_are_one_launch(target: object) -> None:
    writes, last = averaged(12)
    plan = check_plan(last, 1, target=target)  # type: ignore[arg-type]
    assert not copies(plan)
    found = run(schedule(writes, target))  # type: ignore[arg-type]
    wanted = dict(zip(last, interpret(last, values=VALUES)))
    for place in range(len(writes)):  # each stands for its memory, which the last one fills
        final = next(each for each in writes[place:] if each in wanted)
        np.testing.assert_allclose(found[place], wanted[final], rtol=1e-5)


def test_what_else_reads_the_first_write_keeps_it() -> None:
    def forms() -> list[list[Node]]:
        a, b = leaf(6, 6), leaf(6, 6)
        first = build.assign(a, a * 2.0)
        total = first.reduce("sum", (0,), keepdim=True).expand((6, 6))
        turned = first.permute((1, 0))
        product = build.matmul(first, b)
        return [[build.assign(first, x)] for x in (total, turned, product, first)]

    for roots in forms():
        assert join_writes(roots, toposort(roots), TARGET) == roots
        check_plan(roots)
    a, w = leaf(6, 6), leaf(6, 6)
    first = build.assign(a, a * 2.0)
    roots = [build.assign(first, first + 1.0), build.assign(w, w - first)]
    assert join_writes(roots, toposort(roots), TARGET) == roots  # it would be computed twice
    both = [build.assign(first, first + 1.0), build.assign(first, first + 2.0)]
    assert join_writes(both, toposort(both), TARGET) == both


def test_readers_of_old_values_run_before() -> None:
    a, b = leaf(6, 6), leaf(6, 6)
    old = build.matmul(a, b)
    first = build.assign(a, a * 2.0)
    between = first.unary("exp")
    second = build.assign(first, between + b)
    roots = [old, between, between.reduce("sum", (0,)), second, build.matmul(second, b)]
    assert join_writes(roots, toposort(roots), TARGET)[3].inputs[0] is a
    assert not copies(check_plan(roots))


@pytest.mark.parametrize("seed", range(20))
def test_random_writes(seed: int) -> None:
    draw = np.random.default_rng(seed)
    arrays = [leaf(5, 5) for _ in range(3)]
    now, roots = list(arrays), list[Node]()
    for _ in range(12):
        place, other = draw.integers(0, 3, 2)
        x, y = now[place], now[other]
        kind = draw.integers(0, 6)
        value = [x * 0.5, x + y, y.permute((1, 0)), x - y.reduce("max", (0,), keepdim=True).expand(
            (5, 5)), build.matmul(x, y) * 0.1, x * y][kind]  # fmt: skip
        if draw.integers(0, 3) == 0:
            roots.append(value)
        now[place] = build.assign(x, value)
    ends = [each for each in now if each not in arrays]
    check_plan([*roots, *ends])
    check_plan([*roots, *ends], target=cuda_target("sm_90a"))


def scaled(count: int) -> tuple[list[Node], list[Node]]:
    """Gradients that a number of their own scales, and averages that move towards them."""
    gradients = [leaf(4, 5 + number) for number in range(count)]
    total = sum(x.reduce("sum", (0, 1)) for x in gradients[1:]) + gradients[0].reduce("sum", (0, 1))
    scaled = [build.assign(x, x * total.reshape((1, 1)).expand(x.shape)) for x in gradients]
    means = [leaf(4, 5 + number) for number in range(count)]
    moved = [build.assign(m, m + (x - m) * 0.1) for m, x in zip(means, scaled)]
    return scaled, moved


@pytest.mark.parametrize("target", [TARGET, cuda_target("sm_90a")], ids=["cpu", "gpu"])
def test_what_writes_are_made_of_is_read_before_it_is_written(target: object) -> None:
    """The scaled gradient and the average: one launch, behind that of the sums."""
    scaled_, moved = scaled(6)
    plan = schedule([*scaled_, *moved], target)  # type: ignore[arg-type]
    (last,) = [kernel for kernel in plan.kernels if kernel.hero == "map"]
    assert not copies(plan)
    assert sum(len(part.computes) for part in last.parts) == 12
    wanted = interpret([*scaled_, *moved], values=VALUES)
    for found, value in zip(run(plan), wanted, strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-5)


def test_a_write_that_others_read_is_read_where_it_was_written() -> None:
    def forms() -> list[list[Node]]:
        a, b, w = leaf(6, 6), leaf(6, 6), leaf(6, 6)
        first = build.assign(a, a * 2.0)
        row = first.reduce("sum", (0,), keepdim=True).expand((6, 6))
        long = w
        for _ in range(8):
            long = long * w
        dear = build.assign(leaf(6, 6), long)
        product = build.assign(leaf(6, 6), build.matmul(a, b))
        return [
            [first, build.assign(w, w - row)],
            [first, build.assign(w, w - first.permute((1, 0)))],
            [first, build.assign(leaf(36), first.reshape((36,)) * 2.0)],
            [first, build.assign(w, w - first), first * b],
            [build.assign(first, first + 1.0), build.assign(w, w - first)],
            [dear, build.assign(w, w - dear)],
            [product, build.assign(w, w - product)],
        ]

    for roots in forms():
        assert read_values(roots, toposort(roots), TARGET) == roots
        check_plan(roots)
