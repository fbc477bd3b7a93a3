"""Anomalies are found, and named."""

import pytest

import picograd
from picograd import Tensor, autograd
from picograd.errors import GradientError


def test_anomalies_are_named() -> None:
    """NaN is found where it arises, and only where somebody looks."""
    x = Tensor([0.0, 4.0], requires_grad=True)
    wanted = pytest.raises(GradientError, match="'SqrtBackward0' returned nan values")
    with wanted, autograd.detect_anomaly():
        assert autograd.is_anomaly_enabled()
        (x.sqrt() * 0.0).sum().backward()
    assert not autograd.is_anomaly_enabled()
    (x.sqrt() * 0.0).sum().backward()
    switch = autograd.set_detect_anomaly(True)
    with pytest.raises(RuntimeError, match="0th output"):
        autograd.grad((x.sqrt() * 0.0).sum(), x)
    with autograd.profiler.record_function("a block"):
        autograd.grad((x.sqrt() + 1.0).sum(), x)
    switch.__exit__()
    assert not picograd.is_anomaly_enabled()
