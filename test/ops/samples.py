"""Samples of every row of the op table: how to call it, on inputs of which shapes.

An elementwise row needs none: its arity says all. Any other row has one entry in `SAMPLES`, keyed
by its name, or a reason in `ELSEWHERE`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import plain_nodes
import pytest

from picograd.dtype import DType, int64
from picograd.graph import build, complex_numbers, composites, parts, scanning, sorting
from picograd.graph.node import Node
from picograd.graph.ops import OPS
from picograd.graph.row import Op
from picograd.graph.shape import ConvSpec

torch = pytest.importorskip("torch")

Shape = tuple[int, ...]
NUMBERS, FLOATS, COMPLEX = ("uint", "int", "float"), ("float",), ("complex",)


@dataclass(frozen=True)
class Input:
    """One input: of the tested dtype ("data"), bools, or int64 indices below `high`."""

    shape: Shape
    role: str = "data"
    high: int = 0
    is_distinct: bool = False  # an index without repeats


@dataclass(frozen=True)
class Sample:
    """One call of a row; `torch` is the same in PyTorch, on tensors of the same order."""

    label: str
    make: Callable[..., Node]
    inputs: tuple[Input, ...]
    torch: Callable[..., Any] | None = None
    kinds: tuple[str, ...] | None = None  # of dtypes, where the row is stricter than its rule
    least_bits: int = 0  # of a dtype: parts of complex numbers have 32 or 64
    has_gradient: bool = True
    is_plain: bool = True  # also tried on views, special values and repeated operands
    special: tuple[int, ...] = (0, 1, 2)  # inputs that are tried with NaN and infinities


def data(*shapes: Shape) -> tuple[Input, ...]:
    return tuple(Input(shape) for shape in shapes)


def index(shape: Shape, high: int, is_distinct: bool = False) -> Input:
    return Input(shape, "index", high, is_distinct)


def forms(make: Any, function: Any, plain: Shape, *others: Shape, **options: Any) -> list[Sample]:
    """Samples of a function of one input, at several shapes."""
    shapes = (plain, *others)
    labels = [f"{'plain' if n == 0 else 'shape'} {shape}" for n, shape in enumerate(shapes)]
    return [
        Sample(label, make, data(shape), function, is_plain=shape is plain, **options)
        for label, shape in zip(labels, shapes)
    ]


# -- elementwise ----------------------------------------------------------------------------------

TORCH_NAMES = {
    "floordiv": "floor_divide", "mod": "remainder", "equal": "eq", "not_equal": "ne",
    "less_equal": "le", "shift_left": "bitwise_left_shift", "shift_right": "bitwise_right_shift",
    "logical_not": "logical_not", "portable_log": "log", "portable_exp": "exp",
    "quick_exp2": "exp2",
}  # fmt: skip


# What stands for a row that PyTorch has elsewhere. Without any, its NumPy meaning is the reference.
REFERENCES = {
    "portable_cos_turn": lambda x: torch.cos(2 * torch.pi * x),
    "multiply_add": lambda a, b, c: torch.addcmul(c, a, b),
    "silu": torch.nn.functional.silu,
}


def elementwise(row: Op) -> list[Sample]:
    """Three shapes; `where` chooses by bools."""
    name = TORCH_NAMES.get(row.name, row.name)
    function = REFERENCES.get(name, getattr(torch, name, None))
    found = []
    for shape in ((3, 5), (0, 5), ()):
        inputs = data(*[shape] * row.arity)
        if row.arity == 3 and row.linear:
            inputs = (Input(shape, "bool"), *inputs[1:])

        def make(*nodes: Node) -> Node:
            return build.elementwise(row.name, *nodes)

        is_plain = shape == (3, 5)
        label = f"{'plain' if is_plain else 'shape'} {shape}"
        found.append(Sample(label, make, inputs, function, is_plain=is_plain))
    return found


# -- views, reductions, effects -------------------------------------------------------------------

WINDOWS = ((1, 2, 2, 1),)  # axis, kernel, stride, dilation


def windows(x: Any) -> Any:
    return x.unfold(1, 2, 2)


def folded(node: Node) -> Node:
    return build.fold(node, ((1, 2, 1, 2),), (6,))


def reductions() -> list[Sample]:
    found = []
    functions: dict[str, Any] = {
        "sum": lambda x, a: x.sum(a, dtype=x.dtype),
        "prod": lambda x, a: x.prod(a, dtype=x.dtype),
        "max": lambda x, a: x.amax(a),
        "min": lambda x, a: x.amin(a),
    }
    for monoid, function in functions.items():
        kinds = NUMBERS if monoid in ("sum", "prod") else ("bool", *NUMBERS)
        shapes: list[Shape] = [(3, 4, 5), (0, 4, 2)]
        shapes += [(3, 0, 5)] if monoid in ("sum", "prod") else []
        for shape in shapes:

            def make(node: Node, monoid: str = monoid) -> Node:
                return plain_nodes.reduce(monoid, node, (1,))

            def theirs(x: Any, function: Any = function) -> Any:
                return function(x, 1)

            label, is_plain = f"{monoid} {shape}", shape == (3, 4, 5)
            found.append(Sample(label, make, data(shape), theirs, kinds, is_plain=is_plain))
        for label, axes, shape in (("all", (0, 1), (7, 3)), ("number", (), ())):

            def whole(node: Node, monoid: str = monoid, axes: Shape = axes) -> Node:
                return plain_nodes.reduce(monoid, node, axes)

            found.append(
                Sample(f"{monoid} {label}", whole, data(shape), None, kinds, is_plain=False)
            )
    return found


# -- products and indexing ------------------------------------------------------------------------


def contraction(first: Shape, second: Shape, out: Shape) -> Callable[..., Node]:
    return lambda a, b: build.contract(a, b, (first, second, out))


CONTRACTIONS = [
    Sample("matrices", build.matmul, data((3, 4), (4, 3)), torch.matmul),
    Sample("batch", contraction((0, 1, 2), (0, 3, 2), (0, 1, 3)), data((2, 3, 4), (2, 5, 4)),
           lambda a, b: a @ b.mT, is_plain=False),
    Sample("nothing to sum", build.matmul, data((3, 0), (0, 4)), torch.matmul, is_plain=False),
    Sample("empty", build.matmul, data((0, 3), (3, 4)), torch.matmul, is_plain=False),
    Sample("vectors", build.matmul, data((4,), (4,)), None, is_plain=False),
    Sample("outer", contraction((0,), (1,), (0, 1)), data((3,), (4,)), torch.outer, is_plain=False),
]  # fmt: skip
LINE = ConvSpec((2,), ((1, 1),), (1,), (1,))
PLANE = ConvSpec((1, 2), ((0, 1), (1, 0)), (1, 1), (2, 1))
CONVOLUTIONS = [
    Sample("line", lambda x, w: build.conv(x, w, LINE), data((2, 1, 2, 7), (1, 3, 2, 3)),
           lambda x, w: torch.conv1d(x[:, 0], w[0], stride=2, padding=1)[:, None], special=(0,)),
    Sample("plane in groups", lambda x, w: build.conv(x, w, PLANE),
           data((1, 2, 1, 5, 4), (2, 2, 1, 2, 3)), None, is_plain=False),
    Sample("empty batch", lambda x, w: build.conv(x, w, LINE), data((0, 1, 2, 7), (1, 3, 2, 3)),
           None, is_plain=False),
]  # fmt: skip


def picking(node: Node, at: Node) -> Node:
    return plain_nodes.gather(node, (at,), (0,))


GATHERS = [
    Sample("rows", picking, (*data((5, 3)), index((4,), 5)), lambda x, i: x[i]),
    Sample("two axes", lambda x, i, j: plain_nodes.gather(x, (i, j), (0, 1)),
           (*data((5, 3)), index((2, 2), 5), index((2, 2), 3)), lambda x, i, j: x[i, j],
           is_plain=False),
    Sample("one", picking, (*data((5,)), index((), 5)), lambda x, i: x[i], is_plain=False),
    Sample("none", picking, (*data((5, 3)), index((0,), 5)), lambda x, i: x[i], is_plain=False),
]  # fmt: skip


def scatters() -> list[Sample]:
    found = []
    for monoid, name in ((None, ""), ("sum", "sum"), ("prod", "prod"), ("max", "amax"),
                         ("min", "amin")):  # fmt: skip

        def make(base: Node, values: Node, at: Node, monoid: Any = monoid) -> Node:
            return plain_nodes.scatter(base, values, (at,), (0,), monoid)

        def theirs(base: Any, values: Any, at: Any, name: str = name) -> Any:
            if not name:
                return base.index_put((at,), values)
            wide = at[:, None].expand(values.shape)
            return base.scatter_reduce(0, wide, values, name)

        kinds = NUMBERS if monoid in ("sum", "prod") else None
        kinds = ("bool", *NUMBERS) if monoid in ("max", "min") else kinds
        for count in (4, 0):
            at = index((count,), 5, monoid is None)
            inputs = (*data((5, 3), (count, 3)), at)
            found.append(
                Sample(f"{monoid} {count}", make, inputs, theirs, kinds, is_plain=count > 0)
            )
    return found


# -- complex numbers ------------------------------------------------------------------------------

PARTS: dict[str, Any] = {"kinds": FLOATS, "least_bits": 32}
PAIRED = [
    Sample(f"parts {shape}", lambda a, b: a.paired(b), data(shape, shape), torch.complex,
           is_plain=shape == (3, 5), **PARTS)
    for shape in ((3, 5), (0, 5), ())
]  # fmt: skip


def part(number: int) -> Callable[[Node], Node]:
    """Show the real part, 0, or the imaginary one, 1: the other one is not asked for."""
    return lambda z: z.parts()[number]


def in_pairs(z: Any) -> Any:
    """PyTorch's view_as_real, of what has a lazy conjugate or no row-major memory too."""
    return torch.stack([z.real, z.imag], -1)


# -- writes ---------------------------------------------------------------------------------------

PUT_STEPS = (("slice", ((0, 3, 2), (1, 5, 3))), ("permute", (1, 0)))


def put_part(base: Any, value: Any) -> Any:
    out = base.clone()
    out[0:3:2, 1:5:3] = value.mT
    return out


# -- composites -----------------------------------------------------------------------------------


def normed(x: Node, weight: Node, bias: Node) -> Node:
    return build.layer_norm(x, 1, weight, bias)


def along(function: Any, *arguments: Any) -> Any:
    return lambda node: function(node, *arguments)


def scans() -> list[Sample]:
    functions: dict[str, Any] = {
        "sum": lambda x: x.cumsum(1, dtype=x.dtype),
        "prod": lambda x: x.cumprod(1, dtype=x.dtype),
        "max": lambda x: x.cummax(1).values,
        "min": lambda x: x.cummin(1).values,
        "logaddexp": lambda x: x.logcumsumexp(1),
    }
    found = []
    for monoid, function in functions.items():
        kinds = FLOATS if monoid == "logaddexp" else NUMBERS
        make = along(scanning.scan, monoid, 1)
        found += forms(make, function, (3, 7), (0, 4), kinds=kinds)
    return found


functional = torch.nn.functional
SAMPLES: dict[str, list[Sample]] = {
    "reshape": forms(along(build.reshape, (5, -1)), lambda x: x.reshape(5, -1), (3, 5), (5, 0))
    + forms(along(build.reshape, (1, 1)), lambda x: x.reshape(1, 1), ()),
    "permute": forms(along(build.permute, (2, 0, 1)), lambda x: x.permute(2, 0, 1), (2, 3, 4),
                     (0, 3, 4)),
    "expand": forms(along(build.expand, (2, 3, 4)), lambda x: x.expand(2, 3, 4), (3, 1), ()),
    "slice": forms(along(build.slice_, ((0, 3, 2), (1, 5, 3))), lambda x: x[0:3:2, 1:5:3], (3, 5))
    + forms(along(build.slice_, ((0, 0, 1),)), lambda x: x[:0], (3,)),
    "flip": forms(along(build.flip, (0, 1)), lambda x: x.flip(0, 1), (3, 5), (0, 5)),
    "pad": forms(along(build.pad, ((1, 0), (0, 2)), 1),
                 lambda x: functional.pad(x, (0, 2, 1, 0), value=1), (3, 5), (0, 5)),
    "window": forms(along(plain_nodes.window, WINDOWS), windows, (3, 6), (0, 6)),
    "fold": forms(folded, None, (3, 4, 2), (0, 4, 2), kinds=NUMBERS),
    "reduce": reductions(),
    "contiguous": forms(lambda x: build.contiguous(build.permute(x, (1, 0))), lambda x: x.mT,
                        (3, 5), (0, 5)),
    "after": [Sample("plain", lambda x, y: x.after(y, True), data((3, 5), (2, 4)),
                     lambda x, y: x.clone(), has_gradient=False)],
    "detach": forms(build.detach, lambda x: x.detach(), (3, 5), (), has_gradient=False),
    "contract": CONTRACTIONS,
    "conv": CONVOLUTIONS,
    "gather": GATHERS,
    "scatter": scatters(),
    "put": [Sample("plain", lambda x, v: parts.put(x, v, PUT_STEPS), data((3, 5), (2, 2)),
                   put_part)],
    "complex": PAIRED,
    "real": forms(part(0), torch.real, (3, 5), (0, 5), (), kinds=COMPLEX),
    "imag": forms(part(1), torch.imag, (3, 5), (0, 5), (), kinds=COMPLEX),
    "view_as_real": forms(complex_numbers.view_as_real, in_pairs, (3, 5), (0, 5), (),
                          kinds=COMPLEX),
    "view_as_complex": forms(complex_numbers.view_as_complex,
                             lambda x: torch.complex(x[..., 0], x[..., 1]), (3, 2), (0, 2), (2,),
                             **PARTS),
    "relu": forms(build.relu, torch.relu, (3, 5), (0, 5), ()),
    "gelu": forms(build.gelu, functional.gelu, (3, 5), (0, 5), ())
    + forms(along(build.gelu, "tanh"), lambda x: functional.gelu(x, approximate="tanh"), (3, 6)),
    "softmax": forms(along(build.softmax, 0), lambda x: x.softmax(0), (4, 3), (0, 3), ()),
    "log_softmax": forms(along(build.log_softmax, 0), lambda x: x.log_softmax(0), (4, 3), (3, 0)),
    "logsumexp": forms(along(build.logsumexp, 0), lambda x: x.logsumexp(0), (4, 3))
    + forms(along(build.logsumexp, 0), lambda x: x.logsumexp(0), (0, 3), has_gradient=False),
    "cross_entropy": [
        Sample("classes", build.cross_entropy, (*data((4, 3)), index((4,), 3)),
               functional.cross_entropy),
        Sample("sum of pixels", lambda x, t: build.cross_entropy(x, t, "sum", 0.1),
               (*data((2, 3, 2)), index((2, 2), 3)),
               lambda x, t: functional.cross_entropy(x, t, reduction="sum", label_smoothing=0.1),
               is_plain=False),
    ],
    "argmax": forms(along(build.argmax, 1), lambda x: x.argmax(1), (3, 5), (0, 5),
                    has_gradient=False, kinds=NUMBERS),
    "argmin": forms(along(build.argmin, 1), lambda x: x.argmin(1), (3, 5), (0, 5),
                    has_gradient=False, kinds=NUMBERS),
    "max_pool": forms(along(build.max_pool, WINDOWS),
                      lambda x: functional.max_pool1d(x, 2, 2), (3, 6)),
    "var": forms(along(build.var, 1), lambda x: x.var(1), (3, 5), (0, 5)),
    "layer_norm": [
        Sample("rows", normed, data((3, 4), (4,), (4,)),
               lambda x, w, b: functional.layer_norm(x, (4,), w, b)),
    ],
    "batch_norm": [
        Sample("channels", build.batch_norm, data((4, 3, 2), (3,), (3,)),
               lambda x, w, b: functional.batch_norm(x, None, None, w, b, True), special=(0,)),
    ],
    "cat": [
        Sample("parts", lambda *x: composites.join(x, 1), data((3, 2), (3, 4), (3, 1)),
               lambda *x: torch.cat(x, 1)),
        Sample("empty", lambda *x: composites.join(x, 0), data((0, 2), (3, 2), (0, 2)),
               lambda *x: torch.cat(x, 0)),
    ],
    "scan": scans(),
    "sort": forms(along(sorting.sort, 1), lambda x: x.argsort(dim=1, stable=True), (3, 7), (0, 4),
                  has_gradient=False)
    + forms(along(sorting.sort, 0, True),
            lambda x: x.argsort(dim=0, descending=True, stable=True), (5, 2), has_gradient=False),
}  # fmt: skip
ELSEWHERE = {
    "host_call": "its rows in test/graph/test_host_call.py, beside PyTorch in test_host_calls.py",
    "buffer": "every input is one",
    "const": "test_creation.py",
    "iota": "test_creation.py",
    "scalar": "test/tensor/transforms/test_jit.py",
    "random_bits": "test/tensor/making/test_random.py",
    "placeholder": "a leaf of recur",
    "cast": "test/codegen/test_casts.py",
    "bitcast": "test/codegen/test_levels.py",
    "copy": "test_values.py",
    "assign": "test_values.py",
    "custom": "test/tensor/transforms/test_custom.py",
    "scan_chunks": "what scan becomes",
    "reduce_segments": "test/graph/test_segments.py, beside PyTorch in test_statistics.py",
    "sort_keys": "what sort becomes",
    "radix_count": "what sort becomes",
    "radix_move": "what sort becomes",
    "bin_sums": "what scatter becomes",
    "rotate": "test/codegen/templates/test_rotations.py",
    "eliminate": "test/codegen/templates/test_elimination.py",
    "scatter_runs": "what scatter becomes",
    "recur": "test/graph/test_recurrence.py",
    "outcome": "test/graph/test_recurrence.py",
    "flow": "test/graph/test_recurrence.py",
    "analytic": "test/graph/test_complex_rules.py",
    "smooth": "its functions in test/tensor/math/test_special.py",
    "counted_mean": "test/graph/test_composites.py",
    "side": "test/graph/test_composites.py",
    "prod_gradient": "test/graph/test_factors.py",
    "cumprod_gradient": "test/graph/test_factors.py",
}


def samples(name: str) -> list[Sample]:
    """List the samples of a row."""
    row = OPS[name]
    return elementwise(row) if row.is_elementwise else SAMPLES[name]


def values(each: Input, dtype: DType, domain: tuple[float, float], seed: int) -> Any:
    """Draw an input as `dtype.numpy`: from the row's domain, in steps that short floats hold."""
    random = np.random.default_rng(seed)
    if each.role == "bool" or (each.role == "data" and dtype.kind == "bool"):
        return random.integers(0, 2, each.shape).astype(bool)
    if each.role == "index":
        if each.is_distinct:
            return random.permutation(each.high)[: each.shape[0]].astype(int64.numpy)
        return random.integers(0, each.high, each.shape).astype(int64.numpy)
    low, high = domain
    if dtype.is_integer:
        low = max(low, 1 if low > 0 else 0) if dtype.kind == "uint" or low > 0 else low
        return random.integers(int(low), int(high) + 1, each.shape).astype(dtype.numpy)
    drawn = np.round(random.uniform(low, high, each.shape) * 8) / 8
    if dtype.is_complex:
        drawn = drawn + 1j * np.round(random.uniform(low, high, each.shape) * 8) / 8
    return drawn.astype(dtype.numpy)
