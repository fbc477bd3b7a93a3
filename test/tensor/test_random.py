"""Random numbers: reproducible, independent of the order of realisation, well distributed."""

import numpy as np
import pytest

import picograd
from picograd import Generator, Tensor


def test_seed_and_order(device: str) -> None:
    picograd.manual_seed(3)
    a, b = Tensor.rand(4, device=device), Tensor.randn(4, device=device)
    second, first = b.tolist(), a.tolist()
    picograd.manual_seed(3)
    c, d = Tensor.rand(4, device=device), Tensor.randn(4, device=device)
    assert c.tolist() == first and d.tolist() == second
    assert first != Tensor.rand(4, device=device).tolist()


def test_reading_twice_gives_the_same(device: str) -> None:
    x = Tensor.rand(100, device=device)
    assert (x - x).abs().sum().item() == 0 and x.tolist() == x.tolist()


def test_distributions(device: str) -> None:
    picograd.manual_seed(0)
    u, n = Tensor.rand(20000, device=device).numpy(), Tensor.randn(20000, device=device).numpy()
    assert u.min() >= 0 and u.max() < 1 and abs(u.mean() - 0.5) < 0.01
    assert abs(u.std() - 12**-0.5) < 0.01
    assert abs(n.mean()) < 0.03 and abs(n.std() - 1) < 0.03 and np.isfinite(n).all()
    dice = Tensor.randint(1, 7, (6000,), device=device).numpy()
    assert set(dice.tolist()) == {1, 2, 3, 4, 5, 6}
    assert np.bincount(dice)[1:].min() > 850
    scaled = Tensor.uniform(1000, low=-2.0, high=3.0, device=device).numpy()
    assert -2 <= scaled.min() < -1.9 and 2.9 < scaled.max() < 3


def test_dtypes(device: str) -> None:
    for dtype in ("float16", "bfloat16", "float64"):
        x = Tensor.rand(1000, dtype=dtype, device=device)
        assert x.dtype.name == dtype and x.numpy().max() < 1
    assert Tensor.randint(10, size=(2,)).dtype is picograd.int64
    with pytest.raises(TypeError, match="needs a float dtype"):
        Tensor.rand(3, dtype="int32")
    with pytest.raises(ValueError, match="is empty"):
        Tensor.randint(3, 3, (2,))


def test_own_generator_and_permutation() -> None:
    first, second = Generator(5), Generator(5)
    assert Tensor.rand(3, generator=first).tolist() == Tensor.rand(3, generator=second).tolist()
    state = first.get_state()
    again = Tensor.rand(3, generator=first).tolist()
    first.set_state(state)
    assert Tensor.rand(3, generator=first).tolist() == again
    assert sorted(Tensor.randperm(50).tolist()) == list(range(50))
    big = Tensor.randint(0, 1 << 40, (100,)).numpy()
    assert big.max() > 1 << 38
