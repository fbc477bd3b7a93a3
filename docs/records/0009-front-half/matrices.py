"""Time functions of matrices and transforms in turns with PyTorch: least and median, microseconds.

python docs/records/0009-front-half/matrices.py "^lu_solve 64$" 0.04
"""

import re
import statistics
import sys
import time

import numpy as np
import torch

import picograd

PATTERN = sys.argv[1] if len(sys.argv) > 1 else "."
SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 0.04
RANDOM = np.random.default_rng(0)
LEADS = [((), 4), ((), 16), ((), 64), ((), 256), ((1000,), 4), ((100,), 16), ((16,), 64)]
OF_ONE = ["inv", "det", "qr", "svd", "svdvals", "lu", "lu_factor", "pinv", "matrix_rank"]
OF_POSITIVE = ["slogdet", "cholesky", "eigh", "eigvalsh"]
SHAPES = [(64,), (1024,), (64, 64), (200, 200), (16, 1024), (3, 256, 256)]
TRANSFORMS = {"fft": "F", "ifft": "F", "rfft": "f", "irfft": "F", "fft2": "F", "rfft2": "f"}


def named(name):
    """Call a function of `linalg`."""
    return lambda library, *x: getattr(library.linalg, name)(*x)


def slope(function):
    """Take gradients of the sum of a result, of several the second."""

    def gradient(library, *given):
        leaves = [x.detach().clone().requires_grad_() for x in given]
        found = function(library, *leaves)
        last = found[1] if isinstance(found, tuple) else found
        return library.autograd.grad(last.sum(), leaves)

    return gradient


def cases():
    """List names, functions of a library and arrays, and the arrays."""
    for lead, n in LEADS:
        a = RANDOM.standard_normal((*lead, n, n)).astype("f")
        positive = a @ a.swapaxes(-1, -2) + n * np.eye(n, dtype="f")
        b = RANDOM.standard_normal((*lead, n, 4)).astype("f")
        size = " of ".join(map(str, (*lead, n)))
        for name in OF_ONE + OF_POSITIVE:
            given = positive if name in OF_POSITIVE else a
            yield f"{name} {size}", named(name), [given]
            if name in ("inv", "det", "qr", "cholesky", "lu", "pinv"):
                yield f"grad {name} {size}", slope(named(name)), [positive]
        yield f"solve {size}", named("solve"), [a, b]
        yield f"lstsq {size}", lambda m, x, y: m.linalg.lstsq(x, y).solution, [a, b]
        yield (
            f"lu_solve {size}",
            lambda m, x, y: m.linalg.lu_solve(*m.linalg.lu_factor(x), y),
            [a, b],
        )
        yield f"cholesky_solve {size}", lambda m, x, y: m.cholesky_solve(y, x), [positive, b]
        triangle = lambda m, x, y: m.linalg.solve_triangular(x, y, upper=False)  # noqa: E731
        yield f"solve_triangular {size}", triangle, [positive, b]
    for shape in SHAPES:
        x = RANDOM.standard_normal(shape).astype("f")
        for name, kind in TRANSFORMS.items():
            if len(shape) > 1 or not name.endswith("2"):
                call = lambda m, x, name=name: getattr(m.fft, name)(x)  # noqa: E731
                yield f"{name} {'x'.join(map(str, shape))}", call, [x.astype(kind)]


def realize(found):
    """Compute what was recorded."""
    for each in found if isinstance(found, (tuple, list)) else [found]:
        each.realize()


def timed(*calls):
    """Time calls in turns: a list of microseconds for each."""
    times = [[] for _ in calls]
    for _ in range(3):
        [call() for call in calls]
    begun = time.thread_time()
    while len(times[0]) < 5 or time.thread_time() - begun < 2 * SECONDS:
        for taken, call in zip(times, calls):
            start = time.thread_time_ns()
            call()
            taken.append((time.thread_time_ns() - start) / 1e3)
    return times


def line_of(name, function, arrays):
    """Time a case with both libraries, and word it."""
    ours = [picograd.Tensor(x).realize() for x in arrays]
    theirs = [torch.tensor(x) for x in arrays]
    times = timed(lambda: realize(function(picograd, *ours)), lambda: function(torch, *theirs))
    (least, middle), (best, usual) = ((min(each), statistics.median(each)) for each in times)
    text = f"{name:28} {least:9.1f} {middle:9.1f} torch {best:9.1f} {usual:9.1f}"
    return f"{text} ratio {best / least:.2f}"


torch.set_num_threads(1)
for case in cases():
    if re.search(PATTERN, case[0]):
        print(line_of(*case), flush=True)
