"""Products of reflectors, of real and complex matrices, with gradients, equal PyTorch's."""

from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor
from picograd.errors import ShapeError

torch = pytest.importorskip("torch")
RANDOM = np.random.default_rng(0)


def drawn(shape: tuple[int, ...], is_complex: bool) -> Any:
    real = RANDOM.standard_normal(shape)
    return real + 1j * RANDOM.standard_normal(shape) if is_complex else real


@pytest.mark.parametrize("is_complex", [False, True])
@pytest.mark.parametrize("shape", [(4, 3), (2, 3, 3), (2, 4)])
def test_they_multiply_as_theirs(shape: tuple[int, ...], is_complex: bool) -> None:
    values = drawn(shape, is_complex)
    ours, theirs = picograd.geqrf(Tensor(values)), torch.geqrf(torch.tensor(values))
    for each, other in zip(ours, theirs):
        np.testing.assert_allclose(each.numpy(), other.numpy(), 1e-9, 1e-12)
    other = drawn((*shape[:-2], shape[-2], 2), is_complex)
    for left, turned in ((True, other), (False, other.swapaxes(-1, -2).copy())):
        for transpose in (False, True):
            found = picograd.ormqr(*ours, Tensor(turned), left, transpose)
            want = torch.ormqr(*theirs, torch.tensor(turned), left, transpose)
            np.testing.assert_allclose(found.numpy(), want.numpy(), 1e-9, 1e-12)
    if shape[-1] > shape[-2]:
        return
    inputs = [x.detach().clone().requires_grad_() for x in ours]
    wanted = [x.clone().requires_grad_() for x in theirs]
    found = picograd.linalg.householder_product(*inputs)
    want = torch.linalg.householder_product(*wanted)
    np.testing.assert_allclose(found.detach().numpy(), want.detach().numpy(), 1e-9, 1e-12)
    (found[..., :1] + found[..., 1:2] * 2).abs().sum().backward()
    (want[..., :1] + want[..., 1:2] * 2).abs().sum().backward()
    for each, other in zip(inputs, wanted):
        np.testing.assert_allclose(each.grad.numpy(), other.grad.numpy(), 1e-9, 1e-9)


def test_sizes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ShapeError, match="ormqr: reflectors, factors and matrix do not fit"):
        picograd.ormqr(Tensor.zeros(3, 2), Tensor.zeros(2), Tensor.zeros(4, 1))
    with pytest.raises(ShapeError, match="householder_product: 3 columns of 2 elements"):
        picograd.linalg.householder_product(Tensor.ones(2, 3), Tensor.ones(2))


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("geqrf", [(3,)]),
        ("geqrf", [()]),
        ("orgqr", [(3,), (1,)]),
        ("ormqr", [(3,), (1,), (3, 3)]),
        ("ormqr", [(3, 3), (), (3, 3)]),
        ("ormqr", [(3, 3), (1,), (3,)]),
    ],
)
def test_vectors_are_no_matrices(name: str, shapes: list[tuple[int, ...]]) -> None:
    with pytest.raises(ShapeError, match="needs at least . axes"):
        getattr(picograd, name)(*(Tensor.ones(*shape) for shape in shapes))


def test_16_bits_are_decomposed_in_32() -> None:
    values = drawn((3, 3), False).astype(np.float16)
    found, wanted = picograd.geqrf(Tensor(values)), picograd.geqrf(Tensor(values).float())
    assert found.a.dtype == picograd.float16
    assert picograd.allclose(found.a.float(), wanted.a, atol=1e-2)


def test_reflectors_of_a_traced_matrix() -> None:
    jitted = picograd.jit(lambda x: tuple(picograd.geqrf(x * 2)))
    for seed in range(3):
        x = Tensor(np.random.default_rng(seed).normal(size=(2, 4, 3)))
        for found, want in zip(jitted(x), picograd.geqrf(x * 2), strict=True):
            np.testing.assert_allclose(found.numpy(), want.numpy(), 1e-5, 1e-6)
