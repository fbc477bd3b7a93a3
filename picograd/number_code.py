"""Code of traced numbers: what a replay evaluates, written as one Python function.

A decoding step computes a hundred sizes and positions of the numbers of its call, and compares
half of them. Each is a line here, and not a call through a list of operands:

    def evaluate(s):
        s0, s1 = s[0], s[1]
        s7 = s0 + s1
        if type(s7) is not int: return False
        s9 = s7 < s3
        if s9 is not True: return False
        s[7], s[9] = s7, s9
        return True
"""

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

WRITTEN: dict[Any, str] = {
    operator.add: "{} + {}", operator.sub: "{} - {}", operator.mul: "{} * {}",
    operator.truediv: "{} / {}", operator.floordiv: "{} // {}", operator.mod: "{} % {}",
    operator.neg: "-{}", operator.lt: "{} < {}", operator.le: "{} <= {}", operator.gt: "{} > {}",
    operator.ge: "{} >= {}", operator.eq: "{} == {}", operator.ne: "{} != {}",
}  # fmt: skip
Steps = Sequence[tuple[int, Callable[..., Any], tuple[int, ...], type]]
Guards = Iterable[tuple[int, Any]]


def compiled(
    steps: Steps, guards: Guards, same: Callable[[Any, Any], bool]
) -> Callable[[list[Any]], bool]:
    """Make a function that fills in the slots of steps; False where a class or a guard differs."""
    names: dict[str, Any] = {"same": same}
    made = [step[0] for step in steps]
    expected = dict(guards)
    known = set(made)
    read = {place for step in steps for place in step[2]} | expected.keys()
    given = sorted(read - known)
    lines = [f"s{place} = s[{place}]" for place in given]
    for place in given:
        lines += guard_lines(place, expected, names)
    for slot, function, places, kind in steps:
        lines.append(f"s{slot} = {expression(function, places, names)}")
        names[f"k{slot}"] = kind
        lines.append(f"if type(s{slot}) is not k{slot}: return False")
        lines += guard_lines(slot, expected, names)
    lines += [f"s[{slot}] = s{slot}" for slot in made]
    text = "\n    ".join(["def evaluate(s):", *lines, "return True"])
    exec(text, names)
    return names["evaluate"]


def expression(function: Any, places: tuple[int, ...], names: dict[str, Any]) -> str:
    """Write an operation of slots."""
    operands = [f"s{place}" for place in places]
    form = WRITTEN.get(function) if function.__hash__ else None
    if form is not None and form.count("{}") == len(operands):
        return form.format(*operands)
    name = f"f{len(names)}"
    names[name] = function
    return f"{name}({', '.join(operands)})"


def guard_lines(slot: int, expected: dict[int, Any], names: dict[str, Any]) -> Iterator[str]:
    """Write what a slot must read."""
    if slot not in expected:
        return
    value = expected[slot]
    names[f"e{slot}"] = value
    if value is True or value is False:
        yield f"if s{slot} is not {value}: return False"
    elif type(value) is int:
        yield f"if type(s{slot}) is not int or s{slot} != e{slot}: return False"
    else:
        yield f"if not same(s{slot}, e{slot}): return False"
