"""Functions behind the first layers beside PyTorch's: implied axes, padding, dtypes."""

import numpy as np
import pytest
from nn_support import array, compare, torch

import picograd
from picograd import Tensor
from picograd.errors import ShapeError
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


@pytest.mark.parametrize("shapes", [
    ((24, 16), (3, 16, 8)), ((3, 8, 16), (16, 24)), ((8, 24), (24, 16)), ((3, 8, 16), (3, 16, 8)),
])  # fmt: skip
def test_groups_of_products(shapes, device):
    are_stacks = len(shapes[0]) == len(shapes[1]) == 3
    ends = None if are_stacks else np.array([8, 8, 24], np.int32)

    def grouped(library, module):
        def call(a, b):
            offs = None if ends is None else library.tensor(ends, device=a.device)
            return module.grouped_mm(a, b, offs=offs)

        return call

    calls = grouped(picograd, functional), grouped(torch, theirs)
    compare(*calls, [array(*shape) for shape in shapes], device)


def test_groups_that_do_not_fit():
    with pytest.raises(ShapeError, match="grouped_mm: operands .* give offs unless both"):
        functional.grouped_mm(Tensor.ones(2, 3), Tensor.ones(2, 3, 4))
