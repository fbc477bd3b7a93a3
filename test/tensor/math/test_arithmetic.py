"""Arithmetic beyond the operators: values, dtypes and gradients equal PyTorch's."""

from typing import Any

import numpy as np
import pytest
from op_support import Case, compare, integers, numbers

import picograd
from picograd import Tensor
from picograd.errors import PicogradError

torch = pytest.importorskip("torch")

EDGES = np.array([0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 3e-40, 65504.0])


def call(name: str, *args: Any) -> Any:
    def function(*tensors: Any) -> Any:
        library = torch if isinstance(tensors[0], torch.Tensor) else picograd
        return getattr(library, name)(*tensors, *args)

    return function


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_of_two(dtype: str, device: str) -> None:
    a, b = numbers((3, 4)), numbers((4,), seed=3)
    holes = np.where(np.arange(12).reshape(3, 4) % 3 == 0, np.nan, numbers((3, 4), seed=5))
    cases = []
    for name in ("fmax", "fmin", "logaddexp2"):
        cases += [Case(name, call(name), [a, b], dtype=dtype, scale=4)]
        cases += [Case(f"{name} empty", call(name), [a[:0], b], dtype=dtype)]
    for name in ("fmax", "fmin"):
        cases += [Case(f"{name} nan", call(name), [holes, a], dtype=dtype)]
        cases += [Case(f"{name} nan", call(name), [a, holes], dtype=dtype)]
        of_view = lambda x, y, n=name: call(n)(x.T, y)  # noqa: E731
        cases += [Case(f"{name} view", of_view, [a, b[:3]], dtype=dtype)]
    cases += [Case("ldexp", call("ldexp"), [a, integers((4,))], dtype=dtype)]
    cases += [Case("rsub", lambda x, y: call("rsub")(x, y), [a, b], dtype=dtype)]
    cases += [Case("float_power", call("float_power"), [numbers((3,), 0.2, 3), numbers((3,))],
                   dtype="float64")]  # fmt: skip
    compare(cases, device)


def same(found: Any, want: Any) -> None:
    values, reference = found.numpy(), want.numpy()
    assert values.dtype == reference.dtype and values.shape == reference.shape
    np.testing.assert_array_equal(values, reference)


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_bits_of_floats(name: str, device: str) -> None:
    x = EDGES.astype(name)
    for found, want in zip(
        picograd.frexp(Tensor(x, device=device)), torch.frexp(torch.tensor(x)), strict=True
    ):
        finite = np.isfinite(x)
        np.testing.assert_array_equal(found.numpy()[finite], want.numpy()[finite])
        assert found.numpy().dtype == want.numpy().dtype
    other = np.roll(x, 1)
    found = picograd.nextafter(Tensor(x, device=device), Tensor(other, device=device))
    same(found, torch.nextafter(torch.tensor(x), torch.tensor(other)))


def test_gradient_of_the_mantissa(device: str) -> None:
    compare([Case("frexp", lambda x: call("frexp")(x)[0], [numbers((5,), 0.3, 9)])], device)


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8"])
def test_divisors(dtype: str, device: str) -> None:
    a = np.array([12, 0, 0, 233, 60, 7, 144], dtype)
    b = np.array([18, 0, 5, 144, 48, 7, 89], dtype)
    signs = np.where(np.arange(7) % 2 > 0, -1, 1) if dtype != "uint8" else np.ones(7)
    a = (a * signs).astype(dtype)
    for name in ("gcd", "lcm"):
        if name == "gcd" or dtype != "uint8":
            found = getattr(picograd, name)(Tensor(a, device=device), Tensor(b, device=device))
            same(found, getattr(torch, name)(torch.tensor(a), torch.tensor(b)))
    if dtype == "int64":
        big = [7540113804746346429, 4660046610375530309]  # neighbours of Fibonacci's
        found = picograd.gcd(Tensor(big[:1], device=device), Tensor(big[1:], device=device))
        assert found.item() == 1


def test_tests(device: str) -> None:
    x, t = Tensor(EDGES, device=device), torch.tensor(EDGES)
    for name in ("isposinf", "isneginf", "isreal"):
        same(getattr(picograd, name)(x), getattr(torch, name)(t))
    assert picograd.equal(x[:3], x[:3]) and not picograd.equal(x, x)
    assert not picograd.equal(x[:2], x[:3])
    assert picograd.is_nonzero(x[2]) and not picograd.is_nonzero(x[1])
    same(picograd.sgn(x[:4]), torch.sgn(t[:4]))
    same(x.clamp_min(0.5).clamp_max(2), t.clamp_min(0.5).clamp_max(2))
    low, high = Tensor(np.float64(1), device=device), Tensor([3.0, 4.0], device=device)
    assert Tensor([1, 2], device=device).clamp(low, high).dtype is picograd.float32
    same(picograd.positive(x), torch.positive(t))


def test_mistakes(device: str) -> None:
    x = Tensor([1.0], device=device)
    for wrong in (
        lambda: picograd.positive(x > 0),
        lambda: picograd.gcd(x, 2),
        lambda: picograd.frexp(x.long()),
        lambda: picograd.fmax(1.0, 2.0),
        lambda: picograd.nextafter(x.long(), 1),
        lambda: picograd.is_nonzero(Tensor([1.0, 2.0], device=device)),
    ):
        with pytest.raises(PicogradError):
            wrong()


def test_least_numbers_and_steps_that_overflow(device: str) -> None:
    def at(values: list[Any], name: str) -> Tensor:
        return Tensor(values, dtype=name, device=device)

    least = -(2**63)
    assert at([1, -128], "int8").gcd(at([-128, 96], "int8")).tolist() == [1, 32]
    x = at([least, 2**63 - 1, 5], "int64")
    assert x.isclose(at([least, -1, 6], "int64")).tolist() == [True, False, False]
    powers = at([200, 2**40, -300, 277], "int64")
    found = picograd.ldexp(at([1e-40, 0.0, 3e38, 1e-45], "float32"), powers)
    assert found.tolist() == [pytest.approx(1.6069e20, rel=1e-4), 0, 0, np.inf]
    found = picograd.ldexp(at([5e-324, 1.0], "float64"), at([2097, -1074], "int64"))
    assert found.tolist() == [2.0**1023, 5e-324]
    turn = Tensor([1 + 2j], dtype="complex128", device=device)
    assert picograd.ldexp(turn, at([3], "int64")).tolist() == [pytest.approx(8 + 16j)]
    assert picograd.ldexp(turn, turn * 0 + 1).tolist() == [pytest.approx(2 + 4j)]
    half = at([-1.0], "float16")
    assert picograd.logaddexp2(half, half).item() == 0  # rounded once
    assert at([-1e308, -3.0, 1e308], "float64").lgamma().tolist() == [np.inf] * 3
    assert picograd.nn.functional.threshold(at([1, -2], "int16"), 0, 5).tolist() == [1, 5]


def test_the_smaller_share_of_logaddexp_keeps_its_digits() -> None:
    a = Tensor([20.0, -3.0, 0.0], requires_grad=True)
    b = Tensor([0.0, 17.0, 0.0], requires_grad=True)
    a.logaddexp(b).sum().backward()
    small = 1 / (1 + np.exp(20.0))
    np.testing.assert_allclose(a.grad.numpy(), [1.0, small, 0.5], rtol=1e-6)
    np.testing.assert_allclose(b.grad.numpy(), [small, 1.0, 0.5], rtol=1e-6)
