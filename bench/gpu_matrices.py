"""Linear algebra of small and large matrices, and scatters, on an NVIDIA GPU beside eager PyTorch.

Wall time of `picograd.jit` and of PyTorch in turns: medians of 3 rounds of up to 20 calls, float32
without TF32; results are compared. Names choose rows by what they contain.

    python bench/gpu_matrices.py ["solve 4096x32" cholesky ...]
"""

import argparse
import statistics
import time

import numpy as np
import torch

import picograd
from picograd import Tensor

RANDOM = np.random.default_rng(0)
BATCHES = (4096, 8), (4096, 32), (256, 64), (64, 128), (1, 1024), (1, 4096)
CALLS = {
    "solve": lambda m, a, x: m.linalg.solve(a, x),
    "inv": lambda m, a, x: m.linalg.inv(a),
    "det": lambda m, a, x: m.linalg.det(a),
    "lu_factor": lambda m, a, x: m.linalg.lu_factor(a)[0],
    "tri": lambda m, a, x: m.linalg.solve_triangular(a, x, upper=False),
    "cholesky": lambda m, a, x: m.linalg.cholesky(a),
    "eigvalsh": lambda m, a, x: m.linalg.eigvalsh(a),
}


def matrices(name, count, size):
    """Make well-conditioned matrices, of which some are symmetric, and right sides."""
    x = RANDOM.standard_normal((count, size, size), np.float32)
    if name in ("cholesky", "eigvalsh"):
        x = x @ x.transpose(0, 2, 1) / size
    if name == "tri":
        x = np.tril(x) / size
    x += np.float32(1 if name == "tri" else 2) * np.eye(size, dtype=np.float32)
    columns = size if name == "tri" and count == 1 else 1
    return x, RANDOM.standard_normal((count, size, columns), np.float32)


def cases():
    """List what is computed: a name, a function of a library and tensors, and the arrays."""
    for name, call in CALLS.items():
        for count, size in BATCHES:
            yield f"{name} {count}x{size}", call, lambda n=name, c=count, s=size: matrices(n, c, s)
    for rows in (65536, 4096):
        values = lambda n=rows: (  # noqa: E731
            np.zeros((4096, 256), np.float32),
            RANDOM.integers(0, 4096, (n, 256)),
            RANDOM.standard_normal((n, 256), np.float32),
        )
        yield f"scatter_add {rows}", lambda m, z, i, x: z.scatter_add(0, i, x), values


def seconds(call, count):
    """Time some calls, until the device is done."""
    start = time.perf_counter()
    for _ in range(count):
        call()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / count


def compare(name, call, arrays):
    """Check and time one case."""
    ours = [Tensor(each, device="cuda") for each in arrays]
    theirs = [torch.tensor(each, device="cuda") for each in arrays]
    step = picograd.jit(lambda *given: call(picograd, *given))
    rivals = [lambda: step(*ours), lambda: call(torch, *theirs)]
    for _ in range(2):
        found, wanted = rivals[0]().numpy(), rivals[1]().cpu().numpy()
    error = np.abs(found - wanted).max() / np.abs(wanted).max()
    slowest = max(seconds(each, 1) for each in rivals)
    count = max(1, min(20, int(0.05 / slowest)))
    rounds = [[seconds(each, count) for each in rivals] for _ in range(3)]
    mine, other = (statistics.median(each) * 1e6 for each in zip(*rounds, strict=True))
    print(f"{name:20} {mine:9.1f} us, PyTorch {other:9.1f}: {other / mine:6.2f}, error {error:.1e}")


def main():
    """Compare the cases that are asked for, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    wanted = parser.parse_args().names
    torch.backends.cuda.matmul.allow_tf32 = False
    for name, call, make in cases():
        if not wanted or any(each in name for each in wanted):
            compare(name, call, make())


if __name__ == "__main__":
    main()
