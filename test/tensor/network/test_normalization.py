"""Normalisation as functions beside PyTorch's, running statistics included."""

import numpy as np
import pytest
from nn_support import TOLERANCE, array, compare, torch

from picograd import Tensor
from picograd.errors import ShapeError, ValueRangeError
from picograd.nn import functional

SHAPE = (3, 4, 5)


def running(device):
    """The same running mean and variance, ours and PyTorch's."""
    values = [array(4), np.random.rand(4).astype(np.float32) + 0.5]
    return [Tensor(v, device=device) for v in values], [torch.tensor(v) for v in values]


PAIRS = [("batch_norm", "training"), ("instance_norm", "use_input_stats")]


@pytest.mark.parametrize("name, option", PAIRS)
@pytest.mark.parametrize("is_training", [True, False])
def test_norms_with_running_statistics(name, option, is_training, device):
    mine, theirs = running(device)
    options = {option: is_training, "momentum": 0.3, "eps": 1e-3}
    ours, reference = (getattr(f, name) for f in (functional, torch.nn.functional))
    compare(
        lambda x, w, b: ours(x, *mine, w, b, **options),
        lambda x, w, b: reference(x, *theirs, w, b, **options),
        [array(*SHAPE), array(4), array(4)],
        device,
    )
    for found, wanted in zip(mine, theirs):
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), **TOLERANCE)


def test_norms_without_running_statistics(device):
    data = [array(*SHAPE), array(4), array(4)]
    theirs = torch.nn.functional
    for call in (
        lambda f, x, w, b: f.batch_norm(x, None, None, w, training=True),
        lambda f, x, w, b: f.instance_norm(x, bias=b),
        lambda f, x, w, b: f.group_norm(x, 2, w, b, 1e-3),
        lambda f, x, w, b: f.local_response_norm(x, 3, 0.5, 0.6, 2.0),
        lambda f, x, w, b: f.rms_norm(x, (5,)),
    ):
        ours = lambda *x, call=call: call(functional, *x)  # noqa: E731
        compare(ours, lambda *x, call=call: call(theirs, *x), data, device)


def test_neighbours_of_integers_are_averaged_in_integers():
    data = np.arange(24).reshape(2, 4, 3)
    for size in (1, 2, 3, 7):
        found = functional.local_response_norm(Tensor(data), size, alpha=0.1)
        wanted = torch.nn.functional.local_response_norm(torch.tensor(data), size, alpha=0.1)
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), 1e-6, strict=True)


def test_wrong_arguments_are_named():
    with pytest.raises(ValueRangeError, match="batch_norm: evaluation needs running_mean"):
        functional.batch_norm(Tensor.ones(2, 3), None, None)
    with pytest.raises(ShapeError, match="do not divide into 3 groups"):
        functional.group_norm(Tensor.ones(2, 4), 3)


@pytest.mark.parametrize(
    "norm, arguments",
    [("layer_norm", ((5,),)), ("group_norm", (2,)), ("instance_norm", ()), ("rms_norm", ((5,),))],
)
def test_a_tensor_may_stand_for_eps(norm, arguments, device):
    x, function = Tensor(array(*SHAPE), device=device), getattr(functional, norm)
    found = function(x, *arguments, eps=Tensor(0.5, device=device)).numpy()
    np.testing.assert_allclose(found, function(x, *arguments, eps=0.5).numpy(), rtol=1e-5)
