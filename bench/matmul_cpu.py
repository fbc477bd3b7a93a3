"""float32 matrix product on the CPU against PyTorch and NumPy, at the threads asked for.

python bench/matmul_cpu.py [--threads 1] [--rounds 25] [--sizes 512 1024 2048]
"""

import argparse
import os

from timing import interleave, machine, refuse_pinned_blas, report


def main():
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--sizes", type=int, nargs="+", default=[512, 1024, 2048])
    options = parser.parse_args()
    refuse_pinned_blas()
    os.environ["PICOGRAD_DEVICE"] = "cpu"
    os.environ["PICOGRAD_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = str(options.threads)
    import numpy as np
    import torch

    import picograd
    from picograd import Tensor

    torch.set_num_threads(options.threads)
    generator = np.random.default_rng(0)
    print(machine(), f"threads {options.threads}")
    for size in options.sizes:
        a, b = generator.normal(size=(2, size, size)).astype(np.float32)
        x, y = Tensor(a), Tensor(b)
        torch_a, torch_b = torch.from_numpy(a), torch.from_numpy(b)
        multiply = picograd.jit(lambda x, y: x @ y)
        expected = a.astype(np.float64) @ b.astype(np.float64)
        error = np.abs(multiply(x, y).numpy() - expected).max() / np.abs(expected).max()
        rivals = {
            "picograd": lambda m=multiply, x=x, y=y: m(x, y).realize(),
            "torch": lambda p=torch_a, q=torch_b: torch.mm(p, q),
            "numpy": lambda a=a, b=b: a @ b,
        }
        times = interleave(rivals, options.rounds)
        report(f"{size}^3 float32, error {error:.1e}", times, "picograd", 2 * size**3)


if __name__ == "__main__":
    main()
