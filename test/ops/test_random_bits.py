"""The bits of every sampler: the same today, tomorrow, on every device and in every order.

`GOLDEN` holds the CRC32 of 1000 draws at seed 0; run this file as a program to write it anew.
docs/design/0009-random-bits.md says how the bits are kept.
"""

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor
from picograd.nn.functional import dropout
from picograd.tensor.making import distributions

COUNT = 1000
DTYPES = ("float16", "bfloat16", "float32", "float64")
Make = Callable[[str, str], Tensor]


def place(dtype: str, device: str) -> dict[str, str]:
    return {"dtype": dtype, "device": device}


def in_place(draw: Callable[[Tensor], Any]) -> Make:
    return lambda dtype, device: draw(Tensor.zeros(COUNT, **place(dtype, device)))


def weights(dtype: str, device: str) -> Tensor:
    return Tensor.arange(1, 41, **place(dtype, device)) * 0.37


SAMPLERS: dict[str, Make] = {
    "rand": lambda *at: picograd.rand(COUNT, **place(*at)),
    "randn": lambda *at: picograd.randn(COUNT, **place(*at)),
    "uniform": lambda *at: Tensor.uniform(COUNT, low=-0.3, high=1.7, **place(*at)),
    "uniform_": in_place(lambda x: x.uniform_(0.1, 0.7)),
    "normal": lambda *at: picograd.normal(0.3, 1.7, (COUNT,), **place(*at)),
    "normal of tensors": lambda *at: picograd.normal(
        Tensor.full((COUNT,), 0.3, **place(*at)), Tensor.full((1,), 1.7, **place(*at))),
    "normal_": in_place(lambda x: x.normal_(-0.7, 0.3)),
    "log_normal_": in_place(lambda x: x.log_normal_(0.1, 0.9)),
    "exponential": lambda *at: picograd.exponential(COUNT, lambd=0.7, **place(*at)),
    "exponential_": in_place(lambda x: x.exponential_(1.3)),
    "cauchy_": in_place(lambda x: x.cauchy_(0.3, 0.7)),
    "geometric_": in_place(lambda x: x.geometric_(0.03)),
    "bernoulli_": in_place(lambda x: x.bernoulli_(0.3)),
    "random_": in_place(lambda x: x.random_(90)),
    "truncated_normal": lambda *at: picograd.truncated_normal(
        COUNT, mean=0.3, std=0.7, low=-1.0, high=1.5, **place(*at)),
    "trunc_normal_": in_place(lambda x: x.trunc_normal_(0.1, 2.0)),
    "multinomial": lambda *at: picograd.multinomial(weights(*at), COUNT, True),
    "multinomial once": lambda *at: picograd.multinomial(weights(*at), 40),
    "randperm": lambda *at: picograd.randperm(COUNT, **place(*at)),
    "gumbels": in_place(distributions.gumbels),
    "dropout": lambda *at: dropout(Tensor.ones(COUNT, **place(*at)), 0.3),
}  # fmt: skip
GOLDEN: dict[str, tuple[int, ...]] = {
    "rand": (0x806A5B65, 0x4DFBD8D5, 0x0D1C785C, 0x090B5E28),
    "randn": (0x4F5CC6ED, 0xB656A6F7, 0xE607011B, 0xABAB0995),
    "uniform": (0xD3266E21, 0x0B2FCDCF, 0xC28B1E5A, 0x217ACE87),
    "uniform_": (0xDE6F01D6, 0x194937D7, 0x78F7BAE4, 0xFF4F556A),
    "normal": (0x2F72C144, 0xA28F2061, 0x605F2DBB, 0xFCE1BA1D),
    "normal of tensors": (0x2D1CA92C, 0xB353635B, 0x605F2DBB, 0xFCE1BA1D),
    "normal_": (0xA4E75C8A, 0xB18C3F4A, 0x40525223, 0xCF3A8CAE),
    "log_normal_": (0x2FCE47F6, 0x6CE624A2, 0xD2C696E2, 0x827C53E1),
    "exponential": (0x5B25E411, 0xE42B83E0, 0x1AC13BF8, 0xFBD26D8C),
    "exponential_": (0x6814109A, 0x2FD92F3A, 0x1A00DC13, 0xECBCBC59),
    "cauchy_": (0x43B354CD, 0x32178F9C, 0xF6FBCB20, 0xD47228EB),
    "geometric_": (0xAA38A0BD, 0x1B1D0190, 0x5CB83933, 0xC68D1BCF),
    "bernoulli_": (0x858A7C31, 0x4F10B139, 0x4F10B139, 0x125F74FF),
    "random_": (0x2BCB8E27, 0xE85AA4ED, 0xE85AA4ED, 0xDB70CC72),
    "truncated_normal": (0x7C2483DD, 0xB96AF165, 0xDFD8E089, 0xA42765C9),
    "trunc_normal_": (0xA540A548, 0x02277210, 0xD83B6E03, 0x0CA809EF),
    "multinomial": (0xFB175165, 0xFB175165, 0xFB175165, 0xFB175165),
    "multinomial once": (0xDFB214DF, 0xDFB214DF, 0xDFB214DF, 0xDFB214DF),
    "randperm": (0x3E45A9A9, 0xC643D24E, 0x3DADE9AD, 0x2EEE17CF),
    "gumbels": (0xC9EAA8C2, 0x7927D80E, 0x48DF38A9, 0x7666878E),
    "dropout": (0x7E5BD8B2, 0xFF125394, 0xBB3C02D2, 0xE51BB753),
}


def drawn(dtype: str, device: str) -> dict[str, Any]:
    """Draw from every sampler at seed 0, computed in the reverse order of recording."""
    made = {}
    for name, make in SAMPLERS.items():
        picograd.manual_seed(0)
        made[name] = make(dtype, device)
    return {name: made[name].numpy() for name in reversed(made)}


def hashed(array: Any) -> int:
    return zlib.crc32(np.ascontiguousarray(array).tobytes())


@pytest.mark.parametrize("dtype", DTYPES)
def test_bits(dtype: str, device: str) -> None:
    found = {name: hashed(array) for name, array in drawn(dtype, device).items()}
    position = DTYPES.index(dtype)
    assert found == {name: GOLDEN[name][position] for name in SAMPLERS}


@pytest.mark.parametrize("name", SAMPLERS)
def test_the_order_does_not_matter(name: str, device: str) -> None:
    """Alone, and in one plan with what comes before and after it."""
    make = SAMPLERS[name]
    picograd.manual_seed(3)
    first = make("float32", device).numpy()
    second = make("float32", device).numpy()
    picograd.manual_seed(3)
    both = [make("float32", device) for _ in range(2)]
    assert (both[1].numpy() == second).all() and (both[0].numpy() == first).all()


def test_other_shapes_are_the_same_stream(device: str) -> None:
    """An element's bits depend on its position alone: not on vectors, tasks or blocks."""
    for make in (picograd.rand, picograd.randn):
        picograd.manual_seed(5)
        whole = make(40000, device=device).numpy()
        picograd.manual_seed(5)
        assert (make(8, 5000, device=device).t().numpy().T.reshape(-1) == whole).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_arithmetic_is_rounded_as_written(dtype: str, device: str) -> None:
    """No compiler makes an fma of a product and a sum: NumPy's bits, fused or not."""
    generator = np.random.default_rng(0)
    a, b, c, d = generator.uniform(0.5, 2.0, (4, COUNT)).astype(dtype)
    x, y, z, w = (Tensor(each, device=device) for each in (a, b, c, d))
    tenth = np.asarray(0.1, dtype)
    found = ((x * y + z) / w - x * x * 0.1 + (x * z - y * w).abs().sqrt()).numpy()
    want = (a * b + c) / d - a * a * tenth + np.sqrt(np.abs(a * c - b * d))
    np.testing.assert_array_equal(found, want)


if __name__ == "__main__":
    columns = [drawn(dtype, "cpu") for dtype in DTYPES]
    for sampler in SAMPLERS:
        print(f'    "{sampler}": ({", ".join(f"0x{hashed(c[sampler]):08x}" for c in columns)}),')
