"""What is left of a call beside its kernels, against PyTorch's plain calls (CPU, one thread).

python bench/overhead.py [--stretches 150] [--only jit]

Microseconds of this thread's processor time: the least, and the lower quartile, of stretches of
calls, both libraries in turns. Values are compared first. Rows are a cached operation on 2 x 2, a
product with its sum and gradient, what a kernel more costs a plan of 100, and a step of a
perceptron 784-128-10 with Adam on 64 images.
"""

import argparse
import statistics
import time

import numpy as np
import torch
from timing import machine, refuse_pinned_blas

import picograd

CALLS = 20
KERNELS = 100


def small(library):
    """Two matrices of 2 x 2."""
    values = np.array([[1, 2], [3, 4]], np.float32)
    return [library.tensor(values / n) for n in (1, 4)]


def both_ways(library, wrapped):
    """A product, its sum, and the gradient."""
    a, w = small(library)
    w.requires_grad_(True)

    def learn():
        w.grad = None
        loss = (a @ w).sum()
        loss.backward()
        return loss

    step = wrapped(learn)

    def call():
        step()
        return w.grad.realize() if library is picograd and wrapped is plain else w.grad

    return call


def added(library, wrapped):
    a, w = small(library)
    call = wrapped(lambda a, b: a + b)
    return lambda: call(a, w)


def product(library, wrapped):
    a, w = small(library)
    call = wrapped(lambda a, b: a @ b)
    return lambda: call(a, w)


def perceptron(library, wrapped):
    """A training step of 784-128-10 with Adam."""
    nn, rooms = library.nn, library.optim if library is torch else library.nn.optim
    draw = np.random.default_rng(0)
    model = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
    for p in model.parameters():
        values = (draw.standard_normal(tuple(p.shape)) * 0.05).astype(np.float32)
        p.data = library.tensor(values)
    optimizer = rooms.Adam(model.parameters(), lr=1e-3)
    x = library.tensor(draw.standard_normal((64, 784)).astype(np.float32))
    y = library.tensor(draw.integers(0, 10, 64))

    def learn(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    step = wrapped(learn)
    return lambda: step(x, y)


def chain(count):
    """A jitted function of so many small kernels: products, each of which reads the last."""
    a, w = small(picograd)

    def products(x, w):
        for _ in range(count):
            x = x @ w
        return x

    call = picograd.jit(products)
    call(a, w)
    ((capture,),) = call.captures.values()
    found = capture.find_plan().launches
    assert found == count, f"{found} kernels, not {count}"
    return lambda: call(a, w)


def plain(function):
    return function


def eager(function):
    """Compute what a plain call recorded."""
    return lambda *args: function(*args).realize()


CASES = {
    "a + b, jit": (added, picograd.jit, 2.0),
    "a + b, eager": (added, eager, 5.0),
    "a @ b, jit": (product, picograd.jit, 2.0),
    "a @ b, eager": (product, eager, 5.0),
    "product, sum, backward, jit": (both_ways, picograd.jit, 4.0),
    "product, sum, backward, eager": (both_ways, plain, 25.0),
    "perceptron with Adam, jit": (perceptron, picograd.jit, None),
}


def stretch(function, count):
    start = time.thread_time()
    for _ in range(count):
        function()
    return (time.thread_time() - start) / count * 1e6


def timed(functions, stretches, count):
    """Time functions in turns: the least and the lower quartile of each."""
    times = [[] for _ in functions]
    for _ in range(stretches):
        for found, function in zip(times, functions, strict=True):
            found.append(stretch(function, count))
    return [(min(found), statistics.quantiles(found, n=4)[0]) for found in times]


def check(ours, theirs):
    for _ in range(3):
        found, wanted = ours().detach().numpy(), theirs().detach().numpy()
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=1e-6)


def main():
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--stretches", type=int, default=150)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    refuse_pinned_blas()
    torch.set_num_threads(1)
    picograd.config.threads = 1
    print(machine())
    for name, (case, wrapped, bar) in CASES.items():
        if options.only not in name:
            continue
        ours, theirs = case(picograd, wrapped), case(torch, plain)
        check(ours, theirs)
        (least, quarter), (their_least, theirs_quarter) = timed(
            (ours, theirs), options.stretches, CALLS
        )
        print(
            f"{name:30} picograd {least:8.2f} (quartile {quarter:.2f})"
            f"  PyTorch {their_least:8.2f} ({theirs_quarter:.2f})  {their_least / least:5.2f}x"
            f"{'' if bar is None else f'  bar {bar}'}",
            flush=True,
        )
    if options.only in "a kernel more":
        calls = chain(1), chain(KERNELS)
        (one, _), (many, _) = timed(calls, options.stretches, CALLS)
        print(f"a kernel more in a plan of {KERNELS}: {(many - one) / (KERNELS - 1):.3f} us")


if __name__ == "__main__":
    main()
