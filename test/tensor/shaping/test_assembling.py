"""Diagonals, grids, stacks, products of sets, and what is close, against PyTorch."""

from typing import Any

import numpy as np
import pytest
from interpreted_cuda import NAME, interpreted_cuda
from op_support import Case, compare, integers, library, numbers

import picograd
from picograd import Tensor
from picograd.engine.realize import make_plan
from picograd.errors import PicogradError, ShapeError, ValueRangeError
from picograd.tensor.indexing import selecting

torch = pytest.importorskip("torch")
X = numbers((3, 4, 5))
VIEWS: dict[str, Any] = {
    "swapaxes": lambda x: x.swapaxes(0, 2),
    "movedim of two": lambda x: x.movedim((0, 1), (2, 0)),
    "tile": lambda x: x.tile(2, 1),
    "tile more": lambda x: x[0].tile((2, 1, 3)),
    "tensor_split": lambda x: x.tensor_split(3, 2)[1],
    "tensor_split at": lambda x: x.tensor_split((1, 3), 2)[2],
    "tensor_split before": lambda x: x.tensor_split((-9, 3), 2)[1],
    "select": lambda x: x.select(1, -1),
    "ravel": lambda x: x.ravel(),
    "fliplr": lambda x: x.fliplr(),
    "flipud": lambda x: x.flipud(),
    "rot90": lambda x: x.rot90(),
    "rot90 3": lambda x: x.rot90(3, (1, 2)),
    "rot90 2": lambda x: x.rot90(2),
    "diff": lambda x: x.diff(),
    "diff 2": lambda x: x.diff(2, 1),
    "diag of matrix": lambda x: x[0].diag(1),
    "diag of vector": lambda x: x[0, 0].diag(-2),
    "diag_embed": lambda x: x.diag_embed(),
    "diag_embed apart": lambda x: x.diag_embed(1, 0, 2),
    "trace": lambda x: x[0].trace(),
    "nan_to_num": lambda x: x.nan_to_num(),
    "frac": lambda x: x.frac(),
    "count_nonzero": lambda x: x.count_nonzero(1),
    "nansum": lambda x: x.nansum(1),
    "nanmean": lambda x: x.nanmean(1),
    "cov": lambda x: x[0].cov(),
    "corrcoef": lambda x: x[0].corrcoef(),
    "deg2rad": lambda x: x.deg2rad(),
    "rad2deg": lambda x: x.rad2deg(),
    "logit": lambda x: x.sigmoid().logit(),
    "logit eps": lambda x: x.logit(0.25),
}


def test_views(device: str) -> None:
    cases = [Case(name, f, [X], has_gradient=name != "count_nonzero") for name, f in VIEWS.items()]
    compare(cases, device)


def test_spread_and_mean(device: str) -> None:
    cases = []
    for name in ("std_mean", "var_mean"):
        for part in (0, 1):
            cases.append(
                Case(
                    f"{name} {part}",
                    lambda x, n=name, p=part: getattr(x, n)(1, correction=0)[p],
                    [X],
                    lambda x, n=name, p=part: getattr(torch, n)(x, 1, correction=0)[p],
                )
            )
    compare(cases, device)


def test_products(device: str) -> None:
    a, b = numbers((3, 4)), numbers((2, 3), seed=1)
    m, n = numbers((4, 5), seed=2), numbers((3, 5), seed=3)
    s, t = numbers((4, 3)), numbers((4, 3), seed=5)
    many = [numbers((2, 1, 30, 4)), numbers((3, 7, 4)) + 9]
    cases = [
        Case("kron", lambda x, y: x.kron(y), [a, b]),
        Case("kron of ranks", lambda x, y: x.kron(y), [a, b[0]]),
        Case("cross", lambda x, y: x.cross(y, dim=-1), [s, t]),
        Case("cross first of 3", lambda x, y: x[:3].cross(y[:3]), [s, t]),
        Case("cross broadcast", lambda x, y: x.cross(y, dim=1), [s, t[:1]],
             lambda x, y: torch.linalg.cross(x, y, dim=1)),
        Case("cdist", lambda x, y: x.cdist(y), [s, t + 9], lambda x, y: torch.cdist(x, y)),
        Case("cdist 1", lambda x, y: x.cdist(y, 1.0), [s, t + 9],
             lambda x, y: torch.cdist(x, y, p=1.0)),
        Case("cdist of many", lambda x, y: x.cdist(y), many, lambda x, y: torch.cdist(x, y)),
        Case("dist", lambda x, y: x.dist(y), [s, t + 9]),
        Case("tensordot", lambda x, y: x.tensordot(y, 1), [a, m],
             lambda x, y: torch.tensordot(x, y, 1)),
        Case("tensordot axes", lambda x, y: x.tensordot(y, ([0, 1], [1, 0])), [a, s],
             lambda x, y: torch.tensordot(x, y, ([0, 1], [1, 0]))),
        Case("inner", lambda x, y: x.inner(y), [s, t]),
        Case("mv", lambda x, y: x.mv(y), [a, m[:, 0]]),
        Case("vdot", lambda x, y: x.vdot(y), [s[0], t[0]]),
        Case("addmm", lambda x, y, z: x.addmm(y, z, beta=0.5, alpha=2), [n, a, m]),
        Case("addmm row", lambda x, y, z: x.addmm(y, z), [n[0], a, m]),
        Case("addmm 0", lambda x, y, z: x.addmm(y, z, beta=0), [n * np.nan, a, m],
             has_gradient=False),
        Case("addmv", lambda x, y, z: x.addmv(y, z), [n[:, 0], a, m[:, 0]]),
        Case("addr", lambda x, y, z: x.addr(y, z, alpha=3), [n, a[:, 0], m[0]]),
        Case("baddbmm", lambda x, y, z: x.baddbmm(y, z, beta=2), [n[None], a[None], m[None]]),
        Case("addcmul", lambda x, y, z: x.addcmul(y, z, value=2), [s, t, s[0]]),
        Case("addcdiv", lambda x, y, z: x.addcdiv(y, z), [s, t, abs(s) + 1]),
        Case("heaviside", lambda x, y: x.heaviside(y), [s, t], has_gradient=False),
    ]  # fmt: skip
    compare(cases, device)


def test_empty_and_zero_dim(device: str) -> None:
    cases = [
        Case("diag_embed", lambda x: x.diag_embed(), [X[:0]]),
        Case("diff", lambda x: x.diff(), [X[:, :, :1]]),
        Case("kron", lambda x, y: x.kron(y), [np.array(2.0), X[0]]),
        Case("nan_to_num", lambda x: x.nan_to_num(1, 2, 3),
             [np.array([np.nan, np.inf, -np.inf, 1])], has_gradient=False),
        Case("tile", lambda x: x.tile(3), [np.array(2.0)]),
        Case("tensordot of an axis of one", lambda x, y: library(x).tensordot(
            x, y, dims=([0, 1], [2, 0])), [X[:1, :1], X[:2, :3, :2]]),
    ]  # fmt: skip
    compare(cases, device)


def test_mistakes(device: str) -> None:
    x = Tensor(X, device=device)
    for wrong in (
        lambda: x.rot90(1, (1, -2)),
        lambda: x[0, 0, 0].flipud(),
        lambda: x.t(),
        lambda: x[:, :, :3].cross(x[:, :, :1], dim=2),
        lambda: x.tensordot(x, ([0, 1], [0])),
    ):
        with pytest.raises(PicogradError):
            wrong()


def test_integers(device: str) -> None:
    a = integers((4, 6), -9, 10)
    b = np.where(np.arange(24).reshape(4, 6) % 2 > 0, 3, -4)
    counts = np.array([0, 2, 1, 3])
    for dtype in ("int64", "int32", "int8"):
        x, y = a.astype(dtype), b.astype(dtype)
        calls = {
            "floor_divide": lambda s, t: s.floor_divide(t),
            "trunc": lambda s, t: s.div(t, rounding_mode="trunc"),
            "floor": lambda s, t: s.div(t, rounding_mode="floor"),
            "remainder": lambda s, t: s.remainder(t),
            "fmod": lambda s, t: s.fmod(t),
            "shift": lambda s, t: s.bitwise_left_shift(t.abs()),
            "isclose": lambda s, t: s.isclose(t, 0.5, 1.0),
        }
        compare([Case(n, f, [x, y], has_gradient=False) for n, f in calls.items()], device)
    floats = [numbers((3, 4), -9, 9), numbers((3, 4), 0.5, 3, seed=3)]
    cases = [
        Case("repeat", lambda s, c: s.repeat_interleave(c, 0), [X[:, :, 0][[0, 1, 2, 0]], counts]),
        Case("trunc", lambda s, t: s.div(t, rounding_mode="trunc"), floats),
        Case("floor", lambda s, t: s.div(t, rounding_mode="floor"), floats),
    ]
    compare(cases, device)


@pytest.mark.usefixtures("on_host")
def test_counts_stay_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    monkeypatch.setattr(selecting, "SMALL_MASK", 10)
    with interpreted_cuda(monkeypatch):
        for count, high in ((40, 3), (40, 1), (4500, 3)):  # few, none, and many that chain
            rows, counts = random.random((count, 3), np.float32), random.integers(0, high, count)
            x = Tensor(rows, device=NAME, requires_grad=True)
            each = Tensor(counts, device=NAME)
            found = x.repeat_interleave(each, 0)
            np.testing.assert_array_equal(found.numpy(), np.repeat(rows, counts, 0))
            found.sum().backward()
            assert x.grad is not None
            np.testing.assert_array_equal(x.grad.numpy(), counts[:, None] + 0 * rows)
        with pytest.raises(ShapeError, match="lowest of 4500 counts is -1"):
            x.repeat_interleave(each - 1, 0)


def test_is_close(device: str) -> None:
    a = np.array([1.0, np.nan, np.inf, -np.inf, 1.0, 0.0])
    b = np.array([1.00001, np.nan, np.inf, np.inf, 1.1, 1e-9])
    cases = [
        Case("isclose", lambda x, y: x.isclose(y, rtol=1e-4), [a, b], has_gradient=False),
        Case("nan", lambda x, y: x.isclose(y, equal_nan=True), [a, b], has_gradient=False),
    ]
    compare(cases, device)


def test_factors_may_be_tensors_without_axes() -> None:
    """Optimizers weigh steps by numbers that they computed: `addcdiv_(m, v, value=-rate)`."""
    x, half = Tensor([2.0, 4.0]), Tensor(0.5)
    assert x.addcdiv(x, x, value=half).tolist() == [2.5, 4.5]
    assert x.addcmul(x, x, value=half).tolist() == [4.0, 12.0]
    with pytest.raises(PicogradError, match="addcmul: "):
        x.addcmul(x, x, value=x)


def test_distances_of_many_rows_are_products_unless_told() -> None:
    x = Tensor(numbers((30, 8)).astype(np.float32))
    assert any(kernel.hero == "contract" for kernel in make_plan([x.cdist(x * 2).node]).kernels)
    exact = x.cdist(x, compute_mode="donot_use_mm_for_euclid_dist")
    np.testing.assert_array_equal(np.diag(exact.numpy()), 0)
    with pytest.raises(ValueRangeError, match="compute_mode"):
        x.cdist(x, compute_mode="fast")


@pytest.mark.parametrize("name", ["addmm", "addmv", "addr", "baddbmm", "addbmm"])
def test_what_a_factor_of_zero_lets_be_has_a_gradient_of_zeros(name: str) -> None:
    shapes = {
        "addmm": ((2, 2), (2, 3), (3, 2)),
        "addmv": ((2,), (2, 3), (3,)),
        "addr": ((2, 3), (2,), (3,)),
        "baddbmm": ((4, 2, 2), (4, 2, 3), (4, 3, 2)),
        "addbmm": ((2, 2), (4, 2, 3), (4, 3, 2)),
    }[name]
    base, *rest = (Tensor(np.ones(shape), requires_grad=True) for shape in shapes)
    getattr(base, name)(*rest, beta=0).sum().backward()
    assert base.grad is not None and base.grad.tolist() == np.zeros(shapes[0]).tolist()


@pytest.mark.parametrize("op", ["tril_indices", "triu_indices"])
def test_triangles_of_negative_sizes(op):
    for sizes in ((-1, 2), (2, -1)):
        with pytest.raises(ValueRangeError, match=f"{op}: (row|col)=-1 is negative"):
            getattr(picograd, op)(*sizes)
