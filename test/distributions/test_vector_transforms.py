"""Transforms of vectors and matrices, against PyTorch's: values, inverses, slopes, shapes."""

import numpy as np
import pytest
from distribution_support import check_same, torch

import picograd
from picograd import Tensor, distributions


def some(library) -> list:
    d = library.distributions
    affine, exp = d.AffineTransform(1.0, -2.0), d.ExpTransform()
    inner = d.CatTransform([exp, affine], -1, [2, 4])
    return [
        d.SoftmaxTransform(),
        d.StickBreakingTransform(),
        d.CorrCholeskyTransform(),
        d.ReshapeTransform((6,), (3, 2)),
        d.CatTransform([exp, affine], 1, [2, 4]),
        d.CatTransform([d.StickBreakingTransform().inv.inv, inner], 0, [1, 3]),
        d.CatTransform([d.IndependentTransform(exp, 1), d.AffineTransform(0.0, 3.0, 1)], 0, [1, 3]),
        d.StackTransform([exp, affine, exp, exp], 0),
        d.StackTransform([exp, affine] * 3, -1),
    ]


@pytest.mark.parametrize("number", [n for n in range(9) if n != 5])
def test_of_vectors(number: int) -> None:
    x = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)
    ours, theirs = some(picograd)[number], some(torch)[number]
    mine = Tensor(x, requires_grad=True)
    other = torch.tensor(x, requires_grad=True)
    y, want = ours(mine), theirs(other)
    check_same(y, want)
    assert ours.bijective == theirs.bijective
    for name in ("domain", "codomain"):
        assert getattr(ours, name).event_dim == getattr(theirs, name).event_dim
    if ours.bijective:
        check_same(ours.inv(y), theirs.inv(want))
        slope, wanted = ours.log_abs_det_jacobian(mine, y), theirs.log_abs_det_jacobian(other, want)
        check_same(slope, wanted)
        assert slope.shape == tuple(wanted.shape)
        if wanted.requires_grad:
            (slope.sum() + y.square().sum()).backward()
            (wanted.sum() + want.square().sum()).backward()
            check_same(mine.grad, other.grad)
    assert ours.forward_shape((4, 6)) == tuple(theirs.forward_shape(torch.Size((4, 6))))


@pytest.mark.parametrize("name", ["LowerCholeskyTransform", "PositiveDefiniteTransform"])
def test_of_matrices(name: str) -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 3)).astype(np.float32)
    ours, theirs = (getattr(each.distributions, name)() for each in (picograd, torch))
    y, want = ours(Tensor(x)), theirs(torch.from_numpy(x))
    check_same(y, want)
    check_same(ours.inv(y), theirs.inv(want))


def test_shapes() -> None:
    corr = distributions.CorrCholeskyTransform()
    assert corr.forward_shape((2, 6)) == (2, 4, 4) and corr.inverse_shape((2, 4, 4)) == (2, 6)
    for wrong, text in (
        (lambda: corr.forward_shape((5,)), "fill no triangle"),
        (lambda: corr.inverse_shape((5, 4)), "square"),
        (lambda: distributions.ReshapeTransform((2,), (3,)), "elements"),
        (lambda: distributions.ReshapeTransform((4,), (2, 2))(Tensor.ones(3, 2)), "end with"),
        (lambda: distributions.SoftmaxTransform().forward_shape(()), "fewer than 1"),
        (lambda: distributions.CatTransform([distributions.ExpTransform()], 0, [1, 2]), "lengths"),
        (lambda: some(picograd)[4](Tensor.ones(4, 5)), "size 6"),
        (lambda: some(picograd)[7](Tensor.ones(3, 5)), "size 4"),
    ):
        with pytest.raises(ValueError, match=text):
            wrong()


def test_far_out_values_stay_finite() -> None:
    """Sticks of which nearly nothing is left still have logarithms."""
    x = Tensor([[-60.0, 60.0, 3.0], [200.0, -200.0, 0.0]])
    stick = distributions.StickBreakingTransform()
    y = stick(x)
    assert np.isfinite(stick.inv(y).numpy()).all()
    np.testing.assert_allclose(y.sum(-1).numpy(), 1.0, rtol=1e-6)
    factor = distributions.CorrCholeskyTransform()(x)
    np.testing.assert_allclose(factor.square().sum(-1).numpy(), 1.0, rtol=1e-5)


def test_under_jit() -> None:
    @picograd.jit
    def step(x: Tensor) -> Tensor:
        corr = distributions.CorrCholeskyTransform()
        y = corr(x)
        return corr.log_abs_det_jacobian(x, y) + corr.inv(y).sum()

    x = np.array([0.3, -0.8, 1.4], np.float32)
    corr = torch.distributions.CorrCholeskyTransform()
    y = corr(torch.from_numpy(x))
    want = corr.log_abs_det_jacobian(torch.from_numpy(x), y) + corr.inv(y).sum()
    for _ in range(2):
        check_same(step(Tensor(x)), want)
