"""Values that are known while operations are recorded."""

import numpy as np
import pytest

import picograd
from picograd import Tensor
from picograd.engine import pending
from picograd.engine.plan_key import leaf_buffer
from picograd.errors import ValueRangeError
from picograd.tensor.core.known_values import CHECKED, check_between, known_values, shown_values

pytestmark = pytest.mark.usefixtures("cpu_by_default")  # values are looked at on the host


def test_what_is_known() -> None:
    given = Tensor([1, 0])
    np.testing.assert_array_equal(known_values(given.node), [1, 0])
    constant = picograd.zeros(2, 3).reshape(6)
    np.testing.assert_array_equal(known_values(constant.node), np.zeros(6))
    assert known_values((given + 1).node) is None  # nothing is computed
    assert known_values(picograd.arange(CHECKED + 1).realize().node) is None


def test_checks() -> None:
    check_between("op", "p", Tensor([0.0, 1.0]).node, 0.0, 1.0)
    for wrong in ([0.5, 1.5], [-0.1], [float("nan")]):
        with pytest.raises(ValueRangeError, match="op: p has values outside"):
            check_between("op", "p", Tensor(wrong).node, 0.0, 1.0)


def test_a_view_of_memory_is_read_without_a_plan() -> None:
    whole = picograd.arange(24.0).reshape(2, 3, 4).clone().realize()
    turned, windows = whole.permute(2, 0, 1), whole.unfold(2, 2, 1)
    views = [whole[1, 2], turned, whole[..., ::2], windows, whole[0, :1].expand(5, 4)]
    for view in (*views, whole.detach()[1].reshape(2, 6), whole[1, 2, 3]):
        seen = shown_values(view.node)
        assert view.node.realized is None and view.tolist() == seen.tolist()
        np.testing.assert_array_equal(seen, (view + 0.5).numpy() - 0.5)
        seen += 1  # it is a copy
    assert whole.sum().item() == 276
    assert shown_values(whole.node) is None and shown_values((whole + 1)[0].node) is None
    part, copy = whole[0, 0], whole[0, 0] * 1
    whole.add_(1)
    assert part.tolist() == [1, 2, 3, 4] and copy.tolist() == [0, 1, 2, 3]


def test_a_view_of_a_number_is_read_without_a_plan() -> None:
    for value, dtype in ((2.5, "float32"), (7, "uint8"), (True, "bool"), (-0.0, "float64")):
        whole = picograd.full((4, 3), value, dtype=dtype)
        for view in (whole[1], whole[:, ::2].T, whole[0, 0]):
            assert str(view.tolist()) == str(view.clone().tolist())
            assert str(view.numpy()) == str(view.clone().numpy())
            assert view.numpy().dtype == view.clone().numpy().dtype
        assert whole[3, 2].item() == value and whole.node.realized is None
        seen = whole[1].numpy()
        seen[:] = 1  # it is a copy
        assert whole[1].tolist() == [value] * 3
        whole[1] = 0
        assert whole[:2].tolist() == [[value] * 3, [0] * 3]
    for name in ("bfloat16", "complex64"):
        assert picograd.full((3,), 1, dtype=name)[1].item() == 1
    with pytest.raises(picograd.errors.PicogradError):
        picograd.ones(3, device="meta")[0].item()


def test_one_element_of_views_is_read_where_it_lies() -> None:
    draw = np.random.default_rng(3)
    for dtype in ("float32", "int64", "uint16", "bool", "bfloat16"):
        values = draw.integers(0, 2, (3, 1, 4, 2)).astype(np.float32)
        whole, values = Tensor(values).cast(dtype).realize(), values.astype(int)
        for _ in range(6):
            at = tuple(int(draw.integers(-size, size)) for size in values.shape)
            rows, columns = values[at[0], :, 1:], whole[at[0], :, 1:]
            found = [whole[at], whole[at[:2]][at[2:]], columns.permute(2, 1, 0)[at[3], 1, 0]]
            found += [columns.reshape(-1)[3], whole[:, 0].expand(3, 4, 2)[at[0], ::2][1, 0]]
            wanted = [values[at], values[at], rows[0, 1, at[3]], rows.reshape(-1)[3]]
            wanted += [values[at[0], 0, 2, 0]]
            for each, number in zip(found, wanted, strict=True):
                assert each.item() == number
                assert each.node.realized is None or dtype == "bfloat16"
    for wrong in ((3,), (0, -2), (0, 0, 4)):
        with pytest.raises(IndexError, match="getitem"):
            whole[wrong]


def test_a_gradient_that_a_formula_made_is_not_known() -> None:
    w = picograd.nn.Parameter(Tensor([0.25, 0.0, -0.5]))
    for choose in (lambda g: g[g > 0], lambda g: g.nonzero(), lambda g: g.abs().bernoulli()):
        for _ in range(2):  # the second is stamped out by the formula of the first
            w.grad = None
            (w * w).sum().backward()
        choose(w.grad).tolist()
    assert w.grad[w.grad > 0].tolist() == [0.5]


def test_one_element_of_positions_is_counted_while_writes_wait() -> None:
    rows, index = Tensor([0.0] * 8).realize(), Tensor([5, 6]).realize()
    rows[index - 3] = rows[index] + 1
    at = picograd.arange(3, 9, 2)
    table, moved = picograd.arange(6).reshape(2, 3), picograd.arange(4)
    moved += 1
    cases = [(at[-1], 7), (at[1] * 2 - 1, 9), (at.sum(), 15), (table.T[1, 1] % 3, 1)]
    cases += [(table.flip(0)[0, 2] // 2, 2), (picograd.arange(5).expand(2, 5)[1, 4], 4)]
    for each, number in cases:
        assert each.item() == number and leaf_buffer(each.node) is None
    assert pending.WRITTEN
    assert moved[3].item() == 4  # what was written is computed
    long = picograd.arange(CHECKED + 1)
    assert [(index + at[0])[1].item(), long[-1].item()] == [9, CHECKED]  # so are these
    assert rows.tolist() == [0, 0, 1, 1, 0, 0, 0, 0]
    at[2] = 40
    assert at[-1].item() == 40
