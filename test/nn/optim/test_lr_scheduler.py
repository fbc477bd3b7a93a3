"""The name PyTorch's users look for."""

import pytest

from picograd import nn

torch = pytest.importorskip("torch")


def test_every_schedule_of_pytorch_is_there():
    assert nn.optim.lr_scheduler is nn.lr_scheduler
    assert set(torch.optim.lr_scheduler.__all__) <= set(nn.lr_scheduler.__all__)
    assert nn.lr_scheduler.StepLR is nn.lr.StepLR
