"""Limits and promotion of dtypes equal PyTorch's."""

import itertools

import pytest

import picograd
from picograd.errors import DTypeError

torch = pytest.importorskip("torch")

FLOATS = ["float16", "bfloat16", "float32", "float64"]
WHOLE = ["uint8", "int8", "int16", "int32", "int64"]


@pytest.mark.parametrize("name", [*FLOATS, "float8_e4m3fn", "float8_e5m2"])
def test_finfo(name: str) -> None:
    ours, theirs = picograd.finfo(name), torch.finfo(getattr(torch, name))
    for fact in ("bits", "max", "min", "eps", "tiny", "smallest_normal", "resolution"):
        assert getattr(ours, fact) == getattr(theirs, fact), fact
    assert name in repr(ours)


@pytest.mark.parametrize("name", WHOLE)
def test_iinfo(name: str) -> None:
    ours, theirs = picograd.iinfo(name), torch.iinfo(getattr(torch, name))
    assert (ours.bits, ours.min, ours.max) == (theirs.bits, theirs.min, theirs.max)
    assert name in repr(ours)


def test_promotion() -> None:
    for a, b in itertools.product([*FLOATS, *WHOLE, "bool"], repeat=2):
        first, second = getattr(torch, a), getattr(torch, b)
        assert picograd.promote_types(a, b).name == str(torch.promote_types(first, second))[6:]
        assert picograd.can_cast(a, b) == torch.can_cast(first, second), (a, b)


def test_result_type() -> None:
    values = [1, 2.5, True]
    made = [("int64", ()), ("float64", ()), ("int32", (2,)), ("float16", (1,)), ("bool", (3,))]
    ours = [*values, *(picograd.zeros(s, dtype=n) for n, s in made)]
    theirs = [*values, *(torch.zeros(s, dtype=getattr(torch, n)) for n, s in made)]
    for (a, b), (c, d) in zip(
        itertools.product(ours, repeat=2), itertools.product(theirs, repeat=2), strict=True
    ):
        assert picograd.result_type(a, b).name == str(torch.result_type(c, d))[6:], (c, d)


def test_mistakes() -> None:
    assert picograd.get_default_dtype() is picograd.float32
    with pytest.raises(DTypeError):
        picograd.finfo("int32")
    with pytest.raises(DTypeError):
        picograd.iinfo("float32")
