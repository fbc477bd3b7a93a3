"""Dual tensors beside PyTorch's: derivatives along directions, errors, levels."""

import importlib

import numpy as np
import pytest

import picograd
from picograd import Tensor
from picograd.autograd import forward_ad
from picograd.errors import GradientError, ShapeError, ValueRangeError

torch = pytest.importorskip("torch")
PROGRAMS = {
    "product": lambda lib, x: (x**2).sum() * x,
    "maximum": lambda lib, x: x.max(0).values,
    "piece": lambda lib, x: x.split(1)[1].exp(),
    "in place": lambda lib, x: lib.zeros(3).copy_(x * x).mul_(2),
    "written": lambda lib, x: lib.cat([x, lib.ones(1)]).index_fill(0, lib.tensor([0]), 5.0),
    "softmax": lambda lib, x: x.softmax(0),
    "position": lambda lib, x: x.argmax(),
    "constant": lambda lib, x: lib.ones(2),
    "none": lambda lib, x: x.detach() * 2,
}


def along(lib, program):
    ad = importlib.import_module(f"{lib.__name__}.autograd.forward_ad")
    with lib.no_grad(), ad.dual_level():
        x = ad.make_dual(lib.tensor([1.0, 2.0, 0.5]), lib.tensor([1.0, 0.5, -1.0]))
        value, tangent = ad.unpack_dual(program(lib, x))
        return [None if each is None else each.tolist() for each in (value, tangent)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_are_those_of_pytorch(name):
    found, wanted = along(picograd, PROGRAMS[name]), along(torch, PROGRAMS[name])
    assert (found[1] is None) == (wanted[1] is None)
    for mine, other in zip(found, wanted):
        if other is not None:
            np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-6)


def test_a_derivative_is_differentiated_of_what_was_computed_before():
    found = []
    for lib, ad in ((picograd, forward_ad), (torch, torch.autograd.forward_ad)):
        weight = lib.tensor([2.0, 3.0], requires_grad=True)
        with ad.dual_level():
            y = (weight * ad.make_dual(lib.tensor([1.0, 2.0]), lib.tensor([1.0, 0.5]))).tanh()
            assert "0.96" in str(y)
            ad.unpack_dual(y).tangent.sum().backward()
        found.append(weight.grad.tolist())
    np.testing.assert_allclose(*found, rtol=1e-4)


def test_a_level_ends():
    assert forward_ad._current_level == -1
    with forward_ad.dual_level():
        assert forward_ad._current_level == 0
        y = forward_ad.make_dual(Tensor([1.0]), Tensor([1.0])) * 2
        with pytest.raises(GradientError, match="not nested"):
            forward_ad.enter_dual_level()
    with forward_ad.dual_level():
        assert forward_ad.unpack_dual(y).tangent is None
    unpacked = forward_ad.unpack_dual(y)  # programs ask it before they write in place
    assert unpacked.primal is y and unpacked.tangent is None


def test_errors():
    x = Tensor([1.0, 2.0])
    with pytest.raises(GradientError, match="make_dual: no level is open"):
        forward_ad.make_dual(x, x)
    with forward_ad.dual_level():
        with pytest.raises(ShapeError, match=r"direction \(1,\) of a tensor \(2,\)"):
            forward_ad.make_dual(x, Tensor([1.0]))
        with pytest.raises(ValueRangeError, match="int64 has no derivative"):
            forward_ad.make_dual(Tensor([1]), Tensor([1.0]))
        with picograd.no_grad(), pytest.raises(GradientError, match="put it around the level"):
            forward_ad.make_dual(x, x)
        with pytest.raises(GradientError, match="no level is open"):
            forward_ad.make_dual(x, x, level=1)
