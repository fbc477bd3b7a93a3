"""Traced numbers: arithmetic is kept, every way to read a value is a guard."""

import copy
import math
import operator
import pickle
import struct
from typing import Any

import numpy as np
import pytest

from picograd.traced_number import Difference, Numbers, Program, TracedNumber, program

COMPUTED = [
    lambda a, b: a * 2 + b, lambda a, b: (a - b) / 3 // 0.1, lambda a, b: 2 ** b % 7 - -a,
    lambda a, b: divmod(a, 0.3), lambda a, b: divmod(7, b), lambda a, b: abs(a) + round(a, 1),
    lambda a, b: math.floor(a) + math.ceil(a) + math.trunc(a), lambda a, b: (b & 3) | (b ^ 1) << 2,
    lambda a, b: np.float32(2) * a + np.sqrt(b) + ~b, lambda a, b: sum([a, b, 1.0]),
]  # fmt: skip
READS = [
    lambda a, b: a < 1, lambda a, b: max(a, b), lambda a, b: bool(b), lambda a, b: int(a),
    lambda a, b: float(b), lambda a, b: range(b), lambda a, b: [1, 2, 3, 4, 5][b],
    lambda a, b: f"{a:.1f}", lambda a, b: str(a), lambda a, b: "%d" % b,  # noqa: UP031
    lambda a, b: hash(a), lambda a, b: {2: 1}.get(b), lambda a, b: a in (1, 4.25),
    lambda a, b: math.exp(a), lambda a, b: np.array([a, b]).sum(), lambda a, b: np.float32(a),
    lambda a, b: struct.pack("di", a, b), lambda a, b: a.is_integer(),
    lambda a, b: b.bit_length(),
    lambda a, b: np.ones(3) * a, lambda a, b: bytes(b), lambda a, b: [0] * b,
    lambda a, b: pickle.loads(pickle.dumps(a)), lambda a, b: complex(a),
    lambda a, b: operator.index(b),
    lambda a, b: np.zeros(b), lambda a, b: np.arange(9)[b], lambda a, b: a.real,
    lambda a, b: slice(0, b).indices(9), lambda a, b: np.linspace(0, a, b),
]  # fmt: skip


def traced(function: Any, a: float, b: int) -> tuple[Any, Numbers, Program]:
    numbers = Numbers([a, b], lambda: "here")
    found = function(numbers.argument(0), numbers.argument(1))
    each = found if isinstance(found, tuple) else (found,)
    slots = [item.slot for item in each if type(item) is TracedNumber]
    numbers.close()
    return found, numbers, program(numbers, slots)


@pytest.mark.parametrize("number", range(len(COMPUTED)))
def test_arithmetic_is_evaluated_again(number: int) -> None:
    function = COMPUTED[number]
    found, numbers, made = traced(function, 0.7, 3)
    assert not numbers.guards
    for a, b in ((0.7, 3), (-2.5, 5), (11.0, 4)):
        slots, wanted = made.run([a, b]), function(a, b)
        assert isinstance(slots, list)
        pairs = zip(found, wanted) if isinstance(found, tuple) else [(found, wanted)]
        for item, value in pairs:
            now = slots[item.slot]
            assert type(now) is type(value) and now == value


@pytest.mark.parametrize("number", range(len(READS)))
def test_what_reads_a_value_is_a_guard(number: int) -> None:
    function = READS[number]
    found, numbers, made = traced(function, 0.7, 3)
    wanted = function(0.7, 3)
    if isinstance(found, TracedNumber):
        found = found.value
    assert np.array_equal(found, wanted) and numbers.guards
    assert isinstance(made.run([0.7, 3]), list)
    assert isinstance(made.run([4.25, 0]), Difference)


def test_it_claims_to_be_the_number_and_survives_the_trace() -> None:
    numbers = Numbers([0.5, 3, np.float32(2)], lambda: "")
    a, b, c = map(numbers.argument, range(3))
    assert isinstance(a, float) and isinstance(b, int) and not isinstance(b, bool)
    assert isinstance(c, np.floating) and c.dtype == np.float32 and not numbers.guards
    assert copy.deepcopy([a])[0] is a and a is not None
    with pytest.raises(TypeError):
        a + "text"
    with pytest.raises(TypeError):
        range(a)
    numbers.close()
    assert a + 1 == 1.5 and type(a + 1) is float and type(pickle.loads(pickle.dumps(b))) is int


def test_errors_and_other_classes_are_differences() -> None:
    _, _, made = traced(lambda a, b: (1 / a, 2**b), 0.7, 3)
    assert isinstance(made.run([0.0, 3]), Difference)  # the function raises it itself
    assert isinstance(made.run([0.7, -3]), Difference)  # a float
    _, _, zero = traced(lambda a, b: (float(a), a * b), 0.0, 3)
    assert isinstance(zero.run([-0.0, 3]), Difference)
    _, _, nan = traced(lambda a, b: float(a), math.nan, 3)
    assert isinstance(nan.run([math.nan, 5]), list)


def test_a_number_left_over_from_one_trace_is_a_constant_of_the_next() -> None:
    first = Numbers([0.5], lambda: "")
    old = first.argument(0)
    first.close()
    found, numbers, made = traced(lambda a, b: old * a, 0.7, 3)
    assert not numbers.guards and made.run([2.0, 3])[found.slot] == 1.0
    _, numbers, _ = traced(lambda a, b: old == a, 0.7, 3)
    assert numbers.guards
