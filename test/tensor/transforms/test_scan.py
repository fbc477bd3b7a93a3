"""picograd.scan against the same loop in Python: values, first and second gradients, jit."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.draw import picture_of
from picograd.dtype import float32, float64
from picograd.engine import pending
from picograd.errors import DTypeError, ShapeError, TraceError, ValueRangeError
from picograd.graph.node import toposort
from picograd.tensor.transforms.scan import associative_scan

Array = Any


def made(*shape: int, device: str = "cpu", dtype: Any = float64) -> Tensor:
    tensor = Tensor(np.random.default_rng(sum(shape)).normal(size=shape), device=device)
    tensor = tensor.cast(dtype).realize()
    tensor.requires_grad = True
    return tensor


def unrolled(f: Callable[..., Any], carry: Any, xs: Any, reverse: bool = False) -> tuple[Any, Any]:
    """What scan means; xs is a tuple of tensors."""
    order = range(xs[0].shape[0])
    ys: dict[int, Any] = {}
    for t in reversed(order) if reverse else order:
        carry, ys[t] = f(carry, tuple(x[t] for x in xs))
    return carry, Tensor.stack([ys[t] for t in order])


def close(found: Any, wanted: Any, tolerance: float = 1e-9) -> None:
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=tolerance, atol=tolerance)


def elman(w: Tensor, b: Tensor) -> Callable[..., Any]:
    """A carry used twice, an x used twice, a weight and a bias from outside."""

    def step(carry: Any, x: Any) -> Any:
        h, total = carry
        new = (x[0] + h @ w + b).tanh()
        return (new, total + new.sum() * h.mean()), new * h + x[1]

    return step


def accumulating(w: Tensor, b: Tensor) -> Callable[..., Any]:
    """Gradients of the constants that cannot be taken outside, and a composite."""

    def step(carry: Any, x: Any) -> Any:
        h, total = carry
        new = (h @ (w * 0.5).softmax(1)) * b.exp() + (w @ w).sum() * 0.01 * h
        return (new.sigmoid(), total * 0.5 + x[0].sum()), new + x[1] * x[0]

    return step


def exchanging(w: Tensor, b: Tensor) -> Callable[..., Any]:
    """A carry that becomes the x, one that passes unchanged, a y that is a constant."""

    def step(carry: Any, x: Any) -> Any:
        h, total = carry
        return (x[0] + 0.0 * h, total), (h * b).where(h > 0, w.sum() + h)

    def choose(carry: Any, x: Any) -> Any:
        (h, total), _ = step(carry, x)
        return (h, total), (h > 0).where(h * b, w.sum() + h)

    return choose


BODIES = {"elman": elman, "accumulating": accumulating, "exchanging": exchanging}


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", BODIES)
def test_equals_the_unrolled_loop(name: str, reverse: bool, device: str) -> None:
    w, b = made(3, 3, device=device), made(3, device=device)
    h, total = made(2, 3, device=device), made(device=device)
    xs = (made(4, 2, 3, device=device), made(4, 1, 3, device=device))
    step = BODIES[name](w, b)
    sources = [w, b, h, total, *xs]
    results = []
    for run in (picograd.scan, unrolled):
        (last, count), ys = run(step, (h, total), xs, reverse=reverse)  # type: ignore[operator]
        loss = (ys * ys * ys).sum() + (last * last).sum() + count * count
        first = picograd.grad(loss, sources, create_graph=True, allow_unused=True)
        slope = sum(((g * g).sum() for g in first if g is not None), Tensor(0.0, device=device))
        second = picograd.grad(slope, sources, allow_unused=True)
        zero = [source * 0.0 for source in sources]
        pairs = [*zip(first, zero), *zip(second, zero)]
        results.append([last, count, ys, *(z if g is None else g for g, z in pairs)])
    for found, wanted in zip(*results, strict=True):
        close(found, wanted)


@pytest.mark.parametrize("count", [1, 2])
def test_few_steps(count: int, device: str) -> None:
    x, h = made(count, 3, device=device), made(3, device=device)
    step = lambda h, x: (h * x[0], h + x[0])  # noqa: E731
    found, wanted = picograd.scan(step, h, (x,)), unrolled(step, h, (x,))
    close(found[0], wanted[0])
    close(found[1], wanted[1])


def test_no_steps(device: str) -> None:
    h = made(2, 3, device=device)
    last, ys = picograd.scan(lambda h, x: (h * x, h.sum(0)), h, Tensor.zeros(0, device=device))
    close(last, h)
    assert ys.shape == (0, 3) and ys.numpy().size == 0


def test_trees_and_numbers(device: str) -> None:
    start = {"a": (Tensor([1.0], device=device),), "n": 0}
    xs = {"x": Tensor([[2.0], [3.0]], device=device), "none": None}

    def step(carry: Any, x: Any) -> Any:
        assert x["none"] is None
        (a,), n = carry["a"], carry["n"]
        return {"a": (a * x["x"],), "n": n + 1}, {"n": n, "kept": None, "one": 1}

    last, ys = picograd.scan(step, start, xs)
    assert last["a"][0].tolist() == [6.0] and last["n"].item() == 2
    assert ys["n"].tolist() == [0, 1] and ys["kept"] is None and ys["one"].tolist() == [1, 1]


def test_equal_results_are_stored_apart(device: str) -> None:
    """Two ys and the carry have one value; each has memory of its own."""
    x = Tensor([1.0, 2.0, 3.0], device=device)
    _, ys = picograd.scan(lambda c, x: (c + x, (c + x, x + c, x, x)), 0.0, x)
    assert [y.tolist() for y in ys] == [[1.0, 3.0, 6.0]] * 2 + [[1.0, 2.0, 3.0]] * 2


def test_without_xs_and_without_y(device: str) -> None:
    last, ys = picograd.scan(lambda n, _: (n + n, None), Tensor([1, 2], device=device), length=5)
    assert last.tolist() == [32, 64] and ys is None
    steps = picograd.scan(lambda n, _: (n + 1, n), Tensor.of(0, device=device), length=4)[1]
    assert steps.tolist() == [0, 1, 2, 3]


def test_empty_arrays(device: str) -> None:
    h = Tensor.zeros(0, 3, device=device)
    last, ys = picograd.scan(lambda h, x: (h + x, h), h, Tensor.zeros(4, 0, 3, device=device))
    assert last.shape == (0, 3) and ys.numpy().shape == (4, 0, 3)


def test_nested_loops(device: str) -> None:
    x = made(3, 4, device=device)

    def outer(total: Any, row: Any) -> Any:
        last, sums = picograd.scan(lambda c, v: (c * 0.5 + v * total.mean(), c), total, row)
        return last, sums.sum(0)

    def plain(total: Any, row: Any) -> Any:
        last, sums = unrolled(lambda c, v: (c * 0.5 + v[0] * total.mean(), c), total, row)
        return last, sums.sum(0)

    start = made(2, device=device)
    results = []
    for run, f, xs in ((picograd.scan, outer, x), (unrolled, plain, (x,))):
        last, ys = run(f, start, xs)  # type: ignore[operator]
        results.append([last, ys, *picograd.grad((ys * last).sum(), [x, start])])
    for found, wanted in zip(*results, strict=True):
        close(found, wanted)


def test_random_numbers_differ_from_step_to_step(device: str) -> None:
    draw = lambda c, _: (c, picograd.rand(3, device=device))  # noqa: E731
    picograd.manual_seed(3)
    rows = picograd.scan(draw, 0.0, length=4)[1].numpy()
    assert len(np.unique(rows)) == 12
    again = picograd.scan(draw, 0.0, length=4)[1].numpy()
    assert len(np.unique(np.concatenate([rows, again]))) == 24  # the generator moved on
    picograd.manual_seed(3)
    nested = picograd.scan(lambda c, _: picograd.scan(draw, c, length=2), 0.0, length=2)[1]
    np.testing.assert_array_equal(nested.numpy().reshape(4, 3), rows)


def test_dropout_is_drawn_in_every_step_and_kept_for_the_gradient(device: str) -> None:
    x = made(30, 4, device=device, dtype=float32)
    step = lambda c, x: (c, nn.functional.dropout(x, 0.5, True))  # noqa: E731
    ys = picograd.scan(step, 0.0, x)[1]
    (gradient,) = picograd.grad(ys.sum(), [x])
    kept = ys.numpy() != 0
    assert 0 < kept.sum() < 120 and len({row.tobytes() for row in kept}) > 5
    np.testing.assert_array_equal(gradient.numpy() != 0, kept)


def test_jit_replays_the_loop(device: str) -> None:
    w = made(3, 3, device=device)

    @picograd.jit
    def step(x: Any, h: Any) -> Any:
        last, ys = picograd.scan(lambda h, x: ((h @ w + x).tanh(), h), h, x)
        loss = (ys * ys).sum() + last.sum()
        w.grad = None
        loss.backward()
        with picograd.no_grad():
            w.sub_(w.grad * 0.1)
        return loss

    x, h = made(4, 2, 3, device=device), made(2, 3, device=device)
    losses = [step(x, h).item() for _ in range(3)]
    # nothing asked for gradients, so x gets one too: None at the first call, added to at the others
    assert step.traces == 2 and losses[2] < losses[1] < losses[0]


def test_writes_outside_are_seen_in_order(device: str) -> None:
    """A loop recorded before a write to a weight uses the old value, one after it the new."""
    w, x = Tensor([2.0], device=device), Tensor([[1.0], [1.0]], device=device)
    before = picograd.scan(lambda c, x: (c * w + x, c), Tensor([1.0], device=device), x)[0]
    w.mul_(10.0)
    after = picograd.scan(lambda c, x: (c * w + x, c), Tensor([1.0], device=device), x)[0]
    assert (before.item(), after.item()) == (7.0, 421.0)


def test_in_place_change_of_the_carry_inside(device: str) -> None:
    def step(c: Any, x: Any) -> Any:
        c = c + 0.0
        c.mul_(x)
        return c, None

    x = Tensor([2.0, 3.0], device=device)
    assert picograd.scan(step, Tensor(1.0, device=device), x)[0].item() == 6.0


def test_no_grad_inside_and_outside(device: str) -> None:
    w, x = made(3, device=device), made(4, 3, device=device)

    def step(c: Any, x: Any) -> Any:
        with picograd.no_grad():
            scale = w * c
        return c + x * scale, c * w

    ys = picograd.scan(step, w * 0.0 + 1.0, x)[1]
    plain = unrolled(lambda c, x: step(c, x[0]), w * 0.0 + 1.0, (x,))[1]
    close(picograd.grad(ys.sum(), [w])[0], picograd.grad(plain.sum(), [w])[0])
    with picograd.no_grad():
        assert not picograd.scan(step, w, x)[1].requires_grad


def test_only_what_is_outside_asks_for_gradients(device: str) -> None:
    w = made(3, device=device)
    ys = picograd.scan(lambda c, x: (c * w, c), Tensor.ones(3, device=device).double(), length=3)[1]
    assert ys.requires_grad
    ys.sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), 1 + 2 * w.numpy())


def test_the_graph_does_not_grow_with_the_steps() -> None:
    def count(steps: int) -> tuple[int, int]:
        w, x = made(3, 3), made(steps, 2, 3)
        ys = picograd.scan(lambda h, x: ((h @ w + x).tanh(), h), x[0] * 0.0, x)[1]
        (gradient,) = picograd.grad(ys.sum(), [w])
        return len(toposort([gradient.node])), len(picograd.plan(gradient).kernels)

    assert count(5) == count(500)


def test_a_plan_shows_the_loop_with_its_body_once() -> None:
    x = Tensor.ones(7, 2)
    text = repr(picograd.plan(picograd.scan(lambda c, x: (c + x, c), x[0] * 0.0, x)[0]))
    assert "loop of 7 steps" in text and text.count("map_add_2 (map)") == 1


@pytest.mark.parametrize(
    ("f", "error", "message"),
    [
        (lambda c, x: c, DTypeError, "scan: f returned a Tensor"),
        (lambda c, x: (c[:1], x), ShapeError, r"carry 0 .*float32\(2,\) and came out as .*\(1,\)"),
        (lambda c, x: (c.double(), x), DTypeError, "carry 0 went into f as float32"),
        (lambda c, x: ((c, c), x), DTypeError, "came out with another structure"),
        (lambda c, x: (c, "text"), DTypeError, "the y that f returned holds a str"),
        (lambda c, x: (c if c.sum() > 0 else x, x), TraceError, "while picograd.scan traces"),
    ],
)
def test_wrong_functions_are_named(f: Any, error: type, message: str) -> None:
    x = Tensor.ones(3, 2)
    with pytest.raises(error, match=message):
        picograd.scan(f, x[0] * 2.0, x)
    assert (x + x).sum().item() == 12.0  # nothing is left behind


def test_wrong_arguments_are_named() -> None:
    keep = lambda c, x: (c, x)  # noqa: E731
    with pytest.raises(ValueRangeError, match="scan: the number of steps is not known"):
        picograd.scan(keep, 0.0)
    with pytest.raises(ShapeError, match=r"the number of steps is one of \[2, 3\]"):
        picograd.scan(keep, 0.0, (Tensor.ones(2), Tensor.ones(3)))
    with pytest.raises(ShapeError, match="a tensor without axes"):
        picograd.scan(keep, 0.0, Tensor(1.0))
    with pytest.raises(DTypeError, match="xs holds an int"):
        picograd.scan(keep, 0.0, 3)
    with pytest.raises(DTypeError, match="the carry holds a str"):
        picograd.scan(keep, "c", length=3)
    with pytest.raises(DTypeError, match="NoneType is no function"):
        picograd.scan(None, 0.0, length=3)  # type: ignore[arg-type]
    with pytest.raises(ValueRangeError, match="length=-1"):
        picograd.scan(keep, 0.0, length=-1)


def test_writes_to_the_outside_are_refused_and_undone() -> None:
    total, lazy = Tensor([1.0, 2.0]), Tensor([1.0, 2.0]) * 2.0

    def step(c: Any, x: Any) -> Any:
        (lazy if x.ndim == 0 else total).add_(c)
        return c, None

    for x in (Tensor.ones(3, 2), Tensor.ones(3)):
        with pytest.raises(TraceError, match="f changed a tensor from outside in place"):
            picograd.scan(step, Tensor([1.0, 1.0]), x)
    assert total.tolist() == [1.0, 2.0] and lazy.tolist() == [2.0, 4.0]


def test_values_of_a_step_stay_inside() -> None:
    kept = []

    def step(c: Any, x: Any) -> Any:
        kept.append(x + 1.0)
        return c, x

    picograd.scan(step, 0.0, Tensor.ones(3))
    assert (Tensor.ones(2) * 2.0).sum().item() == 4.0  # other work is not disturbed
    with pytest.raises(TraceError, match="a value of one step was used outside picograd.scan"):
        kept[0].numpy()


def test_explain_and_pictures_show_the_loop() -> None:
    w, x = made(3, 3), made(7, 2, 3)
    ys = picograd.scan(lambda h, x: ((h @ w + x).tanh(), h), x[0], x)[1]
    text = str(picograd.explain(ys, "cuda"))
    assert "loop of 7 steps" in text and text.count("== Loop IR") == 3  # the body, x[0], a copy
    picture = picture_of(ys, "plan").text()
    assert picture.count("loop of 7 steps") == 1


def test_an_index_outside_raises_in_a_step() -> None:
    table = picograd.arange(12).reshape(4, 3)

    def step(carry: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
        return carry + table[index].sum(), carry // (index + 1)

    def run(indices: Tensor) -> Tensor:
        return picograd.scan(step, Tensor.of(0), indices.long())[0]

    jitted = picograd.jit(run)
    rows = picograd.func.vmap(run)
    for function in (run, jitted, jitted):
        assert function(Tensor([0, 3, 1])).item() == 45
        with pytest.raises(IndexError, match="out of range"):
            function(Tensor([0, 4, 1])).item()
        with pytest.raises(ValueRangeError, match="zero"):
            function(Tensor([0, -1, 1])).item()
    with pytest.raises(IndexError):
        picograd.scan(lambda c, row: (c + run(row), None), Tensor.of(0), Tensor([[0, 1], [2, 4]]))
    with pytest.raises(IndexError):
        rows(Tensor([[0, 1], [2, -5]]))


def failing(what):
    rows = Tensor([0.0, 1.0, 2.0])

    def step(c, i):
        y = c * 2
        if what == "raise":
            raise ValueError("a step fails")
        if what == "item":
            y.item()
        return (y + rows[5] if what == "index" else y.reshape(1) if what == "shape" else y), rows[i]

    return step


@pytest.mark.parametrize("what", ["raise", "item", "index", "shape"])
@pytest.mark.parametrize("is_jitted", [False, True])
def test_a_step_that_fails_breaks_nothing_else(what, is_jitted):
    """The error holds the frames of the step, and so its tensors."""
    step, held = failing(what), []

    def f(x):
        return picograd.scan(step, x.sum(), Tensor([0, 1]))

    waiting = Tensor([1.0]) + 1
    with pytest.raises((ValueError, IndexError, RuntimeError)) as error:
        (picograd.jit(f) if is_jitted else f)(Tensor([1.0, 2.0]))
    held.append(error)
    pending.realize_all()
    assert waiting.item() == 2 and picograd.jit(lambda x: x * 2)(waiting).item() == 4


def test_a_step_may_change_its_carry_in_place():
    def step(c, x):
        c += x
        return c, c * 2

    start = Tensor(1.0)
    last, ys = picograd.scan(step, start, Tensor([1.0, 2.0]))
    assert (last.item(), ys.tolist(), start.item()) == (4.0, [4.0, 8.0], 1.0)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("size", [1, 2, 7, 8])
def test_a_linear_recurrence(size: int, reverse: bool) -> None:
    draw = np.random.default_rng(size).standard_normal((2, size, 3)).astype(np.float32)
    a, b = picograd.tensor(draw), picograd.tensor(draw[::-1].copy(), requires_grad=True)

    def join(earlier, later):
        return earlier[0] * later[0], earlier[1] * later[0] + later[1]

    _, found = associative_scan(join, (a, b), 1, reverse=reverse)
    state, rows = 0.0, {}
    for t in range(size)[:: -1 if reverse else 1]:
        state = rows[t] = draw[:, t] * state + draw[::-1][:, t]
    np.testing.assert_allclose(
        found.detach().numpy(), np.stack([rows[t] for t in range(size)], 1), rtol=1e-4, atol=1e-5
    )
    found.sum().backward()
    assert b.grad is not None and b.grad.shape == b.shape


def test_sizes_must_agree() -> None:
    with pytest.raises(ShapeError, match="axis 0 has sizes"):
        associative_scan(lambda a, b: a, (picograd.ones(2), picograd.ones(3)), 0)
