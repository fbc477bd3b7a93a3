"""M57: an assignment into a tensor that backward needs raises, or backward sees the old value.

A gradient is never silently computed from what was written afterwards. Only values that a gradient
really needs count: those of `mul`, not those of `add`.
"""

from collections.abc import Callable

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.errors import GradientError, ShapeError

NEEDED = (
    "modified by an in-place operation: the float32 tensor of shape \\(2,\\) read by mul is at "
)


def pair() -> tuple[Tensor, Tensor]:
    return Tensor([2.0, 3.0], requires_grad=True).realize(), Tensor([4.0, 5.0]).realize()


def slope(w: Tensor, loss: Tensor) -> list[float]:
    loss.backward()
    assert w.grad is not None
    return w.grad.tolist()  # type: ignore[no-any-return]


def test_write_still_to_run_leaves_the_old_value() -> None:
    w, x = pair()
    loss = (w * x).sum()
    x += 1
    assert slope(w, loss) == [4, 5] and x.tolist() == [5, 6]


def test_write_that_ran_is_an_error() -> None:
    w, x = pair()
    loss = (w * x).sum()
    x += 1
    x.realize()
    with pytest.raises(RuntimeError, match=NEEDED + "version 1; expected version 0"):
        loss.backward()
    with pytest.raises(RuntimeError, match="expected version 0"):
        picograd.grad(loss, w)
    assert w.grad is None and loss.item() == 23
    (w * x).sum().backward()
    assert w.grad is not None and w.grad.tolist() == [5, 6]


def test_write_between_two_writes_is_an_error() -> None:
    w, x = pair()
    x += 1
    loss = (w * x).sum()
    x += 1
    x.realize()
    with pytest.raises(RuntimeError, match=NEEDED + "version 2; expected version 1"):
        loss.backward()
    del x


def test_write_whose_tensor_is_gone_is_an_error() -> None:
    w, x = pair()
    loss = (w * x).sum()
    x += 1
    reader = x + 0
    del x
    assert reader.tolist() == [5, 6]
    with pytest.raises(RuntimeError, match=NEEDED):
        loss.backward()


@pytest.mark.parametrize("op", [lambda w, x: w + x, lambda w, x: w - x, lambda w, x: w.sum() * 2])
def test_values_that_no_gradient_needs_may_change(op: Callable[..., Tensor]) -> None:
    w, x = pair()
    loss = op(w, x).sum()
    loss.realize()
    x += 1
    x.realize()
    assert len(slope(w, loss)) == 2


def test_parameter_changed_after_it_was_used() -> None:
    w, x = pair()
    loss, squares = (w * x).sum(), (w * w).sum()
    loss.realize()
    with picograd.no_grad():
        w.mul_(10)
    w.realize()
    assert slope(w, loss) == [4, 5]  # needs x only
    with pytest.raises(RuntimeError, match=NEEDED):
        squares.backward()


def test_computed_value_changed_in_place_keeps_the_old_one() -> None:
    w, x = pair()
    y = (w * x).realize()
    loss = (y * y).sum().realize()
    with picograd.no_grad():
        y += 1
    y.realize()
    assert slope(w, loss) == [64, 150]


def test_replay_of_a_plan_that_writes() -> None:
    w, x = pair()

    @picograd.jit
    def step(t: Tensor) -> Tensor:
        with picograd.no_grad():
            w.assign(w * 0.5)
        return t + 1

    for _ in range(2):
        step(x)
    waiting = w * 2  # not computed yet: it sees the value of now
    loss = (w * w).sum().realize()
    step(x)
    assert waiting.tolist() == [1, 1.5] and w.tolist() == [0.25, 0.375]
    with pytest.raises(RuntimeError, match="expected version"):
        loss.backward()
    for _ in range(3):
        step(x)
    assert w.numpy() == pytest.approx(np.array([2, 3]) / 64)


def test_replay_that_writes_its_argument() -> None:
    w, x = pair()

    @picograd.jit
    def bump(t: Tensor) -> Tensor:
        t += 1
        return t * 2

    for _ in range(3):
        loss = (w * x).sum().realize()
        assert bump(x).tolist() == [2 * each for each in x.tolist()]
        with pytest.raises(RuntimeError, match=NEEDED):
            loss.backward()
    assert x.tolist() == [7, 8]


@pytest.mark.parametrize("jitted", [False, True])
def test_optimizers_are_not_disturbed(jitted: bool) -> None:
    picograd.manual_seed(0)
    layer = nn.Linear(2, 1)
    optimizer = nn.optim.Adam(layer.parameters(), lr=0.1)
    x = Tensor([[1.0, 2.0], [3.0, 4.0]])

    def step(x: Tensor) -> Tensor:
        loss = ((layer(x) - 1) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    run = picograd.jit(step) if jitted else step
    losses = [run(x).item() for _ in range(30)]
    assert losses[-1] < losses[0] * 0.5


def test_versions_are_counted() -> None:
    x = Tensor([1.0, 2.0])
    assert x._version == 0
    x += 1
    x.mul_(2)
    assert x._version == 2
    x.realize()
    assert x._version == 2 and x.detach()._version == 2  # of one memory
    y = Tensor([1.0], requires_grad=True) * 2
    y += 1
    y[0] = 3.0
    assert y._version == 2 and (y * 1)._version == 0


def test_what_may_not_be_changed_in_place() -> None:
    leaf = Tensor([[1.0, 2.0]], requires_grad=True)
    with pytest.raises(GradientError, match="leaf that requires gradients cannot be changed"):
        leaf.add_(1)
    with pytest.raises(GradientError, match="view of a leaf"):
        leaf.reshape(2).mul_(2)
    with pytest.raises(GradientError, match="view of a leaf"):
        leaf[0][1] = 5.0
    with picograd.no_grad():
        leaf.add_(1)
    assert leaf.tolist() == [[2, 3]]
    with pytest.raises(ShapeError, match="several elements of the expanded tensor"):
        Tensor([1.0]).expand(3).add_(1)
    wide = Tensor([1.0]).expand(3).clone()
    wide += 1
    assert wide.tolist() == [2, 2, 2]


def test_division_follows_ieee() -> None:
    x = Tensor([1.0, -1.0, 0.0], requires_grad=True)
    y = x / Tensor([0.0, 0.0, 0.0])
    y.sum().backward()
    assert y.tolist()[:2] == [np.inf, -np.inf] and np.isnan(y.tolist()[2])
    assert x.grad is not None and x.grad.tolist() == [np.inf] * 3
    assert (Tensor([1, 0]) / 0).tolist()[0] == np.inf
