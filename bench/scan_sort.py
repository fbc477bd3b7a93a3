"""cumsum, cummax and sort from 1k to 10M elements, against PyTorch and NumPy.

python bench/scan_sort.py [--device cpu] [--threads 2] [--rounds 7] [--largest 10000000]

Prints nanoseconds an element: scans and sorts stay flat from the size on that fills the machine
(O(n)); bench/growth.py has more of their kind.
"""

import argparse
import os
import statistics

from timing import interleave, machine, refuse_pinned_blas


def main():
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--largest", type=int, default=10_000_000)
    options = parser.parse_args()
    refuse_pinned_blas()
    os.environ["PICOGRAD_THREADS"] = str(options.threads)
    import torch

    torch.set_num_threads(options.threads)
    print(machine(), options.device, f"threads {options.threads}")
    print(f"{'op':8} {'shape':>14} " + "".join(f"{n + ' ns/el':>18}" for n in NAMES))
    for op in ("cumsum", "cummax", "sort"):
        size = 1000
        while size <= options.largest:
            for shape in ((size,), (size // 100, 100), (100, size // 100)):
                compare(op, shape, options)
            size *= 10


NAMES = ("picograd", "torch", "numpy")


def compare(op, shape, options):
    """Time one op along the last axis of one shape (the first axis of 100 rows)."""
    import numpy as np
    import torch

    import picograd
    from picograd import Tensor

    array = np.random.default_rng(0).random(shape).astype(np.float32)
    axis = 0 if shape[0] == 100 else len(shape) - 1
    ours, theirs = Tensor(array, device=options.device), torch.from_numpy(array)
    theirs = theirs.to(options.device)
    is_cuda = options.device.startswith("cuda")

    def run_ours():
        made = getattr(ours, op)(dim=axis)
        if isinstance(made, tuple):
            made[0].realize(made[1])
        else:
            made.realize()
        picograd.synchronize()

    def run_torch():
        getattr(theirs, op)(dim=axis, **({"stable": True} if op == "sort" else {}))
        if is_cuda:
            torch.cuda.synchronize()

    numpy_run = {
        "cumsum": lambda: np.cumsum(array, axis),
        "cummax": lambda: np.maximum.accumulate(array, axis),
        "sort": lambda: (np.argsort(array, axis, kind="stable"), np.sort(array, axis)),
    }[op]
    rivals = dict(zip(NAMES, (run_ours, run_torch, numpy_run)))
    rounds = options.rounds if array.size < 10**6 else min(options.rounds, 3)
    times = interleave(rivals, rounds, 2 if array.size < 10**6 else 1)
    columns = [statistics.median(times[name]) / array.size * 1e9 for name in NAMES]
    text = "x".join(map(str, shape))
    print(f"{op:8} {text:>14} " + "".join(f"{value:18.2f}" for value in columns), flush=True)


if __name__ == "__main__":
    main()
