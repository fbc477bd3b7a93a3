"""Batching rules, from the op table: a vectorised op equals the stack of its results per sample."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from graph_support import leaf, value

from picograd.dtype import float16, float32, int32, int64
from picograd.errors import GradientError, TraceError
from picograd.graph import build, build_composite
from picograd.graph.batch import Batch
from picograd.graph.complex_numbers import view_as_complex, view_as_real
from picograd.graph.composites import join
from picograd.graph.expand import expand_composites
from picograd.graph.factors import product_gradient
from picograd.graph.gradient import gradient
from picograd.graph.host_call import host_call
from picograd.graph.node import Node
from picograd.graph.ops import OPS
from picograd.graph.parts import put
from picograd.graph.recurrence import make_body, outcome, placeholder, recur
from picograd.graph.scanning import running_gradient, scan
from picograd.graph.shape import ConvSpec
from picograd.graph.sorting import sort
from picograd.tensor.math.transcendental import digamma_slope, digamma_value, known_slope

SIZE = 3
Builder = Callable[..., Node]
ELEMENTWISE = [row for row in OPS.values() if row.is_elementwise]
CONV = ConvSpec((2,), ((1, 1),), (1,), (1,))


def floats(*shape: int) -> np.ndarray:
    """Distinct numbers, so that extremes have no ties, for a batch of SIZE."""
    count = SIZE * int(np.prod(shape))
    numbers = np.random.default_rng(count).permutation(count) * 0.1 - 1
    return numbers.reshape(SIZE, *shape).astype(np.float32)


def whole(*shape: int, below: int = 3) -> np.ndarray:
    return np.random.default_rng(1).integers(0, below, (SIZE, *shape))


def composite(op: str, arg: Any, reduced: tuple[int, ...] | None = None) -> Builder:
    """Make a builder of a composite whose result has another shape than its first input."""

    def make(x: Node, *rest: Node) -> Node:
        dtype = int64 if op.startswith("arg") else x.dtype
        return Node(op, (x, *rest), arg, reduced or x.shape, dtype, x.device)

    return make


def chunks(x: Node) -> Node:
    return Node("scan_chunks", (x,), ("sum", 0, 2), x.shape, x.dtype, x.device)


def sorted_runs(x: Node) -> Node:
    return Node("sort_keys", (x,), (1, 2), x.shape, int64, x.device)


def counted(pairs: Node) -> Node:
    return Node("radix_count", (pairs,), (4, 1), (2, 512), int32, pairs.device)


def moved(pairs: Node, starts: Node) -> Node:
    return Node("radix_move", (pairs, starts), (4, 1), pairs.shape, pairs.dtype, pairs.device)


def doubled(x: Node) -> Node:
    return build_composite.custom(x * 2, (x,), lambda g, y, x: [g * x])


def part_of(op: str, pairs: Node) -> Node:
    z = view_as_complex(pairs)
    return Node(op, (z,), float32, z.shape, float32, z.device)


def loop(kind: str, number: int) -> Builder:
    def make(start: Node, xs: Node, scale: Node) -> Node:
        carry, x, held = (
            placeholder(name, shape, start.dtype, "cpu")
            for name, shape in (("carry", (2,)), ("x", (2,)), ("constant", ()))
        )
        after = carry * x + held.broadcast_to((2,))
        body, _ = make_body(([carry], [x], [held]), [after], [after * x])
        at = len(body.order) - 1 if kind == "stack" else number
        return outcome(recur(body, 3, True, [start, xs, scale]), kind, at)

    return make


# op -> (builder of one sample's node, the inputs with a leading axis of samples)
CASES: dict[str, tuple[Builder, tuple[np.ndarray, ...]]] = {
    "reshape": (lambda x: x.reshape((3, 2)), (floats(2, 3),)),
    "permute": (lambda x: x.permute((1, 0)), (floats(2, 3),)),
    "expand": (lambda x: x.expand((2, 4)), (floats(2, 1),)),
    "slice": (lambda x: x.slice(((0, 2, 1), (0, 3, 2))), (floats(2, 3),)),
    "flip": (lambda x: x.flip((1,)), (floats(2, 3),)),
    "pad": (lambda x: x.pad(((0, 0), (1, 2)), 5), (floats(2, 3),)),
    "window": (lambda x: x.window(((1, 2, 1, 1),)), (floats(2, 5),)),
    "fold": (lambda x: x.fold(((1, 2, 1, 1),), (5,)), (floats(2, 4, 2),)),
    "reduce": (lambda x: x.reduce("max", (1,)), (floats(2, 3),)),
    "contract": (
        lambda a, b: a.contract(b, ((0, 1), (1, 2), (0, 2))),
        (floats(2, 3), floats(3, 4)),
    ),
    "conv": (lambda x, w: x.conv(w, CONV), (floats(2, 2, 3, 5), floats(2, 4, 3, 3))),
    "gather": (lambda x, i: x.gather([i], (1,)), (floats(2, 3), whole(2, 2))),
    "scatter": (
        lambda x, v, i: x.scatter(v, [i], (1,), "sum"),
        (floats(2, 3), floats(4, 2), whole(4)),
    ),
    "put": (
        lambda x, v: put(x, v, (("slice", ((0, 2, 1), (1, 2, 1))),)),
        (floats(2, 3), floats(2, 1)),
    ),
    "copy": (lambda x: Node("copy", (x,), x.device, x.shape, x.dtype, x.device), (floats(2),)),
    "contiguous": (build.contiguous, (floats(2),)),
    "cat": (lambda a, b: join([a, b], 1), (floats(2, 3), floats(2, 1))),
    "host_call": (
        lambda a, b: host_call("solve", a.iota(0).binary("equal", a.iota(1)).cast(a.dtype) + a, b),
        (floats(3, 3), floats(3, 2)),
    ),
    "detach": (build.detach, (floats(2),)),
    "scan": (lambda x: scan(x, "prod", 1), (floats(2, 3),)),
    "prod_gradient": (lambda g, x: product_gradient(g, x, (1,)), (floats(2, 3), floats(2, 3))),
    "cumprod_gradient": (
        lambda g, y, x: running_gradient(g, y, x, 1),
        (floats(2, 3), floats(2, 3), floats(2, 3)),
    ),
    "scan_chunks": (chunks, (floats(5, 2),)),
    "sort": (lambda x: sort(x, 1, True), (floats(2, 4),)),
    "sort_keys": (sorted_runs, (whole(2, 4, below=9),)),
    "radix_count": (counted, (whole(2, 5, below=9),)),
    "radix_move": (moved, (np.zeros((SIZE, 2, 4), int), np.zeros((SIZE, 2, 256), int))),
    "analytic": (lambda pairs: view_as_real(view_as_complex(pairs).unary("sqrt")), (floats(2, 2),)),
    "smooth": (lambda x: known_slope(x, digamma_value, digamma_slope), (floats(2, 3),)),
    "relu": (composite("relu", None), (floats(2, 3),)),
    "side": (lambda a, b: build_composite.side(a.binary("less", b)), (floats(2, 3), floats(2, 3))),
    "gelu": (composite("gelu", "tanh"), (floats(2, 3),)),
    "softmax": (composite("softmax", 1), (floats(2, 3),)),
    "log_softmax": (composite("log_softmax", 0), (floats(2, 3),)),
    "logsumexp": (composite("logsumexp", 1, (2,)), (floats(2, 3),)),
    "argmax": (composite("argmax", 1, (2,)), (floats(2, 3),)),
    "argmin": (composite("argmin", 0, (3,)), (floats(2, 3),)),
    "max_pool": (composite("max_pool", ((1, 2, 2, 1),), (2, 2)), (floats(2, 4),)),
    "var": (composite("var", ((0,), 1), (3,)), (floats(2, 3),)),
    "layer_norm": (composite("layer_norm", (1,)), (floats(2, 3), floats(2), floats(2))),
    "cross_entropy": (composite("cross_entropy", 1, (2,)), (floats(2, 3), whole(2), floats(2))),
    "reduce_segments": (
        composite("reduce_segments", (0, "max")),
        (floats(3, 2), floats(5, 2), whole(3, below=6)),
    ),
    "counted_mean": (composite("counted_mean", None), (floats(2), floats(2), floats(2))),
    "batch_norm": (
        composite("batch_norm", None),
        (floats(2, 3, 4), floats(3), floats(3), floats(3), floats(3)),
    ),
    "complex": (lambda a, b: a.paired(b), (floats(2), floats(2))),
    "real": (lambda x: part_of("real", x), (floats(3, 2),)),
    "imag": (lambda x: part_of("imag", x), (floats(3, 2),)),
    "view_as_complex": (view_as_complex, (floats(3, 2),)),
    "view_as_real": (lambda x: view_as_real(view_as_complex(x)), (floats(3, 2),)),
    "custom": (doubled, (floats(2),)),
    "recur": (loop("carry", 0), (floats(2), floats(3, 2), floats())),
    "outcome": (loop("history", 0), (floats(2), floats(3, 2), floats())),
}
EXPANDED = {"scatter_runs", "bin_sums", "eliminate", "rotate"}
REFUSED = {"after", "flow", "assign", "random_bits", *EXPANDED}
RULED = {name for name, row in OPS.items() if row.batch or row.batch_arg}


def both_ways(builder: Builder, arrays: tuple[np.ndarray, ...], mapped: tuple[bool, ...]) -> None:
    """Compare the batched node with the results of the samples, stacked."""
    batch = Batch(SIZE)
    inputs = [
        batch.sample(leaf(each)) if is_mapped else leaf(each[0])
        for each, is_mapped in zip(arrays, mapped)
    ]
    found = value(batch.full(builder(*inputs)))
    rows = [
        value(builder(*(leaf(a[at if own else 0]) for a, own in zip(arrays, mapped))))
        for at in range(SIZE)
    ]  # fmt: skip
    np.testing.assert_allclose(found, np.stack(rows), 1e-5, 1e-5, err_msg=str(mapped))


def every_choice(count: int) -> list[tuple[bool, ...]]:
    return [choice for choice in itertools.product((True, False), repeat=count) if any(choice)]


def test_every_op_has_a_rule() -> None:
    for name, row in OPS.items():
        is_known = name in RULED or row.is_elementwise or row.expand or not row.arity
        assert is_known and not (row.batch and row.batch_arg), name
    assert set(CASES) == RULED - REFUSED


@pytest.mark.parametrize("name", CASES)
def test_rule_equals_the_samples(name: str) -> None:
    builder, arrays = CASES[name]
    for mapped in every_choice(len(arrays)):
        both_ways(builder, arrays, mapped)


@pytest.mark.parametrize("row", ELEMENTWISE, ids=lambda row: row.name)
def test_elementwise_rows(row: Any) -> None:
    kind = next(each for each in ("float", "int", "bool", "uint") if each in row.dtype_rule.kinds)
    low, high = row.domain
    random = np.random.default_rng(0)
    draws = [random.uniform(low, high, (SIZE, 2)) for _ in range(row.arity)]
    if row.arity == 3 and row.linear:
        arrays = (draws[0] > 0, *draws[1:])
    elif kind == "float":
        arrays = tuple(draws)
    else:
        arrays = tuple(
            np.abs(each).astype(np.bool_ if kind == "bool" else np.int64) for each in draws
        )

    def make(*nodes: Node) -> Node:
        if row.name == "cast":
            return nodes[0].cast(float16)
        if row.name == "bitcast":
            return build.bitcast(nodes[0].cast(float32), int32)
        return build.elementwise(row.name, *nodes)

    for mapped in every_choice(row.arity):
        both_ways(make, arrays, mapped)


def test_composite_without_a_rule_is_expanded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OPS, "softmax", replace(OPS["softmax"], batch_arg=None))
    both_ways(*CASES["softmax"], (True,))


def test_gathers_with_shared_parts() -> None:
    def several(x: Node, i: Node, j: Node) -> Node:
        return x.gather([i, j], (0, 2))

    arrays = (floats(3, 2, 3), whole(2), whole(2))
    for mapped in every_choice(3):
        both_ways(several, arrays, mapped)


def test_stack_of_a_loop() -> None:
    arrays = (floats(2), floats(3, 2), floats())
    for mapped in every_choice(3):
        both_ways(loop("stack", 0), arrays, mapped)


def test_batch_of_a_batch() -> None:
    outer, inner = Batch(2), Batch(3)
    x = np.arange(12.0).reshape(2, 3, 2)
    row = outer.sample(leaf(x))
    one = inner.sample(row)
    total = inner.full(one.reduce("sum", (0,)) * 2)
    np.testing.assert_array_equal(value(outer.full(total)), x.sum(-1) * 2)


def test_gradient_of_a_custom_node_is_vectorised_too() -> None:
    batch, x = Batch(SIZE), leaf(floats(2))
    y = batch.full(doubled(batch.sample(x)))
    (found,) = gradient([(y, y.const_like(1))], [x])
    assert found is not None
    np.testing.assert_allclose(value(found), floats(2))
    shared, batch = leaf(floats(2)[0]), Batch(SIZE)  # its gradients add up over the samples
    both = build_composite.custom(
        shared * 2, (shared, batch.sample(x)), lambda g, y, a, b: [g * b, None]
    )
    y = batch.full(both)
    (found,) = gradient([(y, y.const_like(1))], [shared])
    assert found is not None
    np.testing.assert_allclose(value(found), floats(2).sum(0), 1e-6)


def test_what_no_sample_reaches_stays_the_same_node() -> None:
    batch, x = Batch(SIZE), leaf(floats(2))
    shared = x.unary("exp")
    assert batch.convert([shared]) == [None]
    (found,) = batch.convert([batch.sample(leaf(floats(3, 2))) * shared])
    assert found is None or shared in found.inputs[1].inputs[0].inputs


def test_refusals_name_the_reason() -> None:
    batch, x = Batch(SIZE), leaf(floats(2))
    sample = batch.sample(x)
    with pytest.raises(GradientError, match="vmap of assign: a tensor from outside"):
        batch.convert([build.assign(leaf(floats(2)[0]), sample)])
    offset = batch.sample(leaf(whole()))
    with pytest.raises(GradientError, match="random stream depends on the sample"):
        batch.convert([build.random_bits(offset, 1, (2,))])
    with pytest.raises(TraceError, match="value of one sample is not known"):
        value(expand_composites([sample * 2])[0])


def test_it_is_linear() -> None:
    batch = Batch(2)
    node = batch.sample(leaf(floats(2)[:2]))
    for _ in range(5000):
        node = node + node
    (found,) = batch.convert([node])
    assert found is not None and len(batch.done) == 5001
