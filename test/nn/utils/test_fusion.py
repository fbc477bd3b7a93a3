"""Norms folded into the layers before them."""

import numpy as np
import pytest

import picograd
from picograd import nn
from picograd.errors import StateError


def test_fusion() -> None:
    x = picograd.rand(2, 3, 5, 5)
    for conv, is_adjoint in ((nn.Conv2d(3, 4, 3), False), (nn.ConvTranspose2d(3, 4, 3), True)):
        norm = nn.BatchNorm2d(4)
        norm(conv(x))
        conv.eval(), norm.eval()
        fused = nn.utils.fuse_conv_bn_eval(conv, norm, is_adjoint)
        np.testing.assert_allclose(fused(x).numpy(), norm(conv(x)).numpy(), atol=1e-4)
    with pytest.raises(StateError, match="training"):
        nn.utils.fuse_conv_bn_eval(nn.Conv2d(1, 1, 1), norm)
