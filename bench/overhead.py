"""What is left of a call beside its kernels, against PyTorch's plain calls (one thread).

python bench/overhead.py [--device cuda] [--stretches 150] [--only jit]

Microseconds: the least, and the lower quartile, of stretches of calls, both libraries in turns. On
the CPU they are of this thread's processor time; on a GPU of the clock, a stretch being 200 calls
back to back and one wait. Values are compared first. Rows are a cached operation on 2 x 2, a
product with its sum and gradient, plans of two kernels and of many slots, what a kernel more costs
a plan of 100 (on a GPU one graph, which is checked), and a step of a perceptron 784-128-10 with
Adam on 64 images.
"""

import argparse
import statistics
import time

import numpy as np
import torch
from timing import machine, refuse_pinned_blas

import picograd

CALLS = {"cpu": 20, "cuda": 200}  # of a stretch
KERNELS = 100
PLACE = {"device": "cpu"}  # where tensors are made


def small(library):
    """Two matrices of 2 x 2."""
    values = np.array([[1, 2], [3, 4]], np.float32)
    return [library.tensor(values / n, **PLACE) for n in (1, 4)]


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


def products(library, wrapped):
    """Two kernels in turn."""
    a, w = small(library)
    call = wrapped(lambda a, b: a @ b @ b)
    return lambda: call(a, w)


def transform(library, wrapped):
    """Two kernels, and a table for each step of the transform."""
    draw = np.random.default_rng(0)
    x = library.tensor(draw.standard_normal((16, 1024)).astype(np.float32), **PLACE)
    call = wrapped(lambda x: library.fft.rfft(x).abs())
    return lambda: call(x)


def perceptron(library, wrapped):
    """A training step of 784-128-10 with Adam."""
    nn, rooms = library.nn, library.optim if library is torch else library.nn.optim
    draw = np.random.default_rng(0)
    model = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
    for p in model.parameters():
        values = (draw.standard_normal(tuple(p.shape)) * 0.05).astype(np.float32)
        p.data = library.tensor(values, **PLACE)
    optimizer = rooms.Adam(model.parameters(), lr=1e-3)
    x = library.tensor(draw.standard_normal((64, 784)).astype(np.float32), **PLACE)
    y = library.tensor(draw.integers(0, 10, 64), **PLACE)

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
    plan = capture.find_plan()
    assert plan.launches == count, f"{plan.launches} kernels, not {count}"
    for _ in range(CALLS["cpu"]):
        call(a, w)
    if PLACE["device"] != "cpu" and count > 1:
        (replay,) = plan.stretch.tape.state.replays
        assert len(replay.nodes) == count, f"a graph of {len(replay.nodes)} kernels"
    return lambda: call(a, w)


def plain(function):
    return function


def eager(function):
    """Compute what a plain call recorded."""
    return lambda *args: function(*args).realize()


# function, how it is called, microseconds that it may take on the CPU and on a GPU
CASES = {
    "a + b, jit": (added, picograd.jit, (2.0, 8.0)),
    "a + b, eager": (added, eager, (5.0, 20.0)),
    "a @ b, jit": (product, picograd.jit, (2.0, 8.0)),
    "a @ b, eager": (product, eager, (5.0, 20.0)),
    "product, sum, backward, jit": (both_ways, picograd.jit, (4.0, 12.0)),
    "product, sum, backward, eager": (both_ways, plain, (25.0, 60.0)),
    "a @ b @ b, jit": (products, picograd.jit, None),
    "a @ b @ b, eager": (products, eager, None),
    "abs(rfft), jit": (transform, picograd.jit, None),
    "abs(rfft), eager": (transform, eager, None),
    "perceptron with Adam, jit": (perceptron, picograd.jit, None),
}


def wait():
    """Wait for the devices of both libraries."""
    if PLACE["device"] != "cpu":
        picograd.synchronize()
        torch.cuda.synchronize()


def stretch(function, count):
    clock = time.thread_time if PLACE["device"] == "cpu" else time.perf_counter
    start = clock()
    for _ in range(count):
        function()
    wait()
    return (clock() - start) / count * 1e6


def timed(functions, stretches, count):
    """Time functions in turns: the least and the lower quartile of each."""
    times = [[] for _ in functions]
    for _ in range(stretches):
        for found, function in zip(times, functions, strict=True):
            found.append(stretch(function, count))
    return [(min(found), statistics.quantiles(found, n=4)[0]) for found in times]


def check(ours, theirs):
    for _ in range(3):
        found, wanted = ours().detach().numpy(), theirs().detach().cpu().numpy()
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=1e-4)


def main():
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--stretches", type=int, default=150)
    parser.add_argument("--device", default="cpu", choices=CALLS)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    refuse_pinned_blas()
    torch.set_num_threads(1)
    picograd.config.threads = 1
    PLACE["device"] = options.device
    count, is_cpu = CALLS[options.device], options.device == "cpu"
    print(machine() if is_cpu else f"{torch.cuda.get_device_name()} | {machine()}")
    for name, (case, wrapped, bars) in CASES.items():
        if options.only not in name:
            continue
        ours, theirs = case(picograd, wrapped), case(torch, plain)
        check(ours, theirs)
        (least, quarter), (their_least, theirs_quarter) = timed(
            (ours, theirs), options.stretches, count
        )
        print(
            f"{name:30} picograd {least:8.2f} (quartile {quarter:.2f})"
            f"  PyTorch {their_least:8.2f} ({theirs_quarter:.2f})  {their_least / least:5.2f}x"
            f"{'' if bars is None else f'  bar {bars[0 if is_cpu else 1]}'}",
            flush=True,
        )
    if options.only in "a kernel more":
        calls = chain(1), chain(KERNELS)
        (one, _), (many, _) = timed(calls, options.stretches, count)
        print(f"a kernel more in a plan of {KERNELS}: {(many - one) / (KERNELS - 1):.3f} us")


if __name__ == "__main__":
    main()
