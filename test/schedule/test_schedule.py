"""Plans against the graph interpreter: views, reductions, contractions, convolutions, effects."""

import sys
import time

import numpy as np
import plain_nodes
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_support import TARGET, VALUES, check_plan, cnn_step, copies, leaf, run

from picograd.buffer import RuntimeScalar
from picograd.dtype import bfloat16, float16, float32, int64
from picograd.graph import build
from picograd.graph.gradient import gradient
from picograd.graph.host_call import host_call
from picograd.graph.interpret import interpret
from picograd.graph.node import Node
from picograd.graph.recurrence import make_body, outcome, placeholder, recur
from picograd.graph.shape import ConvSpec
from picograd.schedule.plan import KernelLaunch
from picograd.schedule.schedule import schedule


def random_view(draw: st.DrawFn, node: Node) -> Node:
    """One view of a node, drawn by hypothesis."""
    shape = node.shape
    kind = draw(st.sampled_from(["permute", "slice", "flip", "pad", "reshape", "window", "expand"]))
    axis = draw(st.integers(0, len(shape) - 1))
    if kind == "permute":
        return build.permute(node, draw(st.permutations(range(len(shape)))))
    if kind == "flip":
        return build.flip(node, (axis,))
    if kind == "slice":
        start = draw(st.integers(0, shape[axis] - 1))
        stop, step = draw(st.integers(start + 1, shape[axis])), draw(st.integers(1, 3))
        ranges = [(0, n, 1) for n in shape]
        ranges[axis] = (start, stop, step)
        return build.slice_(node, ranges)
    if kind == "pad":
        pads = [(0, 0)] * len(shape)
        pads[axis] = (draw(st.integers(0, 2)), draw(st.integers(0, 2)))
        return build.pad(node, tuple(pads), draw(st.sampled_from([0.0, 1.5])))
    if kind == "reshape":
        sizes = [n for n in (2, 3, 4, 6) if node.size % n == 0] or [1]
        size = draw(st.sampled_from(sizes))
        return build.reshape(node, (size, node.size // size))
    if kind == "window" and shape[axis] >= 2 and len(shape) < 4:
        return plain_nodes.window(node, ((axis, 2, draw(st.integers(1, 2)), 1),))
    return build.expand(build.reshape(node, (1, *shape)), (2, *shape)) if len(shape) < 4 else node


@st.composite
def graphs(draw: st.DrawFn) -> Node:
    """A chain of views, elementwise operations and reductions over a few leaves."""
    node = leaf(*draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)))
    for _ in range(draw(st.integers(1, 7))):
        kind = draw(st.sampled_from(["view", "view", "unary", "binary", "reduce", "self", "norm"]))
        if kind == "view":
            node = random_view(draw, node)
        elif kind == "unary":
            node = node.unary(draw(st.sampled_from(["tanh", "neg", "abs", "sin"])))
        elif kind == "binary":
            node = node * leaf(*node.shape)
        elif kind == "self":
            node = node + build.flip(node, tuple(range(len(node.shape))))
        elif len(node.shape) > 1 and node.size < 3000:
            axis = draw(st.integers(0, len(node.shape) - 1))
            monoid = draw(st.sampled_from(["sum", "max", "min"]))
            is_norm = kind == "norm"
            node = build.softmax(node, axis) if is_norm else node.reduce(monoid, (axis,))
    return node


@settings(max_examples=120, deadline=None, database=None, derandomize=True)
@given(graphs())
def test_generated_graphs(node: Node) -> None:
    check_plan([node])
    VALUES.clear()


@st.composite
def dags(draw: st.DrawFn) -> list[Node]:
    """Several roots over shared values of one shape, its rows and its columns."""
    rows, columns = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    shape = (rows, columns)
    pool = [leaf(*shape), leaf(*shape)]
    for _ in range(draw(st.integers(2, 14))):
        a, b = draw(st.sampled_from(pool)), draw(st.sampled_from(pool))
        kind = draw(st.sampled_from(["add", "mul", "tanh", "sum", "mean", "dot", "flip", "assign"]))
        if kind in ("add", "mul"):
            pool.append(a.binary(kind, b))
        elif kind in ("tanh",):
            pool.append(a.unary(kind))
        elif kind == "flip":
            pool.append(build.flip(a, (draw(st.integers(0, 1)),)))
        elif kind == "dot":
            square = a.contract(b, ((0, 1), (2, 1), (0, 2)))
            pool.append(square.contract(a, ((0, 1), (1, 2), (0, 2))) * 0.1)
        elif kind == "assign":
            target = pool[draw(st.integers(0, 1))]
            if all(node.op != "assign" or node.inputs[0] is not target for node in pool):
                pool.append(build.assign(target, a))
        else:
            axes = draw(st.sampled_from([(0,), (1,), (0, 1)]))
            found = a.reduce("sum" if kind == "sum" else "max", axes, keepdim=True)
            pool.append(a - found.unary("tanh").expand(shape))
    return draw(st.lists(st.sampled_from(pool), min_size=1, max_size=4)) + [
        node for node in pool if node.op == "assign"
    ]


@settings(max_examples=150, deadline=None, database=None, derandomize=True)
@given(dags())
def test_generated_dags(roots: list[Node]) -> None:
    check_plan(roots, tolerance=1e-3)
    VALUES.clear()


@settings(max_examples=40, deadline=None, database=None, derandomize=True)
@given(st.data())
def test_generated_convolutions(data: st.DataObject) -> None:
    def draw(low: int, high: int) -> int:
        return data.draw(st.integers(low, high))

    groups, rank = draw(1, 2), draw(1, 2)
    sizes, kernel = [draw(4, 6) for _ in range(rank)], [draw(1, 3) for _ in range(rank)]
    pairs = tuple((draw(-1, 2), draw(0, 2)) for _ in range(rank))
    steps = tuple(tuple(draw(1, 2) for _ in range(rank)) for _ in range(3))
    spec = ConvSpec(steps[0], pairs, steps[1], (1,) * rank if max(kernel) > 2 else steps[2])
    x, weight = leaf(2, groups, 2, *sizes), leaf(groups, 3, 2, *kernel)
    y = build.conv(x, weight, spec)
    found = gradient([(y, leaf(*y.shape))], [x, weight])
    check_plan([y, *(g for g in found if g is not None)])
    VALUES.clear()


def test_convolution_then_pooling_runs_channels_last() -> None:
    x = build.conv(leaf(2, 1, 3, 8, 8), leaf(1, 4, 3, 3, 3), SAME_SPEC).reshape((2, 4, 8, 8))
    pooled = build.max_pool(build.relu(x), ((2, 2, 2, 1), (3, 2, 2, 1)))
    y = build.conv(pooled.reshape((2, 1, 4, 4, 4)), leaf(1, 5, 4, 3, 3), SAME_SPEC)
    plan = check_plan([y], 2)
    strides = [slot.strides for slot in plan.slots if slot.kind == "temporary"]
    assert strides == [(64, 1, 16, 4)]


SAME_SPEC = ConvSpec((1, 1), ((1, 1), (1, 1)), (1, 1), (1, 1))


def test_pooling_with_overlap_and_its_gradient() -> None:
    x = leaf(2, 3, 7, 7)
    y = build.max_pool(x, ((2, 3, 2, 1), (3, 3, 2, 1)))
    found = gradient([(y, leaf(*y.shape))], [x])
    check_plan([y, *(g for g in found if g is not None)])


@pytest.mark.parametrize("windows, shape, sizes", [
    (((1, 3, 1, 1),), (4, 4, 3), (6,)),
    (((1, 2, 2, 2),), (4, 3, 2), (7,)),
    (((0, 2, 2, 1), (1, 2, 2, 1)), (3, 2, 2, 2), (6, 5)),
    (((0, 1, 3, 1),), (3, 2, 1), (7,)),
])  # fmt: skip
def test_fold(windows: tuple[tuple[int, ...], ...], shape: tuple[int, ...], sizes: object) -> None:
    check_plan([build.fold(leaf(*shape), windows, sizes)], 1)  # type: ignore[arg-type]


def test_gather_and_scatter() -> None:
    x, rows = leaf(4, 6), leaf(5, dtype=int64, below=4)
    check_plan([plain_nodes.gather(x, [rows], (0,))], 1)
    check_plan([plain_nodes.gather(x * 2.0, [rows, leaf(5, dtype=int64, below=6)], (0, 1))], 1)
    check_plan([plain_nodes.scatter(x, leaf(5, 6), [rows], (0,), "sum")], 2)
    check_plan([plain_nodes.scatter(x, leaf(5, 6), [rows], (0,), None) * 2.0])
    columns = [leaf(5, dtype=int64, below=6)]
    check_plan([plain_nodes.scatter(x, leaf(5, 4), columns, (1,), "max")])


def test_random_bits_and_scalars() -> None:
    offset = build.scalar(RuntimeScalar(1 << 33), "cpu", int64)
    check_plan([build.random_bits(offset, 0x1234567890ABCDEF, (3, 5))], 1)


def test_empty_and_tiny_tensors() -> None:
    empty = leaf(0, 4)
    check_plan([empty.reduce("sum", (0,)), empty + empty])
    check_plan([build.matmul(leaf(3, 0), leaf(0, 4)), empty.reduce("sum", (1,))])
    constant = build.const(2.0, (3,), float32, "cpu")
    check_plan([constant, leaf() * 2.0, leaf(1, 1).reduce("sum", (0,))])


def test_roots_that_are_leaves_views_or_repeated() -> None:
    x = leaf(4, 6)
    y = x + x
    check_plan([x, x.reshape((24,)), x.permute((1, 0)), y, y.reshape((24,)), y, y.permute((1, 0))])


def test_a_realized_node_is_a_leaf() -> None:
    y = leaf(3).unary("exp")
    z = y * 2.0
    y.realized = leaf(3).arg.buffer
    plan = schedule([z], TARGET)
    assert plan.inputs == (y,)


@pytest.mark.parametrize("dtype", [float16, bfloat16])
def test_16_bit_floats_accumulate_in_float32(dtype: object) -> None:
    a, b = leaf(5, 70).cast(dtype), leaf(70, 3).cast(dtype)  # type: ignore[arg-type]
    product = build.matmul(a, b)
    for node in (a.reduce("sum", (1,)), product, build.gelu(product), build.softmax(a, 1), a * a):
        plan = schedule([node], TARGET)
        wanted = interpret([node], values=VALUES)[0].astype(np.float64)
        np.testing.assert_allclose(run(plan)[0].astype(np.float64), wanted, rtol=1e-2)
        sums = [c for k in plan.kernels for p in k.parts for c in p.computes if c.monoid == "sum"]
        assert all(c.dtype is float32 for c in sums)


@pytest.mark.parametrize("name, wanted", [
    ("self", 0), ("transposed", 1), ("swap", 2), ("read", 0), ("product", 0), ("twice", 0),
    ("velocity", 0), ("position", 0),
])  # fmt: skip
def test_assignments_see_old_values(name: str, wanted: int) -> None:
    a, b = leaf(4, 4), leaf(4, 4)
    first = build.assign(a, a + 1.0)
    velocity = b * 0.9 + (a * 0.1 + leaf(4, 4))  # each is made of both: what both read comes first
    moved = [build.assign(b, velocity), build.assign(a, a - velocity * 0.01)]
    roots = {
        "self": [build.assign(a, a * 2.0)],
        "transposed": [build.assign(a, a.permute((1, 0)))],
        "swap": [build.assign(a, b), build.assign(b, a)],
        "read": [build.assign(a, a * 2.0), a.reduce("sum", (0, 1))],
        "product": [build.assign(a, build.matmul(a, a)), a + b],
        "twice": [build.assign(first, first * 3.0)],
        "velocity": moved,
        "position": moved[::-1],
    }[name]
    assert copies(check_plan(roots)) == wanted


def test_a_training_step_is_right() -> None:
    losses, step = cnn_step(3, (4, 6), 8)
    check_plan(losses, tolerance=1e-3)
    plan = check_plan(step, tolerance=1e-3)
    assert copies(plan) == 0


def test_time_is_linear() -> None:
    def seconds(count: int) -> float:
        x = y = leaf(10)
        for _ in range(count):
            y = y + x
        start = time.process_time()
        schedule([y], TARGET, verify=False)
        return time.process_time() - start

    seconds(100)
    small = min(seconds(2000) for _ in range(3))
    large = min(seconds(20000) for _ in range(2))
    assert large < 20 * small
    assert large / 20000 < 200e-6


def test_host_calls() -> None:
    a, b = leaf(2, 3, 3), leaf(3, 2)
    spread = build.expand(b.reshape((1, 3, 2)), (2, 3, 2))
    solved = host_call("solve", a.unary("exp"), spread)
    turned = solved.permute((0, 2, 1))
    plan = check_plan([host_call("qr", turned, options=("reduced",)) * 2.0, turned])
    kinds = [type(step).__name__ for step in plan.steps]
    assert kinds.count("HostStep") == 2
    assert "host solve() " in repr(plan) and "the host reads it: solve" in repr(plan)
    check_plan([host_call("det", a), host_call("det", a), host_call("inv", leaf(0, 3, 3))])
    alone = check_plan([host_call("fft", leaf(4, 2), options=(-1, False, "ortho"))])
    assert not alone.kernels and len(alone.steps) == 1  # leaf to output, without a copy


def test_writes_wait_for_host_calls_that_may_raise() -> None:
    """What a plan writes in place is written when nothing can fail any more."""
    for reads in (True, False):
        a, b = leaf(3, 3), leaf(3, 3)
        write = build.assign(a, a + 1.0)
        plan = check_plan([write, host_call("inv", write if reads else b) * write])
        steps = [type(step).__name__ for step in plan.steps]
        written = [
            number for number, step in enumerate(plan.steps)
            if plan.outputs[0] in (getattr(step, "target", -1), *out_slots(step))
        ]  # fmt: skip
        assert written and min(written) > steps.index("HostStep")


def out_slots(step: object) -> list[int]:
    if not isinstance(step, KernelLaunch):
        return []
    pairs = zip(step.kernel.slots, step.slots)
    return [number for slot, number in pairs if slot.role != "in"]


def test_a_loop_around_a_host_call() -> None:
    start, xs = leaf(3, 3), leaf(4, 3, 3)
    carry, x = (placeholder(kind, (3, 3), float32, "cpu") for kind in ("carry", "x"))
    after = host_call("inv", carry + x * 0.1) + x
    body, _ = make_body(([carry], [x], []), [after], [])
    loop = recur(body, 4, False, [start, xs])
    plan = check_plan([outcome(loop, "carry", 0), outcome(loop, "history", 0)], tolerance=1e-3)
    assert "b" in repr(plan) and "host inv() b" in repr(plan)


def test_a_chain_of_writes_is_walked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    stage, looks = sys.modules[schedule.__module__], [0]
    is_leaf = stage.is_leaf

    def count(node: Node) -> bool:
        looks[0] += 1
        return bool(is_leaf(node))

    monkeypatch.setattr(stage, "is_leaf", count)
    node = leaf(4)
    for _ in range(300):
        node = build.assign(node, node + 1.0)
    schedule([node], TARGET, verify=False)
    assert looks[0] < 300 * 40  # 300 * 300 where every write looks for its target alone
