"""Functions of complex tensors: creation, whole tensors, refusals."""

import pytest
from complex_support import W, Z, both, check

import picograd
from picograd import Tensor
from picograd.errors import DTypeError

torch = pytest.importorskip("torch")


WHOLE = """
    adjoint all any count_nonzero cov cumprod cumsum diag diagonal diff flatten fliplr
    mean nonzero norm prod std sum t trace tril triu unbind var
"""
REFUSED = """
    amax argmax argsort ceil clamp_min cummax erf floor floor_divide fmod ge gt le
    lgamma lt max maximum median min mode msort relu remainder round sign
    signbit softmax sort topk trunc unique
"""


@pytest.mark.parametrize("name", WHOLE.split())
def test_whole_tensors(name: str) -> None:
    check(*both(name, Z, dim=(1,) if name in ("cumsum", "cumprod") else ()))
    if name in ("sum", "mean", "prod", "var", "std"):
        check(*both(name, Z, dim=(0,)))


def test_sums_of_exponentials_do_not_overflow() -> None:
    big = Z * 400
    check(*both("logsumexp", big, dim=(1,)))
    check(*both("logsumexp", big, (0, 1), True))
    check(*both("logaddexp", big, W * 300))
    infinite = Tensor([complex("-inf"), complex("-inf")])
    assert infinite.logsumexp(0).tolist() == infinite[:1].logaddexp(infinite[:1]).tolist()[0]


def test_products() -> None:
    check(*both("matmul", Z, W.T.copy()))
    check(*both("dot", Z[0], W[1]))
    check(*both("vdot", Z[0], W[1]))
    check(Tensor.einsum("ij,kj->ik", Tensor(Z), Tensor(W)), torch.tensor(Z @ W.T))
    x, weight = Z.reshape(1, 1, 3, 4), W[:2, :2].reshape(1, 1, 2, 2)
    check(
        picograd.nn.functional.conv2d(Tensor(x), Tensor(weight)),
        torch.nn.functional.conv2d(torch.tensor(x), torch.tensor(weight)),
    )


@pytest.mark.parametrize("name", REFUSED.split())
def test_what_has_no_meaning_is_refused(name: str) -> None:
    more = (Tensor(W),) if name in ("floor_divide", "fmod", "ge", "gt", "le", "lt") else ()
    more = (Tensor(W),) if name in ("maximum", "remainder") else more
    more = (0,) if name in ("cummax", "softmax", "clamp_min") else more
    more = (2,) if name == "topk" else more
    with pytest.raises(DTypeError):
        getattr(picograd, name)(Tensor(Z), *more)


def test_creation_and_printing(cpu_by_default: None) -> None:
    assert Tensor([1j, 2]).dtype is picograd.complex64
    assert picograd.tensor(1j, dtype=complex).item() == 1j
    assert Tensor.zeros(2, dtype="complex128").tolist() == [0, 0]
    assert Tensor.full((2,), 1 + 1j).tolist() == [1 + 1j] * 2
    assert Tensor.eye(2, dtype="complex64").sum().item() == 2
    assert repr(Tensor([1.5 + 2j, -3 - 1j])) == "Tensor([ 1.5000+2.j, -3.0000-1.j])"
    assert Tensor([1, 2]).cast("complex64").tolist() == [1, 2]
    assert (Tensor([1.0], dtype="float64") * 1j).dtype is picograd.complex128
    zero_dim = Tensor(1j, dtype="complex128")
    assert (Tensor([1.0]) * zero_dim).dtype is picograd.complex64
    assert complex(zero_dim) == 1j and bool(zero_dim)


def test_conversions_that_lose_the_imaginary_part_warn_or_are_refused() -> None:
    z = Tensor([2 + 1j])
    for convert in (z.float, z.long, lambda: z.to("float64")):
        with pytest.warns(UserWarning, match="without its imaginary part"):
            assert convert().tolist() == [2]
    for refused in (lambda: Tensor([1j], dtype="int64"), lambda: float(z)):
        with pytest.raises((DTypeError, TypeError)):
            refused()


def test_functions_of_layers_and_matrices() -> None:
    t = torch.tensor([[1 + 2j, 0.0], [-0.5j, 3.0]], dtype=torch.complex128, requires_grad=True)
    x = Tensor(t.detach().numpy(), requires_grad=True)
    for ours, theirs in (
        (picograd.sinc(x), torch.sinc(t)),
        (picograd.nn.functional.silu(x), t * torch.sigmoid(t)),  # which has no gradient there
        (picograd.logdet(x), torch.logdet(t)),
    ):
        assert ours.numpy() == pytest.approx(theirs.detach().numpy())
        (found,) = picograd.autograd.grad(ours.abs().sum(), x)
        (want,) = torch.autograd.grad(theirs.abs().sum(), t)
        assert found.numpy() == pytest.approx(want.numpy())
