"""picograd.cpu: one host, one stream, and PyTorch's path to autocast."""

from picograd import amp, cpu
from picograd.cpu.amp import autocast


def test_there_is_one_host() -> None:
    assert cpu.is_available() and cpu.device_count() == 1 and cpu.current_device() == "cpu"
    cpu.set_device("cpu"), cpu.synchronize()
    with cpu.stream(cpu.current_stream()):
        assert autocast is amp.autocast
