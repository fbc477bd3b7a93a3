"""From uniform draws to other distributions: against the inverse functions in NumPy and PyTorch."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from picograd import Tensor
from picograd.graph.node import Node
from picograd.tensor.core.recording import fresh
from picograd.tensor.making import inverse_sampling

torch = pytest.importorskip("torch")

CASES: dict[str, tuple[Callable[[Node], Node], Callable[[Any], Any]]] = {
    "exponential": (inverse_sampling.exponential, lambda u: -np.log1p(-u)),
    "gumbel": (inverse_sampling.gumbel, lambda u: -np.log(-np.log1p(-u))),
    "cauchy": (inverse_sampling.cauchy, lambda u: np.tan(math.pi * (u - 0.5))),
    "geometric": (
        lambda u: inverse_sampling.geometric(u, 0.3),
        lambda u: np.maximum(np.ceil(np.log1p(-u) / math.log(0.7)), 1),
    ),
    "erfinv": (
        lambda u: inverse_sampling.erfinv(u * 2.0 - 1.0),
        lambda u: torch.erfinv(torch.tensor(2 * u - 1)).numpy(),
    ),
}
# what rounding u to its steps costs near the ends, in units of the value
TOLERANCE = {"float32": 2e-5, "float64": 1e-12}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", CASES)
def test_inverse(name: str, dtype: str, device: str) -> None:
    if name == "erfinv" and dtype == "float32":
        pytest.skip("float64 only")
    steps = np.random.default_rng(0).integers(1 << 12, (1 << 24) - (1 << 12), 500)
    u = (steps * 2.0**-24).astype(dtype)
    made, want = CASES[name]
    found = fresh(made(Tensor(u, device=device).node)).numpy()
    exact = want(u.astype(np.float64))
    tolerance = TOLERANCE[dtype]
    np.testing.assert_allclose(found, exact, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_the_ends(dtype: str, device: str) -> None:
    """u = 0 and the largest u below 1 give finite draws."""
    last = 1 - (2.0**-24 if dtype == "float32" else 2.0**-53)
    u = Tensor([0.0, last], dtype=dtype, device=device).node
    for made in (inverse_sampling.exponential, inverse_sampling.gumbel, inverse_sampling.cauchy):
        low, high = fresh(made(u)).numpy().tolist()
        assert math.isfinite(low) and math.isfinite(high) and (high - low) * (
            -1 if made is inverse_sampling.gumbel else 1) > 0  # fmt: skip
    assert (fresh(inverse_sampling.exponential(u)) > 0).all().item()


def test_truncated_normal_stays_inside(device: str) -> None:
    u = Tensor(np.linspace(0, 1 - 2.0**-53, 300), device=device).node
    first, last = (math.erf(each / math.sqrt(2)) for each in (-0.5, 2.0))
    draws = fresh(inverse_sampling.truncated_normal(u, first, last)).numpy()
    assert abs(draws[0] + 0.5) < 1e-12 and abs(draws[-1] - 2) < 1e-12
    assert (np.diff(draws) > 0).all()
