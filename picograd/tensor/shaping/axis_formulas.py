"""Rearranging axes by a formula of their names, in the notation of einops.

Both sides name every axis: `"b (h w) c -> b c h w"`. Names in parentheses are the factors of one
axis, the slowest first; `1` and `()` are an axis of size 1; `...` is all axes that are not named.
Source: Rogozhnikov (2022), "Einops: Clear and Reliable Tensor Manipulations".
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from picograd.errors import ShapeError
from picograd.helpers import product
from picograd.tensor.core.annotations import Tensor
from picograd.tensor.core.function import composed

TOKEN = re.compile(r"\.\.\.|[A-Za-z_]\w*|\S")
NAME = re.compile(r"[A-Za-z_]\w*")
REST = "..."
Side = list[list[str]]  # the names in each axis


@composed(function=False)
def rearrange(input: Tensor, formula: str, **sizes: int) -> Tensor:
    """Reorder, split and merge axes as a formula of their names says.

    `sizes` gives those that do not follow from the shape. Raises ShapeError for a formula that
    does not fit.

    >>> Tensor([1, 2, 3, 4, 5, 6]).rearrange("(a b) -> b a", a=2).tolist()
    [[1, 4], [2, 5], [3, 6]]
    >>> Tensor.zeros(2, 3, 4, 5).rearrange("b ... c -> b c (...)").shape
    (2, 5, 12)
    """
    left, right = read_formula(formula, len(input.shape))
    before = [name for names in left for name in names]
    after = [name for names in right for name in names]
    check_names(formula, before, after, sizes)
    known = dict(sizes)
    for names, size in zip(left, input.shape):
        solve(formula, names, size, known)
    flat = input.reshape([known[name] for name in before])
    moved = flat.permute([before.index(name) for name in after])
    return moved.reshape([product(known[name] for name in names) for names in right])


def wrong(formula: str, problem: str, fix: str) -> ShapeError:
    """Word an error about a formula."""
    return ShapeError("rearrange", f"{formula!r}: {problem}", fix)


def read_formula(formula: Any, rank: int) -> tuple[Side, Side]:
    """Read both sides; `...` becomes a name for each axis it stands for."""
    sides = formula.split("->") if isinstance(formula, str) else []
    if len(sides) != 2:
        raise wrong(formula, "it has not two sides", 'write "a b -> b a"')
    left = read_side(formula, sides[0])
    missing = rank - len(left) + ([REST] in left)
    if missing < 0 or (missing and [REST] not in left):
        text = f"it has {len(left)} axes, the tensor {rank}"
        raise wrong(formula, text, "name every axis, or write ...")
    rest = " ".join(f"_{number}" for number in range(missing))
    first, second = (read_side(formula, side.replace(REST, f" {rest} ")) for side in sides)
    return first, second


def read_side(formula: str, side: str) -> Side:
    """Read one side: the list of names of every axis."""
    axes: Side = []
    is_open = False
    for token in TOKEN.findall(side):
        if token in "()" and is_open == (token == ")"):
            is_open = not is_open
            axes.extend([[]] if is_open else [])
        elif token == "1":
            axes.extend([] if is_open else [[]])
        elif token != REST and not NAME.fullmatch(token):
            raise wrong(formula, f"{token!r} is no name", "use names, parentheses, 1 and ...")
        elif is_open:
            axes[-1].append(token)
        else:
            axes.append([token])
    if is_open:
        raise wrong(formula, "a parenthesis is open", "close it")
    return axes


def check_names(
    formula: str, before: Sequence[str], after: Sequence[str], sizes: Iterable[str]
) -> None:
    """Raise unless both sides have the same names, each once, and sizes are of names."""
    for names in (before, after):
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise wrong(formula, f"{twice[0]!r} is there twice", "name every axis once")
    odd = sorted(set(before) ^ set(after))
    if odd:
        raise wrong(formula, f"{odd[0]!r} is on one side only", "name the same axes on both")
    unused = [name for name in sizes if name not in before]
    if unused:
        raise wrong(formula, f"it has no axis {unused[0]!r}", "give sizes of named axes")


def solve(formula: str, names: list[str], size: int, known: dict[str, int]) -> None:
    """Find the sizes of one axis's factors: all but one must be known."""
    unknown = [name for name in names if name not in known]
    factor = product(known[name] for name in names if name in known)
    if len(unknown) > 1:
        raise wrong(formula, f"sizes {unknown} do not follow", f"pass {unknown[0]}=...")
    if unknown and factor and size % factor == 0:
        known[unknown[0]] = size // factor
    elif unknown or factor != size:
        text = f"{names} with {factor} known elements do not fill an axis of size {size}"
        raise wrong(formula, text, "give sizes that divide it")
