import numpy as np
import pytest

from picograd.code import Code
from picograd.dtype import float32, int64
from picograd.errors import InternalError
from picograd.runtime.cpu import CpuDevice
from picograd.runtime.device import Device, Executable, TapeLaunch, compile_error, empty_tape


def executable(*scalars):
    return Executable(Code("k", "llvm", "k", "", 1, scalars=scalars), None)


def test_tables_are_as_large_as_launches_need_or_larger():
    launches = (TapeLaunch(executable(float32), (0, 4), (1,)),
                TapeLaunch(executable(int64), (2,), (0,)))  # fmt: skip
    tape = empty_tape(launches, 0, ())
    assert (tape.slot_count, tape.scalar_dtypes) == (5, (int64, float32))
    tape = empty_tape((), 3, (float32,))
    assert (tape.slot_count, tape.scalar_dtypes) == (3, (float32,))


def test_tapes_that_contradict_themselves_are_refused():
    launch = TapeLaunch(executable(float32), (), (0,))
    with pytest.raises(InternalError, match="scalar 0 is float32 here and int64 there"):
        empty_tape((launch, TapeLaunch(executable(int64), (), (0,))), 0, ())
    with pytest.raises(InternalError, match="k takes 1 scalars"):
        empty_tape((TapeLaunch(executable(float32), ()),), 0, ())
    with pytest.raises(InternalError, match=r"scalars \[1\]: one is missing"):
        empty_tape((TapeLaunch(executable(float32), (), (1,)),), 0, ())


def test_compile_error_shows_the_lines_around():
    code = Code("k", "cuda", "k", "\n".join(f"line {n}" for n in range(1, 21)), 1)
    text = str(compile_error(code, "log text\n", 10))
    assert "kernel k does not compile\nlog text\n" in text
    assert ">   10 line 10" in text and "     7 line 7" in text and "    13 line 13" in text
    assert "line 14" not in text and "line 6" not in text
    assert ">" not in str(compile_error(code, "log", None)).split("log")[1]
    assert str(compile_error(Code("k", "cuda", "k", "", 1), "log", 5))


class Apart(CpuDevice):
    """A CPU whose memory the host sees through copies only, as that of a GPU."""

    call_host = Device.call_host

    def view(self, buffer):
        raise AssertionError("the host looks into the memory of a device")

    def copy_out(self, buffer):
        return CpuDevice.view(self, buffer).copy()


def test_host_calls_copy_both_ways():
    device = Apart(1)
    x, y = device.new_buffer(float32, 6), device.new_buffer(float32, 2)
    device.copy_in(x, np.arange(6, dtype=np.float32))
    device.call_host(lambda a: a.T.sum(1, dtype=np.float64), [(x, (3, 2))], (y, (2,)))
    assert device.copy_out(y).view(np.float32).tolist() == [6, 9]
    with pytest.raises(ZeroDivisionError):
        device.call_host(lambda a: 1 // 0, [(x, (3, 2))], (y, (2,)))
    assert device.copy_out(y).view(np.float32).tolist() == [6, 9]
