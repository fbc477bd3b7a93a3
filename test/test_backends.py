"""picograd.backends: settings of PyTorch's libraries can be read and set; nothing changes."""

import picograd
from picograd import backends


def test_settings_of_libraries() -> None:
    backends.cudnn.benchmark = True
    backends.cuda.matmul.allow_tf32 = True
    assert backends.cudnn.benchmark and backends.cuda.flash_sdp_enabled()
    assert not backends.mps.is_available() and backends.cpu.get_cpu_capability()
    assert backends.cuda.is_built() == picograd.cuda.is_available()
    assert not backends.mkldnn.is_available()
    with backends.cuda.sdp_kernel(enable_flash=True), backends.mkldnn.flags(enabled=False):
        assert picograd.ones(2).sum().item() == 2
