"""Gradients where a function has a corner or a tie, or meets NaN: PyTorch's choice."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor

torch = pytest.importorskip("torch")

nan, inf = math.nan, math.inf
T1 = [1.0, 2.0, 2.0, 2.0, 3.0]
CASES: dict[str, Any] = {
    "median": (
        lambda m, x: x.median(),
        [T1],
        [[3.0, 1.0, 3.0, 3.0]],
        [[nan, 1.0, nan]],
        [[1.0, 1.0, 2.0, 2.0]],
        [[5.0]],
    ),
    "nanmedian": (lambda m, x: x.nanmedian(), [T1], [[nan, 1.0, 1.0, 2.0]]),
    "median dim": (lambda m, x: x.median(0).values, [T1], [[nan, 1.0, nan]]),
    "max": (lambda m, x: x.max(), [[1.0, 3.0, 3.0]], [[nan, 3.0, nan]]),
    "min": (lambda m, x: x.min(), [[1.0, 1.0, 3.0]], [[nan, 3.0]]),
    "amax": (lambda m, x: x.amax(), [[1.0, 3.0, 3.0]], [[nan, 3.0, nan]]),
    "amin": (lambda m, x: x.amin(0), [[1.0, 1.0, 3.0]]),
    "max dim": (lambda m, x: x.max(0).values, [[1.0, 3.0, 3.0]], [[nan, 3.0, nan]]),
    "min dim": (lambda m, x: x.min(0).values, [[1.0, 1.0, 3.0]]),
    "clamp": (lambda m, x: x.clamp(-1, 1), [[-1.0, 1.0, nan, 0.0, 2.0, -2.0, inf]]),
    "clamp min": (lambda m, x: x.clamp(min=0), [[-1.0, 0.0, nan]]),
    "clamp max": (lambda m, x: x.clamp(max=0), [[0.0, 1.0, nan]]),
    "clamp equal": (lambda m, x: x.clamp(1, 1), [[1.0, 0.0, 2.0]]),
    "clamp crossed": (lambda m, x: x.clamp(2, 1), [[1.0, 1.5, 2.0, 3.0, 0.0]]),
    "clamp tensors": (
        lambda m, x, a, b: x.clamp(a, b),
        [
            [0.0, 1.0, 2.0, 3.0, nan, 1.0, 1.0],
            [0.0, 1.0, 1.0, 1.0, 0.0, nan, 0.0],
            [0.0, 1.0, 1.0, 2.0, 1.0, 2.0, nan],
        ],
    ),
    "clamp tensor crossed": (
        lambda m, x, a, b: x.clamp(a, b),
        [[0.0, 1.0, 3.0, 2.0, 1.5], [2.0, 2.0, 2.0, 2.0, 2.0], [1.0, 1.0, 1.0, 1.0, 1.0]],
    ),
    "clamp tmin": (
        lambda m, x, a: x.clamp(min=a),
        [[0.0, 1.0, 2.0, nan, 1.0], [0.0, 2.0, 1.0, 0.0, nan]],
    ),
    "clamp tmax": (
        lambda m, x, a: x.clamp(max=a),
        [[0.0, 1.0, 2.0, nan, 1.0], [0.0, 2.0, 1.0, 0.0, nan]],
    ),
    "maximum": (
        lambda m, x, a: m.maximum(x, a),
        [[0.0, 1.0, 2.0, nan, 1.0], [0.0, 2.0, 1.0, 0.0, nan]],
    ),
    "minimum": (
        lambda m, x, a: m.minimum(x, a),
        [[0.0, 1.0, 2.0, nan, 1.0], [0.0, 2.0, 1.0, 0.0, nan]],
    ),
    "fmax": (
        lambda m, x, a: m.fmax(x, a),
        [[0.0, 1.0, 2.0, nan, 1.0, nan], [0.0, 2.0, 1.0, 0.0, nan, nan]],
    ),
    "fmin": (
        lambda m, x, a: m.fmin(x, a),
        [[0.0, 1.0, 2.0, nan, 1.0, nan], [0.0, 2.0, 1.0, 0.0, nan, nan]],
    ),
    "norm1": (lambda m, x: x.norm(1), [[1.0, 0.0, -2.0]]),
    "norm2": (lambda m, x: x.norm(2), [[0.0, 0.0]]),
    "norm3": (lambda m, x: x.norm(3), [[0.0, 0.0]], [[0.0, 1.0]]),
    "norm half": (lambda m, x: x.norm(0.5), [[0.0, 1.0]]),
    "renorm": (lambda m, x: x.reshape(2, 2).renorm(2, 0, 1.0), [[0.0, 0.0, 3.0, 4.0]]),
    "bce": (
        lambda m, x, t: m.nn.functional.binary_cross_entropy(x, t, reduction="sum"),
        [[0.0, 1.0, 0.0, 1.0, 0.5, 1e-40, 1 - 6e-08], [0.0, 1.0, 1.0, 0.0, 0.5, 1.0, 0.0]],
    ),
    "bcel": (
        lambda m, x, t: m.nn.functional.binary_cross_entropy_with_logits(x, t, reduction="sum"),
        [[0.0, 200.0, -200.0, inf, -inf], [0.5, 0.0, 1.0, 1.0, 0.0]],
    ),
    "kl": (
        lambda m, x, t: m.nn.functional.kl_div(x, t, reduction="sum"),
        [[-1.0, -2.0, 0.0], [0.0, 0.5, 1.0]],
    ),
    "kl log": (
        lambda m, x, t: m.nn.functional.kl_div(x, t, reduction="sum", log_target=True),
        [[-1.0, -2.0, 0.0], [-inf, -0.5, 0.0]],
    ),
    "poisson": (
        lambda m, x, t: m.nn.functional.poisson_nll_loss(x, t, reduction="sum"),
        [[0.0, 1.0, 2.0], [0.0, 1.0, 2.0]],
    ),
    "poisson nolog": (
        lambda m, x, t: m.nn.functional.poisson_nll_loss(x, t, log_input=False, reduction="sum"),
        [[0.0, 1.0, 2.0], [0.0, 1.0, 2.0]],
    ),
    "nextafter": (lambda m, x, a: m.nextafter(x, a), [[1.0, 2.0], [2.0, 1.0]]),
    "abs": (lambda m, x: x.abs(), [[0.0, -0.0, nan, inf]]),
    "sign": (lambda m, x: x.sign(), [[0.0, 1.0]]),
    "relu": (lambda m, x: x.relu(), [[0.0, nan, -0.0]]),
    "hardtanh": (lambda m, x: m.nn.functional.hardtanh(x), [[-1.0, 1.0, nan]]),
    "relu6": (lambda m, x: m.nn.functional.relu6(x), [[0.0, 6.0, nan]]),
    "leaky": (lambda m, x: m.nn.functional.leaky_relu(x), [[0.0, nan]]),
    "hardshrink": (lambda m, x: m.nn.functional.hardshrink(x), [[-0.5, 0.5, nan]]),
    "threshold": (lambda m, x: m.nn.functional.threshold(x, 1.0, 2.0), [[1.0, 2.0, nan]]),
    "elu": (lambda m, x: m.nn.functional.elu(x), [[0.0, nan]]),
    "prelu": (lambda m, x, w: m.nn.functional.prelu(x, w), [[0.0, 1.0, -1.0, nan], [0.5]]),
    "softsign": (lambda m, x: m.nn.functional.softsign(x), [[0.0]]),
    "logsigmoid": (lambda m, x: m.nn.functional.logsigmoid(x), [[0.0, inf, -inf]]),
    "l1": (
        lambda m, x, t: m.nn.functional.l1_loss(x, t, reduction="sum"),
        [[0.0, 1.0, nan], [0.0, 2.0, 1.0]],
    ),
    "smooth": (
        lambda m, x, t: m.nn.functional.smooth_l1_loss(x, t, reduction="sum"),
        [[0.0, 1.0, -1.0], [0.0, 0.0, 0.0]],
    ),
    "smooth0": (
        lambda m, x, t: m.nn.functional.smooth_l1_loss(x, t, reduction="sum", beta=0.0),
        [[0.0, 1.0, -1.0], [0.0, 0.0, 0.0]],
    ),
    "huber": (
        lambda m, x, t: m.nn.functional.huber_loss(x, t, reduction="sum"),
        [[0.0, 1.0, -1.0], [0.0, 0.0, 0.0]],
    ),
    "hinge": (
        lambda m, x, t: m.nn.functional.hinge_embedding_loss(x, t, reduction="sum"),
        [[1.0, 0.0, 2.0], [-1.0, 1.0, -1.0]],
    ),
    "gauss": (
        lambda m, x, t, v: m.nn.functional.gaussian_nll_loss(x, t, v, reduction="sum"),
        [[0.0, 1.0], [0.0, 2.0], [0.0, 1.0]],
    ),
    "cosine": (
        lambda m, x, t: m.nn.functional.cosine_similarity(x.reshape(2, 2), t.reshape(2, 2)),
        [[0.0, 0.0, 1.0, 0.0], [1.0, 0.0, 0.0, 0.0]],
    ),
    "pdist": (lambda m, x: m.pdist(x.reshape(3, 2)), [[1.0, 1.0, 1.0, 1.0, 2.0, 2.0]]),
    "cdist": (
        lambda m, x, y: m.cdist(x.reshape(2, 2), y.reshape(1, 2)),
        [[1.0, 1.0, 2.0, 2.0], [1.0, 1.0]],
    ),
    "cdist1": (
        lambda m, x, y: m.cdist(x.reshape(2, 2), y.reshape(1, 2), p=1.0),
        [[1.0, 1.0, 2.0, 2.0], [1.0, 1.0]],
    ),
    "dist": (lambda m, x, y: m.dist(x, y), [[1.0, 1.0], [1.0, 1.0]]),
    "distinf": (lambda m, x, y: m.dist(x, y, inf), [[1.0, 1.0, 3.0], [1.0, 3.0, 1.0]]),
    "cummax": (lambda m, x: x.cummax(0).values, [[1.0, 1.0, 2.0, 2.0]], [[nan, 1.0, nan]]),
    "cummin": (lambda m, x: x.cummin(0).values, [[1.0, 1.0, 0.0, 0.0]]),
    "sort": (lambda m, x: x.sort().values * m.tensor([1.0, 2.0, 3.0, 4.0]), [[1.0, 1.0, 2.0, 2.0]]),
    "topk": (lambda m, x: x.topk(2).values, [[1.0, 3.0, 3.0, 2.0]], [[3.0, 3.0, 3.0]]),
    "prod": (lambda m, x: x.prod(), [[0.0, 2.0, 3.0]], [[0.0, 0.0, 3.0]]),
    "cumprod": (lambda m, x: x.cumprod(0), [[0.0, 2.0, 0.0]]),
    "quantile": (lambda m, x: x.quantile(0.5), [[1.0, 1.0, 1.0]], [[1.0, 2.0, 2.0, 3.0]]),
    "logsumexp": (lambda m, x: x.logsumexp(0), [[-inf, -inf]], [[inf, 0.0]]),
    "xlogy": (lambda m, x, y: m.xlogy(x, y), [[0.0, 0.0, 1.0], [0.0, nan, 0.0]]),
    "pow": (lambda m, x, y: x**y, [[0.0, 0.0, 0.0, -1.0], [0.0, 1.0, 2.0, 2.0]]),
    "atan2": (lambda m, x, y: m.atan2(x, y), [[0.0, 0.0, -0.0], [0.0, 1.0, -1.0]]),
    "hypot": (lambda m, x, y: m.hypot(x, y), [[0.0, 3.0], [0.0, 4.0]]),
    "copysign": (lambda m, x, y: m.copysign(x, y), [[0.0, 1.0, -1.0], [1.0, -0.0, 0.0]]),
    "sqrt": (lambda m, x: x.sqrt(), [[0.0]]),
    "fmod": (lambda m, x, y: x.fmod(y), [[5.0, -5.0], [3.0, 3.0]]),
    "rem": (lambda m, x, y: x.remainder(y), [[5.0, -6.0], [3.0, 3.0]]),
    "floor": (lambda m, x: x.floor(), [[1.0]]),
    "sinc": (lambda m, x: m.sinc(x), [[0.0, 1.0]]),
    "where": (lambda m, x: m.where(x > 0, x, x * 2), [[0.0, 1.0]]),
    "amax2": (lambda m, x: x.reshape(2, 2).amax((0, 1)), [[3.0, 3.0, 3.0, 1.0]]),
    "scatter_reduce": (
        lambda m, x: m.zeros(2).scatter_reduce(0, m.tensor([0, 0, 1]), x, "amax"),
        [[1.0, 1.0, 0.0]],
    ),
    "nan_to_num": (lambda m, x: x.nan_to_num(), [[nan, inf, 1.0]]),
    "logit": (lambda m, x: m.logit(x, 0.1), [[0.1, 0.9, 0.05, 0.5]]),
    "multilabel": (
        lambda m, x: m.nn.functional.multi_margin_loss(x.reshape(1, 3), m.tensor([0])),
        [[1.0, 0.0, 2.0]],
    ),
    "triplet": (
        lambda m, x, y, z: m.nn.functional.triplet_margin_loss(x[None], y[None], z[None]),
        [[1.0, 1.0], [1.0, 1.0], [2.0, 2.0]],
    ),
    "margin": (
        lambda m, x, y: m.nn.functional.margin_ranking_loss(x, y, m.tensor([1.0, 1.0])),
        [[0.0, 1.0], [0.0, 2.0]],
    ),
    "matrix inf": (lambda m, x: m.linalg.matrix_norm(x.reshape(2, 2), inf), [[1.0, 1.0, 1.0, 1.0]]),
    "matrix 1": (lambda m, x: m.linalg.matrix_norm(x.reshape(2, 2), 1), [[1.0, 1.0, 1.0, 1.0]]),
    "normalize": (lambda m, x: m.nn.functional.normalize(x, dim=0), [[0.0, 0.0]]),
    "mse nan": (lambda m, x, t: m.nn.functional.mse_loss(x, t), [[nan, 1.0], [1.0, 1.0]]),
    "lerp": (lambda m, x, y: m.lerp(x, y, 0.5), [[1.0], [1.0]]),
    "rsqrt": (lambda m, x: x.rsqrt(), [[0.0, inf]]),
    "softplus": (lambda m, x: m.nn.functional.softplus(x), [[20.0, 21.0, -inf]]),
    "silu": (lambda m, x: m.nn.functional.silu(x), [[-inf, inf]]),
    "gelu": (lambda m, x: m.nn.functional.gelu(x), [[-inf, inf, 0.0]]),
    "std dim1": (lambda m, x: x.reshape(2, 1).std(1), [[1.0, 2.0]]),
    "nanmean": (lambda m, x: x.nanmean(), [[nan, 1.0]]),
    "nansum": (lambda m, x: x.nansum(), [[nan, 1.0]]),
}


def gradients(library: Any, call: Callable[..., Any], values: list[list[float]]) -> list[Any]:
    make = torch.tensor if library is torch else Tensor
    given = [make(each).requires_grad_(True) for each in values]
    call(library, *given).sum().backward()
    found = [None if each.grad is None else each.grad.tolist() for each in given]
    return [None if each is None else np.array(each, np.float32) for each in found]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_corners(name: str) -> None:
    call, *several = CASES[name]
    for values in several:
        theirs = gradients(torch, call, values)
        for found, wanted in zip(gradients(picograd, call, values), theirs, strict=True):
            assert (found is None) == (wanted is None), values
            if found is not None:
                np.testing.assert_allclose(found, wanted, 1e-4, 1e-6, err_msg=str(values))


@pytest.mark.parametrize("target", [0.0, 0.25, 1.0])
def test_logits_of_zero(target: float) -> None:
    """A classifier that starts from zeros: the loss is smooth there, and no gradient is lost."""
    call = lambda m, x, t: m.nn.functional.binary_cross_entropy_with_logits(x, t)  # noqa: E731
    for found, wanted in zip(*(gradients(m, call, [[0.0], [target]]) for m in (picograd, torch))):
        np.testing.assert_allclose(found, wanted, atol=1e-7)
    weighted = lambda m, x, t: m.nn.functional.binary_cross_entropy_with_logits(  # noqa: E731
        x, t, pos_weight=m.tensor([3.0])
    )
    found, wanted = (gradients(m, weighted, [[0.0], [target]])[0] for m in (picograd, torch))
    np.testing.assert_allclose(found, wanted, atol=1e-7)
