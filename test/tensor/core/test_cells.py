"""Writes of cells and rows: what others see of the table, and that no plan is made for them."""

import operator
import weakref
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.engine import carried, pending
from picograd.engine.followed import EVENTS, leave
from picograd.engine.native_calls import CODED
from picograd.engine.plan_cache import PLANS
from picograd.errors import AxisError, GradientError, ShapeError
from picograd.tensor.core import cells

pytestmark = pytest.mark.usefixtures("cpu_by_default")  # elsewhere each write is recorded


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """List which writes are done at once."""
    found: list[bool] = []
    write = cells.write

    def noted(*given: Any) -> bool:
        found.append(write(*given))
        return found[-1]

    monkeypatch.setattr(cells, "write", noted)
    return found


def test_what_reads_the_table_is_computed_before_a_step() -> None:
    table, wanted = picograd.zeros(3, 4).realize(), np.zeros((3, 4), np.float32)
    for number in range(40):
        i, j = number % 3, number % 4
        change = 0.5 * (number % 7 + table[1 - i].max() - table[i, j])
        change_wanted = np.float32(0.5) * (number % 7 + wanted[1 - i].max() - wanted[i, j])
        table[i, j] += change
        wanted[i, j] += change_wanted
        assert not len(pending.WRITES)  # it was done at once
        assert change.item() == pytest.approx(change_wanted)
    assert np.allclose(table.numpy(), wanted)


@pytest.mark.parametrize("is_near_steps", [False, True])
def test_the_first_cell_of_a_fresh_table(
    is_near_steps: bool, told: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is written at once where the table is one number, and no step will be followed."""
    monkeypatch.setattr(CODED, "compute", lambda nodes, place: None)
    for make, is_number in (
        (lambda: picograd.zeros(3, 4), True),
        (lambda: picograd.full((3, 4), 2.5), True),
        (lambda: (picograd.zeros(3, 4).realize() + 1).detach(), False),
    ):
        table, same = make(), make()
        wanted = table.numpy()
        table, reader = make(), same * 2.0
        leave()
        EVENTS.after = (lambda: None) if is_near_steps else None
        table[1, 2] = wanted[1, 2] = 7.0
        EVENTS.after = None
        assert told[-1] is (is_number and not is_near_steps)
        assert np.array_equal(table.numpy(), wanted) and table._version == 1
        wanted[1, 2] = wanted[0, 0]
        assert np.array_equal(reader.numpy(), wanted * 2)


def test_ranges_of_rows_and_cells(told: list[bool]) -> None:
    table, wanted = picograd.zeros(4, 5).realize(), np.zeros((4, 5), np.float32)
    rows, same = Tensor(np.ones((2, 5), np.float32)).realize(), np.s_[1:2]
    for items, value, is_done in (
        (np.s_[1:3], 2.0, True), (np.s_[:-2], rows + 1, True), (np.s_[-1, 1:], 3.0, True),
        (np.s_[2, -9:2], rows[0, :2] * 5, True), (np.s_[:], 4, True), (np.s_[3:9], 5.0, True),
        (np.s_[2:2], 9.0, False), (np.s_[::2], 6.0, True), (np.s_[1:3, 2:], 7.0, True),
        ((same, same), 8.0, True), (np.s_[1:3], rows[0], False), (np.s_[2, None], 1.5, False),
    ):  # fmt: skip
        table[items] = value
        values = value.numpy() if isinstance(value, Tensor) else value
        wanted[items] = values
        assert told[-1] is is_done and np.array_equal(table.numpy(), wanted), items
    table[1:3] += 1.0
    table[2][1:4].mul_(2.0)
    wanted[1:3] += 1
    wanted[2, 1:4] *= 2
    assert np.array_equal(table.numpy(), wanted)
    with pytest.raises(ShapeError, match="shares some of its memory"):
        table[1:] = table[:-1]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8", "float16", "bfloat16"])
def test_elements_apart(dtype: str, told: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns, blocks and every other row: written, stepped and copied in place."""
    drawn = np.random.default_rng(5)
    steps = [operator.iadd, operator.isub, operator.imul, lambda a, b: a.copy_(b)]
    start = Tensor(drawn.integers(1, 5, (4, 5, 6))).cast(dtype)
    table, same = start.clone().realize(), start.clone().realize()
    kept, others = table[1], [table[:, 2], same[:, 2]]
    for number in range(60):
        ends = [sorted(drawn.integers(0, size + 1, 2).tolist()) for size in table.shape]
        items: Any = [slice(*end, int(drawn.integers(1, 3))) for end in ends]
        at = int(drawn.integers(-3, 3))
        items = ([at, items[1]], [items[0], at], [..., items[2], at], items)[number % 4]
        items = tuple([..., at] if number % 5 == 0 else items)
        row = Tensor(drawn.integers(0, 3, table[items].shape[1:])).cast(dtype).realize()
        table[items] = row
        table[items].add_(number % 3)
        steps[number % 4](table[items], row)
        with monkeypatch.context() as context:
            for name in ("write_number", "write_values", "write_view", "step_view", "step_by_row"):
                context.setattr(cells, name, lambda *given: False)
            same[items] = row
            same[items].add_(number % 3)
            steps[number % 4](same[items], row)
            assert same.tolist() == table.tolist(), (number, items)
    assert kept.tolist() == same[1].tolist() and others[0].tolist() == others[1].tolist()
    assert told.count(True) > 40


def test_rows_by_rows_round_as_kernels_do() -> None:
    drawn = np.random.default_rng(6)
    values = (drawn.standard_normal((6, 40)) * 1e20).astype(np.float32)
    values[0, :4] = np.inf, np.nan, 0.0, -0.0
    for step in (operator.iadd, operator.isub, operator.imul, operator.itruediv):
        table, other = Tensor(values).clone().realize(), Tensor(values[::-1].copy()).realize()
        step(table[1], other[5])
        step(table[2], table[0])
        step(table[:, 3], other[:, 7])
        wanted = values.copy()
        with np.errstate(all="ignore"):
            step(wanted[1], values[0])
            step(wanted[2], wanted[0])
            step(wanted[:, 3], values[::-1][:, 7])
        assert not len(pending.WRITES)
        np.testing.assert_array_equal(table.numpy(), wanted)
    with pytest.raises(ShapeError, match="shares some of its memory"):
        table[1:3] += table[0:2]
    table[1:3] += table[1:3]
    wanted[1:3] += wanted[1:3]
    np.testing.assert_array_equal(table.numpy(), wanted)


def test_a_piece_in_another_order_is_written_in_its_own(told: list[bool]) -> None:
    table, values = picograd.zeros(2, 3, 4).realize(), np.arange(24, dtype=np.float32)
    source = Tensor(values.reshape(2, 4, 3)).realize()
    table[0] = source[1].T
    table[1] = source.permute(0, 2, 1)[0]
    turned = values.reshape(2, 4, 3).transpose(0, 2, 1)
    assert told == [True, True] and np.array_equal(table.numpy(), turned[::-1])


def test_a_leaf_stays_where_nobody_else_holds_it() -> None:
    table = picograd.zeros(3, 4).clone().realize()
    row = table[1]
    table[0, 0] = 1.0
    leaf, shown = weakref.ref(table.node), weakref.ref(row.node)
    for number in range(3):
        table[1, 2] = float(number)
        table[1].add_(1)
        assert row.tolist()[2] == number + 1 and table._version == 3 + 2 * number
    assert table.node is leaf() and row.node is shown()
    weight = Tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True).realize()
    product = (table[1] * weight).sum().realize()
    table[1, 0] = 7.0  # the graph of the product holds what was
    assert table.node is not leaf() and row.tolist() == [7.0, 3.0, 3.0, 3.0]
    with pytest.raises(GradientError, match="modified"):
        product.backward()


def test_steps_of_cells_and_rows() -> None:
    drawn = np.random.default_rng(2)
    values = drawn.standard_normal((4, 3)).astype(np.float32)
    table, wanted, counts = Tensor(values.copy()).realize(), values, [0, 0]
    kept, whole = table[2], picograd.zeros(2, dtype="int64").realize()
    for number in range(80):
        i, j, factor = number % 4, number % 3, float(drawn.standard_normal())
        match number % 5:
            case 0:
                table[i, j] += factor
                wanted[i, j] += np.float32(factor)
            case 1:
                table[i].mul_(factor)
                wanted[i] *= np.float32(factor)
            case 2:
                table[i] -= 1
                wanted[i] -= 1
            case 3:
                table[i, j] += table[0].max()
                wanted[i, j] += wanted[0].max()
            case 4:
                row = table[i]
                row[j] = factor
                row += 1
                wanted[i, j] = factor
                wanted[i] += 1
                assert row.tolist() == wanted[i].tolist()
        whole[number % 2] += 1
        counts[number % 2] += 1
    assert table.tolist() == wanted.tolist()
    assert kept.tolist() == wanted[2].tolist()
    assert whole.tolist() == counts
    whole[0] += 2**63 - 1 - counts[0]
    whole[0] += 1  # as it wraps in PyTorch
    assert whole[0].item() == -(2**63)


def test_random_writes(told: list[bool]) -> None:
    drawn = np.random.default_rng(0)
    wanted = np.zeros((4, 5), np.float32)
    table, row = picograd.zeros(4, 5), Tensor(drawn.standard_normal(5).astype(np.float32))
    views, copies = [table[1], table[:, 2]], []
    for number in range(200):
        i, j, k, m = (int(each) for each in drawn.integers(-4, 4, 4))
        match number % 7:
            case 0:
                table[i, j] = wanted[i, j] = float(number)
            case 1:
                table[i], wanted[i] = row, row.numpy()
            case 2:
                table[i, j], wanted[i, j] = table[k, m], wanted[k, m]
            case 3:
                table[i, j], wanted[i, j] = table[k, m] + 1, wanted[k, m] + 1
            case 4:
                table[i] = wanted[i] = number
            case 5:
                table[i], wanted[i] = table[k], wanted[k].copy()
            case 6:
                copies.append((table * 2, wanted * 2))  # read before the next write
        if number % 23 == 0:
            assert table.tolist() == wanted.tolist()
    assert views[0].tolist() == wanted[1].tolist()
    assert views[1].tolist() == wanted[:, 2].tolist()
    assert table.tolist() == wanted.tolist()
    assert all(mine.tolist() == other.tolist() for mine, other in copies)
    assert told.count(True) > 15


def test_branches_share_plans(told: list[bool]) -> None:
    drawn = np.random.default_rng(1)
    counts = []
    for _ in range(6):
        table = picograd.zeros(6, 6)
        for i in range(5):
            for j in range(5):
                if drawn.random() < 0.5:
                    table[i + 1, j + 1] = table[i, j] + 1
                else:
                    table[i + 1, j + 1] = picograd.maximum(table[i, j + 1], table[i + 1, j])
        table[5, 5].item()
        counts.append(len(PLANS.plans))
    assert counts[-1] - counts[1] <= 4, counts
    assert told.count(False) <= 6 * 2


def test_kinds_of_numbers(told: list[bool]) -> None:
    whole = picograd.zeros(3, dtype="int32").realize()
    whole[0], whole[1], whole[2] = 7, np.int64(-3), 2**31 - 1
    assert whole.tolist() == [7, -3, 2**31 - 1] and all(told)
    marks = picograd.zeros(2, dtype="bool").realize()
    marks[1] = True
    assert marks.tolist() == [False, True] and all(told)
    small = picograd.zeros(2).realize()
    small[0], small[-1] = 1e300, float("nan")
    assert small[0].item() == float("inf") and np.isnan(small[1].item()) and all(told)


def test_what_is_recorded() -> None:
    table = picograd.zeros(3).realize()
    with pytest.raises(AxisError, match="3"):
        table[3] = 1.0
    asks = picograd.ones(3, requires_grad=True)
    with pytest.raises(GradientError):
        asks[0] = 1.0
    weight = picograd.ones((), requires_grad=True)
    table[1] = weight * 3
    table.sum().backward()
    assert weight.grad is not None and weight.grad.item() == 3

    @picograd.jit
    def fill(x: Tensor, y: Tensor) -> Tensor:
        x[0] = 5.0
        x[1] = y[1]
        return x * 1

    for number in range(3):
        x = picograd.zeros(2).realize()
        assert fill(x, Tensor([0.0, float(number)])).tolist() == [5.0, number]


def test_graphs_of_older_values() -> None:
    table, weight = picograd.ones(3).realize(), picograd.ones(3, requires_grad=True)
    loss = (table * weight).sum()
    loss.item()
    table[0] = 9.0
    with pytest.raises(GradientError, match="in-place"):
        loss.backward()


def test_a_write_of_a_table_asks_nobody_where_nothing_else_leads_to_it(monkeypatch) -> None:
    asked: list[int] = []
    real = carried.readers_among
    monkeypatch.setattr(carried, "readers_among", lambda *args: asked.append(1) or real(*args))
    weights, state = Tensor(np.eye(3, dtype=np.float32)), Tensor([1.0, 2.0, 3.0])
    table, kept = picograd.zeros(40).realize(), []
    for step in range(40):
        state = (state @ weights).tanh()
        kept.append(state * 2)
        table[step] = float(step)
    assert len(asked) < 5
    assert table.tolist() == [*map(float, range(40))]
    np.testing.assert_allclose(kept[-1].numpy(), 2 * state.numpy())


@pytest.mark.parametrize(
    "share",
    [
        lambda x: x.detach(), lambda x: x.data, lambda x: x.view(2, 4), lambda x: x[1:],
        lambda x: picograd.from_dlpack(x), lambda x: picograd.from_numpy(x.numpy()),
        lambda x: nn.Parameter(x, requires_grad=False),
    ],
)  # fmt: skip
def test_what_waits_and_reads_a_table_by_another_tensor_has_its_values(share: Any) -> None:
    table = Tensor(np.arange(8, dtype=np.float32))
    for step in range(6):
        table[2] = float(step)
    other = share(table)
    waits = (other * 2).sum()
    before = 2 * float(other.numpy().sum())
    for step in range(6):
        table[2] = 100.0 + step
        table[5] += 1
    assert float(waits) == before


def weight() -> Tensor:
    return Tensor(np.arange(6, dtype=np.float32).reshape(2, 3), requires_grad=True).realize()


def test_cells_of_a_weight_where_no_gradient_is_recorded(told: list[bool]) -> None:
    """As a gradient is checked by differences; its node, and that it asks, stay."""
    w, x = weight(), Tensor([[1.0, -2.0]])
    loss = (x @ w).square().sum()
    loss.backward()
    assert w.grad is not None
    found = w.grad.tolist()
    with picograd.no_grad():
        for i, j in ((0, 0), (1, 2)):
            kept = w[i, j].item()
            w[i, j] = kept + 0.5
            above = (x @ w).square().sum().item()
            w[i, j] = kept - 0.5
            below = (x @ w).square().sum().item()
            w[i, j] = kept
            assert above - below == pytest.approx(found[i][j])
        w[1] += 1.0
    assert not told[0] and all(told[1:6])  # the loss had to be computed of what was there
    assert w.requires_grad and w.is_leaf and w.grad.tolist() == found
    w.grad = None
    (w * w).sum().backward()
    assert w.grad.tolist() == [[0.0, 2.0, 4.0], [8.0, 10.0, 12.0]]


def test_cells_of_a_weight_that_others_see(told: list[bool]) -> None:
    w = weight()
    with pytest.raises(GradientError):
        w[0, 0] = 1.0
    loss = (w * w).sum()
    loss.item()
    with picograd.no_grad():
        w[0, 0] = 7.0
    with pytest.raises(GradientError):  # what it was is gone
        loss.backward()
    w = weight()
    (w * w).sum().backward()
    shown, reader = w.detach(), w * 1.0
    with picograd.no_grad():
        w[0, 1] = 5.0
    assert w.grad is not None and w.grad.tolist() == [[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]]
    assert reader.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert shown.tolist() == w.tolist() == [[0.0, 5.0, 2.0], [3.0, 4.0, 5.0]]
    made = w * 2.0
    with picograd.no_grad():  # no leaf: a gradient passes it
        made[0, 0] = 3.0
    made.sum().backward()
    assert told == [False, True, False, False]


def test_a_version_counts_writes_of_cells_of_a_weight() -> None:
    w = weight()
    before = w._version
    with picograd.no_grad():
        w[0, 0] = 1.0
        w[1, 2] = 2.0
    assert w._version == before + 2
    calls: list[Any] = []
    w.register_hook(lambda g: calls.append(g.tolist()))
    with picograd.no_grad():
        w[0, 0] = 4.0
    (w * w).sum().backward()
    assert calls == [[[8.0, 2.0, 4.0], [6.0, 8.0, 4.0]]]


@pytest.mark.parametrize("is_near_steps", [False, True])
def test_copies_that_are_changed(
    is_near_steps: bool, told: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy of memory, or of numbers that wait, is made where it is changed, and that at once."""
    picograd.arange(3).clone().tolist()
    monkeypatch.setattr(CODED, "compute", CODED.compute or (lambda nodes, place: False))
    for order in (picograd.arange(8), Tensor(np.arange(8)), picograd.full((8,), 3)):
        for i, j in ((0, 4), (2, 5), (3, 8)):
            leave()
            wanted, after = order.numpy().copy(), EVENTS.after
            if is_near_steps:
                monkeypatch.setattr(EVENTS, "after", lambda: None)
            tried = order.clone()
            told.clear()
            tried[i:j] = order[i:j].flip(0)
            tried[1] = 7
            assert told == [True, True]
            monkeypatch.setattr(EVENTS, "after", after)
            changed = wanted.copy()
            changed[i:j], changed[1] = wanted[i:j][::-1], 7
            assert tried.tolist() == changed.tolist() and order.tolist() == wanted.tolist()


def test_copies_that_gradients_pass_or_others_see() -> None:
    weight = Tensor([1.0, 2.0, 3.0], requires_grad=True)
    copy = weight.clone()
    copy[0] = 5.0
    (copy * copy).sum().backward()
    assert weight.grad is not None and weight.grad.tolist() == [0, 4, 6]
    source = Tensor([1.0, 2.0, 3.0])
    copy = source.clone()
    before, row = copy * 2, copy[1:]
    source[1] = 9.0
    copy[2] = 7.0
    assert before.tolist() == [2, 4, 6] and row.tolist() == [2, 7]
    assert copy.tolist() == [1, 2, 7] and source.tolist() == [1, 9, 3]
