"""Products of one row on a GPU are sums, which share a launch and a reader."""

import numpy as np
import pytest
from interpreted_cuda import interpreted_cuda
from plan_support import leaf

import picograd.nn.functional as F
from picograd import Tensor
from picograd.dtype import DType, bfloat16, float16, float32
from picograd.graph import build
from picograd.graph.node import Node
from picograd.schedule.schedule import schedule
from picograd.target import cuda_target

GPU = cuda_target("sm_90a")


def linear(x: Node, columns: int, along_k: bool = True) -> Node:
    """Multiply by a matrix that lies along K, or across."""
    depth = x.shape[-1]
    if not along_k:
        return build.matmul(x, leaf(depth, columns, dtype=x.dtype))
    return build.matmul(x, leaf(columns, depth, dtype=x.dtype).permute((1, 0)))


def parts(*roots: Node) -> list[int]:
    return [len(kernel.parts) for kernel in schedule(list(roots), GPU).kernels]


@pytest.mark.parametrize("dtype", [bfloat16, float16])
def test_products_of_a_token_are_one_launch(dtype: DType) -> None:
    x = leaf(1, 2048, dtype=dtype)
    assert parts(*(linear(x, n) for n in (512, 2048, 512))) == [3]
    assert parts(linear(x, 512), linear(leaf(1, 4096, dtype=dtype), 512)) == [2], "of any depth"
    assert parts(*(linear(x, n, False) for n in (512, 2048))) == [1, 1], "tiles"
    rows = leaf(2, 2048, dtype=dtype)
    assert parts(*(linear(rows, n) for n in (512, 2048))) == [1, 1], "tiles"


def test_others_have_launches_of_their_own() -> None:
    x, y = leaf(1, 2048, dtype=bfloat16), leaf(40, 20, dtype=float32)
    assert parts(linear(x, 512), build.matmul(y, leaf(20, 30))) == [1, 1], "float32 has tiles"
    doubled = leaf(512, 2048, dtype=bfloat16) * 2.0
    product = build.matmul(x, doubled.permute((1, 0)))
    assert 1 in parts(linear(x, 512), product), "how that lies is not known yet"


def test_a_gate_and_what_it_gates_are_one_kernel() -> None:
    x = leaf(1, 2048, dtype=bfloat16)
    gate, up = (linear(x, 8192) for _ in range(2))
    (kernel,) = schedule([gate * gate * up], GPU).kernels
    (part,) = kernel.parts
    assert sum(len(compute.reduce) > 0 for compute in part.computes) == 2


def token(device: str, wide: int = 2048) -> list[Tensor]:
    """Compute what a layer makes of a token before and behind its attention."""
    numbers = np.random.default_rng(0)

    def made(*shape: int) -> Tensor:
        values = numbers.standard_normal(shape).astype(np.float32) * shape[-1] ** -0.5
        return Tensor(values, device=device).bfloat16().realize()

    x, place = made(1, 1, wide), Tensor([5], device=device).realize()
    keys, values = made(1, 3, 16, 8), made(1, 3, 16, 8)
    projected = (F.linear(x, made(n, wide)) for n in (40, 24, 24))
    q, k, v = (each.reshape(1, 1, -1, 8).transpose(1, 2) for each in projected)
    q, k = (each * 0.5 + each.flip(-1) for each in (q, k))
    gate, up = (F.linear(x, made(600, wide)) for _ in range(2))
    keys.index_copy_(2, place, k)
    values.index_copy_(2, place, v)
    return [q, keys, values, gate.silu() * up]


def test_a_token_has_the_values_of_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [each.float().numpy() for each in token("cpu")]
    with interpreted_cuda(monkeypatch) as device:
        found = [each.float().numpy() for each in token("cuda")]
        assert device.seen == {"program"}
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-2, atol=2e-2)


def test_queries_are_turned_where_keys_and_values_go_to_their_cache() -> None:
    plan = schedule([each.node for each in token("cpu")], GPU)
    heroes = [(kernel.hero, len(kernel.parts)) for kernel in plan.kernels]
    assert heroes == [("contract", 4), ("scatter", 3)]
