"""Cost that grows with the elements touched: indexing, scans, sorts and counts from 1k to 10M.

python bench/growth.py [--device cpu] [--threads 2] [--rounds 5] [--only "sort,topk 10"]

Every row interleaves picograd and PyTorch in one process and prints, for each size, nanoseconds an
element (median of the rounds), then

    growth   the exponent p of time ~ n^p over the last decade: 1 is proportional
    ratio    PyTorch's time over ours at the largest size: above 1 we are faster
    spread   (largest - smallest) / median of our rounds at the largest size

Embeddings have rows of 64 columns; their n counts numbers, not rows.
"""

import argparse
import math
import os
import statistics

from timing import interleave, machine, refuse_pinned_blas

COLUMNS = 64  # of an embedding


def main():
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--largest", type=int, default=10_000_000)
    parser.add_argument("--smallest", type=int, default=1000)
    parser.add_argument("--only", default="", help="names of rows, separated by commas")
    parser.add_argument(
        "--deterministic", action="store_true", help="hold PyTorch to what picograd always gives"
    )
    options = parser.parse_args()
    refuse_pinned_blas()
    os.environ["PICOGRAD_THREADS"] = str(options.threads)
    import torch

    torch.set_num_threads(options.threads)
    torch.use_deterministic_algorithms(options.deterministic, warn_only=True)
    print(machine(), options.device, f"threads {options.threads}, n={options.rounds} rounds")
    powers = [10**power for power in range(3, 9)]
    sizes = [size for size in powers if options.smallest <= size <= options.largest]
    heads = [f"{size:.0e}".replace("+0", "") for size in sizes]
    print(
        f"{'ns an element':22}" + "".join(f"{head + ours:>12}" for head in heads for ours in SIDES)
    )
    for name in CASES:
        if not options.only or name in options.only.split(","):
            print_row(name, sizes, options)


SIDES = (" ours", " torch")


def print_row(name, sizes, options):
    """Time one case at every size."""
    ours, theirs, text, spread = [], [], "", 0.0
    for size in sizes:
        times = time_case(name, size, options)
        medians = [statistics.median(times[side]) for side in SIDES]
        spread = (max(times[SIDES[0]]) - min(times[SIDES[0]])) / medians[0]
        ours.append(medians[0])
        theirs.append(medians[1])
        text += "".join(f"{value / size * 1e9:12.2f}" for value in medians)
    growth = math.log10(ours[-1] / ours[-2]) if len(sizes) > 1 else float("nan")
    tail = f"  growth {growth:5.2f}  ratio {theirs[-1] / ours[-1]:6.2f}  spread {spread:4.0%}"
    print(f"{name:22}{text}{tail}", flush=True)


def time_case(name, size, options):
    """Time picograd and PyTorch on the same data."""
    import numpy as np
    import torch

    import picograd
    from picograd import Tensor, nn

    random = np.random.default_rng(0)
    arrays, run_case = CASES[name](random, size)
    is_cuda = options.device.startswith("cuda")
    ours = [Tensor(array, device=options.device) for array in arrays]
    theirs = [torch.from_numpy(array).to(options.device) for array in arrays]

    def run_ours():
        with picograd.no_grad() if "grad" not in name else picograd.enable_grad():
            made = run_case(picograd, nn.functional, ours)
            made = made if isinstance(made, (tuple, list)) else (made,)
            made[0].realize(*made[1:])
        picograd.synchronize()

    def run_torch():
        with torch.no_grad() if "grad" not in name else torch.enable_grad():
            run_case(torch, torch.nn.functional, theirs)
        if is_cuda:
            torch.cuda.synchronize()

    for tensor in (ours[0], theirs[0]):
        if "grad" in name:
            tensor.requires_grad = True
    rounds = options.rounds if size >= 10**6 else options.rounds + 4
    return interleave(dict(zip(SIDES, (run_ours, run_torch))), rounds, 2)


def numbers(random, size):
    """Draw float32 numbers."""
    return random.standard_normal(size).astype("float32")


def places(random, size, count, pattern="random"):
    """Make `size` indices below `count`."""
    if pattern == "same":
        return random.integers(count // 2, count // 2 + 1, size)
    found = random.integers(0, max(count, 1), size)
    return found if pattern == "random" else sorted_copy(found)


def sorted_copy(index):
    """Sort a copy."""
    index = index.copy()
    index.sort()
    return index


def scatter_case(pattern, reduce="sum"):
    """Make a case that adds (or takes the maximum of) n numbers at n places."""

    def case(random, size):
        data = numbers(random, size), places(random, size, size, pattern), numbers(random, size)
        if reduce == "sum":
            return data, lambda lib, nn, t: t[0].scatter_add(0, t[1], t[2])
        return data, lambda lib, nn, t: t[0].scatter_reduce(0, t[1], t[2], reduce)

    return case


def embedding_case(is_backward, pattern="random"):
    """Make a case of n / 64 rows taken from a table of the same size."""

    def case(random, size):
        rows = max(size // COLUMNS, 1)
        table = numbers(random, rows * COLUMNS).reshape(rows, COLUMNS)
        data = table, places(random, rows, rows, pattern)

        def run(lib, nn, t):
            found = nn.embedding(t[1], t[0])
            if not is_backward:
                return found
            t[0].grad = None
            found.sum().backward()
            return t[0].grad

        return data, run

    return case


def index_case(op):
    """Make a case of n indices into n numbers."""

    def case(random, size):
        data = numbers(random, size), places(random, size, size), numbers(random, size)
        return data, op

    return case


def row_case(op):
    """Make a case over one row of n numbers."""
    return lambda random, size: ((numbers(random, size),), op)


def count_case(random, size):
    """Make n whole numbers below 1000 to count."""
    return (places(random, size, 1000),), lambda lib, nn, t: lib.bincount(t[0])


CASES = {
    "gather": index_case(lambda lib, nn, t: t[0].gather(0, t[1])),
    "index_select": index_case(lambda lib, nn, t: t[0].index_select(0, t[1])),
    "embedding": embedding_case(False),
    "embedding grad": embedding_case(True),
    "embedding grad same": embedding_case(True, "same"),
    "index_add": index_case(lambda lib, nn, t: t[0].index_add(0, t[1], t[2])),
    "scatter_add": scatter_case("random"),
    "scatter_add same": scatter_case("same"),
    "scatter_add sorted": scatter_case("sorted"),
    "scatter_reduce amax": scatter_case("random", "amax"),
    "cumsum": row_case(lambda lib, nn, t: t[0].cumsum(0)),
    "cumprod": row_case(lambda lib, nn, t: t[0].cumprod(0)),
    "sort": row_case(lambda lib, nn, t: t[0].sort(dim=0, stable=True)),
    "argsort": row_case(lambda lib, nn, t: t[0].argsort(dim=0, stable=True)),
    "topk 10": row_case(lambda lib, nn, t: t[0].topk(10)),
    "topk 500": row_case(lambda lib, nn, t: t[0].topk(500)),
    "unique": row_case(lambda lib, nn, t: lib.unique((t[0] * 1000).floor())),
    "bincount": count_case,
    "histc": row_case(lambda lib, nn, t: lib.histc(t[0], 100)),
    "searchsorted": index_case(lambda lib, nn, t: lib.searchsorted(t[0].abs().cumsum(0), t[2])),
    "nonzero": row_case(lambda lib, nn, t: (t[0] > 0).nonzero()),
    "masked_select": row_case(lambda lib, nn, t: t[0].masked_select(t[0] > 0)),
    "argmax": row_case(lambda lib, nn, t: t[0].argmax(0)),
    "softmax": row_case(lambda lib, nn, t: t[0].softmax(0)),
    "logsumexp": row_case(lambda lib, nn, t: t[0].logsumexp(0)),
    "layer_norm": row_case(lambda lib, nn, t: nn.layer_norm(t[0], t[0].shape)),
    "var": row_case(lambda lib, nn, t: t[0].var(0)),
}

if __name__ == "__main__":
    main()
