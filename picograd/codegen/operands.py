"""Operands: a contract or conv kernel seen as one matrix product with an epilogue.

    acc[batch, m, n] = sum over k of a[batch, m, k] * b[batch, k, n]

`analyse` finds which loop axes play M (`rows`), N (`columns`), K (`depth`) and batch, and the two
operand expressions. An operand is any guarded expression of its axes: reading a convolution's input
through its window is implicit im2col. `Contraction`s are values: templates swap sides, reorder axes
within a role (`arrange` does both for a GPU), bind axes to tile coordinates (`role`) and read the
epilogue with `stores`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from picograd.dtype import DType, float32
from picograd.errors import check
from picograd.helpers import ceil_div, product
from picograd.late_methods import dataclass
from picograd.schedule.index import (
    Axis,
    Bindings,
    Index,
    axes_of,
    axis_index,
    substitute,
    unflatten,
)
from picograd.schedule.loop import (
    Compute,
    Condition,
    Expr,
    Kernel,
    Part,
    cast,
    const,
    dynamics_of,
    indices_of,
    needed,
    rewrite,
    walk,
)
from picograd.target import Target


@dataclass(frozen=True, slots=True)
class Twin:
    """A second product of the same left operand and as many columns, whose tiles lie beside."""

    b: Expr  # its right operand, over the axes of the first one's
    number: int  # of its sum among the computes


@dataclass(frozen=True, slots=True)
class Contraction:
    """One matrix product; `computes[number]` is the sum, the rest its epilogue.

    The epilogue may read other products of the same rows and columns.
    """

    computes: tuple[Compute, ...]
    batch: tuple[Axis, ...]
    rows: tuple[Axis, ...]
    columns: tuple[Axis, ...]
    depth: tuple[Axis, ...]
    a: Expr  # of batch, rows and depth, in `dtype`
    b: Expr  # of batch, depth and columns, in `dtype`
    dtype: DType  # of the accumulator
    ends: tuple[Condition, ...] = ()  # of the results: beyond them nobody looks
    number: int = 0  # of its sum among the computes
    twin: Twin | None = None

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """Batch, M, N and K as numbers; N counts the columns of a twin too."""
        batch, m, n, k = (size_of(x) for x in (self.batch, self.rows, self.columns, self.depth))
        return batch, m, n * self.sums, k

    @property
    def rights(self) -> tuple[Expr, ...]:
        """List the right operands: its own, and that of a twin."""
        return (self.b,) if self.twin is None else (self.b, self.twin.b)

    @property
    def sums(self) -> int:
        """Count the sums of an element."""
        return len(self.rights)

    @property
    def windows(self) -> tuple["Windows", ...]:
        """Windows of the result that are reduced, along axes of its rows."""
        for compute in self.computes:
            for expr in walk(compute.body):
                if expr.op == "element":
                    return tuple([windows_along(axis, at, compute) for axis, at in expr.arg[1]])
        return ()


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows along an axis of a product's rows; the first begins `before` its first element.

    A task that walks down the axis in blocks reduces each window in the block with its last
    element, or what would be that: `late` windows of a block would fit before its first one.
    """

    axis: Axis
    number: Axis | None  # counts them, if there are several
    stride: int
    extent: int  # elements from the first of a window to its last
    before: int

    @property
    def count(self) -> int:
        """Count them."""
        return 1 if self.number is None else self.number.size

    @property
    def is_beside(self) -> bool:
        """Tell whether they lie side by side: blocks of whole windows need no others."""
        end = (self.count - 1) * self.stride + self.extent - self.before
        return self.extent <= self.stride and not self.before and end <= self.axis.size

    @property
    def late(self) -> int:
        """Windows that begin in a block and end in the one after it."""
        return 0 if self.is_beside else ceil_div(self.extent - self.before, self.stride) - 1

    @property
    def kept(self) -> int:
        """Elements before a block that its windows take."""
        return 0 if self.is_beside else self.late * self.stride + self.before

    @property
    def step(self) -> int:
        """Elements that blocks are multiples of."""
        return self.stride * max(ceil_div(self.kept, self.stride), 1)


def windows_along(axis: Axis, index: Index, compute: Compute) -> Windows:
    """Describe the windows whose elements are at an index along an axis."""
    inside = {atom: c for atom, c in index.terms if atom in compute.reduce}
    extent = 1 + sum(c * atom.bounds[1] for atom, c in inside.items())
    outer = [(atom, c) for atom, c in index.terms if atom not in inside]
    number, stride = outer[0] if outer else (None, axis.size)
    check(len(outer) <= 1, "windows that are counted by one axis", compute)
    counter = number if isinstance(number, Axis) else None
    return Windows(axis, counter, stride, extent, -index.const)


@dataclass(frozen=True, slots=True)
class Output:
    """slot[index] = expr, one store of the epilogue."""

    slot: int
    index: Index
    expr: Expr


def size_of(axes: Iterable[Axis]) -> int:
    """Points of a group of axes."""
    return product(axis.size for axis in axes)


def products_of(computes: Sequence[Compute]) -> list[int]:
    """Number the products among the computes of a part: sums over axes that no result has."""
    rows = set(computes[0].axes)
    every = [n for n, c in enumerate(computes) if c.reduce and set(c.axes) == rows]
    return every or [0]


def analyse(kernel: Kernel, part: Part | None = None, number: int = 0) -> Contraction:
    """Sort the axes of a product of a part of a contract or conv kernel, if none is given the first
    of the first."""
    part = part or kernel.parts[0]
    computes = part.computes
    hero = computes[number]
    check(hero.monoid == "sum", "a contraction kernel starts with a sum", kernel)
    a, b = factors(hero.body, hero.dtype, kernel)
    in_a, in_b = expr_axes(a), expr_axes(b)
    batch = tuple(x for x in hero.axes if x in in_a and x in in_b)
    columns = tuple(x for x in hero.axes if x in in_b and x not in in_a)
    rows = tuple(x for x in hero.axes if x not in in_b)
    roles = batch, rows, columns, hero.reduce
    return Contraction(computes, *roles, a, b, hero.dtype, part.ends, number)


def with_twin(c: Contraction) -> Contraction:
    """Let a second product among the computes be the twin of the first."""
    others = [number for number in products_of(c.computes) if number != c.number]
    if not others:
        return c
    (number,) = others
    hero = c.computes[number]
    same = dict(zip(hero.reduce, map(axis_index, c.depth), strict=True))
    a, b = factors(rewrite(hero.body, same), hero.dtype, hero)
    check(main_load(a) == main_load(c.a), "products of one kernel share their left operand", hero)
    return replace(c, twin=Twin(b, number))


def sums_in(c: Contraction, where: tuple[Index, ...], columns: int = 0) -> dict[int, Expr]:
    """Read the sums of a product, and of its twin, at a place of their tiles.

    If a tile has so many columns of each, those of the twin are behind the others.
    """
    found = {c.number: Expr("tile", (), ("acc", where), c.dtype)}
    if c.twin is not None:
        place = "beside", where
        if columns:
            row, column = where
            place = "acc", (row, column + columns)
        found[c.twin.number] = Expr("tile", (), place, c.dtype)
    return found


def factors(body: Expr, dtype: DType, kernel: Kernel | Compute) -> tuple[Expr, Expr]:
    """Find a and b of `mul(a, b)` below casts and guards, both converted to `dtype`.

    A guard around the product (fill 0) moves onto each operand that has all axes of a condition.
    """
    conditions: tuple[Condition, ...] = ()
    while body.op in ("cast", "guard"):
        if body.op == "guard":
            check(body.args[1].op == "const" and not body.args[1].arg, "fill must be 0", kernel)
            conditions += body.arg
        body = body.args[0]
    check(body.op in ("mul", "logical_and"), "a contraction multiplies two operands", kernel)
    a, b = (guarded(cast(x, dtype), own_conditions(x, conditions)) for x in body.args)
    return a, b


def own_conditions(expr: Expr, conditions: Iterable[Condition]) -> tuple[Condition, ...]:
    """Keep the conditions whose axes are all axes of an expression."""
    axes = expr_axes(expr)
    return tuple(condition for condition in conditions if axes_of(condition[0]) <= axes)


def guarded(expr: Expr, conditions: Iterable[Condition], fill: float = 0) -> Expr:
    """Make an expression a number where a condition fails; what always holds is dropped."""
    tests = needed(conditions)
    return Expr("guard", (expr, const(fill, expr.dtype)), tests, expr.dtype) if tests else expr


def expr_axes(expr: Expr) -> set[Axis]:
    """Find every axis an expression depends on."""
    found: set[Axis] = set()
    for node in walk(expr):
        for index in indices_of(node):
            found |= axes_of(index)
    return found


def swap(contraction: Contraction) -> Contraction:
    """Exchange the roles of M and N: the transposed product, same result elements."""
    c = contraction
    return replace(c, rows=c.columns, columns=c.rows, a=c.b, b=c.a)


def reorder(
    contraction: Contraction,
    rows: tuple[Axis, ...] | None = None,
    columns: tuple[Axis, ...] | None = None,
    depth: tuple[Axis, ...] | None = None,
) -> Contraction:
    """Put the axes within a role in another order, which changes only how positions are counted."""
    c = contraction
    return replace(c, rows=rows or c.rows, columns=columns or c.columns, depth=depth or c.depth)


def step_of(index: Index, axis: Axis) -> int | None:
    """How far an index moves when an axis takes one step; None if that is not constant."""
    result = 0
    for atom, c in index.terms:
        if atom is axis:
            result = c
        elif not isinstance(atom, Axis) and axis in axes_of(Index(((atom, c),), 0)):
            return None
    return None if any(axis in expr_axes(d.expr) for d in dynamics_of(index)) else result


def main_load(expr: Expr) -> Index | None:
    """Find the index of the load that mentions most axes: the operand's memory order."""
    loads = [node.arg[1] for node in walk(expr) if node.op == "load"]
    return max(loads, key=lambda index: len(axes_of(index)), default=None)


def strides(expr: Expr, axes: Iterable[Axis]) -> dict[Axis, int]:
    """Memory stride of an operand along each axis; an irregular one counts as very far."""
    index = main_load(expr)
    return dict.fromkeys(axes, 0) if index is None else distances(index, axes)


def distances(index: Index, axes: Iterable[Axis]) -> dict[Axis, int]:
    """Find how far an index moves along each axis."""
    steps = {axis: step_of(index, axis) for axis in axes}
    return {axis: 1 << 60 if step is None else abs(step) for axis, step in steps.items()}


def by_stride(axes: tuple[Axis, ...], far: Mapping[Axis, int]) -> tuple[Axis, ...]:
    """Sort axes from the farthest stride to the nearest; size-1 axes count for nothing.

    Axes that only guards have, between which an operand is 0, are the farthest of the others.
    """

    def distance(axis: Axis) -> int:
        return (far[axis] or 1 << 60) if axis.size > 1 else 1 << 61

    return tuple(sorted(axes, key=distance)[::-1])


def output_index(contraction: Contraction) -> Index:
    """Index of the first store, of elements if they are stored: their order in memory."""
    every, own = contraction.computes, contraction.computes[contraction.number]
    whole = [c for c in every if c is own or is_element(contraction, c)]
    computes = [c for c in whole if c.store] or every
    stored = [compute.store[1] for compute in computes if compute.store]
    check(stored, "a contraction stores its result", contraction.computes)
    return stored[0]


def output_strides(contraction: Contraction, axes: Iterable[Axis]) -> dict[Axis, int]:
    """Stride of the output along each axis."""
    return distances(output_index(contraction), axes)


def bind(expr: Expr, values: Bindings) -> Expr:
    """Substitute coordinates for axes."""
    return rewrite(expr, values)


def is_element(contraction: Contraction, compute: Compute) -> bool:
    """Tell whether a compute of the epilogue is one of every element of the result."""
    every = set(contraction.computes[0].axes)
    return not compute.reduce and set(compute.axes) == every


def is_across(contraction: Contraction, compute: Compute) -> bool:
    """Tell whether a compute reduces elements of the result over all rows, or all columns."""
    c = contraction
    return bool(compute.reduce) and set(compute.reduce) in (set(c.rows), set(c.columns))


def element_values(
    contraction: Contraction, values: Bindings, sums: Mapping[int, Expr]
) -> Callable[[Expr], Expr | None]:
    """Make what replaces references to elements at one point: `sums` are finished products there,
    by the numbers of their computes."""
    done: dict[int, Expr] = {}

    def replace_ref(expr: Expr) -> Expr | None:
        return done[expr.arg] if expr.op == "ref" else None

    for number, compute in enumerate(contraction.computes):
        if number in sums:
            done[number] = cast(sums[number], compute.dtype)
        elif is_element(contraction, compute):
            done[number] = cast(rewrite(compute.body, values, replace_ref), compute.dtype)
    return replace_ref


def stores(contraction: Contraction, values: Bindings, sums: Mapping[int, Expr]) -> list[Output]:
    """Write the elements of the epilogue at one point: `values` are the axes there."""
    replace_ref = element_values(contraction, values, sums)
    found = []
    for number, compute in enumerate(contraction.computes):
        if compute.store and (number in sums or is_element(contraction, compute)):
            slot, index = compute.store
            value = replace_ref(Expr("ref", (), number, compute.dtype)) or compute.body
            found.append(Output(slot, substitute(index, values), value))
    return found


def finished(
    contraction: Contraction, values: Bindings, total: Callable[[int, Compute], Expr]
) -> Iterator[Output]:
    """Write what is stored of reductions over all rows, or all columns, at one point of the others.

    `total` reads what a reduction has given there.
    """
    c = contraction
    done: dict[int, Expr] = {}

    def replace_ref(expr: Expr) -> Expr | None:
        return done[expr.arg] if expr.op == "ref" else None

    for number, compute in enumerate(c.computes):
        if number == c.number or is_element(c, compute):
            continue
        if is_across(c, compute):
            done[number] = total(number, compute)
        else:
            done[number] = rewrite(compute.body, values, replace_ref)
        if compute.store:
            slot, index = compute.store
            yield Output(slot, substitute(index, values), done[number])


@dataclass(frozen=True, slots=True)
class Role:
    """One role (M, N or K) at the block's coordinates: values of its axes and tail conditions."""

    values: Bindings
    conditions: tuple[Condition, ...]


def arrange(c: Contraction, target: Target) -> tuple[Contraction, DType, tuple[bool, bool]]:
    """Choose sides and axis orders so that chunks of operands and outputs run along memory.

    Returns the contraction, the dtype its operands have in shared memory, and whether a and b run
    along K in memory. The output's nearest axis becomes a column, so that its stores coalesce.
    """
    out = output_strides(c, (*c.rows, *c.columns))
    real = [axis for axis in out if axis.size > 1]
    is_turned = real and min(real, key=lambda axis: out[axis] or 1 << 60) in c.rows
    if is_turned and c.twin is None:  # twins share what their rows read
        c = swap(c)
    dtype = operand_dtype(c, target)
    a_steps, b_steps = (strides(c.a, (*c.rows, *c.depth)), strides(c.b, (*c.columns, *c.depth)))
    a_is_k_major, b_is_k_major = (runs_along(a_steps, c.depth), runs_along(b_steps, c.depth))
    depth_steps = b_steps if b_is_k_major and not a_is_k_major else a_steps
    c = reorder(
        c,
        by_stride(c.rows, out if a_is_k_major else a_steps),
        by_stride(c.columns, out if b_is_k_major else b_steps),
        by_stride(c.depth, depth_steps),
    )
    return c, dtype, (a_is_k_major, b_is_k_major)


def runs_along(steps: Mapping[Axis, int], depth: tuple[Axis, ...]) -> bool:
    """Tell whether the nearest axis of an operand is one of K."""
    real = [axis for axis in steps if axis.size > 1 and steps[axis]]
    return not real or min(real, key=lambda axis: steps[axis]) in depth


def operand_dtype(c: Contraction, target: Target) -> DType:
    """Find the dtype for shared memory: 16-bit if both operands have it, else the sum's.

    8-bit floats if both are such, not always the same: then that of the first.
    """
    a, b = narrow(c.a, 8), narrow(c.b, 8)
    is_half = a.dtype is b.dtype and a.dtype.is_float and a.dtype.bits == 16
    is_narrow = is_half or a.dtype.kind == b.dtype.kind == "float8"
    return a.dtype if is_narrow and target.tensor_cores and c.dtype.bits == 32 else c.dtype


def has_units(dtype: DType, target: Target) -> bool:
    """Tell whether tensor cores multiply operands that have a dtype in shared memory."""
    is_float32 = target.tf32 and dtype is float32
    return target.tensor_cores and (dtype.bits <= 16 or is_float32)


def narrow(expr: Expr, least: int = 16) -> Expr:
    """Strip a widening of 16-bit floats from an operand, or of fewer bits, keeping its guards."""
    if expr.op == "guard":
        inner = narrow(expr.args[0], least)
        return Expr("guard", (inner, const(0, inner.dtype)), expr.arg, inner.dtype)
    is_widening = expr.op == "cast" and expr.args[0].dtype.is_float and expr.dtype.is_float
    return expr.args[0] if is_widening and least <= expr.args[0].dtype.bits <= 16 else expr


def role(axes: tuple[Axis, ...], position: Index) -> Role:
    """Find the values of axes at a flat position, and the condition that it exists."""
    size = size_of(axes)
    values = unflatten(position, tuple(axis.size for axis in axes))
    tail = ((position, 0, size - 1),) if position.hi >= size else ()
    return Role(dict(zip(axes, values, strict=True)), tail)


def bind_roles(expr: Expr, *roles: Role) -> Expr:
    """Substitute the coordinates of roles for their axes."""
    values: dict[Axis, Index] = {}
    for item in roles:
        values |= item.values
    return rewrite(expr, values)
