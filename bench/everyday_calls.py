"""What a call that people type all the time costs, beside PyTorch's: small tensors on the CPU.

    python bench/everyday_calls.py [--only "add_|zeros"] [--turns 9] [--calls 100]

Microseconds of the thread, medians of turns of both libraries in one process; results are computed
in each call. Values are compared first. The last lines are the geometric mean of PyTorch's time by
ours, and how many rows are below a half.
"""

import argparse
import math
import os
import re
import statistics
import time

os.environ.setdefault("PICOGRAD_THREADS", "1")

import numpy as np
import torch
from timing import machine, refuse_pinned_blas

import picograd
from picograd.engine.native_calls import CALLS

WARM = 300
PATIENCE = 0.15  # seconds of the wall: kernels that ran often are compiled again meanwhile


def realised(result):
    """Compute what a call gave, at once: PyTorch's has done so."""
    if isinstance(result, picograd.Tensor):
        result.realize()
    elif isinstance(result, (tuple, list)):
        for each in result:
            realised(each)
    return result


def in_place(library):
    """Name calls that write."""
    a, b, v, n = operands(library)
    i = library.tensor([1, 0, 3])
    row = b[2].clone()

    def write(index, value):
        a[index] = value
        return a

    def plus():
        nonlocal a
        a += b
        return a

    def times():
        nonlocal a
        a *= 0.5
        return a

    return {
        "a.add_(b)": lambda: a.add_(b),
        "a.add_(0.5)": lambda: a.add_(0.5),
        "a.mul_(0.9)": lambda: a.mul_(0.9),
        "a.sub_(b, alpha=0.1)": lambda: a.sub_(b, alpha=0.1),
        "a.mul_(0.9).add_(b, alpha=0.1)": lambda: a.mul_(0.9).add_(b, alpha=0.1),
        "a += b": plus,
        "a *= 0.5": times,
        "a.zero_()": lambda: a.zero_(),
        "a.fill_(2.0)": lambda: a.fill_(2.0),
        "a.copy_(b)": lambda: a.copy_(b),
        "a.clamp_(-1, 1)": lambda: a.clamp_(-1.0, 1.0),
        "a.lerp_(b, 0.1)": lambda: a.lerp_(b, 0.1),
        "n += 1": lambda: n.add_(1),
        "a[1] = 1.0": lambda: write(1, 1.0),
        "a[1, 2] = 1.0": lambda: write((1, 2), 1.0),
        "a[1:3] = 0.0": lambda: write(slice(1, 3), 0.0),
        "a[:, 1] = v": lambda: write((slice(None), 1), v),
        "a[2] = row": lambda: write(2, row),
        "a[2] += row": lambda: a[2].add_(row) is None or a,
        "a[2] += b[4]": lambda: a[2].add_(b[4]) is None or a,
        "a[2].copy_(b[4])": lambda: a[2].copy_(b[4]) is None or a,
        "a[:, 3] = 2.0": lambda: write((slice(None), 3), 2.0),
        "a[2:5, 1:4] = 1.0": lambda: write((slice(2, 5), slice(1, 4)), 1.0),
        "a[i] = 0.0": lambda: write(i, 0.0),
    }


def operands(library):
    """Matrices of 10 x 10, a vector of 10, and a number."""
    draw = np.random.default_rng(0).standard_normal
    made = [draw(shape).astype("f") for shape in ((10, 10), (10, 10), (10,))]
    return *map(library.tensor, made), library.tensor(0)


def making(library):
    """Name calls that make tensors."""
    a, *_ = operands(library)
    array, listed = np.ones((10, 10), "f"), [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    return {
        "tensor(3.0)": lambda: library.tensor(3.0),
        "tensor(3)": lambda: library.tensor(3),
        "tensor([1.0, 2.0, 3.0])": lambda: library.tensor([1.0, 2.0, 3.0]),
        "tensor([1, 2, 3])": lambda: library.tensor([1, 2, 3]),
        "tensor(of two rows)": lambda: library.tensor(listed),
        "tensor(array)": lambda: library.tensor(array),
        "from_numpy": lambda: library.from_numpy(array),
        "zeros(10, 10)": lambda: library.zeros(10, 10),
        "zeros(10, dtype=int64)": lambda: library.zeros(10, dtype=library.int64),
        "ones(10)": lambda: library.ones(10),
        "full((10,), 2.0)": lambda: library.full((10,), 2.0),
        "zeros_like(a)": lambda: library.zeros_like(a),
        "ones_like(a)": lambda: library.ones_like(a),
        "arange(10)": lambda: library.arange(10),
        "eye(5)": lambda: library.eye(5),
        "linspace(0, 1, 10)": lambda: library.linspace(0, 1, 10),
        "rand(10)*": lambda: library.rand(10),
        "randn(10, 10)*": lambda: library.randn(10, 10),
        "randint(0, 9, (10,))*": lambda: library.randint(0, 9, (10,)),
        "randperm(10)*": lambda: library.randperm(10),
        "randn_like(a)*": lambda: library.randn_like(a),
        "a.clone()": lambda: a.clone(),
        "a.float()": lambda: a.float(),
        "a.long()": lambda: a.long(),
    }


def reading(library):
    """Name calls that look at what is in memory."""
    a, b, v, n = operands(library)
    i, mask = library.tensor([1, 0, 3]), a > 0
    ones = library.ones(10)
    realised(mask)
    return {
        "n.item()": lambda: n.item(),
        "float(v[0])": lambda: float(v[0]),
        "a[1, 2].item()": lambda: a[1, 2].item(),
        "never read[0].item()": lambda: ones[0].item(),
        "v + never read": lambda: v + ones,
        "a.sum().item()": lambda: a.sum().item(),
        "a[1]": lambda: a[1],
        "a[1:3]": lambda: a[1:3],
        "a[:, 1]": lambda: a[:, 1],
        "a[..., None]": lambda: a[..., None],
        "a[i]": lambda: a[i],
        "a[mask]": lambda: a[mask],
        "a.view(100)": lambda: a.view(100),
        "a.reshape(5, 20)": lambda: a.reshape(5, 20),
        "a.T": lambda: a.T,
        "a.unsqueeze(0)": lambda: a.unsqueeze(0),
        "a.flatten()": lambda: a.flatten(),
        "a.detach()": lambda: a.detach(),
        "a.T + b": lambda: a.T + b,
        "a.view(-1) * 2": lambda: a.view(-1) * 2,
        "a.transpose(0, 1) @ b": lambda: a.transpose(0, 1) @ b,
        "a[1] + v": lambda: a[1] + v,
        "a[1:3].sum()": lambda: a[1:3].sum(),
        "a[:, 1].mean()": lambda: a[:, 1].mean(),
        "a.tolist()": lambda: a.tolist(),
        "a.numpy()": lambda: a.numpy(),
        "v.shape[0]": lambda: v.shape[0],
        "[x.item() for x in v]": lambda: [x.item() for x in v],
        "a.split(5)": lambda: list(a.split(5)),
        "a.chunk(2, 1)": lambda: list(a.chunk(2, 1)),
        "b.expand(2, 10, 10)": lambda: b.expand(2, 10, 10),
    }


def arithmetic(library):
    """Name operators, comparisons, reductions and joins."""
    a, b, v, _ = operands(library)
    i, k = library.arange(10), library.arange(10)
    return {
        "a + b": lambda: a + b,
        "a + v": lambda: a + v,
        "a * 2.0": lambda: a * 2.0,
        "1 - a": lambda: 1 - a,
        "a ** 2": lambda: a**2,
        "a / b": lambda: a / b,
        "-a": lambda: -a,
        "a @ b": lambda: a @ b,
        "i + 1": lambda: i + 1,
        "i * k": lambda: i * k,
        "i % 3": lambda: i % 3,
        "i + a": lambda: i + a,
        "i.float() / 2": lambda: i.float() / 2,
        "a > 0": lambda: a > 0,
        "a == b": lambda: a == b,
        "(i == k).sum()": lambda: (i == k).sum(),
        "(i == k).float().mean().item()": lambda: (i == k).float().mean().item(),
        "(a > 0).any()": lambda: (a > 0).any(),
        "(a > 0) & (b < 0)": lambda: (a > 0) & (b < 0),
        "bool((a > 9).any())": lambda: bool((a > 9).any()),
        "a.exp()": lambda: a.exp(),
        "a.relu()": lambda: a.relu(),
        "a.sum()": lambda: a.sum(),
        "a.sum(1)": lambda: a.sum(1),
        "a.mean(0, keepdim=True)": lambda: a.mean(0, keepdim=True),
        "a.std()": lambda: a.std(),
        "a.max()": lambda: a.max(),
        "a.max(1)": lambda: tuple(a.max(1)),
        "a.argmax(1)": lambda: a.argmax(1),
        "a.norm()": lambda: a.norm(),
        "a.softmax(1)": lambda: a.softmax(1),
        "a.sqrt().clamp(min=0)": lambda: a.abs().clamp(min=0.1),
        "a.cumsum(0)": lambda: a.cumsum(0),
        "a.sort(1)": lambda: tuple(a.sort(1)),
        "a.topk(3)": lambda: tuple(a.topk(3)),
        "where(a > 0, a, b)": lambda: library.where(a > 0, a, b),
        "cat([a, b])": lambda: library.cat([a, b]),
        "cat([a, b], 1)": lambda: library.cat([a, b], 1),
        "stack([a, b])": lambda: library.stack([a, b]),
        "maximum(a, b)": lambda: library.maximum(a, b),
        "a.dot": lambda: v.dot(v),
        "allclose": lambda: library.allclose(a, b),
        "equal": lambda: library.equal(a, b),
        "outer(v, v)": lambda: library.outer(v, v),
        "einsum": lambda: library.einsum("ij,jk->ik", a, b),
    }


def learning(library):
    """Name calls of training by hand, and of modules."""
    a, b, v, _ = operands(library)
    functional = library.nn.functional
    w = b.clone().requires_grad_()
    labels = library.arange(10)
    layer = library.nn.Linear(10, 10)
    with library.no_grad():
        layer.weight.copy_(b)
        layer.bias.copy_(v)
    moved = [library.nn.Parameter(b.clone()) for _ in range(2)]
    sgd, adam = library.optim.SGD(moved[:1], 1e-3), library.optim.Adam(moved[1:], 1e-3)
    for each in moved:
        each.grad = a.clone()

    def gradient(loss_of):
        def run():
            w.grad = None
            loss_of().backward()
            return w.grad

        return run

    def without():
        with library.no_grad():
            return a @ w

    def updated():
        w.grad = None
        ((a @ w) ** 2).mean().backward()
        with library.no_grad():
            w.sub_(w.grad, alpha=0.001)
        return w

    def stepped(optimizer, parameter):
        def run():
            optimizer.step()
            return parameter.detach()

        return run

    def scalar():
        x = library.tensor(2.0, requires_grad=True)
        (x * x + 3.0 * x).backward()
        return x.grad

    return {
        "no_grad: a @ w": without,
        "w.detach()": lambda: w.detach(),
        "(a @ w).detach()": lambda: (a @ w).detach(),
        "layer(a)": lambda: layer(a),
        "cross_entropy(a, labels)": lambda: functional.cross_entropy(a, labels),
        "mse_loss(a, b)": lambda: functional.mse_loss(a, b),
        "relu(linear(a, b, v))": lambda: functional.relu(functional.linear(a, b, v)),
        "one_hot": lambda: functional.one_hot(labels, 10),
        "backward: (w * a).sum()": gradient(lambda: (w * a).sum()),
        "backward: (a @ w).sum()": gradient(lambda: (a @ w).sum()),
        "backward: mse": gradient(lambda: functional.mse_loss(a @ w, b)),
        "backward: cross_entropy": gradient(lambda: functional.cross_entropy(a @ w, labels)),
        "backward: x * x + 3 * x": scalar,
        "step by hand": updated,
        "SGD.step()": stepped(sgd, moved[0]),
        "Adam.step()": stepped(adam, moved[1]),
    }


GROUPS = (in_place, making, reading, arithmetic, learning)


def clocked(run, times):
    """Microseconds of this thread for a call whose results are computed."""
    start = time.thread_time()
    for _ in range(times):
        realised(run())
    return (time.thread_time() - start) / times * 1e6


def plain(result):
    """Give the arrays of what a call gave."""
    if isinstance(result, (tuple, list)) and hasattr(result[0], "detach"):
        return [plain(each) for each in result]
    return np.array(result.detach().numpy() if hasattr(result, "detach") else result)


def is_same(name, ours, theirs):
    """Tell whether both calls give the same values, or, of draws, shapes."""
    mine, other = plain(ours()), plain(theirs())
    pairs = zip(mine, other) if type(mine) is list else [(mine, other)]
    for x, y in pairs:
        if x.shape != y.shape or x.dtype.kind != y.dtype.kind:
            return False
        if not name.endswith("*") and not np.allclose(x, y, 1e-3, 1e-4, equal_nan=True):
            return False
    return True


def measured(pair, turns, calls):
    """Medians of turns, ours first."""
    for run in pair:
        clocked(run, WARM)
    time.sleep(PATIENCE)
    for run in pair:
        clocked(run, WARM)
    found = [[clocked(run, calls) for run in pair] for _ in range(turns)]
    return [statistics.median(times) for times in zip(*found)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--only", default=".", help="a pattern of names")
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--calls", type=int, default=100)
    options = parser.parse_args()
    refuse_pinned_blas()
    torch.set_num_threads(1)
    print(machine())
    clocked(lambda: picograd.ones(3) + 1, WARM)
    CALLS.wait()
    ratios = []
    for group in GROUPS:
        ours, theirs = group(picograd), group(torch)
        for name in ours:
            if not re.search(options.only, name):
                continue
            note = "" if is_same(name, ours[name], theirs[name]) else "  (differs)"
            mine, other = measured([ours[name], theirs[name]], options.turns, options.calls)
            ratios.append(other / mine)
            print(f"{name:36}{mine:8.1f}{other:8.1f}{other / mine:8.2f}{note}", flush=True)
    mean = math.exp(statistics.mean(map(math.log, ratios)))
    below = sum(ratio < 0.5 for ratio in ratios)
    print(f"geometric mean {mean:.3f}; {below} of {len(ratios)} below 0.5")


if __name__ == "__main__":
    main()
