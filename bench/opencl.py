"""Programs on an OpenCL device beside the CPU's own kernels and PyTorch, in milliseconds.

python bench/opencl.py [--rounds 15]

Values are compared with PyTorch's; every round runs each program once on each of the three.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as reference

import picograd
from picograd import Tensor
from picograd.nn import functional as F

PROGRAMS: dict[str, tuple[tuple[tuple[int, ...], ...], Callable[..., Any]]] = {
    "x + 2 x, 1024 x 1024": (((1024, 1024),), lambda lib, x: x + x * 2),
    "softmax of rows": (((1024, 1024),), lambda lib, x: x.softmax(1)),
    "sum of columns": (((1024, 1024),), lambda lib, x: x.sum(0)),
    "sort of 2^20": (((1 << 20,),), lambda lib, x: x.sort()[0]),
    "product 1024^3": (((1024, 1024),) * 2, lambda lib, a, b: a @ b),
    "3x3 of 32 channels, 16 x 28 x 28": (
        ((16, 32, 28, 28), (32, 32, 3, 3)), lambda lib, x, w: lib.conv2d(x, w, padding=1)
    ),
    "attention 4 x 8 x 256 x 64": (
        ((4, 8, 256, 64),) * 3,
        lambda lib, *qkv: lib.scaled_dot_product_attention(*qkv, is_causal=True),
    ),
}  # fmt: skip


def timed(run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    run()
    return (time.perf_counter() - start) * 1e3


def on_device(device: str, arrays: list[Any], program: Callable[..., Any]) -> Callable[[], Any]:
    given = [Tensor(array, device=device).realize() for array in arrays]

    def run() -> Any:
        result = program(F, *given).realize()
        picograd.synchronize(device)
        return result

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(2)
    drawn = np.random.default_rng(0)
    for name, (shapes, program) in PROGRAMS.items():
        arrays = [drawn.standard_normal(shape).astype(np.float32) for shape in shapes]
        tensors = [torch.from_numpy(array) for array in arrays]
        runs = [on_device(device, arrays, program) for device in ("opencl", "cpu")]
        runs.append(lambda program=program, tensors=tensors: program(reference, *tensors))
        ours, host, theirs = (run().cpu().numpy() for run in runs)
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-2)
        np.testing.assert_allclose(host, theirs, rtol=1e-3, atol=1e-2)
        times = np.array([[timed(run) for run in runs] for _ in range(rounds)])
        low, median, high = np.quantile(times, (0.25, 0.5, 0.75), axis=0)
        cells = [f"{b:.2f} ({a:.2f}-{c:.2f})" for a, b, c in zip(low, median, high, strict=True)]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
