"""Pools of every rank with drawn options: values, positions and gradients equal PyTorch's.

The graph is interpreted, so that hundreds of configurations take seconds.
"""

import math
import random
from typing import Any

import numpy as np
import pytest

import picograd
from picograd.errors import PicogradError
from picograd.graph.interpret import interpret

torch = pytest.importorskip("torch")
ORDERS = (1, 2, 3.0, 2.5, math.inf, -math.inf)


pytestmark = pytest.mark.usefixtures("cpu_by_default")  # values are looked at on the host


def drawn(draw: random.Random, kind: str) -> tuple[str, Any, tuple[Any, ...], dict[str, Any]]:
    """Draw the name of a pool, its input, arguments and options."""
    rank = draw.choice([1, 2, 2, 3])
    is_even = rank == 1 or draw.random() < 0.5
    kernel = [draw.randint(1, 4)] * rank if is_even else [draw.randint(1, 4) for _ in range(rank)]
    sizes = [draw.randint(k, 9) for k in kernel]
    x = np.random.default_rng(draw.randint(0, 1 << 30)).integers(-2, 3, (1, 2, *sizes)) * 0.5
    options: dict[str, Any] = dict(
        stride=draw.choice([None, 1, 2, 3, 4, 5]), ceil_mode=draw.random() < 0.6
    )
    args: tuple[Any, ...] = (kernel[0] if is_even else tuple(kernel),)
    if kind == "lp":
        return f"lp_pool{rank}d", np.abs(x) + 0.5, (draw.choice(ORDERS), *args), options
    options["padding"] = min(kernel) // 2 if draw.random() < 0.6 else 0
    if kind == "max":
        options["dilation"] = draw.choice([1, 1, 2])
        return f"max_pool{rank}d", x, args, options
    options["count_include_pad"] = draw.random() < 0.5
    if rank > 1 and draw.random() < 0.2:
        options["divisor_override"] = draw.choice([2, 3, -1])
    return f"avg_pool{rank}d", x, args, options


def pooled(lib: Any, name: str, x: Any, args: Any, options: Any) -> list[Any] | None:
    """Pool, and differentiate a sum with weights that tell the windows apart."""
    leaf = lib.tensor(x, dtype=lib.float64, requires_grad=True)
    try:
        result = getattr(lib.nn.functional, name)(leaf, *args, **options)
        pair = [result]
        if name.startswith("max"):
            pair = list(
                getattr(lib.nn.functional, name)(leaf, *args, return_indices=True, **options)
            )
    except (RuntimeError, PicogradError):
        return None
    weights = lib.arange(result.numel()).reshape(*result.shape).to(lib.float64)
    (result * weights).sum().backward()
    return [*pair, leaf.grad]


@pytest.mark.parametrize("kind", ["avg", "max", "lp"])
def test_pools(kind: str) -> None:
    draw, count = random.Random(7), 0
    for _ in range(120):
        call = drawn(draw, kind)
        theirs = pooled(torch, *call)
        if theirs is None:
            continue
        ours = pooled(picograd, *call)
        assert ours is not None, call
        found = interpret([each._node for each in ours])
        for a, b in zip(found, theirs):
            np.testing.assert_allclose(a, b.detach().numpy(), 1e-9, 1e-9, err_msg=str(call))
        count += 1
    assert count > 90


def test_kernels_agree() -> None:
    ones = picograd.ones(1, 1, 7)
    found = picograd.nn.functional.avg_pool1d(ones, 2, 2, 1, ceil_mode=True)
    assert found.tolist() == [[[0.5, 1.0, 1.0, 1.0]]]
    whole = picograd.full((1, 1, 4), 60000.0, dtype="float16")
    assert picograd.nn.functional.avg_pool1d(whole, 4).item() == 60000.0


def test_a_divisor_of_0_is_refused() -> None:
    with pytest.raises(ValueError, match="divisor_override is 0"):
        picograd.nn.functional.avg_pool2d(picograd.ones(1, 1, 2, 2), 2, divisor_override=0)
