"""Equal layers have equal keys; anything that changes the code changes the key."""

from dataclasses import replace

from plan_support import TARGET, leaf, linear

from picograd.dtype import int64
from picograd.graph import build
from picograd.graph.node import Node
from picograd.schedule.canonical import canonical_key
from picograd.schedule.loop import Expr, rewrite
from picograd.schedule.schedule import schedule


def key(node: Node) -> str:
    (kernel,) = schedule([node], TARGET).kernels
    return canonical_key(kernel)


def test_equal_layers_share_a_key() -> None:
    y = leaf(8, 16)
    for _ in range(6):
        y = build.gelu(linear(y, leaf(16, 16), leaf(16)))
    kernels = schedule([y], TARGET).kernels
    assert len(kernels) == 6
    assert len({canonical_key(kernel) for kernel in kernels}) == 1


def test_differences_change_the_key() -> None:
    x = leaf(4, 6)
    nodes = [
        x + 1.0,
        x + 2.0,
        x * 1.5,
        leaf(6, 4).permute((1, 0)) + 1.0,
        leaf(6, 6) + 1.0,
        x.unary("exp"),
        x.reduce("sum", (0,)),
        x.reduce("max", (0,)),
    ]
    assert len({key(node) for node in nodes}) == len(nodes)


def test_places_of_draws_are_part_of_the_key() -> None:
    first, seed = (build.const(number, (), int64, "cpu") for number in (7, 5))
    bits = build.random_halves(first, seed, (4, 6))
    columns = [build.slice_(bits, ((0, 4, 1), (at, at + 1, 1))) for at in (2, 3)]
    assert len({key(column + 1) for column in columns}) == 2


def test_which_equal_expressions_are_one_object_does_not_count() -> None:
    x = leaf(4, 6)
    (kernel,) = schedule([x.unary("exp") * x.unary("exp")], TARGET).kernels
    (compute,) = kernel.parts[0].computes
    first, second = (rewrite(compute.body, {}).args[0] for _ in range(2))
    assert first is not second and first.args[0] is not second.args[0]
    keys = []
    for pair in ((first, first), (first, second)):
        body = Expr("mul", pair, compute.body.arg, compute.body.dtype)
        part = replace(kernel.parts[0], computes=(replace(compute, body=body),))
        keys.append(canonical_key(replace(kernel, parts=(part,))))
    assert keys == [canonical_key(kernel)] * 2
