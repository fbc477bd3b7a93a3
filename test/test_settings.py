"""Settings of PyTorch's programs: dtypes, threads, determinism."""

import pytest

import picograd
from picograd import Tensor, nn
from picograd.config import config
from picograd.engine.backends import target_of
from picograd.runtime.null import NullDevice


def test_settings() -> None:
    picograd.set_default_dtype(picograd.float64)
    try:
        assert Tensor([1.0]).dtype is picograd.float64 and picograd.rand(1).dtype is picograd.double
        assert nn.Linear(1, 1).weight.dtype is picograd.get_default_dtype()
        assert (picograd.arange(3) * 0.5).dtype is picograd.float64
    finally:
        picograd.set_default_tensor_type("torch.FloatTensor")
    assert Tensor([1.0]).dtype is picograd.float32
    with pytest.raises(TypeError, match="no float"):
        picograd.set_default_dtype(picograd.int32)
    threads = picograd.get_num_threads()
    picograd.set_num_threads(threads)
    picograd.use_deterministic_algorithms(True, warn_only=True)
    assert picograd.are_deterministic_algorithms_enabled()
    assert picograd.get_deterministic_debug_mode() == 1
    picograd.set_deterministic_debug_mode("default")
    with pytest.raises(ValueError, match="unknown"):
        picograd.set_float32_matmul_precision("low")


def test_precision_of_products_is_a_setting():
    assert picograd.get_float32_matmul_precision() == "highest" and not config.tf32
    try:
        for word in ("high", "medium"):
            picograd.set_float32_matmul_precision(word)
            assert picograd.get_float32_matmul_precision() == word and config.tf32
    finally:
        picograd.set_float32_matmul_precision("highest")
    with config.override(tf32=1):
        assert picograd.get_float32_matmul_precision() == "high"
        assert target_of(NullDevice()).tf32, "a GPU of Hopper that is not there"
    assert not target_of(NullDevice()).tf32
