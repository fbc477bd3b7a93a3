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


@pytest.mark.parametrize("name", ["float32", "float64", "int32"])
def test_a_complex_number_keeps_the_width_of_floats(name: str) -> None:
    """A complex number beside floats is as wide as they are, as a sum of the two has it."""
    for kind in ("complex64", "complex128"):
        ours = picograd.ones(2, dtype=name), picograd.tensor(1, dtype=getattr(picograd, kind))
        theirs = (
            torch.ones(2, dtype=getattr(torch, name)),
            torch.tensor(1, dtype=getattr(torch, kind)),
        )
        for a, b in zip((*ours, 1j), (*ours[1:], 1j, ours[0]), strict=True):
            found = picograd.result_type(a, b).name
            pair = [theirs[0] if x is ours[0] else theirs[1] if x is ours[1] else x for x in (a, b)]
            assert found == str(torch.result_type(*pair))[6:]
    assert picograd.result_type(ours[0], 2j).name == str(torch.result_type(theirs[0], 2j))[6:]
