"""picograd.masked beside NumPy's masked arrays."""

import math
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import masked
from picograd.errors import ShapeError

DRAW = np.random.default_rng(0)
X = DRAW.standard_normal((3, 4))
MASK = np.array([[1, 0, 1, 1], [1, 1, 0, 0], [0, 1, 1, 1]], bool)
HIDDEN = np.ma.array(X, mask=~MASK)
NOTHING = np.zeros((3, 4), bool)


@pytest.mark.parametrize("dim", [None, 0, 1, (0, 1)])
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize(
    ("name", "other"),
    [("sum", "sum"), ("prod", "prod"), ("mean", "mean"), ("amax", "max"), ("amin", "min")],
)
def test_reductions(name: str, other: str, dim: Any, keepdim: bool) -> None:
    found = getattr(masked, name)(picograd.tensor(X), dim, keepdim=keepdim, mask=mask())
    expected = getattr(HIDDEN, other)(dim, keepdims=keepdim)
    np.testing.assert_allclose(found.numpy(), np.asarray(expected), rtol=1e-12)


def mask(chosen: Any = MASK) -> picograd.Tensor:
    return picograd.tensor(chosen)


@pytest.mark.parametrize(
    ("name", "nothing"),
    [("sum", 0), ("prod", 1), ("amax", -math.inf), ("amin", math.inf), ("mean", math.nan),
     ("logsumexp", -math.inf), ("median", math.nan)],
)  # fmt: skip
def test_of_nothing(name: str, nothing: float) -> None:
    found = getattr(masked, name)(picograd.tensor(X), 1, mask=mask(NOTHING))
    np.testing.assert_array_equal(found.numpy(), np.full(3, nothing))


def test_whole_numbers_stay_whole() -> None:
    x = picograd.tensor([[3, 5], [7, 9]])
    chosen = picograd.tensor([[True, False], [False, False]])
    assert masked.sum(x, 1, mask=chosen).tolist() == [3, 0]
    assert masked.amax(x, 1, mask=chosen).tolist() == [3, -(2**63)]
    assert masked.amin(x, 1, mask=chosen).tolist() == [3, 2**63 - 1]
    assert masked.logsumexp(x, 1).dtype is picograd.float32
    with pytest.raises(ValueError, match="an average has fractions"):
        masked.mean(x, 1)


@pytest.mark.parametrize(
    ("options", "less"),
    [({}, 1), ({"unbiased": False}, 0), ({"unbiased": True}, 1), ({"correction": 2}, 2)],
)
def test_variance_counts_what_is_chosen(options: dict[str, Any], less: int) -> None:
    variance = masked.var(picograd.tensor(X), 0, mask=mask(), **options)
    deviation = masked.std(picograd.tensor(X), 0, mask=mask(), **options)
    apart = ((HIDDEN - HIDDEN.mean(0)) ** 2).sum(0)
    with np.errstate(divide="ignore"):
        expected = np.asarray(apart) / np.maximum(MASK.sum(0) - less, 0)
    np.testing.assert_allclose(variance.numpy(), expected, rtol=1e-12)
    np.testing.assert_allclose(deviation.numpy(), np.sqrt(expected), rtol=1e-12)
    with pytest.raises(ValueError, match="pass one of them"):
        masked.var(picograd.tensor(X), 0, True, correction=1)


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.0, math.inf, -math.inf])
def test_norms(p: float) -> None:
    found = masked.norm(picograd.tensor(X), p, 1, mask=mask())
    expected = [np.linalg.norm(row[chosen], p) for row, chosen in zip(X, MASK)]
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)


def test_normalized_rows() -> None:
    found = masked.normalize(picograd.tensor(X), 2.0, 1, mask=mask())
    kept = np.where(MASK, X, 0)
    expected = kept / np.linalg.norm(kept, axis=1, keepdims=True)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)


def test_shares() -> None:
    powers = np.where(MASK, np.exp(X), 0)
    shares = powers / powers.sum(1, keepdims=True)
    found = masked.softmax(picograd.tensor(X), 1, mask=mask())
    np.testing.assert_allclose(found.numpy(), shares, rtol=1e-12)
    found = masked.softmin(picograd.tensor(-X), 1, mask=mask())
    np.testing.assert_allclose(found.numpy(), shares, rtol=1e-12)
    found = masked.log_softmax(picograd.tensor(X), 1, mask=mask())
    np.testing.assert_allclose(found.exp().numpy(), shares, rtol=1e-12)
    total = masked.logsumexp(picograd.tensor(X), 1, mask=mask())
    np.testing.assert_allclose(total.exp().numpy(), powers.sum(1), rtol=1e-12)


def test_shares_have_gradients_where_the_mask_is_true() -> None:
    x = picograd.tensor(X, requires_grad=True)
    (masked.softmax(x, 1, mask=mask()) * picograd.tensor(X)).sum().backward()
    assert x.grad is not None
    assert (x.grad.numpy() != 0).tolist() == MASK.tolist()


def test_running() -> None:
    x = picograd.tensor(X)
    expected = np.where(MASK, X, 0).cumsum(1)
    np.testing.assert_allclose(masked.cumsum(x, 1, mask=mask()).numpy(), expected, rtol=1e-12)
    expected = np.where(MASK, X, 1).cumprod(1)
    np.testing.assert_allclose(masked.cumprod(x, 1, mask=mask()).numpy(), expected, rtol=1e-12)


def test_places_and_medians() -> None:
    x = picograd.tensor(X)
    assert masked.argmax(x, 1, mask=mask()).tolist() == HIDDEN.argmax(1).tolist()
    assert masked.argmin(x, 1, mask=mask()).tolist() == HIDDEN.argmin(1).tolist()
    expected = [np.sort(row[chosen])[(chosen.sum() - 1) // 2] for row, chosen in zip(X, MASK)]
    assert masked.median(x, 1, mask=mask()).tolist() == expected


def test_sums_of_exponentials() -> None:
    x = picograd.tensor(X)
    found = masked.logaddexp(x, -x, input_mask=mask(), other_mask=~mask())
    np.testing.assert_allclose(found.numpy(), np.where(MASK, X, -X), rtol=1e-12)


def test_a_mask_may_be_of_numbers_and_broadcasts() -> None:
    found = masked.sum(picograd.tensor(X), 1, mask=picograd.tensor([1.0, 0.0, 2.0, 0.0]))
    np.testing.assert_allclose(found.numpy(), X[:, [0, 2]].sum(1), rtol=1e-12)


@pytest.mark.parametrize("shape", [(3, 2), (2, 3, 4)])
def test_a_mask_that_does_not_fit(shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match="masked.sum.*broadcast"):
        masked.sum(picograd.tensor(X), 1, mask=picograd.ones(shape, dtype=picograd.bool))
    with pytest.raises(TypeError, match="the mask"):
        masked.sum(picograd.tensor(X), 1, mask=True)  # type: ignore[arg-type]
