"""Pooling and patches as functions beside PyTorch's: every rank, options by name."""

import numpy as np
import pytest
from nn_support import array, compare, torch

from picograd import Tensor
from picograd.errors import DTypeError
from picograd.nn import functional

SHAPES = {1: (2, 2, 7), 2: (1, 2, 6, 5), 3: (1, 1, 4, 4, 3)}
CASES = {
    "max_pool": dict(kernel_size=2, stride=1, padding=1, return_indices=True),
    "avg_pool": dict(kernel_size=2, padding=1, count_include_pad=False),
    "max_pool ": dict(kernel_size=2, stride=()),
    "avg_pool ": dict(kernel_size=2, stride=[]),
    "lp_pool": dict(norm_type=3, kernel_size=2, stride=1),
    "adaptive_max_pool": dict(output_size=2, return_indices=True),
    "adaptive_avg_pool": dict(output_size=3),
}


@pytest.mark.parametrize("rank", SHAPES)
@pytest.mark.parametrize("name", CASES)
def test_pooling_equals_pytorch(name, rank, device):
    ours, reference = (
        getattr(f, f"{name.strip()}{rank}d") for f in (functional, torch.nn.functional)
    )
    options = CASES[name]
    data = abs(array(*SHAPES[rank])) if name == "lp_pool" else array(*SHAPES[rank])
    calls = (lambda x: ours(x, **options)), (lambda x: reference(x, **options))
    compare(*calls, [data], device)


def test_unpooling(device):
    for rank, shape in ((1, (1, 2, 8)), (2, (1, 2, 4, 6)), (3, (1, 1, 2, 4, 2))):
        pool, unpool = f"max_pool{rank}d", f"max_unpool{rank}d"

        def both(f, x, pool=pool, unpool=unpool):
            return getattr(f, unpool)(*getattr(f, pool)(x, 2, return_indices=True), 2)

        calls = [lambda x, f=f, both=both: both(f, x) for f in (functional, torch.nn.functional)]
        compare(*calls, [array(*shape)], device)


def test_patches(device):
    options = dict(kernel_size=(2, 3), dilation=(1, 2), padding=1, stride=(2, 1))
    theirs = torch.nn.functional
    data = [array(2, 3, 4, 6)]
    calls = [lambda x, f=f: f.unfold(x, **options) for f in (functional, theirs)]
    compare(*calls, data, device)
    columns = [array(*calls[1](torch.tensor(data[0])).shape)]
    calls = [lambda x, f=f: f.fold(x, (4, 6), **options) for f in (functional, theirs)]
    compare(*calls, columns, device)


def test_unfold_copies_infinities_exactly(device):
    x = np.array([[[[np.inf, 1.0], [np.nan, 2.0]]]], np.float32)
    found = functional.unfold(Tensor(x, device=device), (1, 2)).numpy()
    np.testing.assert_array_equal(found, [[[np.inf, np.nan], [1.0, 2.0]]])


def test_wrong_inputs_are_named():
    with pytest.raises(DTypeError, match="max_pool2d: the input must be a Tensor, not list"):
        functional.max_pool2d([1.0], 2)
