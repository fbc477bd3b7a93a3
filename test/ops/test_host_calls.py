"""Host calls are in the graph: under jit, vmap, scan and twice differentiated they equal PyTorch's.

Each function is called on one sample; the second call of a jitted function has other values.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from op_support import library, numbers

import picograd
from picograd import Tensor
from picograd.config import config
from picograd.engine import executable, host_calls
from picograd.engine.backends import get_device
from picograd.runtime.device import Device

torch = pytest.importorskip("torch")

SQUARE = numbers((4, 3, 3)) / 3 + 4 * np.eye(3)
TALL = numbers((4, 4, 3)) / 2 + np.eye(4, 3) * 4
WIDE = np.swapaxes(TALL, 1, 2).copy()
SPD = SQUARE @ np.swapaxes(SQUARE, 1, 2)
LINE = numbers((4, 12))
PAIRS = numbers((4, 3, 6, 2))
POSITIVE = numbers((4, 5), 0.5, 3.0)
WINDOW = np.hanning(6) + 0.1
PRIME = 521  # points that a GPU has no products for


def of(room: str, name: str, *args: Any, **options: Any) -> Callable[..., Any]:
    """Call a function of both libraries; complex numbers come and go as pairs."""

    def call(*tensors: Any) -> Any:
        lib = library(tensors[0])
        module = getattr(lib, room) if room else lib
        if tensors[0].shape[-1] == 2:  # PAIRS
            tensors = (lib.view_as_complex(tensors[0]), *tensors[1:])
        return as_real(getattr(module, name)(*tensors, *args, **options))

    return call


def as_real(x: Any) -> Any:
    is_complex = not isinstance(x, tuple) and x.is_complex()
    return library(x).view_as_real(x.resolve_conj()) if is_complex else x


def lin(name: str, *args: Any, **options: Any) -> Callable[..., Any]:
    return of("linalg", name, *args, **options)


def rebuilt(x: Any) -> Any:
    u, s, vh = library(x).linalg.svd(x, full_matrices=False)
    return (u * u * s[..., None, :]) @ (vh * vh * vh.abs())


def eigen(x: Any) -> Any:
    w, v = library(x).linalg.eigh(x)
    return (v * v) * w[..., None, :]


def by_lu(x: Any) -> Any:
    P, L, U = library(x).linalg.lu(x)
    return P + L * 2 + U


def by_lu_solve(x: Any) -> Any:
    both, pivots = library(x).linalg.lu_factor(x)
    return library(x).linalg.lu_solve(both, pivots, x.mT * 2)


def logdet(x: Any) -> Any:
    sign, value = library(x).linalg.slogdet(x)
    return sign.detach() * value


def spectrum(x: Any) -> Any:
    window = x.new_tensor(WINDOW)
    return as_real(library(x).stft(x, 6, 2, window=window, return_complex=True))


def there_and_back(x: Any) -> Any:
    window = x.new_tensor(WINDOW)
    found = library(x).stft(x, 6, 2, window=window, return_complex=True)
    return library(x).istft(found * 2, 6, 2, window=window) ** 2


CALLS: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "inv": (lin("inv"), [SQUARE]),
    "solve": (lin("solve"), [SQUARE, TALL[:, :3]]),
    "solve vector": (lin("solve"), [SQUARE, TALL[:, :3, 0]]),
    "solve_triangular": (lin("solve_triangular", upper=True), [SQUARE, TALL[:, :3]]),
    "cholesky": (lin("cholesky"), [SPD]),
    "cholesky_solve": (lambda b, x: library(b).cholesky_solve(b, x.tril()), [TALL[:, :3], SQUARE]),
    "qr": (lambda x: sum(library(x).linalg.qr(x)[1]), [TALL]),
    "qr q": (lambda x: library(x).linalg.qr(x)[0], [TALL]),
    "qr wide": (lambda x: (lambda q, r: q @ (r * r))(*library(x).linalg.qr(x)), [WIDE]),
    "qr complete": (lambda x: library(x).linalg.qr(x, "complete")[1], [WIDE]),
    "svd": (rebuilt, [TALL]),
    "svd wide": (rebuilt, [WIDE]),
    "svdvals": (lin("svdvals"), [TALL]),
    "eigh": (eigen, [SPD]),
    "eigvalsh": (lin("eigvalsh"), [SPD]),
    "det": (lin("det"), [SQUARE]),
    "slogdet": (logdet, [SQUARE]),
    "lstsq": (lambda a, b: library(a).linalg.lstsq(a, b)[0], [TALL, TALL * TALL]),
    "pinv": (lin("pinv"), [TALL]),
    "lu": (by_lu, [SQUARE]),
    "lu_solve": (by_lu_solve, [SQUARE]),
    "matrix_exp": (lin("matrix_exp"), [SQUARE / 3]),
    "matrix_norm": (lin("matrix_norm", "nuc"), [TALL]),
    "fft": (of("fft", "fft"), [PAIRS]),
    "ifft": (of("fft", "ifft", dim=0, norm="ortho"), [PAIRS]),
    "rfft": (of("fft", "rfft"), [LINE]),
    "rfft odd": (of("fft", "rfft", 7, norm="forward"), [LINE]),
    "irfft": (of("fft", "irfft"), [PAIRS]),
    "irfft odd": (of("fft", "irfft", 7, norm="ortho"), [PAIRS]),
    "fftn": (of("fft", "fftn"), [PAIRS]),
    "rfft2": (of("fft", "rfft2"), [TALL]),
    "irfftn": (of("fft", "irfftn", (3, 8)), [PAIRS]),
    "hfft": (of("fft", "hfft"), [PAIRS]),
    "stft": (spectrum, [LINE]),
    "istft": (there_and_back, [LINE]),
    "gammainc": (lambda x: library(x).special.gammainc(x.detach() + 1, x), [POSITIVE]),
    "gammaincc": (lambda x: library(x).special.gammaincc(x.detach() + 1, x), [POSITIVE]),
}
each_call = pytest.mark.parametrize("name", CALLS)


def ours(arrays: list[Any], device: str, tracks: bool = False) -> list[Tensor]:
    return [Tensor(array, device=device, requires_grad=tracks) for array in arrays]


def theirs(arrays: list[Any]) -> list[Any]:
    return [torch.from_numpy(np.array(array)).requires_grad_() for array in arrays]


def same(found: Any, want: Any, tolerance: float = 1e-8) -> None:
    np.testing.assert_allclose(found.numpy(), want.detach().numpy(), tolerance, tolerance)


def weighted(y: Any) -> Any:
    """A number that every element has another part in, and not a linear one."""
    flat = y.reshape(-1)
    ramp = library(y).arange(flat.shape[0], device=y.device) % 5 - 1.5
    return (flat * flat * ramp + flat * 0.25).sum()


@each_call
def test_jit_with_gradients(name: str, device: str) -> None:
    function, arrays = CALLS[name]

    @picograd.jit
    def step(*tensors: Any) -> Any:
        y = function(*tensors)
        return y, *picograd.grad(weighted(y), tensors)

    for number in (0, 1):
        given = [array[number] for array in arrays]
        value, *gradients = step(*ours(given, device, True))
        inputs = theirs(given)
        want = function(*inputs)
        same(value, want)
        for found, wanted in zip(gradients, torch.autograd.grad(weighted(want), inputs)):
            same(found, wanted)


@each_call
def test_vmap(name: str, device: str) -> None:
    function, arrays = CALLS[name]
    tensors = ours(arrays, device)
    inputs = theirs(arrays)
    rows = [function(*(x[n] for x in inputs)) for n in range(4)]
    same(picograd.vmap(function)(*tensors), torch.stack(rows))
    if len(tensors) == 2:  # one of them is the same for all samples
        mixed = picograd.vmap(function, in_dims=(None, 0))(tensors[0][1], tensors[1])
        same(mixed, torch.stack([function(inputs[0][1], x) for x in inputs[1]]))


@each_call
def test_gradients_of_samples(name: str, device: str) -> None:
    function, arrays = CALLS[name]
    loss = picograd.func.grad(lambda *x: weighted(function(*x)))
    found = picograd.vmap(loss)(*ours(arrays, device))
    inputs = theirs(arrays)
    total = sum(weighted(function(*(x[n] for x in inputs))) for n in range(4))
    same(found, torch.autograd.grad(total, inputs[0])[0])


@each_call
def test_scan_with_gradients(name: str, device: str) -> None:
    function, arrays = CALLS[name]
    given = [array[:3] for array in arrays]

    def step(scale: Any, xs: Any) -> Any:
        y = function(*(x * scale for x in xs))
        return scale + y.mean() * 0.01, y

    scale = Tensor(1.0, dtype="float64", device=device, requires_grad=True)
    tensors = ours(given, device, True)
    last, ys = picograd.scan(step, scale, tuple(tensors))
    found = picograd.grad(weighted(ys) + last, [scale, *tensors])
    start = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
    inputs, carry, rows = theirs(given), start, []
    for number in range(3):
        carry, y = step(carry, [x[number] for x in inputs])
        rows.append(y)
    want = torch.stack(rows)
    same(ys, want)
    same(last, carry)
    wanted = torch.autograd.grad(weighted(want) + carry, [start, *inputs])
    for mine, other in zip(found, wanted):
        same(mine, other, 1e-7)


NO_SECOND = {"gammainc", "gammaincc"}  # PyTorch has no second derivative of these


@pytest.mark.parametrize("name", [name for name in CALLS if name not in NO_SECOND])
def test_second_derivatives(name: str, device: str) -> None:
    function, arrays = CALLS[name]
    given = [array[0] for array in arrays]
    found, wanted = [
        second(function, inputs, lib)
        for inputs, lib in ((ours(given, device, True), picograd), (theirs(given), torch))
    ]
    for mine, other in zip(found, wanted):
        same(mine, other, 1e-7)


def second(function: Callable[..., Any], inputs: list[Any], lib: Any) -> Any:
    grad = lib.grad if lib is picograd else torch.autograd.grad
    firsts = grad(weighted(function(*inputs)), inputs, create_graph=True)
    return grad(sum(weighted(first) for first in firsts), inputs)


# when they run, and what is left when one raises


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the functions called from now on."""
    found: list[str] = []

    def noted(call: Any) -> Any:
        return lambda arg, *arrays: (found.append(arg.name), call(arg, *arrays))[1]

    for caller, name in ((executable, "run"), (host_calls, "run"), (host_calls, "results")):
        monkeypatch.setattr(caller, name, noted(getattr(caller, name)))
    return found


@pytest.mark.usefixtures("on_host")  # a GPU has kernels: test_refusals.py
def test_what_cannot_fail_waits_until_it_is_read(calls: list[str], device: str) -> None:
    x = Tensor(SQUARE, device=device, requires_grad=True)
    y = picograd.fft.rfft(x, PRIME).real + picograd.linalg.det(x)[:, None, None]
    upper = picograd.linalg.lu(x).U
    assert calls == []
    y.sum().item()
    assert sorted(calls) == ["det", "rfft"]
    upper.sum().item()
    upper.sum().backward()
    assert x.grad is not None
    assert calls[2:] == ["in_three"], "the factors are kept for the gradient"
    x.grad.numpy()
    assert "in_three" not in calls[3:]


def test_results_are_cut_out_of_one_call(calls: list[str], device: str) -> None:
    u, s, vh = picograd.linalg.svd(Tensor(TALL, device=device), full_matrices=False)
    for each in (u, s, vh, u @ vh):
        each.numpy()
    q, r = picograd.linalg.qr(Tensor(TALL, device=device))
    q.numpy()
    r.numpy()
    assert calls == (["svd", "qr"] if device == "cpu" else [])  # a GPU has kernels


@pytest.mark.usefixtures("on_host")  # a GPU has kernels: test_refusals.py
def test_a_jitted_function_calls_at_every_call(calls: list[str], device: str) -> None:
    step = picograd.jit(lambda x: picograd.linalg.inv(x) @ x)
    for number in range(3):
        step(Tensor(SQUARE[number], device=device)).numpy()
    assert calls == ["inv"] * 3


def test_errors_come_at_the_call(device: str) -> None:
    singular = Tensor(np.zeros((2, 2)), device=device)
    for function in ("inv", "cholesky"):
        with pytest.raises(picograd.linalg.LinAlgError, match=rf"^linalg\.{function}: "):
            getattr(picograd.linalg, function)(singular)
    with pytest.raises(picograd.linalg.LinAlgError, match=r"^linalg\.solve: Singular"):
        picograd.linalg.solve(singular, singular)
    with pytest.raises(picograd.linalg.LinAlgError, match=r"^linalg\.svd: "):
        picograd.linalg.svd(singular + float("nan"))
    with pytest.raises(ValueError, match=r"fft: invalid number of data points \(0\)"):
        picograd.fft.fft(picograd.zeros(0, device=device))


@pytest.mark.usefixtures("on_host")  # a GPU has kernels: test_refusals.py
def test_errors_of_samples_and_steps_come_at_the_call(device: str) -> None:
    stack = Tensor(np.stack([np.eye(2), np.zeros((2, 2))]), device=device)
    step = lambda c, x: (c + picograd.linalg.inv(x), c)  # noqa: E731
    for _ in range(2):
        with pytest.raises(picograd.linalg.LinAlgError, match="Singular"):
            picograd.vmap(picograd.linalg.inv)(stack)
        with pytest.raises(picograd.linalg.LinAlgError, match="Singular"):
            picograd.scan(step, stack[0], stack)
    with pytest.raises(picograd.linalg.LinAlgError, match="Singular") as held:
        picograd.linalg.inv(stack)
    again = picograd.jit(lambda x: x * 2)(stack)  # what failed is not tried again
    assert again.sum().item() == 4 and held is not None


@pytest.mark.usefixtures("on_host")  # a GPU has kernels: test_refusals.py
def test_a_jitted_function_that_raises_changes_nothing(device: str) -> None:
    count = picograd.zeros(2, 2, dtype="float64", device=device)

    @picograd.jit
    def step(x: Any) -> Any:
        count.add_(1.0)
        return picograd.linalg.inv(x) @ count

    singular, good = (Tensor(array, device=device) for array in (np.zeros((2, 2)), np.eye(2)))
    for wanted in (1.0, 2.0, 3.0):
        with pytest.raises(picograd.linalg.LinAlgError, match="Singular"):
            step(singular)
        assert count.tolist() == [[wanted - 1] * 2] * 2
        assert step(good).tolist() == [[wanted] * 2] * 2
        assert count.tolist() == [[wanted] * 2] * 2


def test_a_write_that_reads_a_result_is_kept_out_by_its_error(device: str) -> None:
    """The trial that raises leaves memory and later computations as they were."""
    x = picograd.ones(2, 2, dtype="float64", device=device)
    with pytest.raises(picograd.linalg.LinAlgError):
        x.add_(picograd.linalg.inv(x * 0))
    assert x.tolist() == [[1.0, 1.0], [1.0, 1.0]]
    unit = picograd.eye(2, dtype="float64", device=device)
    assert (x + picograd.linalg.inv(unit)).sum().item() == 6


def test_memory_of_a_loop_is_flat(device: str) -> None:
    x = Tensor(SQUARE[0], device=device)
    for step in range(40):
        x = picograd.linalg.inv(x)
        x = picograd.linalg.svd(x, full_matrices=False).U @ x
        if step == 10:
            before = get_device(device).memory_stats()["in_use"]
    x.numpy()
    assert get_device(device).memory_stats()["in_use"] <= before + 1024


@pytest.mark.parametrize("name", ["solve", "svd", "stft", "gammainc"])
def test_through_copies(name: str, monkeypatch: pytest.MonkeyPatch, device: str) -> None:
    """As on a GPU: what a call reads and gives is copied, between tapes and in loops."""
    monkeypatch.setattr(type(get_device(device)), "call_host", Device.call_host)
    test_jit_with_gradients(name, device)
    test_scan_with_gradients(name, device)


# where they are seen


def test_graph_plan_and_pictures_name_the_function(device: str) -> None:
    x = Tensor(LINE, device=device)
    y = picograd.fft.rfft(x * 2) * 3
    pytest.importorskip("graphviz")
    from picograd.draw import picture_of

    assert "host rfft" in picture_of(y).text()
    assert "host rfft(-1, 'backward')" in picture_of(y, "plan").text()
    prime = Tensor(np.ones(521), device=device) * 2  # a GPU has products for others
    text = str(picograd.explain(picograd.fft.rfft(prime), "cuda"))
    assert "= host_call(%" in text and "host rfft(-1, 'backward') p" in text


def test_debug_and_profiles_tell_their_time(capsys: Any, device: str) -> None:
    x = Tensor(LINE, device=device).realize()
    with config.override(debug=1), picograd.profile(None) as run:
        picograd.fft.rfft(x, PRIME).realize()
    text = capsys.readouterr().err
    assert any("host" in line and "rfft(-1, 'backward') (4, 521)" in line
               for line in text.splitlines())  # fmt: skip
    assert any(event["name"].startswith("host rfft") for event in run.events)


def test_a_gpu_transforms_in_loops() -> None:
    """The body of a loop is expanded before its complex numbers are pairs."""
    null: Any = get_device("null")
    before = null.host_calls
    xs = picograd.zeros(3, 6, 2, device="null")

    def step(total: Any, x: Any) -> Any:
        y = picograd.fft.fft(picograd.view_as_complex(x * total))
        return total + y.real.sum(), picograd.view_as_real(y)

    last, ys = picograd.scan(step, picograd.zeros((), device="null"), xs)
    assert last.realize().shape == () and ys.realize().shape == (3, 6, 2)
    assert null.host_calls == before


def test_the_null_device_counts_them() -> None:
    null: Any = get_device("null")
    before = null.host_calls
    y = picograd.linalg.pinv(picograd.zeros(150, 150, dtype="float64", device="null"))
    picograd.fft.rfft(y, PRIME).realize()
    assert null.host_calls - before == 2
    step = picograd.jit(lambda x: picograd.linalg.pinv(x))
    for _ in range(3):
        step(y)
    assert null.host_calls - before == 5
