"""Another number makes no other plan: values equal PyTorch's, plans and kernels stay as many."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import picograd
from picograd.config import config
from picograd.engine.compile import LOADED
from picograd.engine.realize import PLANS
from picograd.number import VALUES_AS_CODE

torch = pytest.importorskip("torch")

COUNT, COMPARED = 50, 10  # values of each number; every so many is compared
VALUES = [float(value) for value in np.random.default_rng(0).uniform(0.05, 0.95, COUNT)]
INTS = [3 + 2 * number for number in range(COUNT)]
RANDOM = np.random.default_rng(1)
X = RANDOM.standard_normal((4, 6)).astype(np.float32)
Y = RANDOM.standard_normal((4, 6)).astype(np.float32)
WHOLE = RANDOM.integers(-50, 50, (4, 6))
ROWS = RANDOM.standard_normal((100, 6)).astype(np.float32)
LABELS = np.array([1, 2, 3, 0])
Function = Callable[..., Any]


class Library:
    """The operands as tensors of one library, and its functions."""

    def __init__(self, module: Any) -> None:
        self.module, self.nn = module, module.nn.functional
        self.x, self.y, self.i = (module.tensor(values) for values in (X, Y, WHOLE))
        self.rows = module.tensor(ROWS)
        self.m, self.labels = module.tensor(X > 0.2), module.tensor(LABELS)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.module, name)


def gradient(x: Any, function: Function) -> Any:
    x = x.clone().requires_grad_()
    function(x).sum().backward()
    return x.grad


def written(x: Any, change: Function) -> Any:
    x = x.clone()
    change(x)
    return x


def warm_up(lib: Library, beta: float) -> Any:
    """A loss of two terms, one of them weighted by a number that changes, and an average of it."""
    loss = ((lib.x - lib.y) ** 2).mean() + beta * (lib.x.exp() - 1 - lib.x).mean()
    return 0.9 * lib.y.mean() + (1 - 0.9 * beta) * loss


FLOATS: dict[str, Function] = {
    "mul": lambda lib, v: lib.x * v,
    "reversed mul": lambda lib, v: v * lib.x,
    "add": lambda lib, v: lib.x + v,
    "reversed sub": lambda lib, v: v - lib.x,
    "div": lambda lib, v: lib.x / v,
    "reversed div": lambda lib, v: v / lib.x,
    "NumPy float32": lambda lib, v: lib.x * np.float32(v),
    "NumPy float64": lambda lib, v: lib.x * np.float64(v),
    "pow": lambda lib, v: lib.x.abs() ** v,
    "reversed pow": lambda lib, v: v**lib.x,
    "mod": lambda lib, v: lib.x % v,
    "floor division": lambda lib, v: lib.x // v,
    "chain": lambda lib, v: (lib.x * v + (1 - v) * lib.y) * v,
    "greater": lambda lib, v: (lib.x > v).float(),
    "equal": lambda lib, v: (lib.x == v).float(),
    "clamp": lambda lib, v: lib.x.clamp(-v, v),
    "clamp min": lambda lib, v: lib.x.clamp(min=v),
    "where": lambda lib, v: lib.where(lib.m, lib.x, v),
    "where of numbers": lambda lib, v: lib.where(lib.m, v, 2 * v),
    "full": lambda lib, v: lib.full((3,), v),
    "full used": lambda lib, v: lib.full((3,), v) * 2 + 1,
    "full_like": lambda lib, v: lib.full_like(lib.x, v),
    "fill_": lambda lib, v: written(lib.x, lambda x: x.fill_(v)),
    "mul_": lambda lib, v: written(lib.x, lambda x: x.mul_(v)),
    "sub_ with alpha": lambda lib, v: written(lib.x, lambda x: x.sub_(lib.y, alpha=v)),
    "-=": lambda lib, v: written(lib.x, lambda x: x.__isub__(v)),
    "setitem": lambda lib, v: written(lib.x, lambda x: x.__setitem__((slice(1, 3), 2), v)),
    "addcmul": lambda lib, v: lib.x.addcmul(lib.x, lib.y, value=v),
    "addcdiv": lambda lib, v: lib.x.addcdiv(lib.x, lib.y, value=v),
    "alpha": lambda lib, v: lib.add(lib.x, lib.y, alpha=v),
    "lerp": lambda lib, v: lib.x.lerp(lib.y, v),
    "masked_fill": lambda lib, v: lib.x.masked_fill(lib.m, v),
    "addmm": lambda lib, v: lib.addmm(lib.x[:, :4], lib.x, lib.y.T, beta=v, alpha=2 * v),
    "linspace": lambda lib, v: lib.linspace(0, v, 5),
    "arange": lambda lib, v: lib.arange(v, v + 4.5),
    "nan_to_num": lambda lib, v: (lib.x / 0 * 0).nan_to_num(nan=v),
    "isclose": lambda lib, v: lib.isclose(lib.x, lib.y, atol=v).float(),
    "float64": lambda lib, v: lib.x.double() * v,
    "of integers": lambda lib, v: lib.i * v,
    "leaky_relu": lambda lib, v: lib.nn.leaky_relu(lib.x, v),
    "elu": lambda lib, v: lib.nn.elu(lib.x, v),
    "celu": lambda lib, v: lib.nn.celu(lib.x, v),
    "softplus": lambda lib, v: lib.nn.softplus(lib.x, v),
    "hardtanh": lambda lib, v: lib.nn.hardtanh(lib.x, -v, v),
    "threshold": lambda lib, v: lib.nn.threshold(lib.x, v, 0.3 * v),
    "softshrink": lambda lib, v: lib.nn.softshrink(lib.x, v),
    "layer_norm": lambda lib, v: lib.nn.layer_norm(lib.x, (6,), eps=v),
    "rms_norm": lambda lib, v: lib.nn.rms_norm(lib.x, (6,), eps=v),
    "group_norm": lambda lib, v: lib.nn.group_norm(lib.x, 2, eps=v),
    "batch_norm": lambda lib, v: lib.nn.batch_norm(lib.x, None, None, training=True, eps=v),
    "pad": lambda lib, v: lib.nn.pad(lib.x, (1, 2), value=v),
    "label smoothing": lambda lib, v: lib.nn.cross_entropy(lib.x, lib.labels, label_smoothing=v),
    "huber_loss": lambda lib, v: lib.nn.huber_loss(lib.x, lib.y, delta=v),
    "smooth_l1_loss": lambda lib, v: lib.nn.smooth_l1_loss(lib.x, lib.y, beta=v),
    "triplet loss": lambda lib, v: lib.nn.triplet_margin_loss(lib.x, lib.y, -lib.y, margin=v),
    "cosine_similarity": lambda lib, v: lib.nn.cosine_similarity(lib.x, lib.y, eps=v),
    "weighted losses": warm_up,
    "gradient": lambda lib, v: gradient(lib.x, lambda x: (x * v).sin() * (1 - v)),
    "gradient of pow": lambda lib, v: gradient(lib.x.abs() + 0.1, lambda x: x**v),
    "gradient with smoothing": lambda lib, v: gradient(
        lib.x, lambda x: lib.nn.cross_entropy(x, lib.labels, label_smoothing=v)
    ),
    "gradient of pad": lambda lib, v: gradient(
        lib.x, lambda x: lib.nn.pad(x, (1, 2), value=v) ** 2
    ),
}
WHOLES: dict[str, Function] = {
    "mul": lambda lib, v: lib.i * v,
    "add": lambda lib, v: lib.i + v,
    "reversed sub": lambda lib, v: v - lib.i,
    "greater": lambda lib, v: (lib.i > v).float(),
    "equal": lambda lib, v: (lib.i == v).float(),
    "clamp": lambda lib, v: lib.i.clamp(-v, v),
    "division": lambda lib, v: lib.i / v,
    "of floats": lambda lib, v: lib.x * v - v / lib.x,
    "clamp floats": lambda lib, v: lib.x.clamp(-v, v),
    "full": lambda lib, v: lib.full((3,), v),
    "where": lambda lib, v: lib.where(lib.m, lib.i, v),
    "masked_fill": lambda lib, v: lib.i.masked_fill(lib.m, v),
    "fill_": lambda lib, v: written(lib.i, lambda x: x.fill_(v)),
    "and": lambda lib, v: lib.i & v,
    "arange": lambda lib, v: lib.arange(v, v + 5),
    "int8": lambda lib, v: lib.i.to(lib.int8) * v,
}

POSITIONS: dict[str, Function] = {
    "row": lambda lib, i: lib.rows[i],
    "row used": lambda lib, i: lib.rows[i] * 2 + lib.x[0],
    "row from the end": lambda lib, i: lib.rows[-i - 1] + 1,
    "element": lambda lib, i: lib.rows[i, i % 6] + 1,
    "column": lambda lib, i: lib.rows.T[1:3, i] + 1,
    "range": lambda lib, i: lib.rows[i : i + 3],
    "range with steps": lambda lib, i: lib.rows[i : i + 6 : 2] + 1,
    "range of the last axis": lambda lib, i: lib.rows.T[:, i : i + 4] * 3,
    "narrow": lambda lib, i: lib.rows.narrow(0, i, 4) * 3,
    "select": lambda lib, i: lib.rows.select(0, i) * 3,
    "flipped": lambda lib, i: lib.rows[i : i + 4].flip(0) + 1,
    "in a product": lambda lib, i: lib.rows[i] @ lib.x.T,
    "both sides of a product": lambda lib, i: lib.rows[i : i + 4].T @ lib.rows[i + 2 : i + 6],
    "softmax": lambda lib, i: lib.rows[i : i + 4].softmax(-1),
    "sums": lambda lib, i: lib.rows[i : i + 4].sum(0) + lib.rows[i],
    "sorted": lambda lib, i: lib.rows[i : i + 4].neg().sort(0)[0],
    "convolved": lambda lib, i: lib.nn.conv1d(
        lib.rows[None, i : i + 10].transpose(1, 2), lib.y[:, :, None]
    ),
    "of positions": lambda lib, i: lib.arange(100)[i : i + 3] * 2,
    "ranges of ranges": lambda lib, i: lib.rows[i : i + 3].reshape(-1)[i % 4 : i % 4 + 5],
    "joined": lambda lib, i: lib.cat([lib.rows[i : i + 2], lib.rows[i + 5 : i + 6]]),
    "write a row": lambda lib, i: written(lib.rows, lambda x: x.__setitem__(i, 7.5)),
    "write a part": lambda lib, i: written(
        lib.rows, lambda x: x.__setitem__((slice(i, i + 3), slice(1, 4)), lib.x[:3, :3])
    ),
    "add to a row": lambda lib, i: written(lib.rows, lambda x: x[i].add_(1)),
    "write by a column": lambda lib, i: written(lib.rows, lambda x: x.T[2, i].mul_(4)),
    "copy a row": lambda lib, i: written(lib.rows, lambda x: x.__setitem__(i, x[i + 1])),
    "write apart": lambda lib, i: written(
        lib.rows, lambda x: x.__setitem__(slice(i, i + 8, 2), lib.x * 2)
    ),
    "write a cache": lambda lib, i: written(lib.rows, lambda x: x.narrow(0, i, 4).copy_(lib.x)),
    "gradient of a row": lambda lib, i: gradient(lib.rows, lambda x: x[i] ** 2),
    "gradient of a product": lambda lib, i: gradient(
        lib.rows, lambda x: (x[i : i + 4] @ lib.x.T) ** 2
    ),
}

VARIED: dict[str, Function] = {  # code in kernels until many were seen
    "roll": lambda lib, i: lib.rows.roll(-i, 0) * 2,
    "rolls": lambda lib, i: lib.rows.roll((i, 1), (0, 1)) + lib.roll(lib.rows, -2 * i, 0),
    "roll of all": lambda lib, i: lib.rows.roll(i) + 1,
    "roll of bools": lambda lib, i: (lib.rows > 0).roll(i, 0).float(),
    "gradient of a roll": lambda lib, i: gradient(lib.rows, lambda x: x.roll(i, 0) * lib.rows),
    "pad": lambda lib, i: lib.nn.pad(lib.x, (0, 0, i, COUNT - i), value=2.0) * 3,
    "gradient of a pad": lambda lib, i: gradient(
        lib.x, lambda x: lib.nn.pad(x, (0, 0, i, 96 - i)) * lib.rows
    ),
    "split": lambda lib, i: lib.rows.split([i, 20, 80 - i])[1] * 2,
    "as_strided": lambda lib, i: lib.as_strided(lib.rows, (4, 3), (6, 1), i) * 2,
    "kthvalue": lambda lib, i: lib.rows.kthvalue(i + 1, 0)[0],
    "quantile": lambda lib, i: lib.quantile(lib.rows, (i + 0.5) / COUNT, 0),
    "norm": lambda lib, i: lib.rows.norm(2.25 + i / 8, 1),
}


@pytest.fixture(scope="module")
def libraries() -> Iterator[tuple[Library, Library]]:
    # A plan that is shared with the sizes of other tests would make way for one of its own.
    with config.override(dynamic=0):
        yield Library(picograd), Library(torch)


def check(function: Function, values: list[Any], libraries: tuple[Library, Library]) -> None:
    """Compute with every value; all after the first find the plan and the kernels of the first."""
    ours, theirs = libraries
    function(ours, values[0]).numpy()
    plans, kernels = set(PLANS), set(LOADED)
    for number, value in enumerate(values):
        found = function(ours, value).numpy()
        if number % COMPARED == 1:
            wanted = function(theirs, value).numpy()
            np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=1e-6)
    assert not set(PLANS) - plans and not set(LOADED) - kernels


@pytest.mark.parametrize("name", FLOATS)
def test_another_float_compiles_nothing(name: str, libraries: tuple[Library, Library]) -> None:
    check(FLOATS[name], VALUES, libraries)


@pytest.mark.parametrize("name", WHOLES)
def test_another_int_compiles_nothing(name: str, libraries: tuple[Library, Library]) -> None:
    check(WHOLES[name], INTS, libraries)


@pytest.mark.parametrize("name", POSITIONS)
def test_another_position_compiles_nothing(name: str, libraries: tuple[Library, Library]) -> None:
    check(POSITIONS[name], list(range(COUNT)), libraries)


@pytest.mark.parametrize("name", VARIED)
def test_a_number_that_varied_compiles_nothing(
    name: str, libraries: tuple[Library, Library]
) -> None:
    for value in range(VALUES_AS_CODE + 1):
        VARIED[name](libraries[0], value).numpy()
    check(VARIED[name], list(range(VALUES_AS_CODE + 1, COUNT)), libraries)


def test_what_rolls_by_a_number_of_the_call_is_traced_for_all() -> None:
    step = picograd.jit(lambda x, number: x.roll(number, 0).roll(-2 * number, 1))
    for number in range(2, 12):
        found = step(picograd.tensor(ROWS), number).numpy()
        wanted = np.roll(ROWS, (number, -2 * number), (0, 1))
        np.testing.assert_array_equal(found, wanted)
    assert step.count <= 2


@pytest.mark.parametrize("dynamic", [0, 1])
def test_rolls_that_vary_with_the_sizes(dynamic: int) -> None:
    with config.override(dynamic=dynamic):
        for number in range(2 * VALUES_AS_CODE):
            rows = ROWS[: 40 + number % 3 + number]
            x = picograd.tensor(rows, requires_grad=True)
            found = x.roll(number, 0) * picograd.tensor(rows)
            found.sum().backward()
            np.testing.assert_array_equal(found.numpy(), np.roll(rows, number, 0) * rows)
            np.testing.assert_array_equal(x.grad.numpy(), np.roll(rows, -number, 0))


def test_positions_that_happen_to_be_equal_are_two_positions() -> None:
    x = picograd.tensor(ROWS)
    for i, j in ((3, 3), (3, 4), (5, 3)):
        np.testing.assert_array_equal((x[i] - x[j]).numpy(), ROWS[i] - ROWS[j])
        y = picograd.tensor(ROWS)
        y[i] = x[j] + y[i]
        wanted = ROWS.copy()
        wanted[i] = ROWS[j] + ROWS[i]
        np.testing.assert_array_equal(y.numpy(), wanted)


def test_numbers_that_happen_to_be_equal_make_no_other_plan() -> None:
    x = picograd.tensor(X)
    (x * 0.25 + 0.5).numpy()
    plans = len(PLANS)
    for value in (0.5, 0.25, 1.0, 0.0, -1.0):
        np.testing.assert_array_equal((x * value + 0.5).numpy(), X * np.float32(value) + 0.5)
    assert len(PLANS) == plans


def test_small_powers_are_code() -> None:
    x = picograd.tensor(X.astype(np.float64))
    for power in (2, 2.0, 3, 0.5, -1):
        np.testing.assert_allclose((x.abs() ** power).numpy(), np.abs(x.numpy()) ** power, 1e-12)


def test_a_number_is_rounded_once_as_a_constant_is() -> None:
    half = np.array([3.0, 0.1, 1e4], np.float16)
    found = (picograd.tensor(half) + 1 / 3).numpy()
    assert found.tolist() == (half.astype(np.float32) + np.float32(1 / 3)).astype("f2").tolist()
    assert (picograd.tensor([1.0]) * 1e39).tolist() == [float("inf")]
    assert (picograd.tensor([1.0]).double() * 1e39).tolist() == [1e39]
    assert (picograd.tensor([250], dtype=picograd.uint8) + 10).tolist() == [4]


@pytest.mark.parametrize("value", [0.5, 0.25])
def test_a_number_in_a_loop_of_the_graph(value: float) -> None:
    rows = np.arange(6, dtype=np.float32).reshape(3, 2)

    def step(carry: Any, row: Any) -> Any:
        return carry * value + row, carry + value

    _, found = picograd.scan(step, picograd.full((2,), value), picograd.tensor(rows))
    carry, wanted = np.full(2, value, np.float32), []
    for row in rows:
        wanted.append(carry + value)
        carry = carry * value + row
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-6)
