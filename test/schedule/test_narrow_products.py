"""Scores of bfloat16 that was widened first stream on a GPU as those of bfloat16 do."""

import numpy as np
import pytest
from attention_forms import product, weigh
from interpreted_cuda import interpreted_cuda
from plan_support import TARGET as CPU
from plan_support import leaf

from picograd import Tensor
from picograd.autograd import grad
from picograd.dtype import bfloat16, float16, float32
from picograd.graph import build
from picograd.graph.expand import expand_composites
from picograd.graph.gradient import gradient
from picograd.graph.node import toposort
from picograd.schedule.narrow_products import narrow_products
from picograd.schedule.schedule import schedule
from picograd.target import cuda_target

GPU = cuda_target("sm_90a")


def widened(q, k, v):
    weights = build.softmax(product(q.cast(float32), k.cast(float32)) * 0.3, 3)
    return weigh(weights.cast(v.dtype), v)


def scaled_before(q, k, v):
    weights = build.softmax(product(q.cast(float32) * 0.3, k.cast(float32)), 3)
    return weigh(weights.cast(v.dtype), v)


def roots_of(form, length=1024, dtype=bfloat16):
    leaves = [leaf(1, 2, length, 64, dtype=dtype) for _ in range(3)]
    output = form(*leaves)
    return [output, *gradient([(output, leaf(*output.shape, dtype=dtype))], leaves)]


@pytest.mark.parametrize("form", [widened, scaled_before])
def test_widened_scores_stream(form):
    roots = roots_of(form)
    assert [kernel.hero for kernel in schedule(roots[:1], GPU).kernels] == ["attention"]
    assert [kernel.hero for kernel in schedule(roots, GPU).kernels] == ["attention"] * 3


def is_narrowed(roots, target=GPU):
    shown = expand_composites(roots, target=target)
    return narrow_products(shown, toposort(shown), target) != list(shown)


def test_what_does_not_stream_stays_wide():
    """Float16, a CPU, one wide operand, weights that are read, logits of a router."""
    assert is_narrowed(roots_of(widened))
    assert not is_narrowed(roots_of(widened, dtype=float16))
    assert not is_narrowed(roots_of(widened), CPU)
    q, k = leaf(1, 2, 64, 64, dtype=bfloat16), leaf(1, 2, 64, 64)
    weights = build.softmax(product(q.cast(float32), k), 3)
    assert not is_narrowed([weigh(weights, k)])
    weights = build.softmax(product(q.cast(float32), k.cast(bfloat16).cast(float32)), 3)
    assert not is_narrowed([weights])
    x, w = leaf(64, 32, dtype=bfloat16), leaf(32, 32, dtype=bfloat16)
    logits = x.cast(float32).contract(w.cast(float32), ((0, 1), (1, 2), (0, 2)))
    assert not is_narrowed([build.softmax(logits, 1)])


def test_values_are_those_of_float32(monkeypatch):
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((1, 1, 64, 32)).astype(np.float32) for _ in range(4)]

    def attend(device):
        q, k, v, seed = (Tensor(x, device=device, dtype=bfloat16) for x in arrays)
        leaves = [x.requires_grad_() for x in (q, k, v)]
        scores = (q.float() * 0.3) @ (k.float() * 1.5).transpose(2, 3)
        output = scores.softmax(-1).to(bfloat16) @ v
        return [x.float().numpy() for x in (output, *grad(output, leaves, seed))]

    wanted = attend("cpu")
    with interpreted_cuda(monkeypatch) as device:
        found = attend("cuda")
        assert device.seen == {"program"}
    for one, other in zip(found, wanted, strict=True):
        assert np.linalg.norm(one - other) < 6e-3 * np.linalg.norm(other)
