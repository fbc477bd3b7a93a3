"""nn.functional is a list of names: PyTorch's, each defined in a file of its own."""

import inspect

import pytest

from picograd import Tensor
from picograd.errors import PicogradError
from picograd.nn import functional

OWN = {"batch_normalize", "normalize_channels"}  # for layers, not in PyTorch


def test_every_name_is_a_documented_function():
    for name in functional.__all__:
        found = getattr(functional, name)
        assert callable(found) and inspect.getdoc(found), name
    assert len(set(functional.__all__)) == len(functional.__all__)


def test_names_are_pytorchs():
    torch = pytest.importorskip("torch")
    unknown = set(functional.__all__) - set(dir(torch.nn.functional))
    assert unknown <= OWN


def test_methods_and_functions_agree():
    x = Tensor([[-1.0, 2.0, 8.0]])
    for name in ("relu", "relu6", "elu", "softplus", "logsigmoid", "sigmoid", "tanh", "silu"):
        assert getattr(functional, name)(x).tolist() == getattr(x, name)().tolist(), name


def test_wrong_arguments_name_the_function():
    for name in ("softsign", "tanhshrink", "hardswish"):
        with pytest.raises(PicogradError, match=f"^{name}: "):
            getattr(functional, name)("x")
