"""Index algebra against plain integers."""

from hypothesis import given, settings
from hypothesis import strategies as st

from picograd.schedule.index import (
    Axis,
    Index,
    axis_index,
    constant,
    evaluate,
    flatten,
    substitute,
    unflatten,
)

AXES = [Axis("a", 3), Axis("b", 4), Axis("c", 1), Axis("d", 6)]


@st.composite
def indices(draw: st.DrawFn, depth: int = 3) -> Index:
    if depth == 0:
        axis = draw(st.sampled_from(AXES))
        return axis_index(axis) * draw(st.integers(-4, 6)) + draw(st.integers(-5, 9))
    first = draw(indices(depth - 1))
    kind = draw(st.sampled_from(["add", "sub", "mul", "div", "mod"]))
    if kind in ("add", "sub"):
        second = draw(indices(depth - 1))
        return first + second if kind == "add" else first - second
    n = draw(st.integers(1, 8))
    return {"mul": first * n, "div": first // n, "mod": first % n}[kind]


def points() -> list[dict[Axis, int]]:
    a, b, c, d = AXES
    return [{a: i, b: j, c: 0, d: k} for i in range(3) for j in range(4) for k in range(6)]


def value(index: Index, point: dict[Axis, int]) -> int:
    return int(evaluate(index, point, lambda expr: None))


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(indices(), indices(), st.integers(1, 12))
def test_arithmetic_is_that_of_integers(x: Index, y: Index, n: int) -> None:
    for point in points():
        i, j = value(x, point), value(y, point)
        assert value(x + y, point) == i + j
        assert value(x - y, point) == i - j
        assert value(x * n, point) == i * n
        assert value(x // n, point) == i // n
        assert value(x % n, point) == i % n
        assert x.lo <= i <= x.hi


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(indices(), indices(1))
def test_substitute_replaces_an_axis(x: Index, y: Index) -> None:
    for axis in AXES[:2]:
        moved = substitute(x, {axis: y})
        for point in points():
            assert value(moved, point) == value(x, {**point, axis: value(y, point)})


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=4))
def test_unflatten_undoes_flatten(shape: list[int]) -> None:
    axes = [Axis(f"x{d}", n) for d, n in enumerate(shape)]
    coordinates = [axis_index(axis) for axis in axes]
    assert unflatten(flatten(coordinates, shape), tuple(shape)) == tuple(coordinates)


def test_simplification_terminates_in_one_form() -> None:
    a, b = axis_index(AXES[0]), axis_index(AXES[1])
    flat = a * 4 + b
    assert flat // 4 == a
    assert flat % 4 == b
    assert (flat // 6) * 6 + flat % 6 == flat
    assert (axis_index(AXES[3]) // 2) // 2 == axis_index(AXES[3]) // 4
    assert a - a == constant(0)
    assert hash(a + b) == hash(b + a)
