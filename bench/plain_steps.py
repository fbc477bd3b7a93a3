"""Plain training steps, without jit, beside PyTorch's: what a script costs that knows no laziness.

python bench/plain_steps.py [--device cuda] [--rounds 15] [--only batch_norm]

A round is ten steps, each ending in `loss.item()`. Also printed: the plans that the last round
made, which must be none, and how the last round compares with the first.
"""

import argparse
import statistics
import time

import numpy as np
import torch
from timing import machine, refuse_pinned_blas

import picograd
from picograd.engine.realize import PLANS

STEPS = 10
WIDTH, BATCH = 16, 8


def optimizer_of(library, parameters):
    rooms = library.optim if library is torch else library.nn.optim
    return rooms.Adam(parameters, lr=0.01)


def perceptron(library, device):
    nn = library.nn
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH)).to(device)
    values = np.random.default_rng(0).standard_normal((BATCH, WIDTH)).astype(np.float32)
    return model, library.tensor(values).to(device)


def adam(library, device):
    """A perceptron with Adam."""
    model, x = perceptron(library, device)
    optimizer = optimizer_of(library, model.parameters())

    def step():
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return step


def by_hand(library, device):
    """Gradient descent written by hand: p -= lr * p.grad."""
    model, x = perceptron(library, device)

    def step():
        model.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        with library.no_grad():
            for p in model.parameters():
                p -= 0.01 * p.grad
        return loss

    return step


def data(library, device):
    """Gradient descent by p.data = p.data - lr * p.grad."""
    model, x = perceptron(library, device)

    def step():
        model.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        for p in model.parameters():
            p.data = p.data - 0.01 * p.grad
        return loss

    return step


def average(library, device):
    """Adam, and an exponential average of the weights."""
    model, x = perceptron(library, device)
    slow, _ = perceptron(library, device)
    optimizer = optimizer_of(library, model.parameters())

    def step():
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        with library.no_grad():
            for p, q in zip(slow.parameters(), model.parameters(), strict=True):
                p.mul_(0.9).add_(q, alpha=0.1)
        return loss

    return step


def batch_norm(library, device):
    """A small convolutional network with two batch norms and Adam."""
    nn = library.nn
    model = nn.Sequential(
        nn.Conv2d(4, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8),
        nn.ReLU(), nn.Flatten(), nn.Linear(128, 10),
    ).to(device)  # fmt: skip
    optimizer = optimizer_of(library, model.parameters())
    values = np.random.default_rng(0)
    x = library.tensor(values.standard_normal((8, 4, 8, 8)).astype(np.float32)).to(device)
    y = library.tensor(values.integers(0, 10, 8)).to(device)

    def step():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


CASES = (adam, by_hand, data, average, batch_norm)


def measure(case, device, rounds):
    """Time rounds of both libraries in turn, and print one row."""
    steps = {library: case(library, device) for library in (torch, picograd)}
    times = {library: [] for library in steps}
    for _ in range(rounds + 2):  # two to warm up
        known = set(PLANS)
        for library, step in steps.items():
            start = time.perf_counter()
            for _ in range(STEPS):
                value = step().item()
            times[library].append((time.perf_counter() - start) / STEPS * 1e3)
            assert np.isfinite(value)
    ours, theirs = times[picograd][2:], times[torch][2:]
    ratio = statistics.median(b / a for a, b in zip(ours, theirs, strict=True))
    quarters = statistics.quantiles(ours, n=4)
    print(
        f"{case.__name__:12} picograd {statistics.median(ours):8.3f} ms"
        f" (quartiles {quarters[0]:.3f}, {quarters[2]:.3f}), first round {times[picograd][0]:8.1f},"
        f" last/first round {ours[-1] / ours[0]:4.2f}, new plans {len(set(PLANS) - known)};"
        f" PyTorch {statistics.median(theirs):7.3f} ms; picograd is {ratio:.2f}x"
    )


def main():
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    refuse_pinned_blas()
    torch.set_num_threads(1)
    picograd.config.threads = 1
    print(machine(), options.device)
    for case in CASES:
        if options.only in case.__name__:
            measure(case, options.device, options.rounds)


if __name__ == "__main__":
    main()
