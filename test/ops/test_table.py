"""Every row of the op table x every dtype x kinds of input; a new row is tested by being one.

A row's values on the device are compared with its NumPy meaning in float64, and that with PyTorch;
its gradients with finite differences and with PyTorch's. samples.py says what a row is called with.

Ancestors' list: M14.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pytest
from samples import ELSEWHERE, SAMPLES, Input, Sample, samples, values

from picograd import Tensor
from picograd.codegen.pipeline import generate
from picograd.conversion import convert
from picograd.dtype import (
    ALL,
    COMPLEX,
    DType,
    bool_,
    complex64,
    complex128,
    float32,
    float64,
    int32,
    int64,
)
from picograd.engine.inspect import inspect
from picograd.graph import build
from picograd.graph.gradient import gradient
from picograd.graph.interpret import interpret
from picograd.graph.node import Node
from picograd.graph.ops import OPS
from picograd.runtime.nvrtc import compile_together
from picograd.target import cuda_target

torch = pytest.importorskip("torch")

Array = Any
NAMES = [name for name in OPS if name not in ELSEWHERE]
TOLERANCE = {
    "float8_e4m3fn": 2**-3, "float8_e5m2": 2**-2, "float16": 2e-3, "bfloat16": 1.6e-2,
    "float32": 4e-6, "float64": 1e-11, "complex64": 4e-6, "complex128": 1e-11,
}  # fmt: skip
VIEWS = ("transposed", "strided", "flipped", "broadcast")
SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0]
# A step where both operands are equal: no derivative there.
UNEVEN = ("mod", "floordiv")
# Which parts of a complex product are NaN where a factor is infinite is nobody's convention.
PRODUCTS = ("contract", "conv")
# Rows whose kernels take long to compile: one dtype is tried on all views.
SLOW = ("pow", "scatter", "scan")


@dataclass
class Case:
    """One call: the node, the leaves it came from, and their contents."""

    label: str
    sample: Sample
    dtype: DType
    root: Node
    inputs: list[Node]  # of the row
    leaves: list[Node]
    arrays: list[Array]


def made(array: Array, dtype: DType, device: str) -> Node:
    """Put values on the device."""
    return Tensor(array, dtype=dtype, device=device).node


def viewed(kind: str, x: Array, dtype: DType, device: str) -> tuple[Node, Node, Array]:
    """Make a node of values through a view: (node, the leaf below it, the leaf's values)."""
    if kind == "transposed":
        held = np.ascontiguousarray(x.T)
        below = made(held, dtype, device)
        return build.permute(below, tuple(reversed(range(x.ndim)))), below, held
    if kind == "strided":
        held = np.repeat(x, 2, axis=-1)
        held[..., 1::2] = x[..., ::-1]
        below = made(held, dtype, device)
        ends = [(0, size, 1) for size in held.shape[:-1]]
        return build.slice_(below, (*ends, (0, held.shape[-1], 2))), below, held
    if kind == "flipped":
        held = np.flip(x).copy()
        below = made(held, dtype, device)
        return build.flip(below, tuple(range(x.ndim))), below, held
    held = np.ascontiguousarray(x[:1] if kind == "broadcast" else x)
    below = made(held, dtype, device)
    return (build.expand(below, x.shape) if kind == "broadcast" else below), below, held


def special(x: Array, dtype: DType, number: int) -> Array:
    """Put NaN, infinities and zeros, or an integer's ends, among the values of an input."""
    flat = x.reshape(-1).copy()
    if dtype.is_float or dtype.is_complex:
        count = min(len(SPECIAL), flat.size)
        flat[(np.arange(count) + 3 * number) % flat.size] = SPECIAL[:count]
    elif dtype.is_integer and number == 0:
        ends = np.iinfo(dtype.numpy)
        flat[:3] = [ends.min, ends.max, 0][: flat.size]
    return flat.reshape(x.shape)


def drawn(each: Input, dtype: DType, domain: Any, seed: int, is_smooth: bool) -> Array:
    """Draw an input; gradients want values that tie with nothing."""
    if is_smooth and each.role == "data":
        random = np.random.default_rng(seed)
        real = random.uniform(*domain, each.shape)
        return real + 1j * random.uniform(*domain, each.shape) if dtype.is_complex else real
    return values(each, dtype, domain, seed)


def call(
    name: str, sample: Sample, dtype: DType, kind: str, device: str, is_smooth: bool = False
) -> Case:
    """Build one call of a row."""
    inputs, leaves, arrays = [], [], []
    for number, each in enumerate(sample.inputs):
        own = {"bool": bool_, "index": int64}.get(each.role, dtype)
        x = drawn(each, dtype, OPS[name].domain, number, is_smooth)
        has_special = number in sample.special and not (own.is_complex and name in PRODUCTS)
        if kind == "special" and has_special and each.role == "data":
            x = special(x, dtype, number)
        is_repeat = kind == "repeated" and each.role == "data" and number
        if is_repeat and each == sample.inputs[number - 1]:
            inputs.append(inputs[-1])
            continue
        view = kind if each.role == "data" else "plain"
        node, below, held = viewed(view, convert(x, own), own, device)
        inputs.append(node)
        leaves.append(below)
        arrays.append(held)
    label = f"{name} {sample.label} {kind} {dtype.name}"
    return Case(label, sample, dtype, sample.make(*inputs), inputs, leaves, arrays)


def kinds_of(sample: Sample) -> list[str]:
    """List the kinds of input beside the plain one."""
    if not sample.is_plain or not all(each.shape for each in sample.inputs):
        return []
    data = [each for each in sample.inputs if each.role == "data"]
    return [*VIEWS, "special", *(["repeated"] if len(data) > len(set(data)) else [])]


def dtypes_of(name: str, sample: Sample) -> list[DType]:
    """List the dtypes; complex arithmetic is in test/graph/test_complex_rules.py."""
    kinds = sample.kinds or OPS[name].dtype_rule.kinds
    every = ALL if OPS[name].is_elementwise else (*ALL, *COMPLEX)
    return [d for d in every if d.kind in kinds and d.bits >= sample.least_bits]


def main_dtype(name: str, sample: Sample) -> DType:
    """Choose the dtype that all kinds of input are tried with."""
    found = dtypes_of(name, sample)
    return next(d for d in (float32, int32, bool_, complex64) if d in found)


def cases_of(name: str, device: str) -> list[Case]:
    """Make every call of a row: all dtypes, all kinds of input."""
    cases = []
    for sample in samples(name):
        for dtype in dtypes_of(name, sample):
            kinds = kinds_of(sample)
            if name in SLOW and dtype is not main_dtype(name, sample):
                kinds = [kind for kind in kinds if kind == "special"]
            cases += [call(name, sample, dtype, kind, device) for kind in ["plain", *kinds]]
    return cases


def realized(nodes: Sequence[Node]) -> list[Array]:
    """Compute nodes in one plan."""
    tensors = [Tensor.from_node(node) for node in nodes]
    Tensor.realize(*tensors)
    return [tensor.numpy() for tensor in tensors]


def exact(nodes: Sequence[Node], case: Case) -> list[Array]:
    """Compute nodes in NumPy, floats in float64, complex numbers in complex128."""
    return interpret(nodes, True, dict(zip(case.leaves, case.arrays)))


def close(found: Array, want: Array, tolerance: float, label: str) -> None:
    if want.dtype.kind == "c":  # both parts: NaN in one says nothing of the other
        assert found.dtype.kind == "c", label
        for part in ("real", "imag"):
            close(getattr(found, part), getattr(want, part), tolerance, f"{label} {part}")
        return
    if want.dtype.kind != "f":
        np.testing.assert_array_equal(found, want, label)
        return
    found = found.astype(np.float64)
    np.testing.assert_allclose(found, want, tolerance, tolerance, err_msg=label)


def test_every_row_has_samples_or_a_test_elsewhere() -> None:
    for name, row in OPS.items():
        is_sampled = row.is_elementwise or name in SAMPLES
        assert is_sampled or name in ELSEWHERE, f"{name}: give it samples in samples.py"
    assert SAMPLES.keys() <= OPS.keys()


@pytest.mark.parametrize("name", NAMES)
def test_values(name: str, device: str) -> None:
    cases = cases_of(name, device)
    wanted = [exact([case.root], case)[0] for case in cases]  # before the device has the results
    results = realized([case.root for case in cases])
    for case, found, want in zip(cases, results, wanted, strict=True):
        want = convert(want, case.root.dtype) if case.root.dtype.kind == "float8" else want
        tolerance = TOLERANCE.get(case.root.dtype.name, 0.0)
        close(found, want, tolerance, case.label)


def theirs(case: Case) -> list[Any]:
    """The inputs of a case as PyTorch's leaves: floats in float64."""
    arrays = interpret(case.inputs, True, dict(zip(case.leaves, case.arrays)))
    found = [torch.tensor(np.ascontiguousarray(array)) for array in arrays]
    return [t.requires_grad_() if t.is_floating_point() or t.is_complex() else t for t in found]


@pytest.mark.parametrize("name", NAMES)
def test_meaning_equals_pytorch(name: str) -> None:
    for sample in (s for s in samples(name) if s.torch):
        for dtype in dtypes_of(name, sample):
            if dtype.is_narrow_float or dtype in (float32, complex64):
                continue  # the meaning is compared in float64
            for kind in ["plain", *(["special"] if sample.is_plain else [])]:
                case = call(name, sample, dtype, kind, "cpu")
                try:
                    want = sample.torch(*theirs(case)).detach().numpy()
                except (NotImplementedError, RuntimeError):
                    assert not dtype.is_differentiable, (
                        case.label
                    )  # PyTorch takes few of the others
                    continue
                (found,) = exact([case.root], case)
                assert found.dtype == want.dtype, case.label
                close(found, want, 1e-11, case.label)


SMOOTH = [name for name in NAMES if OPS[name].is_differentiable]


def slopes(case: Case) -> tuple[list[Node], Node, Array]:
    """Gradients of the float leaves of a case, the cotangent and its values."""
    shape = case.root.shape
    weights = convert(direction(case.root.dtype.numpy, shape, 7), case.root.dtype)
    cotangent = made(weights, case.root.dtype, case.root.device)
    targets = [leaf for leaf in case.leaves if leaf.dtype.is_differentiable]
    found = gradient([(case.root, cotangent)], targets)
    zeros = [target.const_like(0) for target in targets]
    return [n if n is not None else z for n, z in zip(found, zeros)], cotangent, weights


def differences(case: Case, weights: Array, step: float = 1e-6) -> list[float]:
    """Central differences of the root along its weights, by one direction in each float leaf."""
    found = []
    for number, array in enumerate(case.arrays):
        if array.dtype.kind not in "fc":
            continue
        ends = []
        for sign in (1, -1):
            moved = list(case.arrays)
            moved[number] = array + sign * step * direction(array.dtype, array.shape, number)
            (value,) = interpret([case.root], True, dict(zip(case.leaves, moved)))
            ends.append(along(value, weights))
        found.append((ends[0] - ends[1]) / (2 * step))
    return found


def direction(dtype: Any, shape: Sequence[int], number: int) -> Array:
    random = np.random.default_rng(number)
    real = random.normal(size=shape)
    return real + 1j * random.normal(size=shape) if dtype.kind == "c" else real


def along(x: Array, y: Array) -> float:
    """Sum the products; of complex numbers those of real parts, and of imaginary ones."""
    return float(np.sum(x.real * y.real) + np.sum(x.imag * y.imag))


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients(name: str, device: str) -> None:
    made_of: list[tuple[Case, list[Node], Node, Array]] = []
    for sample in (s for s in samples(name) if s.has_gradient):
        dtypes = [d for d in dtypes_of(name, sample) if d in (float64, complex128)]
        for dtype, kind in product(dtypes, ["plain", *kinds_of(sample)]):
            if kind == "repeated" and name in UNEVEN:
                continue
            is_smooth = kind != "special"
            case = call(name, sample, dtype, kind, device, is_smooth)
            made_of.append((case, *slopes(case)))
            if kind != "special":
                check_differences(made_of[-1])
            # PyTorch divides a product by its factor, NaN or not; a window's NaN gets no gradient.
            differs = sample.label.startswith("prod") or name == "max_pool"
            if sample.torch is not None and not (differs and kind == "special"):
                check_torch(made_of[-1])
    wanted = [(entry[0].label, want) for entry in made_of for want in analytic(entry)]
    found = realized([node for _, nodes, _, _ in made_of for node in nodes])
    for result, (label, want) in zip(found, wanted, strict=True):
        close(result, want, 1e-9, label)


def analytic(entry: tuple[Case, list[Node], Node, Array]) -> list[Array]:
    """The gradients in NumPy."""
    case, nodes, cotangent, weights = entry
    known = dict(zip([*case.leaves, cotangent], [*case.arrays, weights]))
    return interpret(nodes, True, known)


def check_differences(entry: tuple[Case, list[Node], Node, Array]) -> None:
    case, _, _, weights = entry
    floats = [(n, a) for n, a in enumerate(case.arrays) if a.dtype.kind in "fc"]
    for (number, array), found, want in zip(
        floats, analytic(entry), differences(case, weights), strict=True
    ):
        slope = along(found, direction(array.dtype, array.shape, number))
        np.testing.assert_allclose(slope, want, 2e-5, 2e-5, err_msg=case.label)


def check_torch(entry: tuple[Case, list[Node], Node, Array]) -> None:
    """Compare the gradients of the row's inputs with PyTorch's."""
    case, _, cotangent, weights = entry
    inputs = theirs(case)
    output = case.sample.torch(*inputs)  # type: ignore[misc]
    if not output.requires_grad or "NotImplemented" in output.grad_fn.name():
        return
    floats = [(x, t) for x, t in zip(case.inputs, inputs) if t.requires_grad]
    nodes = gradient([(case.root, cotangent)], [x for x, _ in floats])
    output.backward(torch.tensor(weights))
    known = dict(zip([*case.leaves, cotangent], [*case.arrays, weights]))
    for node, (x, t) in zip(nodes, floats, strict=True):
        if node is None or t.grad is None or case.inputs.count(x) > 1:
            continue
        (found,) = interpret([node], True, known)
        close(found, t.grad.numpy(), 1e-9, f"PyTorch: {case.label}")


def test_cuda_c_of_every_elementwise_row_compiles() -> None:
    codes, target = [], cuda_target("sm_90a")
    for name in (n for n in NAMES if OPS[n].is_elementwise):
        sample = samples(name)[0]
        case = call(name, sample, main_dtype(name, sample), "plain", "cpu")
        (kernel,) = inspect([case.root]).kernels
        codes.append(generate(kernel.kernel, target))
    assert len({code.entry for code in codes}) == len(codes)
    assert compile_together(codes, target.arch) is not None
