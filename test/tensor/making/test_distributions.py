"""Random tensors: their distributions at fixed seeds, edges, streams, generators.

A Kolmogorov-Smirnov statistic of n draws is above 1.95 / sqrt(n) once in a thousand seeds.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Generator, Tensor
from picograd.errors import PicogradError

COUNT = 20000
LIMIT = 1.95 / math.sqrt(COUNT)
ERF = np.vectorize(math.erf)
Cumulative = Callable[[Any], Any]


def normal(x: Any) -> Any:
    return (1 + ERF(x / math.sqrt(2))) / 2


def distance(draws: Any, cumulative: Cumulative) -> float:
    """Kolmogorov-Smirnov: the largest gap between the draws' steps and the curve."""
    x = np.sort(np.asarray(draws, np.float64).reshape(-1))
    steps = np.arange(len(x) + 1) / len(x)
    want = cumulative(x)
    return float(max(abs(want - steps[1:]).max(), abs(want - steps[:-1]).max()))


CONTINUOUS: dict[str, tuple[Callable[[Tensor], Tensor], Cumulative]] = {
    "uniform_": (lambda x: x.uniform_(-2, 3), lambda v: (v + 2) / 5),
    "normal_": (lambda x: x.normal_(1, 2), lambda v: normal((v - 1) / 2)),
    "log_normal_": (lambda x: x.log_normal_(0, 1), lambda v: normal(np.log(v))),
    "exponential_": (lambda x: x.exponential_(2.0), lambda v: 1 - np.exp(-2 * v)),
    "cauchy_": (lambda x: x.cauchy_(1, 2), lambda v: 0.5 + np.arctan((v - 1) / 2) / math.pi),
    "trunc_normal_": (lambda x: x.trunc_normal_(0, 1, -1, 2), lambda v: (
        normal(v) - normal(-1.0)) / (normal(2.0) - normal(-1.0))),
}  # fmt: skip


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous(name: str, device: str) -> None:
    picograd.manual_seed(11)
    draw, cumulative = CONTINUOUS[name]
    x = draw(Tensor.zeros(COUNT, device=device))
    assert x.isfinite().all().item() and x.dtype is picograd.float32
    assert distance(x.numpy(), cumulative) < LIMIT


def chi_square(counts: Any, shares: Any) -> float:
    expected = np.asarray(shares) * np.sum(counts)
    return float(((counts - expected) ** 2 / expected).sum())


def test_discrete(device: str) -> None:
    """Chi-square of k cells is above k + 3.1 sqrt(2 k) + 8 about once in a thousand seeds."""
    picograd.manual_seed(5)
    kind = dict(device=device)
    p = 0.3
    trials = Tensor.zeros(COUNT, **kind).geometric_(p).numpy()
    cells = np.minimum(trials, 8).astype(int)
    shares = [p * (1 - p) ** (n - 1) for n in range(1, 8)]
    assert chi_square(np.bincount(cells)[1:], [*shares, 1 - sum(shares)]) < 27
    coins = picograd.bernoulli(Tensor.full((COUNT,), 0.2, **kind)).numpy()
    assert abs(coins.mean() - 0.2) < 4 * math.sqrt(0.16 / COUNT)
    assert abs(Tensor.zeros(COUNT, **kind).bernoulli_(0.7).mean().item() - 0.7) < 0.015
    counts = picograd.poisson(Tensor.full((COUNT,), 2.0, **kind)).numpy()
    rates = [math.exp(-2) * 2**n / math.factorial(n) for n in range(7)]
    cells = np.bincount(np.minimum(counts, 7).astype(int), minlength=8)
    assert chi_square(cells, [*rates, 1 - sum(rates)]) < 27
    tosses = picograd.binomial(Tensor.full((COUNT,), 4.0), Tensor([0.5]))
    assert chi_square(np.bincount(tosses.numpy().astype(int)), np.array([1, 4, 6, 4, 1]) / 16) < 20
    dice = Tensor.zeros(COUNT, dtype="int32", **kind).random_(1, 7).numpy()
    assert chi_square(np.bincount(dice)[1:], [1 / 6] * 6) < 22
    assert Tensor.zeros(99, dtype="uint8", **kind).random_().numpy().max() > 200
    assert Tensor.zeros(99, dtype="uint8", **kind).random_(200, None).numpy().min() >= 200
    assert Tensor.zeros(99, dtype="int64", **kind).random_().numpy().max() > 1 << 62


@pytest.mark.parametrize("shape", [(50,), (3, 40)])
def test_one_draw_is_the_first_of_several(shape: tuple[int, ...], device: str) -> None:
    weights = picograd.rand(*shape, device=device)
    found = []
    for count in (1, 4):
        picograd.manual_seed(3)
        found.append(picograd.multinomial(weights, count)[..., :1].tolist())
    assert found[0] == found[1]


def test_multinomial(device: str) -> None:
    picograd.manual_seed(2)
    weights = Tensor([0.0, 1.0, 3.0, 0.0, 4.0, 0.0], device=device)
    drawn = weights.multinomial(COUNT, replacement=True).numpy()
    counts = np.bincount(drawn, minlength=6)
    assert not counts[[0, 3, 5]].any()
    assert chi_square(counts[[1, 2, 4]], np.array([1, 3, 4]) / 8) < 16
    rows = picograd.Tensor.ones(2000, 1, device=device) * weights
    order = rows.multinomial(3).numpy()
    assert (np.sort(order, 1) == [1, 2, 4]).all()
    assert chi_square(np.bincount(order[:, 0], minlength=6)[[1, 2, 4]],
                      np.array([1, 3, 4]) / 8) < 16  # fmt: skip
    second = order[order[:, 0] == 4][:, 1]  # 1 and 3 are left
    assert chi_square(np.bincount(second, minlength=3)[1:], np.array([1, 3]) / 4) < 13


def test_edges(device: str) -> None:
    """A range one step of the dtype wide: draws never reach its upper end."""
    picograd.manual_seed(1)
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        x = Tensor.zeros(4000, dtype=dtype, device=device)
        for low, high in ((0.1, 0.2), (1.0, 1.02), (-0.3, 0.0), (1e6, 1e6 + 1) if x.itemsize > 2
                          else (100.0, 101.0)):  # fmt: skip
            values = x.uniform_(low, high).double().numpy()
            rounded = Tensor(low, dtype=dtype).double().item()
            assert values.min() >= min(low, rounded) and values.max() < high, (dtype, low)
        assert (x.exponential_() > 0).all().item() and x.isfinite().all().item()
        assert x.normal_().isfinite().all().item() and x.cauchy_().isfinite().all().item()
        assert (x.exponential_(30000.0) > 0).all().item()
    whole = Tensor.uniform(4000, low=0.1, high=0.2, device=device)
    assert whole.max().item() < 0.2
    assert Tensor.zeros(3, device=device).uniform_(2, 2).tolist() == [2, 2, 2]


def test_generators_and_streams(device: str) -> None:
    first, second = Generator(5), Generator(device="cpu").manual_seed(5)
    assert first.initial_seed() == second.initial_seed() == 5 and first.device == "cpu"
    a = Tensor.zeros(1000, device=device).normal_(generator=first)
    b = Tensor.zeros(1000, device=device).normal_(generator=second)
    later = Tensor.zeros(1000, device=device).normal_(generator=second)
    other = Tensor.zeros(1000, device=device).normal_(generator=Generator(6))
    assert (a == b).all().item()
    for x in (later, other):  # independent of the first
        assert abs(np.corrcoef(a.numpy(), x.numpy())[0, 1]) < 0.11
    fresh = first.seed()
    assert first.initial_seed() == fresh and first.get_state() == (fresh, 0)
    for draw in (
        lambda g: picograd.bernoulli(a.sigmoid(), generator=g),
        lambda g: picograd.multinomial(a.exp(), 3, generator=g),
        lambda g: picograd.poisson(a.exp(), generator=g),
        lambda g: picograd.normal(a, 1.0, generator=g),
        lambda g: picograd.randint_like(a, 9, generator=g),
        lambda g: picograd.exponential(7, generator=g, device=device),
        lambda g: picograd.truncated_normal(7, generator=g, device=device),
        lambda g: picograd.randperm(9, generator=g),
    ):
        assert draw(Generator(3)).tolist() == draw(Generator(3)).tolist()


def test_the_default_generator(device: str) -> None:
    picograd.manual_seed(9)
    assert picograd.initial_seed() == 9
    state = picograd.get_rng_state()
    first = picograd.rand(4, device=device).tolist()
    with picograd.fork_rng():
        picograd.rand(4, device=device)
    picograd.set_rng_state(state.clone())
    assert picograd.rand(4, device=device).tolist() == first
    assert state.dtype is picograd.uint8 and state.device == "cpu" and len(state) == 16
    generator = Generator(5)
    generator.set_state(state)  # as bytes, and as its own pair
    assert generator.get_state() == (9, 0)
    generator.set_state(picograd.cat([state, state]))  # of a generator of PyTorch's: its seed
    assert generator.get_state() == (9, 0)
    with pytest.raises(PicogradError, match="3 bytes are no state"):
        generator.set_state(state[:3])
    assert picograd.seed() == picograd.initial_seed()


def test_shapes_and_dtypes(device: str) -> None:
    mean = Tensor([[1.0], [2.0]], device=device)
    drawn = picograd.normal(mean, Tensor([0.0, 0.0, 0.0], device=device))
    assert drawn.tolist() == [[1.0] * 3, [2.0] * 3] and not drawn.requires_grad
    assert picograd.normal(0.0, 1.0, (2, 3), dtype="float16").dtype is picograd.float16
    assert picograd.randint_like(mean, 2, 5).dtype is picograd.float32
    leaf = Tensor.zeros(2, requires_grad=True)
    with picograd.no_grad():
        leaf.uniform_(1, 2)
    assert leaf.requires_grad and (leaf >= 1).all().item()
    assert picograd.Tensor.zeros(0).normal_().shape == (0,)


def test_mistakes(device: str) -> None:
    x = Tensor([0.5, 0.5], device=device)
    leaf = Tensor([0.5], requires_grad=True, device=device)
    wrong: list[Callable[[], Any]] = [
        lambda: x.uniform_(2, 1),
        lambda: x.normal_(0, -1),
        lambda: x.exponential_(0),
        lambda: x.cauchy_(0, -1),
        lambda: x.log_normal_(0, 0),
        lambda: x.geometric_(1.5),
        lambda: x.bernoulli_(1.5),
        lambda: x.random_(5, 5),
        lambda: x.uniform_(float("nan"), 1.0),
        lambda: x.uniform_(-3e38, 3e38),
        lambda: x.long().normal_(),
        lambda: leaf.normal_(),
        lambda: picograd.normal(0.0, 1.0),
        lambda: picograd.multinomial(x, 3),
        lambda: picograd.multinomial(x, 0),
        lambda: picograd.multinomial(x.long(), 1),
        lambda: picograd.poisson(-x),
        lambda: picograd.binomial(x, x * 4),
        lambda: picograd.truncated_normal(3, low=2.0, high=1.0),
        lambda: Generator("x", 3).manual_seed(1.5),
    ]
    if device == "cpu":  # values on a GPU are not looked at
        wrong += [
            lambda: picograd.bernoulli(Tensor([1.5])),
            lambda: picograd.multinomial(Tensor([0.0, 1.0]), 2),
            lambda: picograd.multinomial(Tensor([-1.0, 1.0]), 1),
        ]
    for each in wrong:
        with pytest.raises(PicogradError):
            each()


BOUNDED = {  # the bound of |x|, or None for a normal distribution, and the standard deviation
    "scaled_uniform": (lambda: Tensor.scaled_uniform(64, 32), 2048**-0.5, (3 * 2048) ** -0.5),
    "glorot_uniform": (lambda: Tensor.glorot_uniform(64, 8, 4), 0.25, 0.25 / 3**0.5),
    "kaiming_uniform": (lambda: Tensor.kaiming_uniform(64, 32, a=1.0), (3 / 32) ** 0.5, 32**-0.5),
    "kaiming_normal": (lambda: Tensor.kaiming_normal((64, 32), a=0.0), None, 0.25),
    "uniform": (lambda: Tensor.uniform(64, 32, low=-2.0, high=2.0), 2.0, 2 / 3**0.5),
    "normal": (lambda: Tensor.normal(64, 32, mean=0.0, std=3.0), None, 3.0),
    "randn": (lambda: Tensor.randn(64, 32), None, 1.0),
}


@pytest.mark.parametrize("name", BOUNDED)
def test_random(name: str) -> None:
    draw, bound, std = BOUNDED[name]
    Tensor.manual_seed(3)
    values = draw().numpy()
    Tensor.manual_seed(3)
    np.testing.assert_array_equal(values, draw().numpy())
    assert values.dtype == np.float32 and values.size == 2048
    assert bound is None or np.abs(values).max() <= bound
    assert abs(values.std() / std - 1.0) < 0.05
    assert abs(values.mean()) < 0.1 * std


def test_parts_of_complex_numbers_are_drawn_apart() -> None:
    drawn = picograd.empty(4, 50, dtype="complex64").uniform_(-2, 3)
    for part in (drawn.real, drawn.imag):
        assert -2 <= part.min().item() < 0 < 2 < part.max().item() < 3
    assert not (drawn.real == drawn.imag).any()
    layer = picograd.nn.Conv1d(2, 3, 5, dtype="complex64")
    assert layer.weight.dtype.is_complex and layer.weight.imag.abs().max().item() <= 10**-0.5


def test_no_rows_of_weights_give_no_rows():
    found = picograd.multinomial(picograd.ones(0, 3), 2)
    assert found.shape == (0, 2) and found.dtype is picograd.int64


def test_a_size_takes_tensors_as_numbers():
    drawn = picograd.normal(picograd.tensor(2.0), picograd.tensor(0.0), (2, 3))
    assert drawn.tolist() == [[2.0] * 3] * 2


@pytest.mark.parametrize("count", [1, 2])
def test_a_weight_of_negative_zero_is_never_drawn(device: str, count: int) -> None:
    weights = Tensor([[-0.0, 1.0, 0.0, 2.0]] * 50, device=device)
    drawn = picograd.multinomial(weights, count).numpy()
    assert not np.isin(drawn, [0, 2]).any()
