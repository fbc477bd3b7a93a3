"""picograd.backends: settings of PyTorch's libraries can be read and set; one changes kernels."""

import pytest

import picograd
from picograd import backends
from picograd.errors import ValueRangeError


def test_settings_of_libraries() -> None:
    backends.cudnn.benchmark = True
    assert backends.cudnn.benchmark and backends.cuda.flash_sdp_enabled()
    assert not backends.mps.is_available() and backends.cpu.get_cpu_capability()
    assert backends.cuda.is_built() == picograd.cuda.is_available()
    assert not backends.mkldnn.is_available() and not backends.opt_einsum.is_available()
    backends.opt_einsum.set_flags(True)
    with backends.cuda.sdp_kernel(enable_flash=True), backends.mkldnn.flags(enabled=False):
        assert picograd.ones(2).sum().item() == 2


def test_tf32_is_one_setting_by_three_names() -> None:
    try:
        backends.cuda.matmul.allow_tf32 = True
        assert picograd.get_float32_matmul_precision() == "high"
        assert backends.cuda.matmul.fp32_precision == "tf32"
        picograd.set_float32_matmul_precision("highest")
        assert not backends.cuda.matmul.allow_tf32
        backends.cuda.matmul.fp32_precision = "tf32"
        assert backends.cuda.matmul.allow_tf32
        with pytest.raises(ValueRangeError, match="'tf16' is unknown"):
            backends.cuda.matmul.fp32_precision = "tf16"
    finally:
        backends.cuda.matmul.fp32_precision = "ieee"
    assert picograd.get_float32_matmul_precision() == "highest"
