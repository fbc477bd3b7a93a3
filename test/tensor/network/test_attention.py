"""scaled_dot_product_attention against PyTorch: masks, scales, shared heads."""

import numpy as np
import pytest
from nn_support import array, compare, torch

import picograd
from picograd import Tensor, nn
from picograd.schedule import score_boxes

MASK = np.triu(np.ones((4, 4), bool), 1)
HOLES = np.arange(16).reshape(4, 4) % 3 != 2


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"is_causal": True},
        {"scale": 0.3},
        {"attn_mask": ~MASK},
        {"attn_mask": array(4, 4)},
        {"attn_mask": HOLES, "is_causal": True},
    ],
    ids=["plain", "causal", "scale", "bool", "numbers", "causal bool"],
)
def test_scaled_dot_product_attention(options, device):
    functions = nn.functional, torch.nn.functional
    ours, theirs = (f.scaled_dot_product_attention for f in functions)
    compare(ours, theirs, [array(2, 3, 4, 5) for _ in range(3)], device, **options)


def test_numbers_are_added_below_the_diagonal(device):
    """PyTorch does so too where its mask asks for no gradient, and refuses one that does."""
    attention = nn.functional.scaled_dot_product_attention
    q, k, v = (Tensor(array(2, 4, 5), device=device) for _ in range(3))
    bias = array(4, 4)
    got = attention(q, k, v, Tensor(bias, device=device), is_causal=True)
    bias[MASK] = -np.inf
    hidden = torch.tensor(bias)
    wanted = torch.nn.functional.scaled_dot_product_attention(
        *(torch.tensor(x.numpy()) for x in (q, k, v)), hidden
    )
    np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-5, atol=1e-6)


def test_rows_that_see_nothing_are_zero(device):
    mask = np.ones((4, 4), bool)
    mask[1] = False
    functions = nn.functional, torch.nn.functional
    ours, theirs = (f.scaled_dot_product_attention for f in functions)
    compare(ours, theirs, [array(2, 4, 5) for _ in range(3)], device, attn_mask=mask)


def test_shared_key_heads(device):
    data = [array(2, 4, 3, 5), array(2, 2, 3, 5), array(2, 2, 3, 5)]
    functions = nn.functional, torch.nn.functional
    ours, theirs = (f.scaled_dot_product_attention for f in functions)
    compare(ours, theirs, data, device, enable_gqa=True)


def drawn(random, kind):
    """Draw sizes, operands and a mask: lengths of 1 and others, rows that see nothing."""
    batch, groups, copies = random.integers(1, 3, 3)
    rows, columns = random.choice([1, 2, 7, 16, 65, 130], 2)
    columns = columns * int(random.choice([1, 1, 5]))
    depth, width = random.choice([8, 32, 64, 96, 128, 192], 2)
    heads = groups * copies
    shapes = (batch, heads, rows, depth), (batch, groups, columns, depth)
    shapes = *shapes, (batch, groups, columns, width), (batch, heads, rows, width)
    data = [random.standard_normal(shape).astype(np.float32) for shape in shapes]
    seen = None
    if kind == "causal":
        seen = np.tri(rows, columns, dtype=bool)
    elif kind == "mask":
        seen = random.random((rows, columns)) < 0.4
        seen[: rows // 3] = False
    elif kind == "lengths":
        lengths = random.integers(0, columns + 1, (batch, 1, 1, 1))
        seen = np.arange(columns) < lengths + np.zeros((rows, 1), int)
    return data, seen


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("kind", ["plain", "causal", "mask", "lengths"])
@pytest.mark.parametrize("seed", range(3))
def test_random_values_and_gradients(kind, dtype, seed, device, monkeypatch):
    """Beside float64 of the same rounded operands, by kernels where a target has them."""
    monkeypatch.setattr(score_boxes, "FEW_BYTES", 0)
    random = np.random.default_rng([seed, len(kind), len(dtype)])
    data, seen = drawn(random, kind)
    q, k, v, g = (Tensor(each, device=device).cast(dtype).realize() for each in data)
    wide = [torch.tensor(x.float().numpy()).double().requires_grad_() for x in (q, k, v)]
    for each in (q, k, v):
        each.requires_grad_()
    mask = None if seen is None else Tensor(seen, device=device)
    found = nn.functional.scaled_dot_product_attention(q, k, v, mask, enable_gqa=True)
    found.backward(g)
    copies = q.shape[1] // k.shape[1]
    keys, values = (x.repeat_interleave(copies, 1) for x in wide[1:])
    scores = wide[0] @ keys.transpose(-2, -1) / q.shape[-1] ** 0.5
    hidden = torch.zeros((), dtype=bool) if seen is None else ~torch.tensor(seen)
    weights = scores.masked_fill(hidden, -1e30).softmax(-1).masked_fill(hidden, 0)
    wanted = weights @ values
    wanted.backward(torch.tensor(g.float().numpy()).double())
    tolerance = {"float32": 1e-5, "bfloat16": 2e-2, "float16": 3e-3}[dtype]
    pairs = [(found, wanted), *((a.grad, b.grad) for a, b in zip((q, k, v), wide))]
    for ours, theirs in pairs:
        missed = np.linalg.norm(ours.detach().float().numpy() - theirs.detach().numpy())
        assert missed <= tolerance * np.linalg.norm(theirs.detach().numpy()) + 1e-6


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_cache_of_one_size_and_a_length_in_memory(dtype, device):
    """Rows that follow one another see what is before them; what lies behind is anything."""
    random = np.random.default_rng(0)
    shapes = [(2, 8, 3, 64), (2, 2, 700, 64), (2, 2, 700, 64)]
    q, k, v = (
        Tensor(random.standard_normal(x).astype(np.float32), device=device).cast(dtype)
        for x in shapes
    )
    rows, columns = Tensor.arange(3, device=device), Tensor.arange(700, device=device)
    for length in (3, 130, 700):
        count = Tensor([length], device=device)
        mask = columns <= (rows + count - 3).unsqueeze(-1)
        attention = nn.functional.scaled_dot_product_attention
        found = attention(q, k, v, mask, enable_gqa=True)
        short = k[:, :, :length], v[:, :, :length]
        wanted = attention(q, *short, mask[:, :length], enable_gqa=True)
        missed = (found - wanted).float().norm().item()
        assert missed <= 0.01 * wanted.float().norm().item()


def test_softmax_by_hand(device):
    """What it subtracts has no gradient, tied or not, and with none are scores compared."""

    def attend(q, k, v):
        s = q @ k.transpose(-2, -1)
        e = (s - s.amax(-1, keepdims=True)).exp()
        return e @ v / e.sum(-1, keepdims=True)

    q, k, v = (array(2, 20, 8).astype(np.float32) for _ in range(3))
    k[:, 1] = k[:, 0]
    compare(attend, lambda *x: torch.softmax(x[0] @ x[1].mT, -1) @ x[2], [q, k, v], device)


@pytest.mark.parametrize("size", [5, 640])
def test_a_row_of_lowest_numbers_gives_zeros_and_no_gradient(size):
    """As PyTorch's since 2.5: nothing is NaN, neither where masks are looked at whole."""
    mask = np.triu(np.full((size, size), -np.inf, np.float32), 1)
    mask[2] = -np.inf
    q, k, v = (Tensor.rand(1, 16, size, 8, requires_grad=True) for _ in range(3))
    attend = nn.functional.scaled_dot_product_attention
    made = attend(q, k, v, attn_mask=Tensor(mask))
    made.sum().backward()
    assert not made[:, :, 2].any() and not q.grad[:, :, 2].any()
    assert all(each.isfinite().all() for each in (made, q.grad, k.grad, v.grad))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("is_turned", [False, True])
@pytest.mark.parametrize("places", [1, 16, 64])
def test_a_cache_in_pages(places, is_turned, dtype, device):
    """A word is written to its page, and attends to those before it: a step of decoding."""
    random = np.random.default_rng(0)
    lengths = np.array([1, 70, 128])
    many = 128 // places
    shape = (3 * many, 2, places, 64) if is_turned else (3 * many, places, 2, 64)
    keys, values, q, new = (
        Tensor(random.standard_normal(size).astype(np.float32), device=device).cast(dtype)
        for size in (shape, shape, (3, 4, 1, 64), (3, 2, 64))
    )
    order = random.permutation(3 * many).reshape(3, many)
    last = lengths - 1
    page, place = order[np.arange(3), last // places], last % places

    def in_order(pages):
        found = pages[Tensor(order, device=device)]
        found = found.permute(0, 2, 1, 3, 4) if is_turned else found.permute(0, 3, 1, 2, 4)
        return found.reshape(3, 2, 128, 64)

    @picograd.jit
    def step(q, new, keys, values, lengths):
        at = (page, slice(None), place) if is_turned else (page, place)
        keys[at], values[at] = new, new
        seen = (Tensor.arange(128, device=device) < lengths.reshape(3, 1)).reshape(3, 1, 1, 128)
        attend = nn.functional.scaled_dot_product_attention
        return attend(q, in_order(keys), in_order(values), seen, enable_gqa=True)

    count = Tensor(lengths, device=device)
    first, second = (step(q, new, keys, values, count).float().numpy() for _ in range(2))
    assert np.array_equal(first, second), "what is written is there already: the same bits"
    k, v, rows = (each.float().numpy() for each in (in_order(keys), in_order(values), q))
    k, v = (each.repeat(2, 1) for each in (k, v))
    scores = rows @ k.swapaxes(-1, -2) / 8
    scores[np.broadcast_to(np.arange(128) >= lengths.reshape(3, 1, 1, 1), scores.shape)] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    wanted = weights / weights.sum(-1, keepdims=True) @ v
    most = 1e-5 if dtype == "float32" else 1e-2
    assert np.linalg.norm(first - wanted) <= most * np.linalg.norm(wanted)
    assert np.array_equal(k[0, 0, 0], new.float().numpy()[0, 0])


def test_queries_of_no_columns_look_everywhere_alike():
    q, v = picograd.ones(1, 2, 0), picograd.arange(6.0).reshape(1, 2, 3)
    for made in (
        nn.functional.scaled_dot_product_attention(q, q, v),
        nn.attention.flex_attention.flex_attention(q[None], q[None], v[None])[0],
    ):
        np.testing.assert_allclose(made.numpy()[0], [[1.5, 2.5, 3.5]] * 2)
