"""Relative errors of sums, scans and products of many elements, beside PyTorch's on the CPU.

Inputs are fixed; exact values come from NumPy in float64, which has 29 bits more than float32. The
error of a result is the largest |found - exact| / |exact| of its elements. `accuracy.py --sums`
prints them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from picograd import Tensor

Array = Any


@dataclass(frozen=True)
class Case:
    """One row: the inputs, the same function of picograd and of PyTorch, and the exact one."""

    name: str
    size: int
    make: Callable[[int], Array]
    compute: Callable[[Any], Any]
    exact: Callable[[Array], Array]
    dtype: str = "float32"


def uniform(size: int) -> Array:
    """Numbers of 0 to 1: sums of them lose nothing by cancellation."""
    return np.random.default_rng(0).random(size, np.float32)


def offset(size: int) -> Array:
    """Numbers about 100 with a deviation of 1."""
    return np.random.default_rng(1).standard_normal(size, np.float32) + 100


def normal(size: int) -> Array:
    """Normal numbers."""
    return np.random.default_rng(2).standard_normal(size, np.float32) * 3


def near_one(size: int) -> Array:
    """Numbers about 1, whose products stay moderate."""
    return (np.random.default_rng(3).standard_normal(size) * 1e-3 + 1).astype(np.float32)


def log_sum_exp(x: Array) -> Array:
    """log(sum(exp(x)))."""
    top = x.max()
    return top + np.log(np.exp(x - top).sum())


def cases() -> Iterator[Case]:
    """List the rows."""
    yield Case("sum", 20_000_000, uniform, lambda x: x.sum(), np.sum)
    yield Case("mean", 20_000_000, uniform, lambda x: x.mean(), np.mean)
    yield Case("norm", 20_000_000, uniform, lambda x: x.norm(), lambda x: np.sqrt((x * x).sum()))
    yield Case("prod", 1_000_000, near_one, lambda x: x.prod(), np.prod)
    yield Case("var", 10_000_000, offset, lambda x: x.var(), lambda x: x.var(ddof=1))
    yield Case("std", 10_000_000, offset, lambda x: x.std(), lambda x: x.std(ddof=1))
    for size in (1_000_000, 10_000_000):
        yield Case(
            "softmax", size, normal, lambda x: x.softmax(-1), lambda x: np.exp(x - log_sum_exp(x))
        )
        yield Case(
            "log_softmax", size, normal, lambda x: x.log_softmax(-1), lambda x: x - log_sum_exp(x)
        )
    yield Case("logsumexp", 10_000_000, normal, lambda x: x.logsumexp(-1), log_sum_exp)
    yield Case(
        "logcumsumexp", 1_000_000, normal, lambda x: x.logcumsumexp(-1), np.logaddexp.accumulate
    )
    yield Case("cumprod", 1_000_000, near_one, lambda x: x.cumprod(-1), np.cumprod)
    yield Case("cumsum", 50_000_000, uniform, lambda x: x.cumsum(-1), np.cumsum)
    yield Case("dot", 10_000_000, uniform, lambda x: x.dot(x), lambda x: x @ x)
    yield Case(
        "matmul, K", 10_000_000, uniform,
        lambda x: x.reshape(2, -1) @ x.reshape(-1, 2),
        lambda x: x.reshape(2, -1) @ x.reshape(-1, 2),
    )  # fmt: skip
    for dtype in ("float16", "bfloat16"):
        yield Case("sum", 60_000, uniform, lambda x: x.sum(), np.sum, dtype)
        yield Case("mean", 10_000_000, uniform, lambda x: x.mean(), np.mean, dtype)
        yield Case("var", 10_000_000, normal, lambda x: x.var(), lambda x: x.var(ddof=1), dtype)
        yield Case(
            "norm", 10_000_000, uniform, lambda x: x.norm(), lambda x: np.sqrt((x * x).sum()), dtype
        )
        yield Case(
            "softmax", 1_000, uniform, lambda x: x.softmax(-1),
            lambda x: np.exp(x - log_sum_exp(x)), dtype,
        )  # fmt: skip
        yield Case("cumsum", 4_000, uniform, lambda x: x.cumsum(-1), np.cumsum, dtype)


def largest_error(found: Array, exact: Array) -> float:
    """Find the largest relative error; where the exact value is 0 the result must be."""
    found, exact = np.asarray(found, np.float64), np.asarray(exact)
    with np.errstate(all="ignore"):
        error = np.where(found == exact, 0.0, np.abs(found - exact) / np.abs(exact))
    return float(np.max(error))


def errors_of(case: Case, size: int) -> tuple[float, float]:
    """Compute the errors of picograd and of PyTorch."""
    narrow = torch.from_numpy(case.make(size)).to(getattr(torch, case.dtype))
    values = narrow.to(torch.float64).numpy()
    exact = case.exact(values)
    theirs = case.compute(narrow).double().numpy()
    ours = case.compute(Tensor(values.astype(np.float32)).cast(case.dtype)).double().numpy()
    return largest_error(ours, exact), largest_error(theirs, exact)


def print_sums(names: list[str], is_markdown: bool) -> None:
    """Print the errors, a line each."""
    if is_markdown:
        print("| | elements | dtype | picograd | PyTorch |\n|---|---|---|---|---|")
    for case in cases():
        if names and case.name not in names:
            continue
        ours, theirs = errors_of(case, case.size)
        if is_markdown:
            cells = f"{case.size:.0e} | {case.dtype} | {ours:.1e} | {theirs:.1e}"
            print(f"| {case.name} | {cells} |", flush=True)
            continue
        mark = "!" if ours > 2 * theirs else " "
        print(
            f"{mark} {case.name:13} {case.size:10} {case.dtype:9} {ours:10.2e} {theirs:10.2e}",
            flush=True,
        )
