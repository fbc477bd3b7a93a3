"""Machine code of Fourier transforms: a plan written by hand, for vectors of any width."""

import ctypes

import numpy as np
import pytest
from op_support import numbers

from picograd.code import Code
from picograd.engine.backends import get_device
from picograd.runtime.fourier_code import PLAN, fourier_source


@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
@pytest.mark.parametrize("is_back", [False, True])
def test_a_plan_of_columns(lanes: int, is_back: bool) -> None:
    x = numbers((6, lanes, 2)).view("D")[..., 0]  # points, signals
    powers = [np.exp(-2j * np.pi / 6 * np.outer(np.arange(2), np.arange(1, 3))).ravel()]
    turns = np.concatenate([*powers, np.ones(1)]).astype("D")  # of 3 points, then of 2
    room = np.zeros(4 * 7 * lanes + 16)
    words = {
        "outer": 1, "blocks": 1, "lanes": lanes, "read": 6, "points": 6, "made": 6,
        "source_lane": 16, "source_point": 16 * lanes, "to_lane": 16, "to_point": 16 * lanes,
        "room": 8 * 2 * 7 * lanes, "swap": is_back, "turns": turns.ctypes.data,
        "scale": int(np.float64(0.5).view("l")), "steps": 2,
    }  # fmt: skip
    plan = np.array([*(words.get(name, 0) for name in PLAN), 3, 2, 1, 2, 1, 3], "l")
    device = get_device("cpu")
    code = Code("fourier", "llvm", "picograd_fourier", fourier_source(lanes, True), 1)
    library = device.machine.load(device.machine.compile(code, is_straight=True), (code.entry,))
    enter = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 6)(library[code.entry])
    found = np.empty_like(x)
    start = (room.ctypes.data + 63) // 64 * 64
    enter(plan.ctypes.data, None, x.ctypes.data, found.ctypes.data, None, start)
    wanted = np.fft.ifft(x, axis=0) * 3 if is_back else np.fft.fft(x, axis=0) / 2
    assert np.allclose(found, wanted, 1e-14, 1e-14)
