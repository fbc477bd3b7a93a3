"""M6, M48: random chains of views equal NumPy's, and their gradients the adjoint of the chain."""

import numpy as np
import pytest

import picograd
from picograd import Tensor

TOGETHER = 32  # chains that are computed in one plan
BATCHES = 1  # of a test run


def pytest_generate_tests(metafunc):
    """As many chains as `--examples` asks for, or a few."""
    count = int(metafunc.config.getoption("--examples"))
    metafunc.parametrize("batch", range(-(-count // TOGETHER) or BATCHES))


class Chain:
    """A chain of views of one array, on NumPy and on picograd at once.

    `places` goes the same way: it says which element of the source, from 1, lies where; 0: none.
    """

    def __init__(self, seed, device):
        self.random = np.random.default_rng(seed)
        shape = tuple(self.random.integers(1, 5, self.random.integers(1, 5)))
        self.source = self.random.integers(-9, 9, shape).astype(np.float32)
        self.leaf = Tensor(self.source, device=device, requires_grad=True)
        self.array, self.tensor = self.source, self.leaf
        self.places = np.arange(1, self.source.size + 1).reshape(shape)
        for _ in range(self.random.integers(1, 9)):
            step = self.random.choice(STEPS)
            step(self)

    def apply(self, name, *arguments):
        """Do the same on both sides."""
        self.array = NUMPY[name](self.array, *arguments)
        self.places = NUMPY[name](self.places, *arguments)
        self.tensor = PICOGRAD[name](self.tensor, *arguments)


def expand(x, shape):
    return np.broadcast_to(x, shape)


NUMPY = {
    "permute": np.transpose, "reshape": np.reshape, "flip": np.flip, "index": lambda x, i: x[i],
    "expand": expand, "pad": lambda x, ends: np.pad(x, ends),
}  # fmt: skip
PICOGRAD = {
    "permute": lambda x, order: x.permute(*order), "reshape": lambda x, shape: x.reshape(*shape),
    "flip": lambda x, axes: x.flip(*axes), "index": lambda x, i: x[i],
    "expand": lambda x, shape: x.expand(*shape),
    "pad": lambda x, ends: x.pad([n for pair in reversed(ends) for n in pair]),
}  # fmt: skip


def permute(chain):
    chain.apply("permute", tuple(int(n) for n in chain.random.permutation(chain.array.ndim)))


def reshape(chain):
    """Split a factor off an axis, or merge all."""
    shape = list(chain.array.shape)
    if chain.random.random() < 0.3 or not shape:
        return chain.apply("reshape", (chain.array.size,))
    at = int(chain.random.integers(len(shape)))
    factors = [f for f in range(1, shape[at] + 1) if shape[at] % f == 0] or [1]
    factor = int(chain.random.choice(factors))
    shape[at : at + 1] = [factor, shape[at] // factor]
    return chain.apply("reshape", tuple(shape)) if len(shape) < 7 else None


def flip(chain):
    axes = [d for d in range(chain.array.ndim) if chain.random.random() < 0.5]
    if axes:
        chain.apply("flip", tuple(axes))


def index(chain):
    """Cut with steps of both signs, drop an axis, add one."""
    parts = []
    for size in chain.array.shape:
        step = int(chain.random.choice([1, 1, 2, 3, -1, -2]))
        start = int(chain.random.integers(-size, size)) if size else 0
        is_kept = chain.array.size == 0 or chain.random.random() < 0.85
        parts.append(slice(start if is_kept and step > 0 else None, None, step))
        if not is_kept:
            parts[-1] = start
    if chain.random.random() < 0.3 and chain.array.ndim < 6:
        parts.insert(int(chain.random.integers(len(parts) + 1)), None)
    chain.apply("index", tuple(parts))


def widen(chain):
    """Repeat along new and unit axes."""
    if chain.array.ndim < 6 and chain.array.size < 2000:
        chain.apply("reshape", (1, *chain.array.shape))
        shape = tuple(3 if n == 1 and chain.random.random() < 0.7 else n for n in chain.array.shape)
        chain.apply("expand", shape)


def pad(chain):
    if chain.array.ndim and chain.array.size < 2000:
        ends = [tuple(int(n) for n in chain.random.integers(0, 3, 2)) for _ in chain.array.shape]
        chain.apply("pad", tuple(ends))


STEPS = (permute, reshape, flip, index, index, widen, pad)


@pytest.fixture
def chains(batch, device):
    return [Chain(batch * TOGETHER + number, device) for number in range(TOGETHER)]


def test_chains_equal_numpy(batch, chains, device):
    weights = [np.arange(1.0, chain.array.size + 1).reshape(chain.array.shape) for chain in chains]
    sums = [
        (chain.tensor * Tensor(weight.astype(np.float32), device=device)).sum()
        for chain, weight in zip(chains, weights, strict=True)
    ]
    gradients = picograd.grad(picograd.stack(sums).sum(), [chain.leaf for chain in chains])
    Tensor.realize(*[chain.tensor for chain in chains], *gradients)
    for n, (chain, weight) in enumerate(zip(chains, weights, strict=True)):
        label = f"chain {batch * TOGETHER + n}"
        np.testing.assert_array_equal(chain.tensor.numpy(), chain.array, label)
        size = chain.source.size + 1
        wanted = np.bincount(chain.places.ravel(), weight.ravel(), size)[1:]
        np.testing.assert_allclose(gradients[n].numpy().ravel(), wanted, 1e-6, err_msg=label)
