"""embedding and embedding_bag beside PyTorch's: options, bags, padding, gradients."""

from typing import Any

import numpy as np
import pytest
from nn_support import array, torch

import picograd
from picograd import Tensor, nn
from picograd.errors import AxisError, DTypeError, ShapeError, ValueRangeError
from picograd.nn.functional import embedding, embedding_bag

INDEX = np.array([[1, 4, 1], [0, 2, 4]])
ROW = np.array([1, 4, 1, 0, 2, 4, 5])
OFFSETS = np.array([0, 3, 3, 7])  # an empty bag inside, one at the end
BAGS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "grid": (INDEX, None, {}),
    "grid and padding": (INDEX, None, {"padding_idx": 1}),
    "only padding": (np.array([[1, 1], [0, 1]]), None, {"padding_idx": -5}),
    "stretches": (ROW, OFFSETS, {}),
    "stretches and padding": (ROW, OFFSETS, {"padding_idx": 4}),
    "last offset": (ROW, OFFSETS, {"include_last_offset": True}),
    "no index": (ROW[:0], np.array([0, 0]), {}),
}


def both(ours: Any, theirs: Any, table: Any, device: str, changes: bool = False) -> None:
    """Compare results and gradients of two functions of a table, and the table afterwards."""
    a = Tensor(table, device=device, requires_grad=True)
    b = torch.tensor(table, requires_grad=True)
    mine, wanted = ours(a), theirs(b)
    np.testing.assert_allclose(mine.numpy(), wanted.detach().numpy(), rtol=1e-5, atol=1e-6)
    direction = array(*wanted.shape)
    (mine * Tensor(direction, device=device)).sum().backward()
    (wanted * torch.tensor(direction)).sum().backward()
    gradient = 0 * table if a.grad is None else a.grad.numpy()
    np.testing.assert_allclose(gradient, b.grad.numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-6)
    assert (a.detach().numpy() != table).any() == changes


@pytest.mark.parametrize(
    "options",
    [{}, {"padding_idx": -2}, {"scale_grad_by_freq": True}, {"max_norm": 1.5, "norm_type": 1.0}],
    ids=str,
)
def test_embedding(options: dict[str, Any], device: str) -> None:
    both(
        lambda table: embedding(Tensor(INDEX, device=device), table, **options),
        lambda table: torch.nn.functional.embedding(torch.tensor(INDEX), table, **options),
        array(6, 4),
        device,
        "max_norm" in options,
    )


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("case", BAGS)
def test_bags(case: str, mode: str, device: str) -> None:
    index, offsets, options = BAGS[case]

    def apply(function: Any, make: Any, table: Any) -> Any:
        starts = None if offsets is None else make(offsets)
        return function(make(index), table, starts, mode=mode, **options)

    both(
        lambda table: apply(embedding_bag, lambda x: Tensor(x, device=device), table),
        lambda table: apply(torch.nn.functional.embedding_bag, torch.tensor, table),
        array(6, 4),
        device,
    )


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_frequencies_and_norms_of_bags(mode: str, device: str) -> None:
    """Every index occurs twice: else PyTorch's CPU code reads the count of another index."""
    options: dict[str, Any] = dict(mode=mode, scale_grad_by_freq=True, max_norm=1.0)
    row, offsets = np.array([1, 4, 1, 0, 4, 0]), np.array([0, 2])
    given, starts = Tensor(row, device=device), Tensor(offsets, device=device)
    theirs = torch.nn.functional.embedding_bag
    both(
        lambda table: embedding_bag(given, table, starts, **options),
        lambda table: theirs(torch.tensor(row), table, torch.tensor(offsets), **options),
        array(6, 4),
        device,
        True,
    )


def test_frequencies_are_those_of_the_index(device: str) -> None:
    table = Tensor.ones(4, 1, device=device, requires_grad=True)
    index, offsets = Tensor([1, 1, 2, 1], device=device), Tensor([0, 2], device=device)
    embedding_bag(index, table, offsets, scale_grad_by_freq=True, mode="sum").sum().backward()
    assert table.grad.flatten().tolist() == pytest.approx([0, 1, 1, 0])


def test_weights_of_samples(device: str) -> None:
    for index, offsets in ((INDEX, None), (ROW, OFFSETS)):
        weights, table = array(*index.shape), array(6, 4)
        a = Tensor(weights, device=device, requires_grad=True)
        b = torch.tensor(weights, requires_grad=True)
        starts = None if offsets is None else Tensor(offsets, device=device)
        found = embedding_bag(
            Tensor(index, device=device), Tensor(table, device=device), starts, mode="sum",
            per_sample_weights=a,
        )  # fmt: skip
        wanted = torch.nn.functional.embedding_bag(
            torch.tensor(index), torch.tensor(table),
            None if offsets is None else torch.tensor(offsets), mode="sum", per_sample_weights=b,
        )  # fmt: skip
        np.testing.assert_allclose(found.numpy(), wanted.detach().numpy(), rtol=1e-5, atol=1e-6)
        found.square().sum().backward()
        wanted.square().sum().backward()
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-4, atol=1e-5)


def test_a_captured_step_shrinks_the_table(device: str) -> None:
    layer = nn.Embedding(3, 2, max_norm=1.0, device=device, _weight=Tensor.full((3, 2), 3.0))
    step = picograd.jit(lambda index: layer(index).sum())
    for row in range(3):
        step(Tensor([row], device=device))
    norms = (layer.weight.detach().numpy() ** 2).sum(1) ** 0.5
    np.testing.assert_allclose(norms, 1.0, rtol=1e-5)


@pytest.mark.usefixtures("on_host")
def test_wrong_arguments_are_named() -> None:
    table, index = Tensor.ones(3, 2), Tensor([0, 1])
    with pytest.raises(DTypeError, match="embedding: the indices are float32"):
        embedding(Tensor([0.5]), table)
    with pytest.raises(AxisError, match="index -1 is out of range for 3 rows"):
        embedding(Tensor([-1]), table)
    with pytest.raises(ShapeError, match=r"table of shape \(3,\)"):
        embedding(index, Tensor.ones(3))
    with pytest.raises(ValueRangeError, match="padding_idx=3 is out of range"):
        embedding(index, table, padding_idx=3)
    with pytest.raises(ShapeError, match=r"embedding_bag: index of shape \(2,\)"):
        embedding_bag(index, table)
    with pytest.raises(ValueRangeError, match=r"offsets \[1\] for 2 indices"):
        embedding_bag(index, table, Tensor([1]))
    with pytest.raises(ValueRangeError, match="scale_grad_by_freq with mode='max'"):
        embedding_bag(index, table, Tensor([0]), scale_grad_by_freq=True, mode="max")
    with pytest.raises(ValueRangeError, match="per_sample_weights with mode='mean'"):
        embedding_bag(index, table, Tensor([0]), per_sample_weights=Tensor([1.0, 1.0]))


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_of_no_indices_have_gradients_of_zeros(mode: str) -> None:
    """A table without a gradient is not stepped; PyTorch's has one of zeros."""
    index, offsets = Tensor([]).long(), Tensor([0, 0, 0])
    table = Tensor(array(4, 2), requires_grad=True)
    found = embedding_bag(index, table, offsets, mode=mode)
    assert found.tolist() == [[0.0, 0.0]] * 3
    found.sum().backward()
    assert table.grad is not None and table.grad.tolist() == [[0.0, 0.0]] * 4
