"""`resize_`, `resize_as_` and `set_` show what PyTorch's do."""

from typing import Any

import pytest

import picograd
from picograd import Tensor

torch = pytest.importorskip("torch")

CHANGES = """
x.resize_(2, 3); x[0, 0] = 9
x.resize_((2, 2)); x[1] = 7
x.resize_(2); x.mul_(3); x.resize_(6)
x.resize_(8); x[6:] = 0; x[0] = 5
x.resize_(0); x.resize_(3)
y = x.view(2, 3); x.resize_(2); x[0] = 7
y = x.view(2, 3).t(); y.resize_(2, 2); y[0] = 8
y = x[2:]; y.resize_(2, 2); y[0] = 9
y = x[2:4]; y.resize_(4); y.neg_()
y = x[2:4]; y.resize_(1); x.add_(1)
x.resize_as_(torch.zeros(3, 2)); x[:, 1] = 4
y = torch.zeros(0); y.resize_(2, 2); y.fill_(3)
y = torch.zeros(3); x.set_(y); y[0] = 5
y = torch.zeros(0); y.set_(x); y[0] = 5
y = torch.zeros(3); y.set_(x, 1, (2, 2), (2, 1)); y[1] = 0; x[1] = 6
y = torch.zeros(3); y.set_(x[2:].untyped_storage(), 1, (2, 2), (2, 1)); y[1] = 0; x[1] = 6
x.set_(); y = x.clone()
"""
ERRORS = """
x.resize_(-1)
x.requires_grad_().resize_(2)
(x.requires_grad_() * 2).resize_(2)
x.set_(torch.zeros(2, dtype=torch.int64))
"""


def names(library: Any, wrap: Any) -> dict[str, Any]:
    return {"torch": library, "x": wrap([0.0, 1.0, 2.0, 3.0, 4.0, 5.0])}


@pytest.mark.parametrize("is_jitted", [False, True])
@pytest.mark.parametrize("code", CHANGES.strip().split("\n"))
def test_shapes_and_memory(code: str, is_jitted: bool) -> None:
    theirs, ours = names(torch, torch.tensor), names(picograd, Tensor)
    exec(code, theirs)

    def run(x: Tensor) -> dict[str, Tensor]:
        local = {"torch": picograd, "x": x.clone()}
        exec(code, local)
        return {name: local[name] for name in "xy" if name in local}

    found = (picograd.jit(run) if is_jitted else run)(ours["x"])
    for name, tensor in found.items():
        assert tensor.shape == tuple(theirs[name].shape)
        assert tensor.tolist() == theirs[name].tolist()


@pytest.mark.parametrize("code", ERRORS.strip().split("\n"))
def test_what_is_refused(code: str) -> None:
    with pytest.raises(RuntimeError):
        exec(code, names(torch, torch.tensor))
    ours = names(picograd, Tensor)
    with pytest.raises(RuntimeError):
        exec(code, ours)
    assert ours["x"].tolist() == [0, 1, 2, 3, 4, 5]
