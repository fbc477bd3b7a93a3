"""Linear algebra and Fourier transforms on the host: values and gradients equal PyTorch's."""

from typing import Any

import numpy as np
import pytest
from op_support import Case, compare, library, lin, numbers

import picograd
from picograd.errors import PicogradError

torch = pytest.importorskip("torch")

A = numbers((4, 4)) + 6 * np.eye(4)
STACK = numbers((2, 3, 3)) + 6 * np.eye(3)
TALL = numbers((5, 3)) + np.eye(5, 3) * 4
SPD = np.einsum("bij,bkj->bik", STACK, STACK)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_linalg(dtype: str, device: str) -> None:
    b = numbers((3, 2), seed=2)
    calls: dict[str, tuple[Any, list[Any]]] = {
        "inv": (lin("inv"), [STACK]),
        "solve": (lin("solve"), [STACK, numbers((2, 3, 2))]),
        "solve vector": (lin("solve"), [STACK[0], b[:, 0]]),
        "solve broadcast": (lin("solve"), [STACK, b]),
        "det": (lin("det"), [STACK]),
        "slogdet": (lin("slogdet", pick=1), [STACK]),
        "cholesky": (lin("cholesky"), [SPD]),
        "qr q": (lin("qr", pick=0), [TALL]),
        "qr r": (lin("qr", pick=1), [TALL]),
        "svdvals": (lin("svdvals"), [TALL]),
        "eigvalsh": (lin("eigvalsh"), [SPD]),
        "pinv": (lin("pinv"), [TALL]),
        "matrix_power": (lin("matrix_power", 3), [A / 4]),
        "matrix_power -2": (lin("matrix_power", -2), [A]),
        "norm": (lin("norm"), [TALL]),
        "norm fro": (lin("norm", "fro"), [TALL]),
        "norm nuc": (lin("norm", "nuc"), [TALL]),
        "norm 2": (lin("norm", 2), [TALL]),
        "norm 1": (lin("norm", 1), [TALL]),
        "norm inf": (lin("norm", float("inf")), [TALL]),
        "norm rows": (lin("norm", 3, 1), [TALL]),
        "cond": (lin("cond"), [TALL]),
    }
    scale = 100.0 if dtype == "float32" else 10.0
    compare([Case(n, f, x, dtype=dtype, scale=scale) for n, (f, x) in calls.items()], device)


def test_decompositions_up_to_signs(device: str) -> None:
    def singular(x: Any) -> Any:
        u, s, vh = library(x).linalg.svd(x, full_matrices=False)
        return (u * u * s) @ (vh * vh * vh.abs())

    def eigen(x: Any) -> Any:
        w, v = library(x).linalg.eigh(x)
        return (v * v) * w[..., None, :]

    def rebuilt(x: Any) -> Any:
        u, s, vh = library(x).linalg.svd(x, full_matrices=False)
        return (u * s) @ vh

    cases = [
        Case("svd", singular, [TALL], dtype="float64", scale=10),
        Case("svd wide", singular, [TALL.T.copy()], dtype="float64", scale=10),
        Case("svd rebuilt", rebuilt, [TALL], dtype="float64", scale=10),
        Case("eigh", eigen, [SPD], dtype="float64", scale=10),
    ]
    compare(cases, device)


def test_lstsq_and_rank(device: str) -> None:
    a, b = picograd.Tensor(TALL, device=device), picograd.Tensor(numbers((5, 2)), device=device)
    want = np.linalg.lstsq(TALL, numbers((5, 2)), rcond=None)[0]
    assert np.allclose(picograd.linalg.lstsq(a, b).solution.numpy(), want)
    assert picograd.linalg.matrix_rank(a).item() == 3

    residuals = picograd.jit(lambda a: picograd.linalg.lstsq(a, b, driver="gelsd").residuals)
    want = ((TALL @ want - numbers((5, 2))) ** 2).sum(0)
    assert np.allclose(residuals(a).numpy(), want)
    assert residuals(a * 0).isnan().all()  # of no full rank, which the shape cannot tell


def test_errors(device: str) -> None:
    with pytest.raises(PicogradError, match="not square"):
        picograd.linalg.inv(picograd.Tensor(TALL, device=device))
    with pytest.raises(ValueError, match="Singular"):
        picograd.linalg.inv(picograd.zeros(2, 2, device=device))


@pytest.mark.parametrize("norm", [None, "forward", "ortho"])
def test_fourier(norm: Any, device: str) -> None:
    x = numbers((3, 6))
    pairs = numbers((3, 6, 2))

    def both(name: str, is_real_in: bool, is_real_out: bool, *args: Any, **more: Any) -> Case:
        def call(t: Any) -> Any:
            lib = library(t)
            given = t if is_real_in else lib.view_as_complex(t)
            found = getattr(lib.fft, name)(given, *args, norm=norm, **more)
            return found if is_real_out else lib.view_as_real(found)

        return Case(name, call, [x if is_real_in else pairs], dtype="float64")

    cases = [
        both("fft", False, False),
        both("ifft", False, False, dim=0),
        both("fft", False, False, 8),
        both("fft", False, False, 4),
        both("rfft", True, False),
        both("rfft", True, False, 5),
        both("rfft", True, False, dim=0),
        both("irfft", False, True),
        both("irfft", False, True, 9),
        both("fft2", False, False),
        both("ifft2", False, False),
        both("rfft2", True, False),
        both("irfft2", False, True),
    ]
    compare(cases, device)


def test_values_alone_need_no_vectors(monkeypatch):
    for name in ("eig", "svd"):
        whole = getattr(np.linalg, name)

        def plain(x, *args, whole=whole, **options):
            assert options.get("compute_uv") is False
            return whole(x, *args, **options)

        monkeypatch.setattr(np.linalg, name, plain)
    x = picograd.Tensor(np.diag([3.0, 2.0, 0.0]).astype(np.float32))
    assert sorted(each.real for each in picograd.linalg.eigvals(x).tolist()) == [0, 2, 3]
    assert picograd.linalg.matrix_rank(x).item() == 2
