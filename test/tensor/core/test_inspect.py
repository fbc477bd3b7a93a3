"""Plans and stages of a tensor without running it; waiting for devices."""

from typing import Any

import pytest

import picograd
from picograd import Tensor
from picograd.errors import DTypeError, PicogradError
from picograd.tensor.core.inspect import explain, pending_nodes, plan, synchronize


def test_plan_runs_nothing() -> None:
    x = Tensor([1.0, 2.0]).exp().sum()
    view = plan(x)
    assert "kernel" in repr(view) and picograd.plan == plan
    assert pending_nodes("plan", [x]), "still to compute"


def test_nothing_to_plan_is_an_error() -> None:
    x = (Tensor([1.0]) + 1).realize()
    with pytest.raises(PicogradError, match="^plan"):
        pending_nodes("plan", [x])


@pytest.mark.usefixtures("on_host")
def test_explain_shows_every_stage() -> None:
    text = explain(Tensor([1.0, 2.0]).exp())
    assert "exp" in text and "define" in text


@pytest.mark.usefixtures("on_host")
def test_explain_of_several_tensors() -> None:
    x = Tensor([1.0, 2.0]).realize()
    text = explain([x + 1, x * 2])
    assert "plan: 1 kernels" in text
    with pytest.raises(DTypeError, match="in a list"):
        explain(x + 1, x * 2)  # type: ignore[arg-type]


def test_synchronize() -> None:
    synchronize()
    synchronize("cpu")
    with pytest.raises(PicogradError):
        synchronize("toaster")


@pytest.mark.parametrize("look", [picograd.explain, picograd.plan])
def test_what_makes_tensors_is_called_first(look: Any) -> None:
    model, x = picograd.nn.Linear(2, 2), Tensor([1.0, 2.0])
    for given in ((model,), (lambda x: x,), (picograd.jit(model),), (model, x)):
        if look is picograd.explain or len(given) == 1:
            with pytest.raises(DTypeError, match=r"call it on a tensor, and pass what it returns"):
                look(*given)
