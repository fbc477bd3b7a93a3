"""Run one function on picograd and on PyTorch (float64) and compare values and gradients."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor

torch = pytest.importorskip("torch")

TOLERANCE = {"float64": 1e-9, "float32": 2e-5, "float16": 4e-3, "bfloat16": 3e-2}


@dataclass
class Case:
    """One call: `function` works on tensors of both libraries unless `reference` is given."""

    name: str
    function: Callable[..., Any]
    inputs: Sequence[np.ndarray]
    reference: Callable[..., Any] | None = None
    has_gradient: bool = True
    dtype: str = "float32"
    scale: float = 1.0  # widens the tolerance


@dataclass
class Recorded:
    """What picograd recorded for a case, still to be computed."""

    case: Case
    inputs: list[Tensor]
    output: Tensor
    gradients: list[Any]


def as_inputs(case: Case, device: str) -> list[Tensor]:
    return [leaf(array, case, device) for array in case.inputs]


def leaf(array: np.ndarray, case: Case, device: str) -> Tensor:
    is_float = array.dtype.kind == "f"
    tensor = Tensor(array, dtype=case.dtype if is_float else None, device=device)
    tensor.requires_grad = is_float and case.has_gradient
    return tensor


def weights(shape: Sequence[int]) -> np.ndarray:
    """Start gradients that differ from element to element and are exact in every dtype."""
    count = int(np.prod(shape))
    return ((np.arange(count) % 7 - 3) / 4 + 0.125).reshape(shape)


def record(case: Case, device: str) -> Recorded:
    inputs = as_inputs(case, device)
    output = case.function(*inputs)
    gradients: list[Any] = []
    if case.has_gradient:
        wanted = [tensor for tensor in inputs if tensor.requires_grad]
        start = Tensor(weights(output.shape), dtype=output.dtype, device=device)
        gradients = picograd.grad(output, wanted, start, allow_unused=True)
    return Recorded(case, inputs, output, gradients)


def expected(case: Case, inputs: Sequence[Tensor]) -> tuple[Any, list[Any]]:
    """Compute the case in PyTorch: floats in float64, from the rounded inputs."""
    given = []
    for tensor in inputs:
        value = torch.from_numpy(np.array(tensor.numpy()))
        if value.is_floating_point():
            value = value.double().requires_grad_(case.has_gradient)
        given.append(value)
    output = (case.reference or case.function)(*given)
    if not case.has_gradient:
        return output, []
    wanted = [value for value in given if value.requires_grad]
    start = torch.from_numpy(weights(output.shape))
    return output, list(torch.autograd.grad(output, wanted, start, allow_unused=True))


def compare(cases: Sequence[Case], device: str) -> None:
    """Record all cases, compute them together, and report every difference at once."""
    recorded = [record(case, device) for case in cases]
    results = [each.output for each in recorded]
    results += [g for each in recorded for g in each.gradients if g is not None]
    if results:
        results[0].realize(*results[1:])
    problems = [problem for each in recorded for problem in differences(each)]
    assert not problems, "\n".join(problems)


def differences(each: Recorded) -> list[str]:
    output, gradients = expected(each.case, each.inputs)
    problems = difference(each.case, "value", each.output, output)
    wanted = [tensor for tensor in each.inputs if tensor.requires_grad]
    for number, (found, want) in enumerate(zip(each.gradients, gradients)):
        if want is None or found is None:
            is_zero = (found is None or not found.numpy().any()) and (
                want is None or not want.numpy().any()
            )
            problems += [] if is_zero else [f"{each.case.name}: gradient {number} is missing"]
            continue
        if found.dtype is not wanted[number].dtype:
            problems.append(f"{each.case.name}: gradient {number} is {found.dtype}")
        problems += difference(each.case, f"gradient {number}", found, want)
    return problems


def difference(case: Case, what: str, found: Tensor, want: Any) -> list[str]:
    label = f"{case.name} ({case.dtype}, {[x.shape for x in case.inputs]}): {what}"
    values, reference = found.numpy(), want.detach().numpy()
    if values.shape != reference.shape:
        return [f"{label} has shape {values.shape}, wanted {reference.shape}"]
    if values.dtype.kind != reference.dtype.kind:
        return [f"{label} is {values.dtype}, wanted {reference.dtype}"]
    if values.dtype.kind != "f":
        same = np.array_equal(values, reference)
        return [] if same else [f"{label}: {values.tolist()} != {reference.tolist()}"]
    limit = TOLERANCE[found.dtype.name] * case.scale
    close = np.allclose(values.astype(np.float64), reference, limit, limit, equal_nan=True)
    return [] if close else [f"{label}:\n{values}\n!=\n{reference}"]


def numbers(shape: Sequence[int], low: float = -3.0, high: float = 3.0, seed: int = 0) -> Any:
    """Draw floats whose sixteenths are whole, so that every float dtype holds them exactly."""
    draw = np.random.default_rng(seed + 7 * len(shape) + sum(shape)).uniform(low, high, shape)
    return np.asarray(np.round(draw * 16) / 16)


def integers(shape: Sequence[int], low: int = -5, high: int = 6, dtype: str = "int64") -> Any:
    return np.random.default_rng(sum(shape)).integers(low, high, shape).astype(dtype)


def library(x: Any) -> Any:
    """Find the library a tensor belongs to."""
    return torch if isinstance(x, torch.Tensor) else picograd


def lin(name: str, *args: Any, pick: Any = None, **options: Any) -> Any:
    """Make a call of `linalg` in the library of its first tensor; `pick` takes one result."""

    def call(*tensors: Any) -> Any:
        result = getattr(library(tensors[0]).linalg, name)(*tensors, *args, **options)
        return result if pick is None else result[pick]

    return call


def same(found: Any, want: Any) -> None:
    """Compare results, one by one, in shape, dtype and values."""
    for ours, theirs in zip(found, want, strict=True):
        assert ours.shape == tuple(theirs.shape)
        assert ours.numpy().dtype == theirs.numpy().dtype
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), 1e-6)
