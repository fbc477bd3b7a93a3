"""Graphs of other sizes share a plan: right values and gradients, few plans, nothing leaks."""

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from interpreted_cuda import interpreted_cuda
from poison import poison

import picograd
from picograd import Tensor, nn
from picograd.buffer import Buffer
from picograd.config import config
from picograd.dtype import uint8
from picograd.engine import realize, size_patterns, sizes
from picograd.engine.backends import default_device, get_device
from picograd.engine.binding import Bound
from picograd.engine.plan_cache import PlanCache
from picograd.engine.plan_key import leaf_buffer
from picograd.engine.sizes import BoundedPlan

torch = pytest.importorskip("torch")

SIZES = (5, 7, 6)


@pytest.fixture(autouse=True)
def poisoned(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Begin without plans; what lies beyond a size is NaN, or a large number."""
    poison(monkeypatch, get_device())
    monkeypatch.setattr(realize, "PLANS", PlanCache())
    monkeypatch.setattr(sizes, "FAMILIES", type(sizes.FAMILIES)())
    monkeypatch.setattr(size_patterns, "PATTERNS", type(size_patterns.PATTERNS)())
    with config.override(dynamic=1):
        yield


def plans() -> int:
    """Count the plans that were compiled."""
    return sum(not isinstance(plan, BoundedPlan) for plan in realize.PLANS.plans.values())


def refusals() -> list[str]:
    return [family.refused for family in sizes.FAMILIES.values() if family.refused]


def attention(t: Any, x: Any, wq: Any, wk: Any, wv: Any) -> Any:
    b, n, c = x.shape
    q, k, v = ((x @ w).reshape(b, n, 2, c // 2).transpose(1, 2) for w in (wq, wk, wv))
    scores = q @ k.transpose(-2, -1) / (c // 2) ** 0.5
    mask = t.ones(n, n).tril() == 0
    weights = scores.masked_fill(mask, -float("inf")).softmax(-1)
    return (weights @ v).transpose(1, 2).reshape(b, n, c)


def loss(t: Any, x: Any, w: Any) -> Any:
    logits = x @ w
    target = (x.sum(-1) * 0).long() + 1
    return t.nn.functional.cross_entropy(logits.reshape(-1, 5), target.reshape(-1))


def learned(t: Any, x: Any, scale: Any) -> Any:
    """The gradient of the scale sums scores over places of both sides, and over the batch."""
    return (x @ x.transpose(-2, -1) * scale).softmax(-1) @ x


CASES: dict[str, tuple[Callable[..., Any], Callable[[int], Any]]] = {
    "elementwise": (lambda t, x: x.exp() * 2 + 1, lambda n: [(n, 4)]),
    "inner axis": (lambda t, x: x.exp() * 2 + 1, lambda n: [(4, n)]),
    "two axes": (lambda t, x: x.tanh().sum(1), lambda n: [(n, n + 3)]),
    "sum": (lambda t, x: x.sum(1) + 1, lambda n: [(3, n, 4)]),
    "mean of all": (lambda t, x: x.mean(), lambda n: [(3, n)]),
    "max": (lambda t, x: x.max(1).values, lambda n: [(3, n)]),
    "prod": (lambda t, x: x.prod(1), lambda n: [(3, n)]),
    "amin": (lambda t, x: x.amin(0), lambda n: [(n, 3)]),
    "softmax": (lambda t, x: x.softmax(-1), lambda n: [(3, n)]),
    "log_softmax": (lambda t, x: x.log_softmax(0), lambda n: [(n, 3)]),
    "logsumexp": (lambda t, x: x.logsumexp(1), lambda n: [(3, n)]),
    "var": (lambda t, x: x.var(1), lambda n: [(2, n, 4)]),
    "cumsum": (lambda t, x: x.cumsum(1), lambda n: [(2, n, 4)]),
    "rows times matrix": (lambda t, x, y: x @ y, lambda n: [(n, 4), (4, 5)]),
    "contraction": (lambda t, x, y: x @ y, lambda n: [(3, n), (n, 5)]),
    "contraction of all": (lambda t, x, y: x @ y, lambda n: [(n + 1, n), (n, n + 2)]),
    "batched": (lambda t, x, y: x @ y, lambda n: [(n, 3, 4), (n, 4, 2)]),
    "cat": (lambda t, x, y: t.cat([x, y], 1), lambda n: [(2, n, 4), (2, 1, 4)]),
    "cat of three": (lambda t, x, y: t.cat([y, x, x], 1), lambda n: [(2, n, 4), (2, 2, 4)]),
    "stack": (lambda t, x: t.stack([x, x * 2], 1).sum(1), lambda n: [(n, 3)]),
    "last": (lambda t, x: x[:, -1] * 2, lambda n: [(2, n, 4)]),
    "all but one": (lambda t, x: x[:, 1:] - x[:, :-1], lambda n: [(2, n, 4)]),
    "first three": (lambda t, x: x[:, :3] * 2, lambda n: [(2, n, 4)]),
    "every second": (lambda t, x: x[:, ::2] * 2, lambda n: [(2, n, 4)]),
    "flip": (lambda t, x: x.flip(1) * 2, lambda n: [(2, n, 4)]),
    "roll": (lambda t, x: x.roll(2, 1) * 2, lambda n: [(2, n, 4)]),
    "pad": (lambda t, x: t.nn.functional.pad(x, (1, 2), value=3.0), lambda n: [(2, n)]),
    "merge": (lambda t, x, w: (x.reshape(-1, 4) @ w).reshape(2, -1, 3).sum(1),
              lambda n: [(2, n, 4), (4, 3)]),
    "merge the first": (lambda t, x, w: (x.reshape(-1, 4) @ w).reshape(-1, 2, 3).sum(1),
                        lambda n: [(n, 2, 4), (4, 3)]),
    "flatten": (lambda t, x: x.flatten(1) * 2, lambda n: [(2, n, 4)]),
    "flatten rows": (lambda t, x: x.transpose(0, 1).reshape(-1) * 2, lambda n: [(2, n)]),
    "split off": (lambda t, x: x.reshape(2, -1, 2).sum(2), lambda n: [(4 * n,)]),
    "transpose": (lambda t, x: x.transpose(0, 1).exp(), lambda n: [(n, 4)]),
    "positions": (lambda t, x, p: x + p[: x.shape[1]], lambda n: [(2, n, 4), (64, 4)]),
    "arange": (lambda t, x: x * t.arange(x.shape[1])[None, :, None], lambda n: [(2, n, 4)]),
    "triangle": (lambda t, x: x.tril(), lambda n: [(n, n)]),
    "where": (lambda t, x: t.where(x > 0, x, x.mean(1, keepdim=True)), lambda n: [(3, n)]),
    "gather": (lambda t, x, i: x[i.abs().long()], lambda n: [(5, 4), (n,)]),
    "embedding": (lambda t, w, i: t.nn.functional.embedding(i.abs().long().clamp(0, 3), w),
                  lambda n: [(5, 4), (2, n)]),
    "index_add": (lambda t, x, y: x.index_add(0, (y[:, 0] * 0).long() + 1, y),
                  lambda n: [(3, 4), (n, 4)]),
    "repeat": (lambda t, x: x[:, None].expand(-1, 3, -1).reshape(-1, 4) * 2, lambda n: [(n, 4)]),
    "attention": (attention, lambda n: [(2, n, 8), (8, 8), (8, 8), (8, 8)]),
    "learned scale": (learned, lambda n: [(2, 3, 3 * n + 1, 4), (1, 3, 1, 1)]),
    "cross entropy": (loss, lambda n: [(2, n, 4), (4, 5)]),
    "cross entropy rows": (loss, lambda n: [(n, 2, 4), (4, 5)]),
    "layer norm": (lambda t, x, g, b: t.nn.functional.layer_norm(x, (4,), g, b),
                   lambda n: [(2, n, 4), (4,), (4,)]),
    "batch norm": (lambda t, x: t.nn.functional.batch_norm(x, None, None, training=True),
                   lambda n: [(n, 2, 4, 3)]),
    "batch norm of pictures": (lambda t, x: t.nn.functional.batch_norm(x, None, None, None, None,
                                                                       True),
                               lambda n: [(2, 3, n, n + 1)]),
    "convolution": (lambda t, x, w: t.nn.functional.conv2d(x, w, padding=1).relu(),
                    lambda n: [(2, 3, n, n + 3), (4, 3, 3, 3)]),
    "strided convolution": (lambda t, x, w: t.nn.functional.conv2d(x, w, stride=2, padding=1),
                            lambda n: [(2, 3, n, 2 * n), (4, 3, 3, 3)]),
    "convolution of rows": (lambda t, x, w: t.nn.functional.conv2d(x, w, padding=1),
                            lambda n: [(n, 2, 4, 3), (4, 2, 3, 3)]),
    "convolution in one axis": (lambda t, x, w: t.nn.functional.conv1d(x, w, padding=2, dilation=2),
                                lambda n: [(2, 3, n), (4, 3, 3)]),
    "max pool": (lambda t, x: t.nn.functional.max_pool2d(x, 3, 2, padding=1),
                 lambda n: [(2, 3, n, n + 3)]),
    "average pool": (lambda t, x: t.nn.functional.avg_pool2d(x, 2), lambda n: [(2, 3, n, n + 3)]),
    "global pool": (lambda t, x: t.nn.functional.adaptive_avg_pool2d(x, 1),
                    lambda n: [(2, 3, n, n + 3)]),
    "interpolate": (lambda t, x: t.nn.functional.interpolate(x, scale_factor=2),
                    lambda n: [(2, 3, n, n + 3)]),
}  # fmt: skip
# whose backward pass has other steps for even sizes, or cuts other axes
OWN = {"strided convolution", "max pool", "average pool", "every second", "embedding"}


def given(shapes: Any, seed: int) -> list[Any]:
    generator = np.random.default_rng(seed)
    return [generator.standard_normal(shape).astype(np.float32) for shape in shapes]


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_equal_pytorch(name: str) -> None:
    function, shapes = CASES[name]
    for n in SIZES:
        arrays = given(shapes(n), n)
        theirs = [torch.tensor(array, requires_grad=True) for array in arrays]
        wanted = function(torch, *theirs)
        weight = given([tuple(wanted.shape)], 1)[0]
        (wanted * torch.tensor(weight)).sum().backward()
        ours = [Tensor(array, requires_grad=True) for array in arrays]
        found = function(picograd, *ours)
        np.testing.assert_allclose(found.numpy(), wanted.detach().numpy(), rtol=1e-4, atol=1e-5)
        (found * Tensor(weight)).sum().backward()
        for a, b in zip(ours, theirs):
            if a.grad is not None and b.grad is not None:
                np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-3, atol=1e-4)
    if name not in OWN:
        assert not refusals()
        assert any(isinstance(plan, BoundedPlan) for plan in realize.PLANS.plans.values())


def test_a_second_size_makes_the_last_plan() -> None:
    counts = []
    for n in (40, 33, 50, 64, 37, 41):
        x = Tensor(np.ones((3, n), np.float32))
        assert x.softmax(1).sum().item() == pytest.approx(3.0, rel=1e-5)
        counts.append(plans())
    assert counts == [1, 2, 2, 2, 2, 2]


def test_a_growing_cache_compiles_log_n_times() -> None:
    cache = Tensor(np.zeros((1, 2, 1, 4), np.float32))
    for step in range(1, 200):
        new = Tensor(np.full((1, 2, 1, 4), step, np.float32))
        cache = picograd.cat([cache, new], 2).realize()
    assert cache.numpy()[0, 1, :, 3].tolist() == list(range(200))
    assert plans() <= 6  # a bound of 64, and its doubles


def test_caches_of_one_token_more_or_less_cross_bounds_together() -> None:
    """A loop that generates tokens has a plan for each bound, and little memory one for small."""
    table = Tensor(given([(9, 4)], 0)[0])
    tokens, cache = Tensor([[1, 2]]), table[Tensor([[0]])]
    counts = []
    for _ in range(70):
        cache = picograd.cat([cache, table[tokens[:, -1:]]], 1)
        token = (cache.softmax(1) * cache).sum(1).matmul(table.T).argmax(-1, keepdim=True)
        tokens = picograd.cat([tokens, token], 1)
        token.item()
        counts.append(plans())
    assert not refusals() and counts[20] == counts[55] and counts[-1] <= counts[5] + 2


def test_sizes_that_come_after_a_sweep_of_shapes_share_a_plan() -> None:
    for power in range(4, 12):
        (Tensor(np.ones((1 << power, 3), np.float32)) * 2).realize()
    for n in range(4096, 4126):
        (Tensor(np.ones((n, 3), np.float32)) * 2).realize()
    count = plans()
    for n in range(4126, 4150):
        (Tensor(np.ones((n, 3), np.float32)) * 2).realize()
    assert plans() == count < 30


def test_the_last_smaller_batch_of_a_training_step() -> None:
    def train(tensor: Any, library: Any, model: Any, optimizer: Any, jit: Any) -> list[float]:
        def step(x: Any, y: Any) -> Any:
            optimizer.zero_grad()
            value = library.nn.functional.cross_entropy(model(x), y)
            value.backward()
            optimizer.step()
            return value

        generator, run = np.random.default_rng(0), jit(step)
        found = []
        for count in (16, 16, 11, 16, 11, 9):
            x = generator.standard_normal((count, 8)).astype(np.float32)
            y = generator.integers(0, 4, count)
            found.append(run(tensor(x), tensor(y)).item())
            counts.append(plans())
        return found

    counts: list[int] = []
    reference = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
    state = {name: value.detach().numpy().copy() for name, value in reference.state_dict().items()}
    wanted = train(torch.tensor, torch, reference, torch.optim.SGD(reference.parameters(), 0.1),
                   lambda step: step)  # fmt: skip
    for jit in (lambda step: step, picograd.jit):
        model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
        model.load_state_dict({name: Tensor(value) for name, value in state.items()})
        counts.clear()
        optimizer = nn.optim.SGD(model.parameters(), 0.1)
        np.testing.assert_allclose(
            train(Tensor, picograd, model, optimizer, jit), wanted, rtol=1e-4
        )
        assert counts[3:] == [counts[3]] * 3


def test_writes_into_memory_of_varying_sizes() -> None:
    @picograd.jit
    def jitted(x: Tensor) -> None:
        x += x.mean()

    def plain(x: Tensor) -> None:
        x += x.mean()

    for function in (plain, jitted):
        for n in SIZES:
            array = given([(3, n)], n)[0]
            x = Tensor(array)
            function(x)
            np.testing.assert_allclose(x.numpy(), array + array.mean(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("width", [3, 1500])
def test_a_write_of_a_part_copies_little_memory_of_varying_size(width: int) -> None:
    for rows in (8, 12, 10):
        x = Tensor(np.zeros((rows, width), np.float32))
        x[1] = picograd.ones(width)
        x.index_add_(0, Tensor(np.array([2])), picograd.ones(1, width))
        assert x.sum(1).tolist() == [0, width, width] + [0] * (rows - 3)
    bounded = [plan for plan in realize.PLANS.plans.values() if isinstance(plan, BoundedPlan)]
    assert any(plan.bound.written for plan in bounded) == (width == 3)


def test_what_is_empty_has_plans_of_its_own() -> None:
    for n, m in ((5, 5), (5, 8), (3, 4)):
        x = Tensor(np.ones((4, 1, n), np.float32))
        assert x[:, 1::2].reshape(m, n, -1).contiguous().numpy().shape == (m, n, 0)
    assert not refusals()


DRAWS: dict[str, Callable[[int], Tensor]] = {
    "rows": lambda n: picograd.rand(n, 3),
    "in a row": lambda n: picograd.randn(2, n, n + 3),
    "twice": lambda n: picograd.rand(3, n, dtype="float64"),
    "order": picograd.randperm,
    "dropout of merged axes": lambda n: nn.functional.dropout(
        picograd.ones(2, n, 4).reshape(-1, 4) * 2
    ).reshape(2, -1, 4),
}


@pytest.mark.parametrize("name", DRAWS)
def test_random_numbers_are_those_of_a_plan_of_their_own(name: str) -> None:
    def draw(n: int) -> Any:
        picograd.manual_seed(n)
        picograd.rand(7)  # takes counters: draws begin anywhere
        return DRAWS[name](n).numpy()

    found = [draw(n) for n in SIZES]
    assert not refusals() and plans() == 2
    with config.override(dynamic=0):
        wanted = [draw(n) for n in SIZES]
    for a, b in zip(found, wanted):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("extremes", [(np.nan, -np.inf, np.inf), (0, 1, 255)], ids=str)
def test_sorts_of_varying_length(extremes: Any) -> None:
    for n in SIZES:
        numbers = np.random.default_rng(n).integers(0, 3, (2, n))
        array = np.array(extremes, np.float32 if extremes[0] else np.uint8)[numbers]
        for is_descending in (False, True):
            found = Tensor(array).sort(1, descending=is_descending, stable=True)
            wanted = torch.tensor(array).sort(dim=1, descending=is_descending, stable=True)
            np.testing.assert_array_equal(found.indices.numpy(), wanted.indices.numpy())
            np.testing.assert_array_equal(found.values.numpy(), wanted.values.numpy())
    assert not refusals()


@pytest.mark.parametrize("length", [None, 8])
def test_what_is_cut_of_a_sort_is_of_all_that_was_sorted(length: int | None) -> None:
    for n in SIZES:
        array = np.random.default_rng(n).permutation(length or n).astype(np.float32)
        found = Tensor(array).topk(n - 2).values.numpy()
        np.testing.assert_array_equal(found, -np.sort(-array)[: n - 2])
    assert not refusals() and plans() == 2


def test_what_has_no_rule_gets_plans_of_its_own() -> None:
    for n in SIZES:
        (a,) = given([(n, n + 2)], n)
        found = Tensor(a).sin().reshape(n + 2, n)
        np.testing.assert_allclose(found.numpy(), np.sin(a).reshape(n + 2, n), rtol=1e-5)
    assert refusals() == ["a reshape of several axes to several"]


def test_small_products_all_sizes_of_which_vary_share_a_plan() -> None:
    for n, count in ((3, 1), (9, 2), (5, 2), (14, 2), (60, 3), (12, 3)):
        a, b = given([(n, n + 1), (n + 1, n + 2)], n)
        np.testing.assert_allclose((Tensor(a) @ Tensor(b)).numpy(), a @ b, rtol=1e-4, atol=1e-5)
        assert plans() == count and not refusals()


def test_bounds_follow_from_those_of_what_has_no_memory() -> None:
    """The gradient of a sum of convolved rows reads the weight alone: its bounds are no sizes."""
    weight = given([(2, 3, 3)], 0)[0]
    for n in (4, 7, 9, 6):
        x = Tensor(given([(2, 3, n + 2)], n)[0], requires_grad=True)
        nn.functional.conv1d(x, Tensor(weight)).sum().backward()
        wanted = np.stack([np.convolve(np.ones(n), row) for row in weight.sum(0)])
        np.testing.assert_allclose(x.grad.numpy()[1], wanted, rtol=1e-4, atol=1e-5)
    assert plans() == 2 and not refusals()


def test_small_work_at_many_shapes_compiles_twice() -> None:
    """With the bits of plans of their own, and none of the second takes all passes."""
    shapes, found = ((3, 5), (4, 7), (6, 11), (13, 3), (20, 30), (2, 17)), []
    rows = [given([shape], 0)[0] for shape in shapes]
    with config.override(cache="0"):  # code from there has no text
        for row in rows:
            found.append([(Tensor(row) - 1).sum(1).numpy(), Tensor(row).log_softmax(0).numpy()])
        assert plans() == 4 and not refusals()
        kernels = [each for plan in realize.PLANS.plans.values() for each in plan.executables]
    assert all(each.code.is_small or each.code.is_warm for each in kernels)
    with config.override(dynamic=0):
        for row, (total, _) in zip(rows[:4], found):
            np.testing.assert_array_equal((Tensor(row) - 1).sum(1).numpy(), total)


def test_sizes_of_one_between_others() -> None:
    """What was an axis that varies, and has one element now, is no axis to the reshapes."""
    for n, k in ((5, 3), (9, 2), (2, 1), (5, 1), (4, 1)):
        array = given([(n, n + 1, k, n)], n)[0]
        found = Tensor(array).unsqueeze(1).contiguous()
        np.testing.assert_array_equal(found.numpy(), array[:, None])


def test_axes_merged_to_others_are_no_prefix() -> None:
    for n in (4, 6, 8):
        array = given([(2 * n, 2, n)], n)[0]
        x = Tensor(array)
        wanted = np.pad(array, ((0, 0), (0, 0), (0, 9 - n))).reshape(n, -1)
        np.testing.assert_array_equal(x.pad((0, 9 - n)).reshape(n, -1).numpy(), wanted)


def test_values_computed_before_are_leaves() -> None:
    """A pad or a slice that was computed is memory, as in the first recording of the structure."""
    for n in SIZES:
        x = Tensor(np.ones((3, n), np.float32))
        for y in (x, x.pad((1, 0)), x[:, 1:]):
            np.testing.assert_allclose((y.realize() * 3).numpy(), 3 * y.numpy())


def test_one_element_and_none_are_structures_of_their_own() -> None:
    for n in (1, 5, 0, 7, 1, 6, 2):
        x = Tensor(np.ones((3, n), np.float32))
        assert (x * 2).sum(1).tolist() == [2.0 * n] * 3


def test_numbers_that_follow_from_sizes_are_those_of_the_call() -> None:
    for n in SIZES:
        x = Tensor(np.ones((2, n), np.float32))
        assert ((x.sum(1) / x.shape[1]) + n).tolist() == [1.0 + n] * 2
        assert (x * 0 + x.shape[1] ** -0.5).numpy()[0, 0] == pytest.approx(n**-0.5)


def test_python_may_decide_by_sizes() -> None:
    def branch(x: Tensor) -> Tensor:
        return x.sum(1) if x.shape[1] > 6 else x.amax(1) * 3

    for n in SIZES:
        array = given([(3, n)], n)[0]
        wanted = array.sum(1) if n > 6 else array.max(1) * 3
        for function in (branch, picograd.jit(branch)):
            np.testing.assert_allclose(function(Tensor(array)).numpy(), wanted, rtol=1e-5)


def test_a_size_used_often_gets_a_plan_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("picograd.engine.sizes", "picograd.tensor.transforms.jit"):
        monkeypatch.setattr(sys.modules[module], "PATIENCE", 2)
    run = picograd.jit(lambda x: x.softmax(1) * 2)
    for n in (5, 6, 6, 6, 6):
        array = given([(3, n)], n)[0]
        wanted = 2 * torch.softmax(torch.tensor(array), 1).numpy()
        np.testing.assert_allclose(run(Tensor(array)).numpy(), wanted, rtol=1e-5)
        (Tensor(array).softmax(1) * 2).numpy()
    assert not any(isinstance(plan, BoundedPlan) for plan in realize.PLANS.plans.values())
    assert run.traces <= 3


def test_the_setting_turns_it_off() -> None:
    with config.override(dynamic=0):
        for n in SIZES:
            (Tensor(np.ones((3, n), np.float32)) * 2).numpy()
        assert plans() == len(SIZES) and not sizes.FAMILIES


def test_a_trace_names_the_argument_and_the_axis(capfd: pytest.CaptureFixture[str]) -> None:
    run = picograd.jit(lambda weight, batch: batch @ weight)
    weight = Tensor(np.ones((4, 2), np.float32))
    with config.override(debug=1):
        for n in (8, 5):
            run(weight, Tensor(np.ones((n, 4), np.float32)))
    assert "because axis 0 of argument batch (from 8 to 5) changed" in capfd.readouterr().err


def test_pictures_of_many_sizes() -> None:
    first, head = given([(4, 3, 3, 3), (5, 4, 1, 1)], 0)

    def detect(t: Any, x: Any, first: Any, head: Any) -> Any:
        x = t.nn.functional.conv2d(x, first, stride=2, padding=1).relu()
        x = x + t.nn.functional.interpolate(t.nn.functional.max_pool2d(x, 2), scale_factor=2)
        return t.nn.functional.conv2d(x, head).flatten(2).transpose(1, 2).sigmoid()

    counts = []
    weights, reference = (Tensor(first), Tensor(head)), (torch.tensor(first), torch.tensor(head))
    for height, width in ((40, 48), (48, 56), (56, 40), (64, 64), (40, 64), (56, 48)):
        array = given([(1, 3, height, width)], width)[0]
        found = detect(picograd, Tensor(array), *weights).numpy()
        wanted = detect(torch, torch.tensor(array), *reference).numpy()
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
        counts.append(plans())
    assert counts == [1, 2, 2, 2, 2, 2] and not refusals()


def test_positions_and_sizes_vary_together() -> None:
    for n, at in ((5, 3), (7, 3), (7, 5), (6, 2), (6, 4), (7, 1)):
        array = given([(n, 3)], n)[0]
        x = Tensor(array)
        np.testing.assert_allclose((x[at] * 2).numpy(), array[at] * 2)
        np.testing.assert_allclose((x[at:] * 2).sum(0).numpy(), array[at:].sum(0) * 2, rtol=1e-5)
        np.testing.assert_allclose((x[at - 1 : at + 1] + 1).numpy(), array[at - 1 : at + 1] + 1)
        y = Tensor(array, requires_grad=True)
        (y[at] * y[at]).sum().backward()
        wanted = np.zeros_like(array)
        wanted[at] = 2 * array[at]
        np.testing.assert_allclose(y.grad.numpy(), wanted, rtol=1e-6)  # type: ignore[union-attr]
        x[at] = 9.0
        array[at] = 9.0
        np.testing.assert_array_equal(x.numpy(), array)


@pytest.mark.skipif(default_device() != "cpu", reason="interprets on the host")
def test_masks_of_varying_length_share_plans_on_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies beyond the elements of a mask, or of what is sorted, is a run of its own."""
    monkeypatch.setattr(realize, "PLANS", PlanCache())
    monkeypatch.setattr(sizes, "FAMILIES", type(sizes.FAMILIES)())
    with interpreted_cuda(monkeypatch) as device:
        poison(monkeypatch, device)
        for n in (4500, 5000, 8191, 8192, 4097):
            (array,) = given([(n,)], n)
            x = Tensor(array, device="cuda")
            np.testing.assert_array_equal((x < 0.3).nonzero().numpy(), np.argwhere(array < 0.3))
            np.testing.assert_array_equal(x[x < 0.7].numpy(), array[array < 0.7])
            numbers = np.random.default_rng(n).integers(0, 50, n)
            found = Tensor(numbers, device="cuda").unique(return_counts=True)
            wanted = np.unique(numbers, return_counts=True)
            for each, other in zip(found, wanted, strict=True):
                np.testing.assert_array_equal(each.numpy(), other)
        assert not any(family.refused for family in sizes.FAMILIES.values())
        assert all(family.reused for family in sizes.FAMILIES.values())


def test_what_is_sorted_is_read_beyond_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scatter looks at all that is laid out, `cat` at both inputs: places there are inside."""
    device = get_device()
    allocate = device.allocate

    def far(nbytes: int) -> Any:
        block = allocate(nbytes)  # as places: below all memory
        buffer = Buffer(device.name, uint8, nbytes, block.address, block)
        device.copy_in(buffer, np.full(nbytes, 0x80, np.uint8))
        return block

    monkeypatch.setattr(device, "allocate", far)
    for n in SIZES:
        numbers = np.random.default_rng(n).integers(0, 5, n)
        x, wanted = Tensor(numbers.astype(np.float32)), np.sort(numbers)
        total = np.zeros(5)
        np.add.at(total, numbers, wanted)
        found = picograd.zeros(5).scatter_add(0, Tensor(numbers), x.sort().values)
        np.testing.assert_array_equal(found.numpy(), total)
        joined = picograd.cat([x.sort().values, x])
        np.testing.assert_array_equal(joined.numpy(), [*wanted, *numbers])


@pytest.mark.skipif(default_device() != "cpu", reason="interprets on the host")
def test_kernels_for_cuda_are_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products, scatters, sorts and scans of varying length, interpreted as a GPU would run."""
    monkeypatch.setattr(realize, "PLANS", PlanCache())
    with interpreted_cuda(monkeypatch) as device:
        poison(monkeypatch, device)
        for n in (45, 57, 46):
            table, rows, index = *given([(9, 4), (n, 4)], n), np.arange(n) * 7 % 9
            values = torch.tensor(table, requires_grad=True)
            scores = (torch.tensor(rows) @ values.T).softmax(0)
            (scores.T @ values[torch.tensor(index)]).square().sum().backward()
            x = Tensor(table, device="cuda", requires_grad=True)
            places = Tensor(index, device="cuda")
            weights = (Tensor(rows, device="cuda") @ x.T).softmax(0)
            (weights.T @ x[places]).square().sum().backward()
            assert x.grad is not None and values.grad is not None
            np.testing.assert_allclose(x.grad.numpy(), values.grad.numpy(), rtol=1e-3, atol=1e-4)
            np.testing.assert_array_equal(places.sort(0, stable=True)[1].numpy(),
                                          np.argsort(index, kind="stable"))  # fmt: skip
            np.testing.assert_array_equal(places.cumsum(0).numpy(), np.cumsum(index))
    assert device.seen == {"tile", "program"}
    assert not refusals() and plans() == 6


@pytest.mark.skipif(default_device() != "cpu", reason="interprets on the host")
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("columns", [6, 4])
def test_updates_keep_their_columns(
    monkeypatch: pytest.MonkeyPatch, axis: int, columns: int
) -> None:
    """Their own position along the other axis is an index by which nothing is sorted."""
    monkeypatch.setattr(realize, "PLANS", PlanCache())
    with interpreted_cuda(monkeypatch) as device:
        poison(monkeypatch, device)
        for n in (45, 57, 46):
            (values,) = given([(n, columns)], n)
            index = np.random.default_rng(n).integers(0, 5, (n, columns))
            wanted = np.zeros((5, 6), np.float32)
            np.add.at(wanted, (index, np.arange(columns)[None]), values)
            arrays = [np.zeros((5, 6), np.float32), index, values]
            base, places, rows = (
                Tensor(np.ascontiguousarray(x.T if axis else x), device="cuda") for x in arrays
            )
            found = base.scatter_add(axis, places, rows).numpy()
            np.testing.assert_allclose(found.T if axis else found, wanted, rtol=1e-5, atol=1e-6)
    assert not refusals() and plans() == 2


@pytest.mark.skipif(default_device() != "cpu", reason="interprets on the host")
def test_devices_share_no_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    with interpreted_cuda(monkeypatch) as device:
        for n in SIZES:
            device.seen.clear()
            for name in ("cpu", "cuda"):
                x = Tensor(np.ones((3, n), np.float32), device=name)
                assert (x * 2).sum(1).tolist() == [2.0 * n] * 3
                assert bool(device.seen) == (name == "cuda")


def test_copies_to_the_bound_on_a_machine_that_is_not_there() -> None:
    device: Any = get_device("null")
    for n in SIZES:
        before = device.copied_bytes
        x = Tensor(np.ones((3, n), np.float32), device="null")
        x.softmax(1).realize()
    assert device.copied_bytes - before == 3 * 3 * n * 4  # in, to the bound, and out of it


def test_sums_of_varying_updates_are_sorted_by_nothing() -> None:
    step = picograd.jit(lambda base, index, x: base.scatter_add(0, index, x))
    base = Tensor(np.zeros((4096, 8), np.float32), device="null")
    for n in (8192, 4096, 5000):
        index = Tensor(np.zeros((n, 8), np.int64), device="null")
        x = Tensor(np.ones((n, 8), np.float32), device="null")
        with picograd.profile() as profile:
            step(base, index, x)
        assert "radix" not in str(profile) and "bins" in str(profile)


def test_rows_of_a_result_stay_where_they_are() -> None:
    """Another operation on as many rows finds room up to the bound, and copies nothing."""
    device: Any = get_device("null")
    for n in SIZES:
        x = Tensor(np.ones((n, 3), np.float32), device="null")
        before = device.copied_bytes
        y = x.softmax(1).realize()
        first = device.copied_bytes - before
        z = (y * 2).realize()
        (z + 1).realize()
        assert device.copied_bytes - before == first
    assert first == n * 3 * 4  # of what was given
    found = leaf_buffer(y.node)
    assert found is not None and found.room > found.count


def test_a_small_plan_is_soon_made_for_the_size_alone() -> None:
    for n in SIZES:
        x = Tensor(np.ones((3, n), np.float32))
        for _ in range(sizes.KERNEL_PATIENCE + 1):
            (x * 2).realize()
    assert plans() == 1 + len(SIZES)  # one of the three is for all


def test_sizes_that_stay_get_a_plan_of_their_own_sooner() -> None:
    def run(n: int) -> None:
        x = Tensor(np.ones((n, 3), np.float32))
        x.sort(0)[0].realize()  # two kernels

    for n in (33, *(40, 45) * 3):  # these come and go
        run(n)
    assert plans() == 2
    for _ in range(2):
        run(45)
    assert plans() == 3
    for n in (33, 50, 33, 50):  # so they do where one of them has its own
        run(n)
    assert plans() == 3


def test_loops_of_a_few_steps_share_their_plans() -> None:
    picograd.manual_seed(0)
    layer = nn.LSTM(4, 8)
    with picograd.no_grad():
        for steps in (9, 5, 12, 7):
            layer(Tensor(np.ones((steps, 2, 4), np.float32)))[0].realize()
        count = plans()
        for steps in (3, 14, 6, 11, 4, 13, 8, 10):
            layer(Tensor(np.ones((steps, 2, 4), np.float32)))[0].realize()
    assert plans() == count


def test_packed_batches_of_any_lengths_share_their_plans() -> None:
    """Rows that are merged of steps have a bound as far away as the least one of a loop."""
    if default_device() != "cpu":
        pytest.skip("which sequences are padded is part of a plan there")
    drawn = np.random.default_rng(1)
    table, layer = nn.Embedding(30, 16, padding_idx=0), nn.GRU(16, 16, batch_first=True)
    optimizer = nn.optim.SGD([*table.parameters(), *layer.parameters()], lr=0.1)

    def run() -> None:
        counts = np.sort(drawn.integers(2, 12, 6))[::-1].tolist()
        words = [Tensor.of(drawn.integers(1, 30, each)) for each in counts]
        padded = table(nn.utils.rnn.pad_sequence(words, batch_first=True))
        packed = nn.utils.rnn.pack_padded_sequence(padded, counts, batch_first=True)
        optimizer.zero_grad()
        layer(packed)[1].sum().backward()
        optimizer.step()

    for _ in range(40):
        run()
    assert sum(family.made for family in sizes.FAMILIES.values()) == 1


def test_marked_sizes_keep_their_plan_and_their_trace() -> None:
    doubled = picograd.jit(lambda x: x * 2, dynamic={"x": {0: picograd.Dim("rows", 2, 64)}})
    for n in SIZES:
        for _ in range(sizes.PATIENCE + 2):
            doubled(Tensor(np.ones((n, 3), np.float32))).realize()
    assert doubled.count == 1 and plans() == 1


def test_sizes_far_below_the_marked_limit_share_plans() -> None:
    """A plan laid out at 4,096 serves no size below 512: it would compute what nobody wants."""
    doubled = picograd.jit(lambda x: x * 2, dynamic={"x": {0: 4096}})
    for n in range(2, 40):
        doubled(Tensor(np.ones((n, 3), np.float32))).realize()
    assert plans() <= 4 and doubled.count == 1


def test_a_trace_has_patience() -> None:
    doubled = picograd.jit(lambda x: x * 2)
    for n in SIZES:
        for _ in range(10 * sizes.KERNEL_PATIENCE):
            doubled(Tensor(np.ones((n, 3), np.float32))).realize()
    assert doubled.count == 2 and plans() == 2  # the first size's, and that of the others


LOOPS: dict[str, tuple[str, dict[str, Any]]] = {
    "batch first": ("LSTM", dict(batch_first=True)),
    "both ways": ("RNN", dict(bidirectional=True)),
}


@pytest.mark.parametrize("name", LOOPS)
def test_sequences_of_varying_length(name: str) -> None:
    kind, options = LOOPS[name]
    theirs, ours = getattr(torch.nn, kind)(3, 4, **options), getattr(nn, kind)(3, 4, **options)
    state = {key: Tensor(value.numpy()) for key, value in theirs.state_dict().items()}
    ours.load_state_dict(state)
    counts = []
    for steps in (5, 9, 33):
        shape = (2, steps, 3) if "batch_first" in options else (steps, 2, 3)
        array = given([shape], steps)[0]
        x, y = Tensor(array, requires_grad=True), torch.tensor(array, requires_grad=True)
        for module, data in ((ours, x), (theirs, y)):
            module.zero_grad()
            out, last = module(data)
            h = last[0] if kind == "LSTM" else last
            (out.square().sum() + (h * 3).sum()).backward()
        named = dict(ours.named_parameters())
        gradients = [named[key].grad for key in named]
        x.grad.realize(*gradients)
        counts.append(plans())
        assert x.grad is not None and y.grad is not None
        np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), rtol=1e-3, atol=1e-5)
        for found, (_, wanted) in zip(gradients, theirs.named_parameters()):
            np.testing.assert_allclose(found.numpy(), wanted.grad.numpy(), rtol=1e-3, atol=1e-4)
    assert not refusals() and counts[2] == counts[1]


def test_loops_that_count_steps_or_end_backwards() -> None:
    """Random numbers take the step's number; a loop without stacked inputs keeps its plan."""
    for steps in (4, 6, 5):
        array = given([(steps, 3)], steps)[0]
        x = Tensor(array)
        last, rows = picograd.scan(lambda c, r: (c * 0.5 + r, c), picograd.zeros(3), x, None, True)
        want = np.zeros(3, np.float32)
        for row in reversed(range(steps)):
            np.testing.assert_allclose(rows.numpy()[row], want, rtol=1e-5, atol=1e-6)
            want = want * 0.5 + array[row]
        np.testing.assert_allclose(last.numpy(), want, rtol=1e-5, atol=1e-6)
        total, _ = picograd.scan(lambda c, _: (c * 2 + 1, None), picograd.zeros(2), None, steps)
        assert total.tolist() == [2.0**steps - 1] * 2
    assert not refusals()


def test_what_a_bound_plan_may_do() -> None:
    """It is followed unless it writes to memory that there is, and runs so often and no more."""
    inner: Any = None
    bound = Bound([], [], [], [], {})
    plan, cache = BoundedPlan(inner, bound, patience=1), PlanCache()
    plan.key = "key"
    cache.plans["key"] = plan
    assert plan.may_follow and cache.may_run(plan)
    plan.count_run()
    assert plan.is_worn and not cache.may_run(plan)
    assert not BoundedPlan(inner, Bound([], [], [], [(0, ((2,), (4,)))], {}), 1).may_follow
    assert not BoundedPlan(inner, Bound([], [], [], [], {0: 1}), 1).may_follow
