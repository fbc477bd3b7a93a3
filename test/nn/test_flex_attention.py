"""flex_attention beside PyTorch's, and beside the same written out."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor
from picograd.errors import ShapeError
from picograd.nn import flex_attention as flex

SHAPE = (2, 4, 24, 16)
SLOPES = np.array([0.5, 0.25, 0.125, 0.0625], np.float32)


def inputs(seed: int = 0, heads: int = 4) -> list[np.ndarray]:
    generator = np.random.default_rng(seed)
    sizes = [SHAPE, (2, heads, 24, 16), (2, heads, 24, 16)]
    return [generator.standard_normal(size).astype(np.float32) for size in sizes]


EDITS = {
    "none": lambda lib, slopes: None,
    "alibi": lambda lib, slopes: lambda s, b, h, q, k: s - slopes[h] * (q - k).abs(),
    "soft_cap": lambda lib, slopes: lambda s, b, h, q, k: 5.0 * lib.tanh(s / 5.0),
    "relative": lambda lib, slopes: lambda s, b, h, q, k: s + (q - k) * 0.1,
}
MASKS = {
    "none": None,
    "causal": lambda b, h, q, k: q >= k,
    "window": lambda b, h, q, k: (q >= k) & (q - k < 5),
    "batch": lambda b, h, q, k: (b == 0) | (q == k),
    "nowhere": lambda b, h, q, k: (q > 3) & (k < 9),
}


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("mask", MASKS)
def test_values_are_those_of_pytorch(monkeypatch: pytest.MonkeyPatch, edit: str, mask: str) -> None:
    torch = pytest.importorskip("torch")
    theirs = pytest.importorskip("torch.nn.attention.flex_attention")
    # Traced by its compiler each call takes ten times as long, and computes the same.
    monkeypatch.setattr(theirs, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", True, raising=False)
    results = []
    for lib, place, array in ((picograd, flex, Tensor), (torch, theirs, torch.tensor)):
        q, k, v = (array(each) for each in inputs())
        block = None
        if MASKS[mask] is not None:
            block = place.create_block_mask(MASKS[mask], 2, 4, 24, 24, device="cpu")
        out = place.flex_attention(q, k, v, EDITS[edit](lib, array(SLOPES)), block)
        results.append(out.numpy())
    np.testing.assert_allclose(*results, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("mask", MASKS)
def test_gradients_are_those_of_the_formula(edit: str, mask: str) -> None:
    torch = pytest.importorskip("torch")
    q, k, v = (Tensor(each).requires_grad_() for each in inputs())
    block = None
    if MASKS[mask] is not None:
        block = flex.create_block_mask(MASKS[mask], 2, 4, 24, 24)
    out = flex.flex_attention(q, k, v, EDITS[edit](picograd, Tensor(SLOPES)), block)
    (out * Tensor(inputs(1)[0])).sum().backward()
    wanted = formula(torch, edit, mask)
    for ours, other in zip((q, k, v), wanted, strict=True):
        np.testing.assert_allclose(ours.grad.numpy(), other, rtol=2e-4, atol=2e-5)


def formula(torch: Any, edit: str, mask: str) -> list[np.ndarray]:
    """Gradients of attention written out, in float64 by PyTorch."""
    q, k, v = (torch.tensor(each).double().requires_grad_() for each in inputs())
    scores = q @ k.transpose(-2, -1) / 4
    shapes = [(2, 1, 1, 1), (4, 1, 1), (24, 1), (24,)]
    places = [torch.arange(shape[0]).reshape(shape) for shape in shapes]
    change = EDITS[edit](torch, torch.tensor(SLOPES).double())
    if change is not None:
        scores = change(scores, *places)
    seen = torch.ones_like(scores, dtype=torch.bool)
    if MASKS[mask] is not None:
        seen = seen & MASKS[mask](*places)
    weights = torch.where(seen, scores, -1e30).softmax(-1) * seen
    (weights @ v * torch.tensor(inputs(1)[0])).sum().backward()
    return [each.grad.numpy() for each in (q, k, v)]


def test_grouped_heads_and_sums_of_rows() -> None:
    q, k, v = (Tensor(each) for each in inputs(heads=2))
    out, sums = flex.flex_attention(q, k, v, enable_gqa=True, return_lse=True)
    wide = [x.repeat_interleave(2, 1) for x in (k, v)]
    scores = (q * 0.25) @ wide[0].transpose(-2, -1)
    np.testing.assert_allclose(sums.numpy(), scores.logsumexp(-1).numpy(), rtol=1e-5)
    wanted = scores.softmax(-1) @ wide[1]
    np.testing.assert_allclose(out.numpy(), wanted.numpy(), rtol=1e-4, atol=1e-6)


def test_masks_are_joined() -> None:
    causal, near = (lambda b, h, q, k: q >= k), (lambda b, h, q, k: q - k < 2)
    both = flex.create_mask(flex.and_masks(causal, near), None, None, 4, 4)
    one = flex.create_mask(flex.or_masks(causal, near), 1, 1, 4, 4)
    rows, columns = np.indices((4, 4))
    seen = rows >= columns, rows - columns < 2
    assert (both.numpy()[0, 0] == (seen[0] & seen[1])).all()
    assert (one.numpy()[0, 0] == (seen[0] | seen[1])).all()


def test_a_choice_of_kernels_changes_nothing() -> None:
    x = Tensor(inputs()[0])
    with flex.sdpa_kernel(flex.SDPBackend.MATH):
        assert flex.flex_attention(x, x, x).shape == SHAPE
    block = flex.create_block_mask(lambda b, h, q, k: q >= k, None, None, 8, 8)
    assert repr(block.to("cpu")) == "BlockMask(shape=(1, 1, 8, 8))"


@pytest.mark.parametrize("window", [(-1, -1), (-1, 0), (2, 1)])
@pytest.mark.parametrize("is_same", [True, False])
def test_sequences_one_behind_another(window: tuple[int, int], is_same: bool) -> None:
    begins, ends = [0, 3, 4, 11], [0, 3, 4, 11] if is_same else [0, 5, 6, 13]
    rng = np.random.default_rng(4)
    shapes = (11, 4, 8), (ends[-1], 2, 8), (ends[-1], 2, 6)
    q, k, v = (Tensor(rng.normal(size=shape)).float() for shape in shapes)
    numbers = Tensor(begins).int(), None if is_same else Tensor(ends).int()
    aux = flex.AuxRequest(lse=True)
    out, sums = flex.varlen_attn(
        q, k, v, *numbers, 7, 7, return_aux=aux, window_size=window, enable_gqa=True
    )
    left, right = (99 if size < 0 else size for size in window)
    for (a, b), (c, d) in zip(pairwise(begins), pairwise(ends), strict=True):
        x, y, z = (each.numpy() for each in (q[a:b], k[c:d], v[c:d]))
        scores = np.einsum("ihd,jhd->hij", x, y.repeat(2, 1)) / 8**0.5
        away = np.arange(d - c) - np.arange(b - a)[:, None] - (d - c) + (b - a)
        weights = np.exp(scores) * ((away <= right) & (away >= -left))
        totals = weights.sum(-1, keepdims=True)
        wanted = np.einsum("hij,jhd->ihd", weights / totals, z.repeat(2, 1))
        np.testing.assert_allclose(out[a:b].numpy(), wanted, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(sums[:, a:b].numpy(), np.log(totals[..., 0]), atol=1e-5)


def test_sequences_have_no_batch() -> None:
    q, begins = Tensor.ones(1, 4, 2, 8), Tensor([0, 4])
    with pytest.raises(ShapeError, match=r"varlen_attn.*\(1, 4, 2, 8\).*Fix: lay"):
        flex.varlen_attn(q, q, q, begins, None, 4, 4)
