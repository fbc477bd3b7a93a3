"""Time small calls of linalg and fft, un-jitted, each read at once: microseconds, best of 7 x 100.

PYTHONPATH=tree python host_calls.py    run it for two trees in turn to compare them
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import picograd
from picograd import Tensor

random = np.random.default_rng(0)
A = random.normal(size=(8, 8)).astype(np.float32) + 8 * np.eye(8, dtype=np.float32)
x, s = Tensor(A, device="cpu").realize(), Tensor(A @ A.T, device="cpu").realize()
line = Tensor(random.normal(size=64).astype(np.float32), device="cpu").realize()
numbers = picograd.view_as_complex(
    Tensor(random.normal(size=(64, 2)).astype(np.float32), device="cpu")
).realize()
linalg, fft = picograd.linalg, picograd.fft

CALLS: dict[str, Callable[[], Any]] = {
    "inv": lambda: linalg.inv(x).numpy(),
    "solve": lambda: linalg.solve(x, s).numpy(),
    "cholesky": lambda: linalg.cholesky(s).numpy(),
    "det": lambda: linalg.det(x).numpy(),
    "qr": lambda: [each.numpy() for each in linalg.qr(x)],
    "svd": lambda: [each.numpy() for each in linalg.svd(x)],
    "eigh": lambda: [each.numpy() for each in linalg.eigh(s)],
    "fft": lambda: fft.fft(numbers).numpy(),
    "rfft": lambda: fft.rfft(line).numpy(),
    "irfft": lambda: fft.irfft(numbers).numpy(),
}

for name, call in CALLS.items():
    for _ in range(20):
        call()
    times = []
    for _ in range(7):
        start = time.perf_counter()
        for _ in range(100):
            call()
        times.append((time.perf_counter() - start) * 1e4)
    print(f"{name:9} {min(times):8.1f}")
