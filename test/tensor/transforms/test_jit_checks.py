"""A jitted function that fails a check writes nothing: not before the check, not after it."""

from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.tensor.transforms import jit_replay


def state(*tensors: Tensor) -> list[Any]:
    return [each.tolist() for each in tensors]


@pytest.mark.usefixtures("on_host")
@pytest.mark.parametrize("is_first", [True, False], ids=["traced", "replayed"])
def test_what_fails_leaves_memory_as_it_was(is_first: bool) -> None:
    table, count, total = Tensor.zeros(4, 2).realize(), Tensor.zeros(1).realize(), Tensor.zeros(2)
    row = table[1]

    @picograd.jit
    def store(position: Tensor, value: Tensor) -> Tensor:
        count.add_(1)
        table[position + 1] = value
        total.data = total + value
        return count * 2

    if not is_first:
        assert store(Tensor([0]), Tensor([3.0, 4.0])).tolist() == [2]
    before = state(table, count, total, row)
    with pytest.raises(IndexError, match="out of range for axis 0 of size 4"):
        store(Tensor([3]), Tensor([1.0, 1.0]))
    assert state(table, count, total, row) == before
    done = count.item() + 1
    assert store(Tensor([2]), Tensor([5.0, 6.0])).tolist() == [2 * done]
    assert table[3].tolist() == [5, 6] and count.item() == done


@pytest.mark.usefixtures("on_host")
def test_a_wrong_label_changes_no_parameter() -> None:
    model = nn.Sequential(nn.Embedding(5, 3), nn.Flatten(), nn.Linear(6, 4))
    optimizer = nn.optim.Adam(model.parameters(), 0.1)

    @picograd.jit
    def step(words: Tensor, labels: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(words), labels)
        loss.backward()
        optimizer.step()
        return loss

    good = Tensor([[0, 4], [1, 2]]), Tensor([3, 0])
    for _ in range(2):
        step(*good)
    before = [each.numpy().copy() for each in model.parameters()]
    for words, labels in ((good[0], Tensor([3, 4])), (Tensor([[0, 5], [1, 2]]), good[1])):
        with pytest.raises(IndexError, match="out of range"):
            step(words, labels)
        for was, now in zip(before, model.parameters(), strict=True):
            np.testing.assert_array_equal(was, now.numpy())
    assert np.isfinite(step(*good).item()) and step.traces <= 2


def test_a_function_that_changes_nothing_is_one_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its checks are results of the plan: nothing is computed beforehand."""
    captures = []
    replay = jit_replay.replay
    monkeypatch.setattr(
        "picograd.tensor.transforms.jit.replay",
        lambda *args: (captures.append(args[0]), replay(*args))[1],
    )
    table = Tensor.zeros(4, 2).realize()
    look = picograd.jit(lambda position: table[position] + 1)
    for position in (0, 2):
        assert look(Tensor([position])).tolist() == [[1, 1]]
    assert captures[-1].early is None and captures[-1].checks
    with pytest.raises(IndexError, match="out of range"):
        look(Tensor([4])).tolist()


@pytest.mark.parametrize("wrong", [None, 0, 2])
def test_checks_of_one_error_are_one(wrong: int | None) -> None:
    """Steps of a function check alike: one bool tells whether any of them failed."""
    scores = [Tensor.zeros(2, 4).realize() for _ in range(3)]

    @picograd.jit
    def total(labels: Tensor) -> Tensor:
        losses = [nn.functional.cross_entropy(*pair) for pair in zip(scores, labels.unbind())]
        return losses[0] + losses[1] + losses[2]

    good = np.array([[0, 1], [2, 3], [3, 0]])
    for _ in range(2):
        assert total(Tensor(good)).item() == pytest.approx(3 * np.log(4), rel=1e-5)
    ((capture,),) = total.captures.values()
    assert len(capture.checks) == 1
    if wrong is not None:
        good[wrong, 1] = 4
        with pytest.raises(IndexError, match="a label is out of range for 4 classes"):
            total(Tensor(good)).item()
