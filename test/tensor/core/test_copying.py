"""Copies of tensors beside what shares memory with them."""

import copy
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.engine.executable import CompiledPlan
from picograd.engine.plan_cache import PLANS
from picograd.errors import AxisError, ShapeError


def test_deep_copies_share_memory_as_what_was_copied_does() -> None:
    x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    row, turned, whole = copy.deepcopy((x[1], x.t(), x))
    whole[1] = 0.0
    turned[0].add_(5)
    assert (whole.tolist(), row.tolist()) == ([[6.0, 2.0], [5.0, 0.0]], [5.0, 0.0])
    assert x.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_a_gradient_is_copied_once() -> None:
    x = picograd.ones(2, requires_grad=True)
    (x * 2).sum().backward()
    for copied in (copy.deepcopy([x, x.grad]), copy.deepcopy([x.grad, x])[::-1]):
        assert copied[0].grad is copied[1] and copied[1].tolist() == [2.0, 2.0]
        assert copied[1] is not x.grad


def test_deep_copies_have_copies_of_attributes() -> None:
    x, noted = Tensor([1.0]), Tensor([2.0])
    x.seen, x.noted = [1], noted
    copied, other = copy.deepcopy((x, noted))
    x.seen.append(2)
    assert copied.seen == [1] and copied.noted is other is not noted


def test_parameters_are_copied_apart() -> None:
    flat = Tensor([1.0, 2.0])
    weight = nn.Parameter(Tensor([0.0]))
    weight.data = flat[1:]
    other, copied = copy.deepcopy((weight, flat))
    copied.zero_()
    assert (other.tolist(), weight.tolist(), other.grad) == ([2.0], [2.0], None)


def test_a_shallow_copy_shares_memory() -> None:
    x = Tensor([1.0, 2.0])
    other = copy.copy(x)
    x.add_(1)
    other[0] = 7.0
    assert x.tolist() == other.tolist() == [7.0, 3.0]


@pytest.mark.parametrize("item", [(0, 1), slice(1, 3), (..., -1), (None, 2)])
def test_part_that_was_changed_is_written_once(item: Any) -> None:
    x, expected = Tensor.zeros(3, 3).realize(), np.zeros((3, 3), np.float32)
    before = x.node
    x[item] += 1
    expected[item] += 1
    at_once = (0, 1), slice(1, 3), (..., -1)  # what numbers and ranges choose
    if item not in at_once:
        assert x.node.op == "assign" and x.node.inputs[0] is before
    assert x._version == 2  # PyTorch counts the write of the part as well
    assert x.tolist() == expected.tolist() and x._version == 2
    part, other = x[1], x[2]
    x[1] = part
    x[0] = other  # another part is written
    assert x[0].tolist() == other.tolist() and x._version == 4


def test_part_that_tracks_gradients_is_written_to_what_does_not() -> None:
    x = Tensor.zeros(2, 2).realize()
    part = x[0].requires_grad_()
    x[0] = part
    assert x.requires_grad


@pytest.mark.usefixtures("cpu_by_default")
def test_many_rows_are_stacked_at_once() -> None:
    drawn = np.random.default_rng(0)
    rows = [Tensor(drawn.standard_normal(3).astype(np.float32)) for _ in range(10)]
    counts = []
    for _ in range(4):
        chosen = [rows[number] for number in drawn.integers(0, 10, 12)]  # some come twice
        stacked = picograd.stack(chosen)
        wanted = np.stack([each.numpy() for each in chosen])
        counts.append(len(PLANS.plans))
        assert stacked.node.op == "buffer" and stacked.tolist() == wanted.tolist()
        rows[0][1] = 5.0  # of a copy
        rows[1].add_(1).realize()
        assert stacked.tolist() == wanted.tolist()
    assert counts[1] == counts[-1]
    asking = [each.clone().requires_grad_() for each in rows]
    picograd.stack(asking).sum().backward()
    assert asking[-1].grad is not None and asking[-1].grad.tolist() == [1.0] * 3
    with pytest.raises(ShapeError, match="differ"):
        picograd.stack([*rows, Tensor.zeros(4)])


@pytest.mark.usefixtures("cpu_by_default")
def test_a_list_that_grows_is_joined_at_once() -> None:
    random = np.random.default_rng(0)
    rows = [random.standard_normal((n, 3)).astype("f4") for n in (2, 0, 1, 4, 2, 3, 1, 2)]
    tensors = [Tensor(row) for row in rows]
    for each in tensors:
        each.realize()
    for number in range(3):  # one more, which is pending, each time
        row = random.standard_normal((number + 1, 3)).astype("f4")
        rows.append(row * 2)
        tensors.append(Tensor(row).realize() * 2)
        made = picograd.cat(tensors)
        assert made.node.op == "buffer"
        np.testing.assert_array_equal(made.numpy(), np.concatenate(rows))
    tensors[0][:] = 7.0  # what was joined is a copy
    np.testing.assert_array_equal(made.numpy(), np.concatenate(rows))
    assert picograd.cat([*tensors, Tensor([[1, 2, 3]])]).dtype is picograd.float32
    along = picograd.cat([each[:1] for each in tensors if each.shape[0]], 1)
    assert along.shape == (1, 3 * (len(tensors) - 1))
    asking = [Tensor([float(n)], requires_grad=True).realize() for n in range(9)]
    (picograd.cat(asking) * Tensor.arange(9.0)).sum().backward()
    assert [each.grad.item() for each in asking if each.grad is not None] == [*range(9)]
    with pytest.raises(ShapeError, match="^cat"):
        picograd.cat([*tensors, Tensor.zeros(2, 4)])


def test_what_is_cut_off_from_a_view_that_gradients_pass_is_copied() -> None:
    x = Tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    for view in (x.t(), x[1:], x.squeeze(0)):
        for cut in (view.detach(), view.data):
            copied = copy.deepcopy(cut)
            copied.mul_(2)
            assert copied.tolist() == (cut * 2).tolist() and not copied.requires_grad
    assert x.tolist() == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.usefixtures("cpu_by_default")
@pytest.mark.parametrize("dtype", ["f4", "i8", "?", "f2"])
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2])
def test_a_list_that_grows_is_joined_along_any_axis(axis: int, dtype: str) -> None:
    random = np.random.default_rng(0)
    rows = [(4 * random.standard_normal((2, n, 3))).astype(dtype) for n in (2, 2, 0, 2, 2, 2, 2)]
    alike = [each for each in rows if each.size]
    tensors, states = ([Tensor(each).realize() for each in listed] for listed in (rows, alike))
    for _ in range(6):  # one more, which is pending, each time
        row = (4 * random.standard_normal((2, 2, 3))).astype(dtype)
        for arrays, listed in ((rows, tensors), (alike, states)):
            arrays.append(np.flip(row, 2))
            listed[-1].realize()
            listed.append(Tensor(row).realize().flip(2))
        stacked = picograd.stack(states, axis)
        assert (stacked.node.op == "buffer") == (len(states) >= 8)
        np.testing.assert_array_equal(stacked.numpy(), np.stack(alike, axis))
        if axis in (1, -2):
            made = picograd.cat(tensors, axis)
            assert made.node.op == "buffer"
            np.testing.assert_array_equal(made.numpy(), np.concatenate(rows, axis))
            np.testing.assert_array_equal(
                (made[1, 1:].T).numpy(), np.concatenate(rows, axis)[1, 1:].T
            )
    states[0][:] = 1  # what was joined is a copy
    np.testing.assert_array_equal(stacked.numpy(), np.stack(alike, axis))
    stacked[0] = 0
    np.testing.assert_array_equal(states[1].numpy(), alike[1])
    with pytest.raises(AxisError, match="^stack"):
        picograd.stack(states, 4)
    with pytest.raises(ShapeError, match="^cat"):
        picograd.cat([*states, states[0][:, :1, :2]], axis)


@pytest.mark.usefixtures("cpu_by_default")
def test_attention_over_a_list_that_grows() -> None:
    """What reads a list has a plan for many sizes; the states that are asked for gradients, too."""
    random = np.random.default_rng(0)
    weight = random.standard_normal((4, 4)).astype("f4") / 2
    w, seen, counts = Tensor(weight).realize(), [Tensor.ones(2, 4).realize()], []
    states = [np.ones((2, 4), "f4")]
    for _ in range(40):
        whole = np.stack(states, 1)
        shares = np.exp((whole * states[-1][:, None]).sum(-1))
        shares /= shares.sum(1, keepdims=True)
        states.append(np.tanh((shares[..., None] * whole).sum(1) @ weight))
        listed = picograd.stack(seen, 1)
        part = (listed * seen[-1][:, None]).sum(-1).softmax(1)
        seen.append(((part[..., None] * listed).sum(1) @ w).tanh())
        assert seen[-1].sum().item() == pytest.approx(float(states[-1].sum()), abs=1e-4)
        counts.append(sum(type(plan) is CompiledPlan for plan in PLANS.plans.values()))
    assert counts[12] >= counts[-1] - 4
    leaves = [Tensor(each).realize().requires_grad_() for each in states[:12]]
    (picograd.stack(leaves, 1) ** 3).sum().backward()
    for leaf, array in zip(leaves, states):
        assert leaf.grad is not None
        np.testing.assert_allclose(leaf.grad.numpy(), 3 * array * array, rtol=1e-5)
