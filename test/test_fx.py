"""picograd.fx: nothing is rewritten."""

from picograd import Tensor, fx, nn


def test_functions_stay_what_they_are() -> None:
    assert fx.wrap(len) is len and not isinstance(Tensor([1.0]), fx.Proxy)


def test_graph_modules_are_modules() -> None:
    assert issubclass(fx.GraphModule, nn.Module)
