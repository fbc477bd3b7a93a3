"""Leaves with values, plans run by the interpreters, and models that several tests schedule."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plain_nodes

from picograd.buffer import Buffer, RuntimeScalar, Storage
from picograd.dtype import DType, float32, int64
from picograd.graph import build
from picograd.graph.gradient import gradient
from picograd.graph.interpret import interpret
from picograd.graph.node import Node
from picograd.graph.shape import ConvSpec
from picograd.schedule.interpret_plan import interpret_plan
from picograd.schedule.plan import CopyStep, Plan
from picograd.schedule.schedule import schedule
from picograd.target import Target

TARGET = Target("llvm", "test", 64)
SAME = ConvSpec((1, 1), ((1, 1), (1, 1)), (1, 1), (1, 1))
POOL = ((2, 2, 2, 1), (3, 2, 2, 1))


class Values(dict[Node, Any]):
    """Values of leaves, drawn when they are asked for: many graphs are only planned."""

    below: dict[Node, int] = {}

    def __contains__(self, node: object) -> bool:
        return super().__contains__(node) or node in self.below

    def __missing__(self, node: Node) -> Any:
        below, dtype = self.below[node], node.dtype
        if dtype.is_float:
            self[node] = np.random.standard_normal(node.shape).astype(dtype.numpy)
        else:
            self[node] = np.random.randint(0, below, node.shape).astype(dtype.numpy)
        return self[node]


VALUES = Values()


def leaf(*shape: int, dtype: DType = float32, below: int = 5) -> Node:
    """A leaf whose values are random: normal, or integers in 0..below-1."""
    node = plain_nodes.buffer(Storage(Buffer("cpu", dtype, int(np.prod(shape)), 0)), shape)
    VALUES.below[node] = below
    return node


def run(plan: Plan) -> list[Any]:
    """Run a plan with the kernel interpreter."""
    inputs = [VALUES[node].copy() for node in plan.inputs]
    return interpret_plan(plan, inputs, [node.arg.value for node in plan.scalars])


def check_plan(
    roots: Sequence[Node],
    kernels: int | None = None,
    tolerance: float = 1e-4,
    target: Target = TARGET,
) -> Plan:
    """The plan of `roots` computes what the graph interpreter computes, in so many kernels."""
    plan = schedule(roots, target)
    results = run(plan)
    for found, wanted in zip(results, interpret(roots, values=VALUES), strict=True):
        assert found.shape == wanted.shape
        np.testing.assert_allclose(
            found.astype(np.float64), wanted.astype(np.float64), rtol=tolerance, atol=tolerance
        )
    if kernels is not None:
        names = [kernel.name for kernel in plan.kernels]
        assert len(names) == kernels, (names, plan.reasons, plan.kernels)
    return plan


def copies(plan: Plan) -> int:
    return sum(isinstance(step, CopyStep) for step in plan.steps)


def spread(node: Node, shape: tuple[int, ...]) -> Node:
    """Broadcast a node."""
    return plain_nodes.broadcast(node, build.const(0.0, shape, node.dtype, "cpu"))[0]


def linear(x: Node, weight: Node, bias: Node) -> Node:
    y = x.contract(weight, ((0, 1), (2, 1), (0, 2)))
    return y + spread(bias, y.shape)


def conv_norm(x: Node, channels: int, params: list[Node], effects: list[Node]) -> Node:
    """A 3x3 convolution and batch norm with running statistics."""
    n, inputs, h, w = x.shape
    weight, scale, bias = leaf(1, channels, inputs, 3, 3), leaf(channels), leaf(channels)
    mean, var = leaf(channels), leaf(channels)
    params += [weight, scale, bias]
    y = build.conv(x.reshape((n, 1, inputs, h, w)), weight, SAME).reshape((n, channels, h, w))
    stats = build.batch_stats(y)
    for running, now in zip((mean, var), stats, strict=True):
        effects.append(build.assign(running, running * 0.9 + now * 0.1))
    return build.batch_norm(y, scale, bias, 1e-5, stats)


def cnn_step(n: int, channels: tuple[int, int], size: int) -> tuple[list[Node], list[Node]]:
    """The training step of a small CNN: (loss and gradients, loss and Adam's assignments)."""
    params: list[Node] = []
    effects: list[Node] = []
    x, target = leaf(n, 1, size, size), leaf(n, dtype=int64, below=10)
    y = build.max_pool(build.relu(conv_norm(x, channels[0], params, effects)), POOL)
    y = build.max_pool(build.relu(conv_norm(y, channels[1], params, effects)), POOL)
    y = build.relu(conv_norm(y, channels[1], params, effects)) + y
    flat = y.reshape((n, y.size // n))
    params += [leaf(16, flat.shape[1]), leaf(16), leaf(10, 16), leaf(10)]
    hidden = build.relu(linear(flat, *params[-4:-2]))
    loss = build.cross_entropy(linear(hidden, *params[-2:]), target)
    found = gradient([(loss, loss.const_like(1.0))], params)
    gradients = [g for g in found if g is not None]
    return [loss, *gradients], [loss, *adam(params, gradients), *effects]


def adam(params: Sequence[Node], gradients: Sequence[Node]) -> list[Node]:
    """Adam's assignments; the learning rate is a runtime scalar."""
    rate = build.scalar(RuntimeScalar(0.01), "cpu", float32)
    steps: list[Node] = []
    for p, g in zip(params, gradients, strict=True):
        m, v = leaf(*p.shape), leaf(*p.shape)
        VALUES[v] = np.abs(VALUES[v])
        m_next, v_next = m * 0.9 + g * 0.1, v * 0.999 + g * g * 0.001
        step = spread(rate, p.shape) * m_next / (v_next.unary("sqrt") + 1e-8)
        steps += [build.assign(m, m_next), build.assign(v, v_next), build.assign(p, p - step)]
    return steps
