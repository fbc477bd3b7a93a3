"""The CPU contract template: whole kernels, compiled and compared with NumPy in float64."""

import math
from dataclasses import replace

import numpy as np
import pytest
from contractions import Case, conv, conv_weight_gradient, loaded, matmul, strided, values, widen
from run_cpu import TARGET, Loaded

from picograd.codegen import interpret_program, interpret_tile
from picograd.codegen.linearize_cpu import linearize
from picograd.codegen.templates import contract
from picograd.dtype import bfloat16, bool_, float16, float32, float64, int8, int32, int64, uint8
from picograd.schedule.index import Axis, Dynamic, Index, axis_index
from picograd.schedule.loop import Compute, Expr, Kernel, Part, Slot, const
from picograd.target import Target

AVX2 = Target("llvm", "haswell", 32, threads=2, registers=16)
NEON = Target("llvm", "generic", 16, threads=3, registers=32)
TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 5e-6, "float64": 1e-13}


def check(case: Case, target: Target = TARGET, shuffle: bool = False) -> Loaded:
    """Run a case and compare; `shuffle`: tasks one by one from the last, the runtime's freedom."""
    loaded = Loaded(case.kernel, case.inputs, target)
    if shuffle:
        loaded.run_backwards()
        raw = loaded.output[:-64].copy()
        assert np.array_equal(raw, loaded.result(), equal_nan=True)  # the order changes no bit
    raw = loaded.result()
    dtype = case.kernel.slots[-1].dtype
    got = widen(raw, dtype).reshape(case.expected.shape)
    if not dtype.is_float:
        assert np.array_equal(got, case.expected)
        return loaded
    scale = np.abs(case.expected).max() if case.expected.size else 1.0
    assert np.allclose(got, case.expected, atol=TOLERANCE[dtype.name] * max(scale, 1e-3), rtol=0)
    return loaded


SIZES = [
    (1, 1, 1, 1),
    (1, 2, 2, 2),
    (1, 7, 5, 3),
    (1, 1, 100, 37),
    (1, 100, 1, 37),
    (1, 13, 17, 19),
    (1, 12, 32, 64),
    (1, 61, 67, 71),
    (3, 16, 10, 12),
    (2, 33, 47, 129),
    (1, 5, 200, 641),
    (1, 37, 53, 1021),
    (1, 250, 270, 700),
    (1, 9, 9, 20000),
    (1, 385, 600, 1300),
]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("order_a", [(0, 1, 2), (0, 2, 1)], ids=["mk", "km"])
@pytest.mark.parametrize("order_b", [(0, 1, 2), (0, 2, 1)], ids=["kn", "nk"])
def test_matmul(
    sizes: tuple[int, int, int, int], order_a: tuple[int, ...], order_b: tuple[int, ...]
) -> None:
    check(matmul(sizes, float32, order_a, order_b), shuffle=True)


@pytest.mark.parametrize("order", [(0, 2, 1), (1, 0, 2), (2, 1, 0)], ids=str)
def test_output_order(order: tuple[int, ...]) -> None:
    check(matmul((3, 20, 30, 40), float32, order_c=order))
    check(matmul((2, 150, 130, 700), float32, order_a=(1, 2, 0), order_b=(2, 0, 1), order_c=order))


@pytest.mark.parametrize("target", [AVX2, NEON], ids=["avx2", "neon"])
@pytest.mark.parametrize("sizes", [(1, 61, 67, 71), (2, 33, 47, 700), (1, 1, 9, 5)], ids=str)
def test_other_vector_widths(target: Target, sizes: tuple[int, int, int, int]) -> None:
    check(matmul(sizes), target)
    check(matmul(sizes, order_b=(0, 2, 1), with_bias=True), target)


@pytest.mark.parametrize("sizes", [(1, 1, 33, 65), (1, 40, 48, 70), (2, 9, 21, 1290)], ids=str)
@pytest.mark.parametrize(
    "dtype", [float64, float16, bfloat16, int32, int64, int8, uint8], ids=lambda d: d.name
)
def test_dtypes(dtype: object, sizes: tuple[int, int, int, int]) -> None:
    case = matmul(sizes, dtype)  # type: ignore[arg-type]
    if dtype in (int8, uint8):
        wrapped = case.expected.astype(dtype.numpy).astype(np.int64)  # type: ignore[attr-defined]
        case = Case(case.kernel, case.inputs, wrapped)
    check(case)


@pytest.mark.parametrize("dtype", [float32, float16, bfloat16, float64], ids=lambda d: d.name)
@pytest.mark.parametrize("sizes", [(1, 1, 33, 65), (2, 50, 70, 90), (1, 30, 40, 5000)], ids=str)
def test_epilogue(dtype: object, sizes: tuple[int, int, int, int]) -> None:
    check(matmul(sizes, dtype, with_bias=True), shuffle=True)  # type: ignore[arg-type]
    orders = {"order_b": (0, 2, 1), "order_c": (0, 2, 1)}
    check(matmul(sizes, dtype, **orders, with_bias=True))  # type: ignore[arg-type]


@pytest.mark.parametrize("sizes", [(1, 4, 5, 0), (1, 1, 1, 0)], ids=str)
def test_empty_sum_is_zero(sizes: tuple[int, int, int, int]) -> None:
    check(matmul(sizes))
    check(matmul(sizes, order_b=(0, 2, 1), with_bias=True))


@pytest.mark.parametrize("sizes", [(1, 0, 5, 3), (1, 4, 0, 3), (0, 2, 2, 2), (1, 0, 1, 0)], ids=str)
def test_empty_output(sizes: tuple[int, int, int, int]) -> None:
    check(matmul(sizes))


@pytest.mark.parametrize("channels_last", [True, False], ids=["nhwc", "nchw"])
@pytest.mark.parametrize(
    "stride, padding, dilation", [(1, 0, 1), (1, 1, 1), (2, 1, 1), (2, 2, 2), (1, 3, 1)]
)
def test_conv(stride: int, padding: int, dilation: int, channels_last: bool) -> None:
    for shape, channels in (((2, 9, 11, 3), 5), ((3, 8, 7, 16), 32), ((1, 28, 28, 1), 8)):
        check(conv(shape, channels, 3, stride, padding, dilation, channels_last), shuffle=True)


def test_conv_groups_and_long_depth() -> None:
    check(conv((2, 7, 7, 4), 6, 3, padding=1, groups=3))
    check(conv((2, 5, 5, 200), 48, 3, padding=1))
    check(conv((2, 6, 6, 64), 20, 1))
    check(conv((1, 40, 40, 4), 4, 5, padding=2, channels_last=False))


@pytest.mark.parametrize(
    "shape, channels",
    [((2, 5, 6, 3), 4), ((4, 7, 7, 32), 16), ((9, 14, 14, 16), 33), ((16, 28, 28, 1), 32)],
)
def test_conv_weight_gradient(shape: tuple[int, int, int, int], channels: int) -> None:
    check(conv_weight_gradient(shape, channels, 3), shuffle=True)


def test_partial_sums_are_shared_and_combined() -> None:
    loaded = check(matmul((1, 16, 16, 65536)), shuffle=True)
    assert loaded.tasks >= TARGET.threads


def test_nan_and_infinity_reach_only_their_row() -> None:
    case = matmul((1, 5, 7, 21))
    case.inputs[0][0, 2, 3] = np.inf
    case.inputs[0][0, 4, 1] = np.nan
    got = Loaded(case.kernel, case.inputs).result().reshape(5, 7)
    assert np.isfinite(got[[0, 1, 3]]).all()
    assert np.isinf(got[2]).all() and np.isnan(got[4]).all()


INTERPRETED = [
    matmul((1, 13, 37, 20), with_bias=True),
    matmul((1, 13, 17, 700), order_a=(0, 2, 1)),
    matmul((2, 1, 9, 40), order_b=(0, 2, 1)),
    conv((1, 5, 6, 3), 4, 3, stride=2, padding=1),
    conv((1, 4, 4, 16), 16, 3, padding=1),
    conv_weight_gradient((2, 4, 5, 16), 3, 3),
    conv_weight_gradient((2, 28, 28, 1), 3, 3),
]


def slots_of(case: Case) -> list[np.ndarray]:
    """Flat arrays of the slots, the output poisoned."""
    output = np.full(case.expected.size, np.nan, np.float32)
    return [*(x.ravel() for x in case.inputs), output]


@pytest.mark.parametrize("case", INTERPRETED, ids=range(len(INTERPRETED)))
@pytest.mark.parametrize("is_reversed", [False, True])
def test_tile_ir_means_the_same(case: Case, is_reversed: bool) -> None:
    slots = slots_of(case)
    interpret_tile.interpret(contract.build(case.kernel, TARGET), slots, (), is_reversed)
    assert np.allclose(slots[-1], case.expected.ravel(), atol=1e-4)


@pytest.mark.parametrize("case", INTERPRETED[:5], ids=range(5))
def test_program_means_the_same(case: Case) -> None:
    slots = slots_of(case)
    program = linearize(contract.build(case.kernel, TARGET), TARGET)
    interpret_program.interpret(program, slots)
    assert np.allclose(slots[-1], case.expected.ravel(), atol=1e-4)


PROLOGUES = {
    "exp": np.exp,
    "tanh": np.tanh,
    "erf": lambda x: np.vectorize(math.erf)(x),
    "relu": lambda x: np.maximum(x, 0),
    "sign": np.sign,
    "isnan": lambda x: np.where(np.isnan(x), 1.0, 0.0),
}


@pytest.mark.parametrize("op", PROLOGUES)
@pytest.mark.parametrize("sizes", [(1, 13, 37, 50), (1, 40, 20, 1500)], ids=str)
def test_elementwise_fused_before_and_behind(op: str, sizes: tuple[int, int, int, int]) -> None:
    def apply(expr: Expr) -> Expr:
        if op == "relu":
            return Expr("maximum", (expr, const(0.0, float32)), None, float32)
        if op == "isnan":
            return Expr("cast", (Expr("isnan", (expr,), None, bool_),), None, float32)
        return Expr(op, (expr,), None, float32)

    case = matmul(sizes)
    part = case.kernel.parts[0]
    hero = part.computes[0]
    a, b = hero.body.args
    half = Expr("mul", (apply(b), const(0.125, float32)), None, float32)
    sum_ = replace(hero, body=Expr("mul", (apply(a), half), None, float32), store=None)
    after = Compute(hero.axes, (), None, apply(Expr("ref", (), 0, float32)), float32, hero.store)
    kernel = replace(case.kernel, parts=(replace(part, computes=(sum_, after)),))
    function = PROLOGUES[op]
    wide = [function(x.astype(np.float64)) for x in case.inputs]
    expected = wide[0] @ (wide[1] * 0.125)
    if op == "exp":  # keep exp(sum) finite and comparable
        alone = replace(part, computes=(replace(sum_, store=hero.store),))
        check(Case(replace(case.kernel, parts=(alone,)), case.inputs, expected))
        return
    loaded = Loaded(kernel, case.inputs)
    got = loaded.result().reshape(expected.shape)
    if op == "sign":
        sure = np.abs(expected) > 1e-3
        assert np.array_equal(got[sure], np.sign(expected[sure]))
        return
    assert np.allclose(got, function(expected), atol=2e-5 * max(1, np.abs(expected).max()))


def test_rows_gathered_by_an_index() -> None:
    """The rows of a are read through a Dynamic index, as an embedding in front of a matmul."""
    rows, k, n, total = 21, 40, 24, 10
    i, j, r = Axis("i", rows), Axis("j", n), Axis("r", k)
    number = Expr("load", (), (2, axis_index(i)), int64)
    picked = Index(((Dynamic(number, 0, total - 1), 1),), 0)
    a = Expr("load", (), (0, picked * k + axis_index(r)), float32)
    b = Expr("load", (), (1, axis_index(r) * n + axis_index(j)), float32)
    store = 3, axis_index(i) * n + axis_index(j)
    body = Expr("mul", (a, b), None, float32)
    compute = Compute((i, j), (r,), "sum", body, float32, store)
    slots = (Slot(float32, total * k, "in"), Slot(float32, k * n, "in"),
             Slot(int64, rows, "in"), Slot(float32, rows * n, "out"))  # fmt: skip
    kernel = Kernel("embed", "contract", slots, (), (Part((i, j), (compute,)),))
    table, weight = values((total, k), float32, 1), values((k, n), float32, 2)
    picks = np.random.default_rng(0).integers(0, total, rows)
    expected = table.astype(np.float64)[picks] @ weight.astype(np.float64)
    check(Case(kernel, (table, weight, picks), expected))


def beside(m: int, n: int, depths: tuple[int, int], is_shared: bool) -> Case:
    """max(x @ a, 0) * (y @ b), with b stored [n, k]; y is x if it is shared."""
    i, j = Axis("i", m), Axis("j", n)
    deep = [Axis("r", k) for k in depths]
    slots = [Slot(float32, size, "in") for size in (m * depths[0], depths[0] * n)]
    slots += [Slot(float32, size, "in") for size in (m * depths[1], n * depths[1])]
    slots.append(Slot(float32, m * n, "out"))
    x = loaded(0, strided((i, deep[0]), (depths[0], 1)), float32, float32)
    y = loaded(0 if is_shared else 2, strided((i, deep[1]), (depths[1], 1)), float32, float32)
    a = loaded(1, strided((deep[0], j), (n, 1)), float32, float32)
    b = loaded(3, strided((j, deep[1]), (depths[1], 1)), float32, float32)
    relu = Expr("maximum", (Expr("ref", (), 0, float32), const(0.0, float32)), None, float32)
    gated = Expr("mul", (relu, Expr("ref", (), 1, float32)), None, float32)
    computes = (
        Compute((i, j), (deep[0],), "sum", Expr("mul", (x, a), None, float32), float32),
        Compute((i, j), (deep[1],), "sum", Expr("mul", (b, y), None, float32), float32),
        Compute((i, j), (), None, gated, float32, (4, strided((i, j), (n, 1)))),
    )
    kernel = Kernel("beside", "contract", tuple(slots), (), (Part((i, j), computes),))
    shapes = (m, depths[0]), (depths[0], n), (m, depths[1]), (n, depths[1])
    arrays = tuple(values(shape, float32, seed) for seed, shape in enumerate(shapes))
    left, first, right, second = (array.astype(np.float64) for array in arrays)
    right = left if is_shared else right
    return Case(kernel, arrays, np.maximum(left @ first, 0) * (right @ second.T))


@pytest.mark.parametrize("is_shared", [True, False], ids=["one", "two"])
@pytest.mark.parametrize("sizes", [(1, 40, 9), (61, 67, 71), (130, 260, 500)], ids=str)
def test_products_beside_one_another(sizes: tuple[int, int, int], is_shared: bool) -> None:
    m, n, k = sizes
    for target in (TARGET, NEON):
        check(beside(m, n, (k, k), is_shared), target, shuffle=True)
    if not is_shared:
        check(beside(m, n, (k, k + 300), is_shared))
