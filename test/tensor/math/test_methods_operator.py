"""Operators: what is promoted, and what is written in place."""

import operator
from typing import Any

import pytest

import picograd
from picograd import Tensor
from picograd.errors import DTypeError
from picograd.graph.node import Node
from picograd.tensor.core.recording import apply
from picograd.tensor.math import elementwise
from picograd.tensor.math.methods_operator import operate, paired, with_number

torch = pytest.importorskip("torch")
DTYPES = ["bool", "uint8", "int8", "int32", "int64", "float16", "bfloat16", "float32", "float64"]


def torch_dtype(name: str) -> Any:
    return getattr(torch, name)


@pytest.mark.parametrize("first", DTYPES)
def test_promotion_equals_pytorch(first: str, device: str) -> None:
    for second in DTYPES:
        for shapes in (((2,), (2,)), ((2,), ()), ((), (2,))):
            a, b = (Tensor.ones(s, dtype=d) for s, d in zip(shapes, (first, second)))
            c, d = (torch.ones(s, dtype=torch_dtype(d)) for s, d in zip(shapes, (first, second)))
            assert (a * b).dtype.name == str((c * d).dtype)[6:], (first, second, shapes)
            assert (a / b).dtype.name == str((c / d).dtype)[6:], (first, second, shapes)
    for number in (True, 2, 2.5):
        want = torch.ones(2, dtype=torch_dtype(first)) * number
        assert (Tensor.ones(2, dtype=first) * number).dtype.name == str(want.dtype)[6:]


def test_augmented_assignment_keeps_dtype(device: str) -> None:
    x = Tensor([1.0, 2.0], device=device)
    x += Tensor([1.0, 1.0], dtype="float64", device=device)
    assert x.dtype is picograd.float32
    n = Tensor([1, 2], device=device)
    with pytest.raises(TypeError, match="in place the result is float32 but the tensor is int64"):
        n /= 2
    with pytest.raises(ValueError, match="does not fit a tensor of shape"):
        x += Tensor([[1.0, 1.0], [2.0, 2.0]], device=device)


def test_unknown_operand_type_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        Tensor.ones(3) + "x"


def test_functions_take_two_numbers() -> None:
    """PyTorch's sums, products and quotients of two Python numbers are tensors without axes."""
    for name in ("add", "sub", "mul", "div"):
        for a, b in ((7, 2), (1.5, 2), (3, 0.5)):
            ours, theirs = getattr(picograd, name)(a, b), getattr(torch, name)(a, b)
            assert (ours.item(), ours.dtype.name) == (theirs.item(), str(theirs.dtype)[6:])
    with pytest.raises(TypeError):
        picograd.maximum(1, 2)
    assert picograd.add(1, 2, alpha=3).item() == 7 and picograd.sub(1, 2.0, alpha=3).item() == -5
    assert picograd.div(-7, 2, rounding_mode="floor").item() == -4
    assert picograd.div(-7, 2, rounding_mode="trunc").item() == -3
    assert picograd.div(7, 2.0, rounding_mode="trunc").dtype is picograd.float32


@pytest.mark.parametrize("number", [True, 2, -3])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64"])
@pytest.mark.parametrize("shift", [operator.lshift, operator.rshift])
def test_numbers_are_shifted_by_tensors(shift: Any, dtype: str, number: int, device: str) -> None:
    if dtype == "bool" and number is True:
        with pytest.raises(DTypeError):
            shift(number, picograd.tensor([True]))
        return
    ours, theirs = (
        shift(number, framework.tensor([1, 0, 3]).to(getattr(framework, dtype)))
        for framework in (picograd, torch)
    )
    assert ours.tolist() == theirs.tolist() and ours.dtype.name in str(theirs.dtype)


def test_shifts_in_place_reach_the_base() -> None:
    x = picograd.tensor([1, 2, 12])
    part = x[1:]
    part <<= 2
    x >>= picograd.tensor([0, 1, 4])
    assert x.tolist() == [1, 4, 3] and part.tolist() == [4, 3]


def test_powers_of_masks_and_of_complex_zeros(device: str) -> None:
    masks = [framework.tensor([True, False]) for framework in (picograd, torch)]
    for exponent in (True, False):
        ours, theirs = (mask**exponent for mask in masks)
        assert ours.tolist() == theirs.tolist() and ours.dtype is picograd.bool
    with pytest.raises(DTypeError, match="negative"):
        masks[0] ** -1
    zero = picograd.tensor([0j])
    assert (zero**2.5).tolist() == [0] and (zero**0.0).tolist() == [1]
    assert (zero**1j).isnan().all() and (zero**-3.0).isnan().all()


def test_flags_are_not_subtracted() -> None:
    x = picograd.tensor([1, 2])
    for a, b in ((x, True), (True, x)):
        with pytest.raises(DTypeError, match="sub: is not defined for bool"):
            a - b


class Pair(tuple):  # type: ignore[type-arg]
    def __radd__(self, other: Any) -> str:
        return f"{other.shape} + pair"

    def __rmatmul__(self, other: Any) -> str:
        return f"{other.shape} @ pair"

    def __lt__(self, other: Any) -> Any:
        return f"pair < {other.shape}"


def test_lists_with_operators_of_their_own_are_asked() -> None:
    x = Tensor([1.0, 2.0])
    assert x + Pair((1, 2)) == "(2,) + pair" and x @ Pair((1, 2)) == "(2,) @ pair"
    assert (x > Pair((1, 2))) == "pair < (2,)"
    assert (x + (1, 2)).tolist() == [2.0, 4.0]


BITWISE = ("and", "or", "xor", "lshift", "rshift")
IN_PLACE = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", *BITWISE)


def test_what_is_no_operand_is_left_to_python_in_place_too() -> None:
    x, pair = Tensor([1, 2]), Pair((1, 2))
    for name in (*[f"__i{each}__" for each in IN_PLACE], "__matmul__", "__rmatmul__"):
        assert getattr(x, name)(object()) is NotImplemented, name
    kept = x
    kept += pair
    assert kept == "(2,) + pair"
    with pytest.raises(TypeError, match=r"for \+=: 'Tensor' and 'object'"):
        x += object()
    with pytest.raises(DTypeError, match="add_: operand must be a Tensor or a number, not object"):
        x.add_(object())


NUMBERS = 0, 1, -1, 2, -7, 1 << 30, 0.0, -0.0, 1.0, 0.5, 3.5e38, 1e300, float("inf"), float("nan")
PAIRS = (
    (elementwise.arithmetic, ("add", "sub", "mul", "mod")), (elementwise.division, ("div",)),
    (elementwise.compare, ("equal", "not_equal", "less", "less_equal")),
    (elementwise.compare_swapped, ("less", "less_equal")),
)  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_the_short_way_records_what_the_long_way_does(dtype: str) -> None:
    x, y = (Tensor([[1.0, 2.0]]).cast(dtype).detach().requires_grad_() for _ in range(2))

    def told(node: Node) -> Any:
        arg = type(node.arg), repr(node.arg)
        return node.op, arg, node.shape, node.dtype, [*map(told, node.inputs)]

    for function, ops in PAIRS:
        for op in ops:
            for a, b in ((x, y), *[(x, n) for n in NUMBERS], *[(n, x) for n in NUMBERS]):
                short, long = operate(function, op, a, b), apply(function, op, a, b)
                assert told(short.node) == told(long.node), (op, a, b)
                assert short.requires_grad == long.requires_grad


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_integers_are_recorded_as_they_are(dtype: str, device: str) -> None:
    """As floats are, where nothing is promoted, demanded or out of range."""
    values = [[1, -2, 3], [4, 5, -6]]
    a, b = Tensor(values, dtype=dtype), Tensor([1, -2, 5], dtype=dtype)
    c, d = torch.tensor(values, dtype=torch_dtype(dtype)), torch.tensor([1, -2, 5])
    d = d.to(torch_dtype(dtype))
    for name in ("add", "sub", "mul", "eq", "ne", "lt", "le", "gt", "ge"):
        function = getattr(operator, name)
        for first, second in (
            ((a, b), (c, d)),
            ((a, a), (c, c)),
            ((a, 5), (c, 5)),
            ((5, a), (5, c)),
        ):
            found, wanted = function(*first), function(*second)
            assert found.dtype.name == str(wanted.dtype)[6:] and found.tolist() == wanted.tolist()
    straight = elementwise.arithmetic
    assert with_number(straight, "add", a, 100) is not None
    assert with_number(straight, "floordiv", a, 100) is None
    assert with_number(elementwise.division, "div", a, 100) is None
    for number in (2.5, True, 1 << 63):
        assert with_number(straight, "add", a, number) is None
    assert with_number(straight, "add", Tensor([1, 2], dtype="uint8"), 1) is None
    assert paired("floordiv", a, a) is None and paired("add", a, a) is not None
