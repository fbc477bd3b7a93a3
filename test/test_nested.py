"""Nested tensors beside PyTorch's, and refusals of what would mix members."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import picograd
from picograd.errors import DTypeError, ShapeError

torch = pytest.importorskip("torch")
SIZES = (3, 1, 2)
MATRIX = np.random.default_rng(1).standard_normal((6, 4)).astype(np.float32)


def members(library: Any) -> list[Any]:
    """Make three members of four columns, which ask for gradients."""
    rng = np.random.default_rng(0)
    made = [rng.standard_normal((size, 4)).astype(np.float32) for size in SIZES]
    return [library.from_numpy(each).requires_grad_() for each in made]


def heads(library: Any, nested: Any, shift: int = 0) -> Any:
    """Project to two heads of two columns: (B, 2, j, 2)."""
    weight = library.from_numpy(np.roll(MATRIX[:4], shift, 0).copy())
    projected = library.nn.functional.linear(nested, weight)
    return projected.unflatten(-1, [2, 2]).transpose(1, 2)


def attended(library: Any, nested: Any) -> Any:
    """Attend within each member, as PyTorch's tutorial of nested tensors does."""
    query, key, value = [heads(library, nested, shift) for shift in range(3)]
    attend = library.nn.functional.scaled_dot_product_attention
    return attend(query, key, value, dropout_p=0.0).transpose(1, 2).flatten(-2)


def layers(library: Any, nested: Any) -> Any:
    """Run layers one after the other."""
    linear = library.nn.Linear(4, 6)
    with library.no_grad():
        linear.weight.copy_(library.from_numpy(MATRIX))
        linear.bias.fill_(0.1)
    body = library.nn.Sequential(linear, library.nn.GELU(), library.nn.LayerNorm(6))
    return library.nn.Sequential(body, library.nn.Dropout(0.0))(nested)


def values_of(library: Any, found: Any) -> list[Any]:
    """List the tensors of a result, nested or not."""
    if isinstance(found, (list, tuple)):
        return [each for part in found for each in values_of(library, part)]
    return list(found.unbind()) if found.is_nested else [found]


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "relu": lambda m, x: m.relu(x),
    "numbers": lambda m, x: 1 - (x * 2 + 1) / 3,
    "below": lambda m, x: 2 / (x**2 + 1),
    "alike": lambda m, x: x + x.sin(),
    "columns": lambda m, x: m.arange(4.0) * x,
    "of members": lambda m, x: x * m.arange(12.0).reshape(3, 1, 4),
    "where": lambda m, x: m.where(x > 0, x, x * 0.1),
    "layers": layers,
    "matmul": lambda m, x: x @ m.from_numpy(MATRIX).T,
    "softmax": lambda m, x: x.softmax(-1),
    "cat": lambda m, x: m.cat([x, x * 2], -1),
    "chunk": lambda m, x: x.chunk(2, -1),
    "mean": lambda m, x: x.mean(-1),
    "total": lambda m, x: x.sum(),
    "heads": heads,
    "flatten": lambda m, x: (heads(m, x).transpose(1, 2) * 2).flatten(-2),
    "view": lambda m, x: x.view(3, -1, 2, 2),
    "padded": lambda m, x: m.nested.to_padded_tensor(x, 0.5),
    "padded to": lambda m, x: m.nested.to_padded_tensor(x, 0.0, output_size=(3, 5, 4)),
    "values": lambda m, x: x.values(),
    "longest": lambda m, x: x.amax(dim=1),
    "attention": attended,
    "permute": lambda m, x: heads(m, x).permute(0, 2, 3, 1),
    "unsqueeze last": lambda m, x: x.unsqueeze(-1) * m.arange(3.0),
    "member": lambda m, x: x.select(0, -1),
}


@pytest.mark.parametrize("name", CALLS)
def test_call_equals_pytorch(name: str) -> None:
    results = []
    for library in (torch, picograd):
        leaves = members(library)
        layout = library.jagged
        nested = library.nested.as_nested_tensor(leaves, layout=layout)
        parts = values_of(library, CALLS[name](library, nested))
        sum((each * each).sum() for each in parts).backward()
        results.append([each.detach().numpy() for each in (*parts, *(x.grad for x in leaves))])
    assert len(results[0]) == len(results[1])
    for wanted, found in zip(*results):
        np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=1e-5)


def along(library: Any, function: str, leaf: Any) -> Any:
    """Call a function of one member along its rows."""
    return getattr(leaf, function)(0)


@pytest.mark.parametrize("function", ["sum", "mean", "softmax", "cumsum", "amin"])
def test_ragged_axis_equals_members(function: str) -> None:
    """PyTorch has no gradients of these: the members are asked."""
    results = []
    for is_nested in (False, True):
        leaves = members(picograd)
        if is_nested:
            nested = picograd.nested.as_nested_tensor(leaves)
            parts = values_of(picograd, getattr(nested, function)(dim=1))
            parts = list(parts[0]) if function in ("sum", "mean", "amin") else parts
        else:
            parts = [getattr(each, function)(0) for each in leaves]
        sum((each * each).sum() for each in parts).backward()
        results.append([each.detach().numpy() for each in (*parts, *(x.grad for x in leaves))])
    for wanted, found in zip(*results):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_causal_attention_equals_members() -> None:
    attend = picograd.nn.functional.scaled_dot_product_attention
    leaves = members(picograd)
    query = picograd.nested.as_nested_tensor(leaves).unflatten(-1, [2, 2]).transpose(1, 2)
    found = attend(query, query * 0.5, query + 1, is_causal=True)
    for leaf, part in zip(leaves, found.unbind()):
        own = leaf.unflatten(-1, [2, 2]).transpose(0, 1)
        wanted = attend(own, own * 0.5, own + 1, is_causal=True)
        np.testing.assert_allclose(part.detach().numpy(), wanted.detach().numpy(), atol=1e-6)


def test_member_without_rows_has_no_nan() -> None:
    leaves = [picograd.ones(0, 1, 2, requires_grad=True), picograd.ones(2, 1, 2)]
    nested = picograd.nested.as_nested_tensor(leaves).transpose(1, 2)
    found = picograd.nn.functional.scaled_dot_product_attention(nested, nested, nested)
    found.sum().backward()
    assert found.values().shape == (1, 2, 2)
    assert leaves[0].grad.shape == (0, 1, 2) and not found.values().isnan().any()


def test_leaf_has_a_nested_gradient() -> None:
    given = [picograd.ones(2, 3), picograd.ones(1, 3)]
    nested = picograd.nested.nested_tensor(given, requires_grad=True)
    assert nested.grad is None and nested.requires_grad and nested.is_leaf
    (nested * 3).sum().backward()
    assert [each.tolist() for each in nested.grad] == [[[3.0] * 3] * 2, [[3.0] * 3]]


def test_sizes_and_offsets() -> None:
    nested = picograd.nested.as_nested_tensor(members(picograd))
    assert nested.shape == (3, SIZES, 4) and nested.dim() == 3 and len(nested) == 3
    assert nested.offsets().tolist() == [0, 3, 4, 6] and nested.numel() == 24
    assert nested.size(0) == 3 and nested.size(-1) == 4 and nested[1].shape == (1, 4)
    assert repr(nested).startswith("NestedTensor(size=(3, (3, 1, 2), 4)")


def test_made_of_rows() -> None:
    rows = picograd.arange(6.0).reshape(3, 2)
    make = picograd.nested.nested_tensor_from_jagged
    assert [len(each) for each in make(rows, picograd.tensor([0, 1, 1, 3]))] == [1, 0, 2]
    assert [len(each) for each in make(rows, lengths=picograd.tensor([2, 1]))] == [2, 1]
    with pytest.raises(ShapeError, match="do not make up 3"):
        make(rows, picograd.tensor([0, 2]))
    with pytest.raises(DTypeError, match="either offsets or lengths"):
        make(rows)


REFUSED: dict[str, Callable[[Any], Any]] = {
    "not nested alike": lambda x: x + picograd.nested.as_nested_tensor(picograd.ones(2, 3, 4)),
    "does not fit": lambda x: x + picograd.ones(3, 3, 4),
    "must stay the first": lambda x: x.transpose(0, 1),
    "axis 0 is that of the members": lambda x: x.sum(0),
    "not defined for nested": lambda x: picograd.fft.fft(x),
    "the last axis is the ragged one": lambda x: x.transpose(1, 2) @ picograd.ones(3, 2),
    "not the first one is nested": lambda x: x @ x,
    "is the ragged one": lambda x: x.std(1),
    "reduce the others first": lambda x: x.sum((1, 2)),
    "do not fit 1": lambda x: x.to_padded_tensor(0.0, (3, 1, 4)),
    "are read as a whole": lambda x: x[:, 1],
    "insert it behind": lambda x: x.unsqueeze(0),
    "not behind the ragged one": lambda x: x.flatten(1),
    "is not the ragged size": lambda x: x.view(3, 2, 2, 2),
    "their own keys alone": lambda x: picograd.nn.functional.scaled_dot_product_attention(
        x, x, x, attn_mask=picograd.ones(1)
    ),
}


@pytest.mark.parametrize("problem", REFUSED)
def test_what_mixes_members_is_refused(problem: str) -> None:
    with pytest.raises(ShapeError, match=problem):
        REFUSED[problem](picograd.nested.as_nested_tensor(members(picograd)))


def test_other_sizes_are_refused() -> None:
    with pytest.raises(ShapeError, match="differ in more than the first size"):
        picograd.nested.nested_tensor([picograd.ones(2, 3), picograd.ones(2, 4)])


def test_axes_before_the_ragged_one() -> None:
    x = picograd.nested.as_nested_tensor([each.unflatten(-1, (2, 2)) for each in members(picograd)])
    turned = x.permute(0, 2, 1, 3)  # B H j D
    assert x.layout is picograd.jagged and x.lengths() is None
    found = [turned[:, 1], turned.select(1, 1), turned.unsqueeze(1).squeeze(1)[:, 1, ..., :]]
    for each in (*found, turned.permute([0, 1, 3, 2])[:, 1].transpose(-1, -2)):
        assert all(a.equal(b[:, 1]) for a, b in zip(each.unbind(), x.unbind()))
    assert turned[1, 0].equal(x.unbind()[1][:, 0])
    flat = picograd.nested.as_nested_tensor(members(picograd))
    assert flat.select(-1, 1).values().tolist() == flat.select(2, 1).values().tolist()
    assert flat.squeeze(-1) is flat  # of more than one element
    halves = flat[..., 0::2] * flat[..., 1::2] + flat.select(2, 1).unsqueeze(-1)
    for each, member in zip(halves.unbind(), flat.unbind()):
        wanted = member[:, 0::2] * member[:, 1::2] + member[:, 1:2]
        np.testing.assert_allclose(each.detach().numpy(), wanted.detach().numpy(), 1e-6)


def test_extremes_of_integers_along_the_ragged_axis() -> None:
    for name in ("int8", "int64", "uint8"):
        x = picograd.nested.nested_tensor([[3, 1], [5], [2, 9, 4]], dtype=name)
        assert (x.amax(1).tolist(), x.amin(1).tolist()) == ([3, 5, 9], [1, 5, 2])
    is_odd = x % 2 == 1
    assert (is_odd.all(1).tolist(), is_odd.any(1).tolist()) == ([True, True, False], [True] * 3)


def test_what_is_written_over_is_the_input() -> None:
    x = picograd.nested.nested_tensor([[1.0, -2.0], [-3.0]])
    copied = picograd.nested.nested_tensor(x)
    assert picograd.nn.functional.relu(x, inplace=True) is x and x.add_(1) is x
    assert x.values().tolist() == [2.0, 1.0, 1.0]
    assert copied.values().tolist() == [1.0, -2.0, -3.0]


def test_several_axes_and_none() -> None:
    leaves = members(picograd)
    x = picograd.nested.as_nested_tensor([each.unflatten(-1, (2, 2)) for each in leaves])
    for turned in (x, x.transpose(1, 2)):
        for found, leaf in zip(turned.sum((-1, 2 if turned is x else 1)), leaves, strict=True):
            np.testing.assert_allclose(found.tolist(), leaf.sum(-1).tolist(), rtol=1e-5)
        kept = turned.amax((-1,), keepdim=True)
        assert kept.ndim == 4 and kept.shape[-1] == 1
    assert x.sum(dim=None).item() == pytest.approx(sum(each.sum().item() for each in leaves))
