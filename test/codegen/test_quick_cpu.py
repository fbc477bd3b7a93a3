"""Functions of a CPU for what is rounded to 16 bits, at every number of 16 bits."""

from collections.abc import Callable
from math import inf, isnan, nan

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.codegen.quick import RELAXED as ON_A_GPU
from picograd.codegen.quick_cpu import RELAXED

torch = pytest.importorskip("torch")

F, TF = nn.functional, torch.nn.functional
EVERY = {  # name -> ours, exact; how much of the input is lost where 1 + erf is small
    "sigmoid": (Tensor.sigmoid, torch.sigmoid, 0.0),
    "silu": (F.silu, TF.silu, 0.0),
    "tanh": (Tensor.tanh, torch.tanh, 0.0),
    "gelu": (F.gelu, TF.gelu, 2.0**-24),
    "exp": (Tensor.exp, torch.exp, 0.0),
}


def test_every_relaxed_function_is_here() -> None:
    assert set(RELAXED) == set(ON_A_GPU)


@pytest.mark.usefixtures("cpu_by_default")
@pytest.mark.parametrize("dtype, bits", [("bfloat16", 8), ("float16", 11)])
@pytest.mark.parametrize("name", EVERY)
def test_results_are_nearly_the_nearest(name: str, dtype: str, bits: int) -> None:
    own, theirs, lost = EVERY[name]
    numbers = torch.arange(-(2**15), 2**15, dtype=torch.int16).view(getattr(torch, dtype))
    numbers = numbers[numbers.isfinite()]
    exact = theirs(numbers.double()).numpy()
    given = Tensor(numbers.float().numpy()).to(getattr(picograd, dtype)).realize()
    found = own(given).realize().double().numpy()  # else it is not rounded to 16 bits
    found = np.where(np.isinf(found), 0, found)  # beyond the largest number of 16 bits
    size = np.abs(exact)
    is_normal = (size > 1e-4) & (size < 6e4)
    allowed = size * 2.0**-bits * 1.02 + lost * np.abs(numbers.double().numpy())
    assert is_normal.sum() > 1000
    assert (np.abs(found - exact)[is_normal] <= allowed[is_normal]).all()
    assert np.allclose(found[size <= 1e-4], exact[size <= 1e-4], atol=1e-6)


@pytest.mark.usefixtures("cpu_by_default")
@pytest.mark.parametrize("of, at, wanted", [
    (Tensor.sigmoid, (-inf, inf, nan, -300.0), (0.0, 1.0, nan, 0.0)),
    (Tensor.tanh, (-inf, inf, nan, -0.0), (-1.0, 1.0, nan, -0.0)),
    (F.silu, (-inf, inf, nan, -300.0), (nan, inf, nan, 0.0)),
    (F.gelu, (-inf, inf, nan, -300.0), (nan, inf, nan, 0.0)),
])  # fmt: skip
def test_ends(
    of: Callable[[Tensor], Tensor], at: tuple[float, ...], wanted: tuple[float, ...]
) -> None:
    found = of(Tensor(at).bfloat16().realize()).realize().float().numpy().tolist()
    for one, other in zip(found, wanted, strict=True):
        assert one == other or (isnan(one) and isnan(other))
        assert isnan(one) or np.signbit(one) == np.signbit(other) or one == 0.0


@pytest.mark.usefixtures("cpu_by_default")
def test_what_is_stored_whole_stays_exact() -> None:
    numbers = np.linspace(-9, 9, 10001, dtype=np.float32)
    found = Tensor(numbers).sigmoid().numpy().astype(np.float64)
    exact = 1 / (1 + np.exp(-numbers.astype(np.float64)))
    assert (np.abs(found - exact) <= exact * 2.0**-23).all()
