"""Functions behind the first layers beside PyTorch's: implied axes, padding, dtypes."""

import numpy as np
import pytest
from nn_support import array, compare, torch

from picograd import Tensor
from picograd.nn import functional

theirs = torch.nn.functional


@pytest.mark.filterwarnings("ignore:Implicit dimension")
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmin"])
def test_the_implied_axis_is_pytorchs(name, device):
    for shape in ((3,), (2, 3), (2, 2, 3), (1, 2, 2, 3)):
        x = array(*shape)
        found = getattr(functional, name)(Tensor(x, device=device)).numpy()
        np.testing.assert_allclose(found, getattr(theirs, name)(torch.tensor(x)).numpy(), rtol=1e-4)
    half = getattr(functional, name)(Tensor([1.0, 2.0]).half(), 0, dtype="float32")
    assert half.dtype.name == "float32"


def test_embedding_padding(device):
    index = np.array([[0, 2], [1, 2]])
    calls = [lambda w, f=f, i=i: f.embedding(i, w, padding_idx=-2) for f, i in (
        (functional, Tensor(index, device=device)), (theirs, torch.tensor(index)))]  # fmt: skip
    compare(*calls, [array(4, 3)], device)


def test_bilinear_and_pairs(device):
    data = [array(2, 3), array(2, 4), array(5, 3, 4), array(5)]
    compare(functional.bilinear, theirs.bilinear, data, device)
    for p in (1.0, 2.0):
        calls = [lambda x, f=f, p=p: f.pdist(x, p) for f in (functional, theirs)]
        compare(*calls, [array(4, 3)], device)


def test_weighted_losses(device):
    data = [array(3, 4), array(3, 4), np.random.rand(3, 4).astype(np.float32)]
    for name in ("mse_loss", "l1_loss"):
        for reduction in ("mean", "sum", "none"):
            calls = [
                lambda x, y, w, f=f, n=name, r=reduction: getattr(f, n)(x, y, reduction=r, weight=w)
                for f in (functional, theirs)
            ]
            compare(*calls, data, device)
