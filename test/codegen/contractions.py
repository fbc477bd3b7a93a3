"""Hand-built contract and conv kernels with their NumPy meaning, for the template tests."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from picograd.dtype import DType, accumulate_dtype, float32
from picograd.helpers import product, row_major
from picograd.schedule.index import Axis, Index, axis_index, constant
from picograd.schedule.loop import Compute, Condition, Expr, Kernel, Part, Slot, const


@dataclass(frozen=True)
class Case:
    """A kernel, its input arrays (one per slot before the output) and the expected output."""

    kernel: Kernel
    inputs: tuple[np.ndarray, ...]
    expected: np.ndarray

    def interpreted(self, interpret: Callable[..., object], stage: object) -> np.ndarray:
        """Run a stage of the kernel by its interpreter; the elements of the output in order."""
        slot = self.kernel.slots[-1]
        out = np.zeros(slot.size, slot.dtype.numpy)
        interpret(stage, [*(each.reshape(-1).copy() for each in self.inputs), out])
        return out


def values(shape: Sequence[int], dtype: DType, seed: int) -> np.ndarray:
    """Random values in storage format; small integers for integer dtypes."""
    generator = np.random.default_rng(seed)
    if not dtype.is_float:
        return generator.integers(-5 if dtype.kind == "int" else 0, 6, shape).astype(dtype.numpy)
    found = generator.standard_normal(shape).astype(np.float32)
    if dtype.name == "bfloat16":
        return (found.view(np.uint32) >> 16).astype(np.uint16)
    return found.astype(dtype.numpy)


def widen(array: np.ndarray, dtype: DType) -> np.ndarray:
    """Exact float64 (or int64) values of an array in storage format."""
    if dtype.name == "bfloat16":
        return (array.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return array.astype(np.float64 if dtype.is_float else np.int64)


def strided(axes: Sequence[Axis], strides: Sequence[int]) -> Index:
    """Index of an array element from its axes."""
    flat = constant(0)
    for axis, stride in zip(axes, strides, strict=True):
        flat = flat + axis_index(axis) * stride
    return flat


def transposed_strides(shape: Sequence[int], order: Sequence[int]) -> list[int]:
    """Strides of an array of `shape` stored with its axes in `order`."""
    steps = row_major([shape[axis] for axis in order])
    return [steps[list(order).index(axis)] for axis in range(len(shape))]


def loaded(slot: int, index: Index, dtype: DType, to: DType) -> Expr:
    """Load and convert to the accumulator's dtype."""
    load = Expr("load", (), (slot, index), dtype)
    return load if dtype is to else Expr("cast", (load,), None, to)


Epilogue = Callable[[Expr], Expr]


def finish(
    name: str,
    hero: str,
    axes: tuple[Axis, ...],
    reduce: tuple[Axis, ...],
    operands: tuple[Expr, Expr],
    slots: tuple[Slot, ...],
    store: Index,
    epilogue: tuple[Expr, ...] = (),
) -> Kernel:
    """Assemble a kernel; the last slot is the output, the last epilogue expression is stored."""
    dtype = operands[0].dtype
    out = len(slots) - 1, store
    body = Expr("mul", operands, None, dtype)
    bodies = list(epilogue)
    if slots[-1].dtype is not (bodies[-1].dtype if bodies else dtype):
        source = bodies[-1] if bodies else Expr("ref", (), 0, dtype)
        bodies = [*bodies[:-1], Expr("cast", (source,), None, slots[-1].dtype)]
    computes = [Compute(axes, reduce, "sum", body, dtype, None if bodies else out)]
    for number, expr in enumerate(bodies):
        is_last = number == len(bodies) - 1
        computes.append(Compute(axes, (), None, expr, expr.dtype, out if is_last else None))
    return Kernel(name, hero, slots, (), (Part(axes, tuple(computes)),))


def matmul(
    sizes: tuple[int, int, int, int],
    dtype: DType = float32,
    order_a: Sequence[int] = (0, 1, 2),
    order_b: Sequence[int] = (0, 1, 2),
    order_c: Sequence[int] = (0, 1, 2),
    with_bias: bool = False,
) -> Case:
    """c[b,m,n] = sum a[b,m,k] b[b,k,n], operands stored in the given axis orders; bias+relu."""
    batch, m, n, k = sizes
    g, i, j, r = Axis("g", batch), Axis("i", m), Axis("j", n), Axis("r", k)
    acc = accumulate_dtype(dtype)
    shapes = (batch, m, k), (batch, k, n), (batch, m, n)
    indices = [
        strided(axes, transposed_strides(shape, order))
        for axes, shape, order in zip(
            ((g, i, r), (g, r, j), (g, i, j)), shapes, (order_a, order_b, order_c), strict=True
        )
    ]
    sizes_flat = [product(shape) for shape in shapes]
    slots = [Slot(dtype, sizes_flat[0], "in"), Slot(dtype, sizes_flat[1], "in")]
    arrays = [values(shapes[0], dtype, 1), values(shapes[1], dtype, 2)]
    wide = [widen(x, dtype) for x in arrays]
    expected = wide[0] @ wide[1]
    stored = [x.transpose(o).copy() for x, o in zip(arrays, (order_a, order_b), strict=True)]
    epilogue: tuple[Expr, ...] = ()
    if with_bias:
        slots.append(Slot(dtype, n, "in"))
        stored.append(values((n,), dtype, 3))
        bias = loaded(2, axis_index(j), dtype, acc)
        total = Expr("add", (Expr("ref", (), 0, acc), bias), None, acc)
        relu = Expr("maximum", (Expr("ref", (), 1, acc), const(0.0, acc)), None, acc)
        epilogue = total, relu
        expected = np.maximum(expected + widen(stored[-1], dtype), 0)
    slots.append(Slot(dtype, sizes_flat[2], "out"))
    a, b = loaded(0, indices[0], dtype, acc), loaded(1, indices[1], dtype, acc)
    kernel = finish(
        "matmul", "contract", (g, i, j), (r,), (a, b), tuple(slots), indices[2], epilogue
    )
    return Case(kernel, tuple(stored), expected.transpose(order_c))


def output_size(size: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    """Positions of a window along an axis."""
    return (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


def conv(
    x_shape: tuple[int, int, int, int],  # N H W C
    channels: int,
    kernel: int,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    channels_last: bool = True,
    groups: int = 1,
) -> Case:
    """Two-dimensional convolution of a batch, weights stored (G O C KH KW)."""
    n, h, w, c = x_shape
    oh, ow = (output_size(s, kernel, stride, padding, dilation) for s in (h, w))
    names = ("n", n), ("g", groups), ("o", channels), ("y", oh), ("x", ow)
    bn, g, o, y, x = (Axis(*pair) for pair in names)
    ci, ky, kx = Axis("c", c), Axis("ky", kernel), Axis("kx", kernel)
    order = (0, 3, 4, 1, 2) if channels_last else (0, 1, 2, 3, 4)  # of N G C H W
    steps = transposed_strides((n, groups, c, h, w), order)
    rows = axis_index(y) * stride + axis_index(ky) * dilation + -padding
    columns = axis_index(x) * stride + axis_index(kx) * dilation + -padding
    at = strided((bn, g, ci), steps[:3]) + rows * steps[3] + columns * steps[4]
    tests: tuple[Condition, ...] = ((rows, 0, h - 1), (columns, 0, w - 1))
    a: Expr = Expr("load", (), (0, at), float32)
    if padding:
        a = Expr("guard", (a, const(0.0, float32)), tests, float32)
    w_shape = (groups, channels, c, kernel, kernel)
    b = Expr("load", (), (1, strided((g, o, ci, ky, kx), row_major(w_shape))), float32)
    out_shape = (n, groups, channels, oh, ow)
    store = strided((bn, g, o, y, x), transposed_strides(out_shape, order))
    data, weight = values((n, groups, c, h, w), float32, 1), values(w_shape, float32, 2)
    slots = (
        Slot(float32, data.size, "in"),
        Slot(float32, weight.size, "in"),
        Slot(float32, product(out_shape), "out"),
    )
    built = finish("conv", "conv", (bn, g, o, y, x), (ci, ky, kx), (a, b), slots, store)
    expected = conv_reference(data, weight, stride, padding, dilation)
    return Case(built, (data.transpose(order).copy(), weight), expected.transpose(order))


def conv_reference(
    data: np.ndarray, weight: np.ndarray, stride: int, padding: int, dilation: int
) -> np.ndarray:
    """(N G C H W) * (G O C KH KW) -> (N G O H W) in float64."""
    pad = ((0, 0),) * 3 + ((padding, padding),) * 2
    padded = np.pad(data.astype(np.float64), pad)
    reach = (weight.shape[-1] - 1) * dilation + 1
    windows = np.lib.stride_tricks.sliding_window_view(padded, (reach, reach), (3, 4))
    windows = windows[:, :, :, ::stride, ::stride, ::dilation, ::dilation]
    return np.einsum("ngcyxij,gocij->ngoyx", windows, weight.astype(np.float64), optimize=True)


def conv_weight_gradient(
    x_shape: tuple[int, int, int, int],  # N H W C
    channels: int,
    kernel: int,
    padding: int | None = None,
    channels_last: bool = True,
    groups: int = 1,
    order: Sequence[int] = (0, 1, 2, 3, 4),  # in which the result lies, of G O C KH KW
) -> Case:
    """dw[g,o,c,ky,kx] = sum x[n,g,c,y+ky-p,x+kx-p] dy[n,g,o,y,x]; as much padding as it takes."""
    n, h, w, c = x_shape
    pad = kernel // 2 if padding is None else padding
    oh, ow = (output_size(s, kernel, 1, pad, 1) for s in (h, w))
    bn, g, y, x = Axis("n", n), Axis("g", groups), Axis("y", oh), Axis("x", ow)
    o, ci, ky, kx = Axis("o", channels), Axis("c", c), Axis("ky", kernel), Axis("kx", kernel)
    lies = (0, 3, 4, 1, 2) if channels_last else (0, 1, 2, 3, 4)  # of N G C H W
    rows = axis_index(y) + axis_index(ky) + -pad
    columns = axis_index(x) + axis_index(kx) + -pad
    shapes = (n, groups, c, h, w), (n, groups, channels, oh, ow)
    steps, given = (transposed_strides(shape, lies) for shape in shapes)
    at = strided((bn, g), steps[:2]) + rows * steps[3] + columns * steps[4]
    at = at + axis_index(ci) * steps[2]
    load = Expr("load", (), (0, at), float32)
    tests = (rows, 0, h - 1), (columns, 0, w - 1)
    a = Expr("guard", (load, const(0.0, float32)), tests, float32) if pad else load
    places = strided((bn, g, y, x, o), [given[axis] for axis in (0, 1, 3, 4, 2)])
    b = Expr("load", (), (1, places), float32)
    shape = groups, channels, c, kernel, kernel
    store = strided((g, o, ci, ky, kx), transposed_strides(shape, order))
    data, grad = values(shapes[0], float32, 1), values(shapes[1], float32, 2)
    slots = (
        Slot(float32, data.size, "in"),
        Slot(float32, grad.size, "in"),
        Slot(float32, product(shape), "out"),
    )
    axes = (g, o, ci, ky, kx) if groups > 1 else (o, ci, ky, kx)
    built = finish("dw", "conv", axes, (bn, y, x), (a, b), slots, store)
    padded = np.pad(data.astype(np.float64), ((0, 0), (0, 0), (0, 0), (pad, pad), (pad, pad)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (oh, ow), (3, 4))
    expected = np.einsum("ngcijyx,ngoyx->gocij", windows, grad.astype(np.float64), optimize=True)
    inputs = data.transpose(lies).copy(), grad.transpose(lies).copy()
    return Case(built, inputs, expected.transpose(order))
