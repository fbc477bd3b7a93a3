"""Statistics: values, dtypes and gradients equal PyTorch's, beside NaN too."""

from typing import Any

import numpy as np
import pytest
from interpreted_cuda import interpreted_cuda
from op_support import Case, compare, library, numbers, same

import picograd
from picograd import Tensor
from picograd.errors import DTypeError, PicogradError, ShapeError, ValueRangeError

torch = pytest.importorskip("torch")
A = numbers((3, 5))
HOLES = np.where(np.arange(15).reshape(3, 5) % 4 == 1, np.nan, A)
LOST = np.where(np.arange(15).reshape(3, 5) < 5, np.nan, HOLES)  # a row of NaN alone
WEIGHTS = np.array([2, 0, 1, 3, 1])


def call(name: str, *args: Any, pick: Any = None, **options: Any) -> Any:
    def function(x: Any, *rest: Any) -> Any:
        result = getattr(library(x), name)(x, *rest, *args, **options)
        return result if pick is None else result[pick]

    return function


def test_order_statistics(device: str) -> None:
    calls: dict[str, tuple[Any, Any]] = {
        "nanmedian": (call("nanmedian"), HOLES),
        "nanmedian 1": (call("nanmedian", 1, pick=0), HOLES),
        "nanmedian 0": (call("nanmedian", 0, True, pick=0), HOLES),
        "nanquantile": (call("nanquantile", 0.3), HOLES),
        "nanquantile 1": (call("nanquantile", 0.7, 1, keepdim=True), HOLES),
        "mode": (call("mode", 0, pick=0), np.round(A)),
        "aminmax": (call("aminmax", dim=1, pick=0), A),
        "aminmax all": (call("aminmax", pick=1), A),
        "nansum": (call("nansum", 1), HOLES),
        "nanmean": (call("nanmean", 1), HOLES),
        "renorm": (call("renorm", 2, 0, 2.0), A),
        "renorm 1": (call("renorm", 1, 1, 3.0), A),
    }
    compare([Case(n, f, [x]) for n, (f, x) in calls.items()], device)
    for how in ("lower", "higher", "nearest", "midpoint"):
        found = picograd.nanquantile(Tensor(LOST, device=device), 0.4, 1, interpolation=how)
        want = torch.nanquantile(torch.tensor(LOST), 0.4, 1, interpolation=how)
        np.testing.assert_allclose(found.numpy(), want.numpy())
    found, want = Tensor(LOST, device=device).nanmedian(1), torch.tensor(LOST).nanmedian(1)
    np.testing.assert_allclose(found.values.numpy(), want.values.numpy())
    several = picograd.nanquantile(Tensor(HOLES, device=device), [0.25, 0.75], 1)
    want = torch.nanquantile(torch.tensor(HOLES), torch.tensor([0.25, 0.75]).double(), 1)
    np.testing.assert_allclose(several.numpy(), want.numpy())


@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
@pytest.mark.parametrize("how", ["linear", "lower", "higher", "nearest", "midpoint"])
def test_fractions_that_are_learned(name: str, how: str, device: str) -> None:
    fractions = np.array([0.1, 0.6, 1.0])
    options = {"interpolation": how}
    calls = [
        Case("all", call(name, **options), [A, fractions]),
        Case("row", call(name, 1, **options), [A, fractions]),
        Case("kept", call(name, 0, True, **options), [A, fractions[1]]),
    ]
    compare([Case(c.name, c.function, c.inputs, dtype="float64") for c in calls], device)
    rows = Tensor(HOLES, device=device), Tensor(0.4, device=device, requires_grad=True)
    found = getattr(picograd, name)(*rows, 1).detach().numpy()
    want = getattr(torch, name)(torch.tensor(HOLES), torch.tensor(0.4).double(), 1).numpy()
    np.testing.assert_allclose(found, want, rtol=1e-6)


@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
def test_fractions_that_a_trace_is_given(name: str, device: str) -> None:
    x, q = Tensor(A, device=device), Tensor([0.2, 0.7], device=device, dtype="float64")
    function = getattr(picograd, name)
    jitted = picograd.jit(lambda x, q: function(x, q, 1))
    for fractions in (q, q / 2):
        np.testing.assert_allclose(jitted(x, fractions).numpy(), function(x, fractions, 1).numpy())
    with pytest.raises(PicogradError, match=r"q is not in 0\.\.1"):
        jitted(x, q * 2).numpy()  # a GPU looks when values are read
    each = picograd.vmap(function)(x[:2], q)
    np.testing.assert_allclose(each[1].numpy(), function(x[1], 0.7).numpy())


@pytest.mark.parametrize("values", [[3, 1, 3, 1, 2], [5], [2, 2, 1, 1, 1, 3, 3, 3]])
def test_mode(values: list[int], device: str) -> None:
    found, want = Tensor(values, device=device).mode(), torch.tensor(values).mode()
    assert found.values.item() == want.values.item()
    assert found.indices.item() == want.indices.item()


def test_moments(device: str) -> None:
    whole, part = torch.tensor(WEIGHTS), numbers((5,), 0.2, 2)
    options: list[dict[str, Any]] = [{}, {"correction": 0}, {"fweights": WEIGHTS},
        {"aweights": part}, {"fweights": WEIGHTS, "aweights": part, "correction": 0}]  # fmt: skip
    for given in options:
        ours = {n: Tensor(v) if isinstance(v, np.ndarray) else v for n, v in given.items()}
        ours = {n: v.to(device) if isinstance(v, Tensor) else v for n, v in ours.items()}
        theirs = {n: torch.tensor(v) if isinstance(v, np.ndarray) else v for n, v in given.items()}
        case = Case(f"cov {list(given)}", lambda x, o=ours: picograd.cov(x, **o), [A],
                    lambda x, o=theirs: torch.cov(x, **o))  # fmt: skip
        compare([case], device)
    cases = [Case("cov row", call("cov"), [A[0]]), Case("corrcoef", call("corrcoef"), [A])]
    cases += [Case("corrcoef row", call("corrcoef"), [A[0]], has_gradient=False)]
    cases += [Case("cov one row", call("cov"), [A[:1]])]  # a number, as of a vector
    compare(cases, device)
    assert whole.sum() == 7
    pairs = Case("pdist", picograd.pdist, [A], torch.nn.functional.pdist)
    compare([pairs, Case("pdist one", picograd.pdist, [A[:1]], lambda x: x.sum(1)[:0])], device)


def test_integrals(device: str) -> None:
    x, y = np.sort(numbers((5,))), numbers((3,), seed=4)
    cases = [
        Case("trapezoid", call("trapezoid"), [A]),
        Case("trapezoid dx", call("trapezoid", dx=0.5, dim=0), [A]),
        Case("trapezoid x", call("trapezoid"), [A, x]),
        Case("trapezoid 0", call("trapezoid", dim=0), [A, y]),
        Case("cumulative", call("cumulative_trapezoid"), [A, x]),
        Case("cumulative 0", call("cumulative_trapezoid", dim=0), [A]),
        Case("diff", call("diff", 2), [A]),
        Case("diff many", call("diff", 9), [A]),
        Case("diff none", lambda x: library(x).diff(x, 0, append=x), [A]),
        Case("gradient of one step", call("gradient", spacing=None, pick=0), [A]),
        Case("diff 0", lambda x, y: library(x).diff(x, dim=0, prepend=y, append=y), [A, A[:1]]),
    ]
    for order in (1, 2):
        cases += [
            Case("gradient", call("gradient", edge_order=order, pick=1), [A]),
            Case("gradient 0", call("gradient", spacing=0.5, dim=0, edge_order=order, pick=0), [A]),
            Case("at", lambda x, t, o=order: library(x).gradient(
                x, spacing=(t,), dim=1, edge_order=o)[0], [A, np.cumsum(numbers((5,), 0.2, 1))]),
        ]  # fmt: skip
    compare([c for c in cases if c.name != "at"], device)
    compare([Case(c.name, c.function, c.inputs, has_gradient=False) for c in cases[-3:]], device)


def test_bins(device: str) -> None:
    values = np.array([0.0, 1.0, 2.5, -1.0, 2.0, np.nan], np.float32)
    x, t = Tensor(values, device=device), torch.tensor(values)
    edges = [-1.0, 0.5, 2.0, 2.5]
    e, f = Tensor(edges, device=device), torch.tensor(edges)
    for right in (False, True):
        same([picograd.bucketize(x[:5], e, right=right)], [torch.bucketize(t[:5], f, right=right)])
    same([picograd.bucketize(x[:5], e, out_int32=True)],
         [torch.bucketize(t[:5], f, out_int32=True)])  # fmt: skip
    assert picograd.bucketize(1, e).item() == torch.bucketize(1, f).item()
    w, v = Tensor([1.0, 2, 3, 4, 5], device=device), torch.tensor([1.0, 2, 3, 4, 5])
    same(picograd.histogram(x[:5], 4), torch.histogram(t[:5], 4))
    same(picograd.histogram(x[:5]), torch.histogram(t[:5]))
    same(picograd.histogram(x[:5], 7, density=True), torch.histogram(t[:5], 7, density=True))
    same(picograd.histogram(x[:5], e), torch.histogram(t[:5], f))
    points, theirs = x[:4].reshape(2, 2), t[:4].reshape(2, 2)
    for cells, limits, is_density in (
        (3, None, True), ([2, 5], None, False), ([3, 2], [-0.5, 1.0, 0.0, 2.0], True),
    ):  # fmt: skip
        ours = picograd.histogramdd(points, cells, limits, w[1:3], is_density)
        want = torch.histogramdd(theirs, cells, limits, v[1:3], is_density)
        same((ours.hist, *ours.bin_edges), (want.hist, *want.bin_edges))
    ours, want = picograd.histogramdd(points, [e, e]), torch.histogramdd(theirs, [f, f])
    same([ours.hist, *ours.bin_edges], [want.hist, *want.bin_edges])
    same(picograd.histogram(x[:5], 3, range=(0.0, 2.0), weight=w, density=True),
         torch.histogram(t[:5], 3, range=(0.0, 2.0), weight=v, density=True))  # fmt: skip


def test_edges(device: str) -> None:
    one = Tensor(2.0, device=device)
    assert one.nanmedian().item() == 2.0 and one.mode().values.item() == 2.0
    assert np.isnan(Tensor([], device=device).nanmedian().item())
    assert picograd.nanmedian(Tensor([3, 1, 2], device=device)).item() == 2


def test_mistakes(device: str) -> None:
    x = Tensor(A, device=device)
    for wrong in (
        lambda: x[:, :0].mode(),
        lambda: x.nanmedian(2),
        lambda: x.nanquantile(1.5),
        lambda: x.long().nanquantile(0.5),
        lambda: x.nanquantile(0.5, interpolation="cubic"),
        lambda: picograd.bucketize(x, x),
        lambda: picograd.histogram(x, 0),
        lambda: picograd.histogramdd(x.reshape(-1, 2), [3]),
        lambda: picograd.histogram(x, 3, range=(0.0, float("inf"))),
        lambda: picograd.histogram(Tensor([1.0, float("nan")], device="cpu"), 3),
        lambda: picograd.histc(Tensor([1.0, float("inf")], device="cpu")),
        lambda: picograd.histogram(x.long(), 3),
        lambda: picograd.trapezoid(x[0, 0]),
        lambda: picograd.diff(x[0, 0]),
        lambda: picograd.gradient(x[:1], dim=0),
        lambda: picograd.gradient(x, edge_order=3),
        lambda: picograd.gradient(x, dim=(1, 1)),
        lambda: picograd.cov(x, fweights=x[0]),
        lambda: picograd.cov(x.reshape(1, 3, 5)),
        lambda: picograd.cov(x, fweights=x[0, :2]),
        lambda: picograd.renorm(x, 2, 0, -1.0),
        lambda: picograd.pdist(x[0]),
        lambda: picograd.isin(1, 2),
    ):
        with pytest.raises(PicogradError):
            wrong()


def test_a_number_has_no_axes_among_others() -> None:
    assert picograd.isin(1, picograd.tensor([1, 2])).shape == ()
    assert picograd.bucketize(3, picograd.tensor([1, 4])).shape == ()


@pytest.mark.parametrize("reduce", ["sum", "mean", "prod", "max", "min"])
def test_segment_reduce_equals_pytorchs(reduce: str) -> None:
    array = np.random.default_rng(3).integers(1, 4, (2, 5, 3)).astype("f4")
    lengths = np.array([[2, 0, 3], [1, 1, 3]])
    for options in ({}, {"initial": 2.0}, {"unsafe": True}):
        x, theirs = Tensor(array).requires_grad_(), torch.tensor(array, requires_grad=True)
        ours = picograd.segment_reduce(x, reduce, lengths=Tensor(lengths), axis=1, **options)
        wanted = torch.segment_reduce(
            theirs, reduce, lengths=torch.tensor(lengths), axis=1, **options
        )
        np.testing.assert_allclose(ours.numpy(), wanted.detach().numpy())
        ours[:, 2].sum().backward()
        wanted[:, 2].sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), theirs.grad.numpy(), rtol=1e-6)
    found = picograd.segment_reduce(Tensor(array[0]), reduce, offsets=Tensor([0, 5]))
    assert found.shape == (1, 3)


@pytest.mark.usefixtures("on_host")
@pytest.mark.parametrize("reduce", ["sum", "max"])
def test_segments_on_a_gpu_that_is_interpreted(
    monkeypatch: pytest.MonkeyPatch, reduce: str
) -> None:
    lengths = np.array([40, 0, 3, 0, 0, 90, 1, 66, 0])
    x = np.random.default_rng(0).normal(size=(200, 3)).astype("f4")
    wanted = torch.segment_reduce(torch.tensor(x), reduce, lengths=torch.tensor(lengths))
    with interpreted_cuda(monkeypatch):
        data, counts = (Tensor(each, device="cuda:0") for each in (x, lengths))
        found = picograd.segment_reduce(data, reduce, lengths=counts).numpy()
    np.testing.assert_allclose(found, wanted.numpy(), 1e-5, 1e-5)


@pytest.mark.parametrize("middle", [0.0, 1000.0])
def test_histograms_count_what_lies_between_edges(middle: float) -> None:
    x = np.random.default_rng(0).normal(middle, 1, 5000).astype("f4")
    x = np.concatenate([np.round(x * 8) / 8, x, np.array([np.nan, np.inf, -np.inf], "f4")])
    for limits in ((middle - 3, middle + 3), (middle - 0.7, middle + 0.1)):
        found = picograd.histogram(Tensor(x), 37, range=limits)
        edges = found[1].numpy()
        wanted, _ = np.histogram(x[np.isfinite(x)], edges)
        np.testing.assert_array_equal(found[0].numpy(), wanted)


def test_segment_reduce_says_what_is_wrong() -> None:
    x = Tensor([1.0, 2.0, 3.0])
    with pytest.raises(ShapeError, match="sum 3"):
        picograd.segment_reduce(x, "sum", lengths=Tensor([1, 1]))
    with pytest.raises(ShapeError, match="axis 0"):
        picograd.segment_reduce(x, "sum", lengths=Tensor([[1, 2]]))
    with pytest.raises(ValueRangeError, match="negative"):
        picograd.segment_reduce(x, "sum", lengths=Tensor([-1, 4]))
    with pytest.raises(ValueRangeError, match="no lengths"):
        picograd.segment_reduce(x, "sum")
    with pytest.raises(DTypeError, match="int64"):
        picograd.segment_reduce(Tensor([1, 2]), "sum", lengths=Tensor([2]))


def test_results_of_a_number_are_their_own_memory() -> None:
    def power(x: Tensor) -> Any:
        return picograd.linalg.matrix_power(x.reshape(1, 1), 1)

    for function in (picograd.mode, lambda x: [picograd.nanquantile(x, 0.5)], power):
        x = Tensor(3.0)
        function(x)[0].fill_(9.0)
        assert x.item() == 3.0


def test_quantiles_beside_infinities(device: str) -> None:
    inf = float("inf")
    for row in ([-inf, 1.0, 3.0, inf], [1.0, float("nan"), 3.0, -inf], [inf, inf, 1.0, inf]):
        ordered = sorted(x for x in row if x == x)
        ends = [picograd.nanquantile(Tensor(row, device=device), q).item() for q in (0.0, 1.0)]
        assert ends == [ordered[0], ordered[-1]]
        for q in (0.2, 0.3, 0.5, 0.8):
            found = picograd.nanquantile(Tensor(row, device=device), q).item()
            want = torch.nanquantile(torch.tensor(row), q).item()
            np.testing.assert_equal(found, want)


def test_a_central_difference_does_not_read_the_centre() -> None:
    x = Tensor([1.0, float("nan"), 3.0, 4.0])
    (found,) = picograd.gradient(x, spacing=0.5)
    np.testing.assert_array_equal(found.numpy(), [np.nan, 2.0, np.nan, 2.0])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("place", ["int64", "float32", "float64"])
def test_a_slope_has_the_wider_dtype_of_values_and_coordinates(dtype: str, place: str) -> None:
    found = []
    for kind in (picograd, torch):
        x = kind.tensor([1.0, 2.0, 4.0, 7.0]).to(getattr(kind, dtype))
        at = kind.tensor([0.0, 1.0, 3.0, 4.0]).to(getattr(kind, place)) * 3
        (slope,) = kind.gradient(x, spacing=[at])
        found.append((str(slope.dtype).split(".")[1], slope.numpy()))
    assert found[0][0] == found[1][0]
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=2e-3)
