"""Matrix product on the CPU against PyTorch, and NumPy in float32, at the threads asked for.

On one thread what is timed is the processor's time. A shape is M x K x N; with a `t` behind it the
right operand is stored N x K, as the weights of a layer.

python bench/matmul_cpu.py [--threads 1] [--rounds 25] [--sizes 512 1024] [--shapes 16x768x768t]
    [--dtype bfloat16]
"""

import argparse
import os
import time

from timing import interleave, machine, refuse_pinned_blas, report


def main():
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--sizes", type=int, nargs="+", default=[512, 1024, 2048])
    parser.add_argument("--shapes", nargs="+", default=[])
    parser.add_argument("--dtype", default="float32")
    options = parser.parse_args()
    refuse_pinned_blas()
    os.environ["PICOGRAD_DEVICE"] = "cpu"
    os.environ["PICOGRAD_DYNAMIC"] = "0"  # each shape has a plan of its own, as in a network
    os.environ["PICOGRAD_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = str(options.threads)
    import numpy as np
    import torch

    import picograd
    from picograd import Tensor

    dtype = getattr(picograd, options.dtype)
    torch.set_num_threads(options.threads)
    generator = np.random.default_rng(0)
    print(machine(), f"threads {options.threads}")
    clock = time.process_time if options.threads == 1 else time.perf_counter
    for shape in options.shapes or [f"{n}x{n}x{n}" for n in options.sizes]:
        m, k, n = map(int, shape.rstrip("t").split("x"))
        a, b = (generator.normal(size=s).astype(np.float32) for s in ((m, k), (k, n)))
        x, y = Tensor(a).to(dtype).realize(), Tensor(b).to(dtype).realize()
        torch_a, torch_b = torch.from_numpy(a), torch.from_numpy(b)
        if shape.endswith("t"):
            b = np.ascontiguousarray(b.T).T
            y, torch_b = Tensor(b.T.copy()).to(dtype).realize().T, torch.from_numpy(b.T.copy()).T
        torch_a, torch_b = (each.to(getattr(torch, options.dtype)) for each in (torch_a, torch_b))
        multiply = picograd.jit(lambda x, y: x @ y)
        expected = a.astype(np.float64) @ b.astype(np.float64)
        found = multiply(x, y).float().numpy()
        error = np.abs(found - expected).max() / np.abs(expected).max()
        rivals = {
            "picograd": lambda m=multiply, x=x, y=y: m(x, y).realize(),
            "torch": lambda p=torch_a, q=torch_b: torch.mm(p, q),
        }
        if options.dtype == "float32":
            rivals["numpy"] = lambda a=a, b=b: a @ b
        times = interleave(rivals, options.rounds, clock=clock)
        report(f"{shape} {options.dtype}, error {error:.1e}", times, "picograd", 2 * m * k * n)


if __name__ == "__main__":
    main()
