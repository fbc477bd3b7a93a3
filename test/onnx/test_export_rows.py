"""Operations as ONNX operators."""

import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from export_cases import check, reals  # noqa: E402

import picograd  # noqa: E402
import picograd.onnx  # noqa: E402

OPS = {
    "rounding": lambda x: x.trunc() + x.floor() + x.ceil() + x.round() + x.sign(),
    "small": lambda x: (x * 1e-5).expm1() + (x * 1e-5).log1p(),
    "logs": lambda x: (x * x + 0.1).log2() + (x * x + 0.1).log10() + x.abs().sqrt().rsqrt(),
    "pairs": lambda x: x.atan2(x.flip(0)) + x.hypot(x.flip(0)) + x.logaddexp(x.flip(0)),
    "remainders": lambda x: x.remainder(0.7) + x.floor_divide(0.3) + x.fmod(0.3),
    "integers": lambda x: ((x * 9).int() // 4, (x * 9).int() % 4, (x * 9).int() >> 1),
    "bools": lambda x: ((x > 0) & (x < 1) | (x == 2), (x > 0).any(1), (x > 0).all(1)),
    "bits": lambda x: ((x * 9).int() & 6, (x * 9).int() | 6, (x * 9).int() ^ 6, ~(x * 9).int()),
    "double": lambda x: (x.double() + 0.1).log1p(),
    "einsum": lambda x: picograd.einsum("ij,kj,ij->ik", x, x, x),
    "parts": lambda x: (x.diagonal(), x.tril(), x.roll(1, 0), x.repeat(2, 1), x[:, ::2]),
    "normed": lambda x: (x.var(1), x.std(0), x.logsumexp(1), x.norm(dim=1), x.prod(1)),
}


@pytest.mark.parametrize("name", OPS)
def test_operations(name: str) -> None:
    x = reals(4, 4)
    check(OPS[name], (x,), (x,), None)
