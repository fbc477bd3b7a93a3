"""Scan, sort, radix and runs in Loop IR: lowering, meaning, printing, verifying."""

from dataclasses import replace

import numpy as np
import pytest

from picograd.buffer import Buffer, Storage
from picograd.dtype import DType, float32, int32, int64, uint32, uint64
from picograd.errors import InternalError
from picograd.graph.binning import shape_of
from picograd.graph.elimination import eliminate
from picograd.graph.interpret import interpret as interpret_graph
from picograd.graph.node import Node
from picograd.graph.scanning import scan
from picograd.graph.sorting import sort
from picograd.schedule.canonical import canonical_key
from picograd.schedule.interpret import interpret
from picograd.schedule.loop import Expr, Kernel, Runs
from picograd.schedule.schedule import schedule
from picograd.schedule.verify import verify
from picograd.target import Target

TARGET = Target("llvm", "host", 64, threads=2)


def leaf(shape: tuple[int, ...], dtype: DType = float32) -> Node:
    size = int(np.prod(shape))
    return Node("buffer", (), Storage(Buffer("cpu", dtype, size, 0)), shape, dtype, "cpu")


def kernels_of(node: Node) -> list[Kernel]:
    return [step.kernel for step in schedule([node], TARGET).steps]  # type: ignore[union-attr]


def chunked(x: Node, start: Node | None, axis: int, chunk: int, monoid: str = "sum") -> Node:
    inputs = (x,) if start is None else (x, start)
    return Node("scan_chunks", inputs, (monoid, axis, chunk), x.shape, x.dtype, "cpu")


def check(node: Node, leaves: list[Node]) -> None:
    (kernel,) = kernels_of(node)
    random = np.random.default_rng(0)
    arrays = [random.integers(0, 99, leaf.shape).astype(leaf.dtype.numpy) for leaf in leaves]
    wanted = interpret_graph([node], values=dict(zip(leaves, arrays)))[0]
    slots = [array.ravel().copy() for array in arrays]
    slots.append(np.zeros(wanted.size, node.dtype.numpy))
    interpret(kernel, slots)
    np.testing.assert_allclose(slots[-1].reshape(wanted.shape), wanted, rtol=1e-6)


@pytest.mark.parametrize("monoid", ["sum", "max", "min", "prod", "logaddexp"])
@pytest.mark.parametrize(("shape", "axis"), [((7,), 0), ((3, 5), 0), ((3, 5), 1), ((2, 3, 4), 1)])
def test_scan(shape: tuple[int, ...], axis: int, monoid: str) -> None:
    x = leaf(shape)
    check(chunked(x, None, axis, shape[axis], monoid), [x])


def test_scan_by_chunks_from_start_values() -> None:
    x, start = leaf((2, 11, 3)), leaf((2, 3, 3))
    check(chunked(x, start, 1, 4), [x, start])
    check(chunked(x, None, 1, 4), [x])


def test_views_and_cheap_operands_are_computed_in_the_kernel() -> None:
    x = leaf((4, 6))
    twice = x.flip((1,)).permute((1, 0)) * 2.0
    check(chunked(twice, None, 0, 6), [x])


def test_sort() -> None:
    keys = leaf((3, 10), uint32)
    check(Node("sort_keys", (keys,), (1, 10), (3, 10), int64, "cpu"), [keys])
    check(Node("sort_keys", (keys,), (0, 2), (3, 10), int64, "cpu"), [keys])


def test_radix_steps_count_and_move() -> None:
    pairs = leaf((2, 70), uint64)
    counts = Node("radix_count", (pairs,), (32, 3), (2, 256 * 3), int32, "cpu")
    check(counts, [pairs])
    (kernel,) = kernels_of(counts)
    assert kernel.hero == "radix" and "radix [r0:2] along r1:70 by 32 shift 3" in repr(kernel)
    values = np.random.default_rng(0).integers(0, 9000, (2, 70)).astype(np.uint64)
    (found,) = interpret_graph([counts], values={pairs: values})
    counted = leaf((2, 256 * 3), int32)
    moved = Node("radix_move", (pairs, counted), (32, 3), (2, 70), uint64, "cpu")
    until = np.cumsum(found.reshape(2, 256, 3), axis=-1).reshape(2, -1)
    given = {pairs: values, counted: until}
    order = np.argsort(values >> 3 & 255, axis=1, kind="stable")
    np.testing.assert_array_equal(
        interpret_graph([moved], values=given)[0], np.take_along_axis(values, order, 1)
    )


def test_broken_runs_are_refused() -> None:
    node = leaf((9,)).scatter(leaf((8,)), [leaf((8,), int64)], (0,), "sum")
    base, values, index = node.inputs
    inputs = (base, values, index.cast(uint32), index, leaf((2,)))
    runs = Node("scatter_runs", inputs, ((0,), "sum", 4), (9,), float32, "cpu")
    kernel = kernels_of(runs)[-1]
    step = kernel.parts[0].along
    assert kernel.hero == "runs" and isinstance(step, Runs) and "runs [] along u0:8" in repr(kernel)
    for broken, text in (
        (replace(step, monoid="mean"), "unknown monoid"),
        (replace(step, fan=5), "a level of another size"),
        (replace(step, first=step.body), "begins at a position"),
        (replace(step, key=step.first), "unsigned"),
    ):
        with pytest.raises(InternalError, match=text):
            verify(replace(kernel, parts=(replace(kernel.parts[0], along=broken),)))


def test_heroes_and_text() -> None:
    (kernel,) = kernels_of(scan(leaf((3, 5)), "sum", 1))
    assert kernel.hero == "scan" and "scan [r0:3] sum[k:5] s1[5*r0 + k]" in repr(kernel)
    (kernel,) = kernels_of(sort(leaf((3, 5), uint32), 1))
    assert kernel.hero == "sort" and "sort [r0:3] along r1:5 by 5 s1[5*r0 + r1]" in repr(kernel)


def test_what_follows_reads_memory() -> None:
    total = scan(leaf((3, 5)), "sum", 1) * 2.0
    assert [kernel.hero for kernel in kernels_of(total)] == ["scan", "map"]


def test_keys_tell_monoids_apart_and_layers_together() -> None:
    def key(monoid: str, size: int) -> str:
        return canonical_key(kernels_of(scan(leaf((3, size)), monoid, 1))[0])

    assert key("sum", 5) == key("sum", 5)
    assert len({key("sum", 5), key("max", 5), key("sum", 6)}) == 3


def test_broken_scans_are_refused() -> None:
    (kernel,) = kernels_of(scan(leaf((3, 5)), "sum", 1))
    step = kernel.parts[0].along
    assert step is not None
    other = Expr("const", (), 1, int64)
    for broken, text in (
        (replace(step, monoid="mean"), "unknown monoid"),
        (replace(step, start=other), "start and body differ"),
        (replace(step, target=step.target + 1), "store outside"),
        (replace(step, outer=()), "unbound"),
        (replace(step, slot=0), "is an input"),
    ):
        part = replace(kernel.parts[0], along=broken)
        with pytest.raises(InternalError, match=text):
            verify(replace(kernel, parts=(part,)))


def bins(
    count: int = 50, bins: int = 7, parts: int = 3, form: str = "rows"
) -> tuple[Node, list[Node]]:
    values, numbers = leaf((2, count)), leaf((2, count), int32)
    arg = bins, parts, 1, form
    shape = shape_of(arg, values.shape)
    return Node("bin_sums", (values, numbers), arg, shape, float32, "cpu"), [values, numbers]


def test_bins() -> None:
    """Most numbers are those of no bin."""
    check(*bins())
    check(*bins(3, 50, 2))
    for form in ("turned", "parts"):
        check(*bins(form=form))


def test_elimination() -> None:
    for kind, shape, size in (
        ("solve", (3, 2, 5), 2),
        ("lu", (1, 3, 3), 3),
        ("upper", (2, 3, 4), 3),
    ):
        x = leaf(shape)
        check(eliminate(x, kind, size), [x])


def test_a_kernel_is_told_by_what_it_does() -> None:
    x = leaf((2, 3, 4))
    nodes = [eliminate(x, kind, 3) for kind in ("lower", "upper", "unit_lower")]
    nodes += [bins()[0], bins(form="parts")[0], bins(49)[0], bins(50, 8)[0], bins(50, 7, 2)[0]]
    keys = {canonical_key(kernels_of(node)[0]) for node in nodes}
    assert len(keys) == len(nodes)
    text = repr(kernels_of(nodes[0])[0]) + repr(kernels_of(nodes[3])[0])
    assert "lower of 3 columns [r0:2] along r1:3 and r2:4" in text
    assert "bins [r0:2] along r1:50 by 17 of" in text


def test_broken_bins_and_eliminations_are_refused() -> None:
    one = Expr("const", (), 1.0, float32)
    (binning,), (solving,) = kernels_of(bins()[0]), kernels_of(eliminate(leaf((2, 3, 4)), "lu", 3))
    for kernel, change, text in (
        (binning, {"key": one}, "bins are numbered"),
        (binning, {"run": 3}, "tiles end before the axis"),
        (binning, {"rows": ()}, "unbound"),
        (solving, {"body": Expr("const", (), 1, int32)}, "numbers are eliminated"),
        (solving, {"rows": ()}, "unbound"),
        (solving, {"slot": 0}, "is an input"),
    ):
        step = replace(kernel.parts[0].along, **change)  # type: ignore[type-var]
        part = replace(kernel.parts[0], along=step)
        with pytest.raises(InternalError, match=text):
            verify(replace(kernel, parts=(part,)))
