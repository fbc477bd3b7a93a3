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
from picograd.tensor import distributions

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
}  # fmt: skip
GOLDEN: dict[str, tuple[int, ...]] = {
    "rand": (0x806a5b65, 0x4dfbd8d5, 0x0d1c785c, 0xfacd1634),
    "randn": (0x17826877, 0x2516547a, 0x3f66da43, 0xab9bf59c),
    "uniform": (0xd3266e21, 0x0b2fcdcf, 0xc28b1e5a, 0x3585c731),
    "uniform_": (0xde6f01d6, 0x194937d7, 0x78f7bae4, 0x49cd7958),
    "normal": (0x9165d78c, 0xcb2a18f6, 0x32a302b1, 0x3c3b1d97),
    "normal of tensors": (0x0d4b9507, 0xcdb34e09, 0x32a302b1, 0x3c3b1d97),
    "normal_": (0xc35058b2, 0xe7887197, 0xb1066ec3, 0xafa9b94b),
    "log_normal_": (0xff530068, 0x0d71e0b8, 0x8c0ce0ed, 0xeee6f0b2),
    "exponential": (0x5b25e411, 0xe42b83e0, 0x1ac13bf8, 0xa79aea74),
    "exponential_": (0x6814109a, 0x2fd92f3a, 0x1a00dc13, 0x1b2d69c7),
    "cauchy_": (0x43b354cd, 0x32178f9c, 0xf6fbcb20, 0xae604eea),
    "geometric_": (0xaa38a0bd, 0x1b1d0190, 0x5cb83933, 0xc68d1bcf),
    "bernoulli_": (0x858a7c31, 0x4f10b139, 0x4f10b139, 0x125f74ff),
    "random_": (0x2bcb8e27, 0xe85aa4ed, 0xe85aa4ed, 0xdb70cc72),
    "truncated_normal": (0x7c2483dd, 0xb96af165, 0xd1db253f, 0x59f20c9e),
    "trunc_normal_": (0xa540a548, 0x02277210, 0xa3a96e54, 0x8df05274),
    "multinomial": (0xfb175165, 0xfb175165, 0xfb175165, 0xfb175165),
    "multinomial once": (0xdfb214df, 0xdfb214df, 0xdfb214df, 0xdfb214df),
    "randperm": (0x3e45a9a9, 0xc643d24e, 0x3dade9ad, 0x2eee17cf),
    "gumbels": (0xc9eaa8c2, 0x7927d80e, 0x48df38a9, 0x87a5c34e),
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
