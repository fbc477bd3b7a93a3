"""Indices that are wrong but not seen when recorded: no kernel may touch memory outside a tensor.

Indices computed on the device cannot be looked at without waiting for them. `x[index]`, gather,
scatter and embedding clamp them to the axis; a label of `cross_entropy` that is no class makes the
loss NaN and gives no gradient; `one_hot` and `nll_loss` find no match.
"""

import math

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.nn import functional as F

FAR = [10, -11, 10**9, -(10**9), 2**62, -(2**62)]


def unseen(values: list[int], dtype: str = "int64") -> Tensor:
    """Make an index whose values are known only after a kernel has run."""
    return Tensor(values, dtype=dtype) + Tensor([0] * len(values), dtype=dtype)


def table() -> Tensor:
    return Tensor(np.arange(30, dtype=np.float32).reshape(10, 3)).realize()


def clamped(index: int) -> int:
    return min(max(index + 10 if index < 0 else index, 0), 9)


WANTED = [[3.0 * clamped(index) + column for column in range(3)] for index in FAR]


def test_getitem_clamps() -> None:
    assert table()[unseen(FAR)].tolist() == WANTED


def test_small_dtypes_clamp() -> None:
    assert table()[unseen([127, -128], "int8")].tolist() == [WANTED[0], [0.0, 1.0, 2.0]]


def test_index_select_and_embedding_clamp() -> None:
    assert table().index_select(0, unseen(FAR)).tolist() == WANTED
    layer = nn.Embedding(10, 3)
    layer.load_state_dict({"weight": table()})
    assert layer(unseen(FAR)).tolist() == WANTED


def test_embedding_gradient_stays_inside() -> None:
    layer = nn.Embedding(10, 3)
    layer(unseen(FAR)).sum().backward()
    wanted = np.zeros((10, 3))
    for index in FAR:
        wanted[clamped(index)] += 1.0
    grad = layer.weight.grad
    assert grad is not None and np.array_equal(grad.numpy(), wanted)


def test_gather_and_take_along_dim_clamp() -> None:
    index = unseen([10**12, -(10**12), 1]).reshape(1, 3)
    assert table().gather(0, index).tolist() == [[27.0, 1.0, 5.0]]
    assert table().take_along_dim(index, 0).tolist() == [[27.0, 1.0, 5.0]]


def test_writing_clamps() -> None:
    x = table()
    x[unseen([10**9])] = -1.0
    assert x.tolist()[9] == [-1.0] * 3 and x.tolist()[:9] == table().tolist()[:9]
    index = unseen([10**9, -(10**9), 0]).reshape(1, 3)
    found = Tensor.zeros(10, 3).scatter_add(0, index, Tensor.ones(1, 3))
    assert found.sum().item() == 3.0
    assert found[9, 0].item() == found[0, 1].item() == found[0, 2].item() == 1.0


@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_unseen_labels_give_nan_and_no_gradient(dtype: str) -> None:
    values = [index for index in FAR if abs(index) < 2**31 or dtype == "int64"]
    logits = Tensor(np.ones((len(values) + 1, 10), np.float32), requires_grad=True)
    labels = unseen([3, *values], dtype)
    losses = F.cross_entropy(logits, labels, reduction="none")
    found = losses.tolist()
    assert found[0] == pytest.approx(math.log(10)) and all(x != x for x in found[1:])
    F.cross_entropy(logits, labels, reduction="sum").backward()
    assert logits.grad is not None
    gradient = logits.grad.numpy()
    assert np.allclose(gradient[0], 0.1 - np.eye(10)[3])
    assert not gradient[1:].any()


def test_small_labels() -> None:
    logits = Tensor(np.ones((1, 300), np.float32))
    for dtype, label in (("uint8", 255), ("int8", 127)):
        loss = F.cross_entropy(logits, unseen([label], dtype))
        assert loss.item() == pytest.approx(math.log(300))
    assert math.isnan(F.cross_entropy(logits[:, :10], unseen([255], "uint8")).item())


def test_labels_of_a_replayed_jit_are_not_read_outside() -> None:
    step = picograd.jit(lambda logits, labels: F.cross_entropy(logits, labels))
    logits = Tensor(np.ones((2, 10), np.float32))
    assert step(logits, Tensor([1, 2])).item() == pytest.approx(math.log(10))
    assert math.isnan(step(logits, Tensor([1, 10**12])).item())


def test_unseen_one_hot_and_nll_find_no_match() -> None:
    assert unseen([1, 5]).one_hot(3).tolist() == [[0, 1, 0], [0, 0, 0]]
    scores = Tensor(np.ones((2, 10), np.float32))
    assert F.nll_loss(scores, unseen([1, 10**12]), reduction="none").tolist() == [-1.0, 0.0]
