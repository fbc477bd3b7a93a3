"""Transforms: values, inverses and slopes as PyTorch's."""

import numpy as np
from distribution_support import check_same, torch

from picograd import Tensor, distributions


def test_transforms() -> None:
    x = np.array([0.3, 0.8, 1.4], np.float32)
    d = distributions
    for name in ("Exp", "Sigmoid", "Tanh", "Softplus"):
        ours = getattr(d, f"{name}Transform")()
        theirs = getattr(torch.distributions, f"{name}Transform")()
        y, other = ours(Tensor(x)), theirs(torch.from_numpy(x))
        check_same(y, other)
        check_same(ours.inv(y), torch.from_numpy(x))
        slope = ours.log_abs_det_jacobian(Tensor(x), y)
        check_same(slope, theirs.log_abs_det_jacobian(torch.from_numpy(x), other))
    chain = d.ComposeTransform([d.ExpTransform(), d.AffineTransform(1.0, 2.0)])
    check_same(chain.inv(chain(Tensor(x))), torch.from_numpy(x))
