"""Matrix products on an NVIDIA GPU against torch.matmul, results checked against float64.

Each timed call runs REPEATS products back to back and waits for the device at its end.

    python bench/gpu_matmul.py [--rounds 15] [--sizes 1024 4096] [--dtypes bfloat16 float16 float32]

Ancestors' list: M4.
"""

import argparse

import numpy as np
import torch
from timing import interleave, machine, report

import picograd
from picograd import Tensor

REPEATS = 10


def compare(size: int, dtype: str, rounds: int) -> None:
    """Time size^3 products of one dtype."""
    generator = np.random.default_rng(0)
    a, b = generator.normal(size=(2, size, size)).astype(np.float32)
    x, y = (Tensor(m, device="cuda").cast(dtype).realize() for m in (a, b))
    torch_a, torch_b = (torch.from_numpy(m).cuda().to(getattr(torch, dtype)) for m in (a, b))
    multiply = picograd.jit(lambda x, y: x @ y)
    expected = torch_a.double() @ torch_b.double()
    ours = torch.from_numpy(multiply(x, y).cast("float32").numpy()).cuda().double()
    error = ((ours - expected).norm() / expected.norm()).item()
    theirs = ((torch.matmul(torch_a, torch_b).double() - expected).norm() / expected.norm()).item()

    def run_ours():
        for _ in range(REPEATS):
            result = multiply(x, y)
        picograd.synchronize("cuda")
        return result

    def run_torch():
        for _ in range(REPEATS):
            result = torch.matmul(torch_a, torch_b)
        torch.cuda.synchronize()
        return result

    times = interleave({"picograd": run_ours, "torch.matmul": run_torch}, rounds)
    title = f"{size}^3 {dtype}, {REPEATS} products, error {error:.1e} (torch {theirs:.1e})"
    report(title, times, "picograd", 2 * size**3 * REPEATS)


def main() -> None:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1024, 4096])
    parser.add_argument("--dtypes", nargs="+", default=["bfloat16", "float16", "float32"])
    options = parser.parse_args()
    print(machine(), torch.cuda.get_device_name(), f"CUDA {torch.version.cuda}")
    for dtype in options.dtypes:
        for size in options.sizes:
            compare(size, dtype, options.rounds)


if __name__ == "__main__":
    main()
