"""Loop IR: what one kernel computes, with every view resolved to index arithmetic.

    Kernel  = hero, slots, parts            one launch
    Part    = rows, computes                one iteration space; parts are independent of each other
    Compute = axes, reduce, monoid, body, store
    Expr    = op, args, arg, dtype          a scalar expression, evaluated at one point of the axes

Meaning. A compute is a map (`reduce` empty) or a reduction over its `reduce` axes with `monoid`
("sum", "prod", "max", "min"), at every point of its parallel `axes`. Its value is read by later
computes of the same part with `ref` (number of the compute in the part) and is written to memory
if `store = (slot, Index)` is set. Computes run in order.

Axes. Axes are objects shared between the computes of one part. `part.rows` are the parallel axes
that the computes of the part share. A compute sits at one of these levels:
  elem   axes = rows + inner axes, no reduce          (a map inside each row)
  row    axes = rows, reduce = inner axes or empty     (softmax's maximum; a per-row epilogue)
  column axes = inner axes, reduce = rows or empty     (the gradient of a norm's weight)
  grand  axes = (), reduce = rows or empty (with rows) (the mean of per-row losses; its epilogue)
  window axes = those of its reader, reduce = few axes (a pooling window, unrolled where it is read)
  pool   axes = rows, but some count windows, reduce = axes inside those (of a product's result)
`ref` is legal where every axis of the compute referred to is bound by the reader's axes or reduce,
`element` where every axis is that it does not place.

Expr operations:
  const   arg = Python value
  load    arg = (slot, Index): element of a slot, flat, in elements
  index   arg = Index: the index itself as an integer value
  ref     arg = number of an earlier compute of the part
  element arg = (number, ((Axis, Index), ...)): an earlier compute where these axes of it are there
  scalar  arg = number of a runtime scalar of the kernel (a float or integer kernel argument)
  guard   args = (value, fill), arg = ((Index, lo, hi), ...): `value` where every lo <= Index <= hi,
          else `fill`; loads of `value` must not run elsewhere
  tile    arg = (tile name, (Index, ...)): only in Tile IR
  others  one elementwise row of the op table (`graph/ops.py`), "cast" included

Ends. `part.ends` are conditions on the axes of the part, with runtime scalars in them: nobody sees
what is computed where one of them fails, and reductions over the axis of one leave it out by a
guard. So loops may stop there, before the bound that the axis has in memory, and need not. What a
compute stores where one of the conditions `seen` fails, nobody looks at: it need not be stored,
and where rows are reduced it is not, as the place may be of another row or behind the array.

Not allowed: views, broadcasting, a load outside a slot's bounds (guard it), an axis not bound.

Parts of an attention kernel run in order, and read what those before them stored: the last one
streams, the others find what its masks show. Parts of a chain run in order, too, for each point of
their first axes, which are of one size: all that a part reads of a shared slot, the part before it
stored there at the same point.

A hero names the template that writes the kernel: map, reduce.row, reduce.col, reduce.all, contract,
conv, gather, scatter, scan, sort, radix, runs, bins, eliminate, rotate, chain, copy. Contract and
conv: one compute with monoid "sum" whose body is `mul(a, b)`: axes only in `a` are M, only in `b`
N, in both batch, reduce axes K. Epilogue computes follow it, with axes equal to the contract's.
Scatter, scan, sort, radix, runs, bins, eliminate and rotate are a part of their own: see `Scatter`,
`Scan`, `Sort`, `Radix`, `Runs`, `Bins` and `Elimination`, which is of both.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import is_not
from typing import Any

from picograd.dtype import DType, bool_
from picograd.graph.ops import OPS
from picograd.graph.row import NUMBERS
from picograd.late_methods import dataclass
from picograd.schedule.index import Axis, Dynamic, Index, axes_of, substitute

Condition = tuple[Index, int, int]
Conditions = tuple[Condition, ...]
MONOIDS = ("sum", "prod", "max", "min")
SCAN_MONOIDS = (*MONOIDS, "logaddexp")
DRAWN = "random_bits"  # args = seed, counter; or seed, first counter, and a place
INDEXED = {"load", "index", "guard", "tile", "element", DRAWN}  # operations that carry indices
WALKS_KEPT = 64
PRINT_LIMIT = 60  # uses of shared expressions spelt out, beyond which they are printed once
NEXT_LINE = ";\n" + 6 * " "  # of an expression whose parts have names


class Expr:
    """One scalar expression node; equal by structure, hash computed once."""

    __slots__ = ("arg", "args", "below", "dtype", "equal", "hash", "op")

    def __init__(self, op: str, args: tuple["Expr", ...], arg: Any, dtype: DType) -> None:
        # Arguments and what is inside its indices, once a walk has asked for them.
        self.below: tuple[Expr, ...] | None = None if op in INDEXED else args
        self.op: str = op
        self.args: tuple[Expr, ...] = args
        self.arg: Any = arg
        self.dtype: DType = dtype
        self.hash: int = hash((op, args, arg, dtype, type(arg)))
        self.equal: Expr | None = None

    def first_equal(self) -> "Expr":
        """Find the one that stands for all that were found equal to this."""
        first = self
        while first.equal is not None:
            first = first.equal
        self.equal = None if first is self else first
        return first

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Expr) or self.hash != other.hash:
            return False
        mine, theirs = self.first_equal(), other.first_equal()
        if mine is theirs:
            return True
        head = (self.op, self.dtype, type(self.arg)) == (other.op, other.dtype, type(other.arg))
        if not head or self.arg != other.arg or self.args != other.args:
            return False
        theirs.equal = mine  # equal parts are compared once, not once a path: linear in nodes
        return True

    def __repr__(self) -> str:
        return format_expr(self)


@dataclass(frozen=True, slots=True)
class Slot:
    """One kernel argument: `size` elements of `dtype`; role is "in", "out", "inout" or "shared".

    What is "shared" is written and read by the parts of a chain alone: its memory is not touched.
    """

    dtype: DType
    size: int
    role: str


@dataclass(frozen=True, slots=True)
class Compute:
    """One map or reduction; see the module docstring."""

    axes: tuple[Axis, ...]
    reduce: tuple[Axis, ...]
    monoid: str | None
    body: Expr
    dtype: DType  # of the value, and of the accumulator of a reduction
    store: tuple[int, Index] | None = None
    seen: tuple[Condition, ...] = ()  # what is stored


@dataclass(frozen=True, slots=True)
class Scatter:
    """store[index] = monoid(store[index], body) at every point of `axes`, in row-major order.

    `axes` = `serial` (the update positions, in order) + `inner` (elements of one updated slice).
    `target` is the destination position, with Dynamic atoms that depend on the serial axes only.
    monoid None overwrites: the last update wins. The slot is "inout": its old content counts. An
    update whose `conditions` do not hold is left out.
    """

    serial: tuple[Axis, ...]
    inner: tuple[Axis, ...]
    monoid: str | None
    body: Expr
    slot: int
    target: Index
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Scan:
    """store[target] = start combined with body at 0..axis, at every point of the axes.

    Points of `outer` and `inner` are independent; `target` moves slower along `outer` than along
    `axis`, and slower along `axis` than along `inner`. `start` (None: the monoid's identity) is
    constant along `axis`. `body` has the dtype of the accumulator. `conditions` say which points
    exist; they hold for a prefix of the axis.
    """

    outer: tuple[Axis, ...]
    axis: Axis
    inner: tuple[Axis, ...]
    monoid: str
    body: Expr
    start: Expr | None
    slot: int
    target: Index
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Sort:
    """store[target at k] = position of the k-th smallest `body` along `axis`, for each of `rows`.

    Equal elements keep their order. `body` is an unsigned integer. `run` positions at a time are
    sorted (all of them unless the kernel is the first step of a longer sort).
    """

    rows: tuple[Axis, ...]
    axis: Axis
    run: int
    body: Expr
    slot: int
    target: Index


@dataclass(frozen=True, slots=True)
class Radix:
    """One step of a radix sort, by the digit (body >> shift) % DIGITS, for each of `rows`.

    The axis falls into tiles of `run` elements. Without `counted` the step counts: store[target at
    (digit, tile)] = how many elements of the tile have the digit. With it, which says how many of
    the digit there are up to this tile, every element is moved: store[target at place] = body,
    where `place` is the number of elements that have a lower digit, or have its digit and come
    before it.
    """

    rows: tuple[Axis, ...]
    axis: Axis
    digit: Axis
    tile: Axis
    run: int
    shift: int
    body: Expr
    counted: Expr | None
    slot: int
    target: Index


@dataclass(frozen=True, slots=True)
class Runs:
    """store[target] = store[target] combined with every body of a run of equal keys, in order.

    `key` ascends along `axis`; `first` is the position where the run of a position begins. `target`
    mentions the key, so that a run has one destination. `rows` are the elements of one slice.
    `levels` hold sums of `fan` neighbours each, of the bodies, then of the level below, which stand
    for whole groups of a long run. monoid None: the last of a run is stored. key and first run
    along `number`: the axis itself, unless it is known where each run stops. Then so many `lanes`
    of a warp may share a run.
    """

    rows: tuple[Axis, ...]
    axis: Axis
    monoid: str | None
    key: Expr
    first: Expr
    body: Expr
    levels: tuple[tuple[Axis, Expr], ...]
    fan: int
    slot: int
    target: Index
    number: Axis
    stop: Expr | None = None
    lanes: int = 1


@dataclass(frozen=True, slots=True)
class Elimination:
    """store[target at place] = what is left of a matrix, for each of `rows`.

    `body` is the element at `axis` (its row) and `column`. What is done to the first `count`
    columns, and what lies in which `place`, says the `kind` (graph/elimination.py).
    """

    rows: tuple[Axis, ...]
    axis: Axis
    column: Axis
    place: Axis
    kind: str
    count: int
    body: Expr
    slot: int
    target: Index


@dataclass(frozen=True, slots=True)
class Bins:
    """store[target at place] = sum of `body` where `key` is place, for each of `rows`.

    The axis falls into tiles of `run` elements, which are added in order; then tiles are, unless
    the target tells them apart. So many `lanes` of a warp add to bins of their own, those of rows
    that lie beside one another (`is_beside`) and have one key.
    """

    rows: tuple[Axis, ...]
    axis: Axis
    tile: Axis
    place: Axis
    run: int
    lanes: int
    key: Expr
    body: Expr
    slot: int
    target: Index
    is_beside: bool = False

    @property
    def is_apart(self) -> bool:
        """Tell whether tiles are not added up."""
        return self.tile in axes_of(self.target)


DIGITS = 256  # values of a digit: one byte of the key
Row = Sort | Radix | Runs | Elimination | Bins  # for each of some rows
Along = Scan | Row
WALKED: dict[int, tuple[Expr, list[Expr]]] = {}  # the last roots by identity, and what is below


@dataclass(frozen=True, slots=True)
class Part:
    """Computes over one iteration space, or one scatter, scan, sort, ... (`along`)."""

    rows: tuple[Axis, ...]
    computes: tuple[Compute, ...]
    scatter: Scatter | None = None
    along: Along | None = None
    ends: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Kernel:
    """One launch: parts over numbered slots and runtime scalars."""

    name: str
    hero: str
    slots: tuple[Slot, ...]
    scalars: tuple[DType, ...]
    parts: tuple[Part, ...]

    def __repr__(self) -> str:
        return format_kernel(self)


def const(value: Any, dtype: DType) -> Expr:
    """Make a constant."""
    return Expr("const", (), value, dtype)


def binary(op: str, a: Expr, b: Expr) -> Expr:
    """Combine two values of one dtype."""
    return Expr(op, (a, b), None, a.dtype)


def cast(expr: Expr, dtype: DType) -> Expr:
    """Convert an expression to a dtype, if it has another."""
    return expr if expr.dtype is dtype else Expr("cast", (expr,), None, dtype)


def chosen(op: str, args: tuple[Expr, ...]) -> Expr | None:
    """Fold a test of a place that comes out alike all along, and what such a test chooses.

    Parts of an array that was joined are chosen by their places.
    """
    first, least = args[0], OPS[op].least
    if len(args) == 3 and first.op in NUMBERS and first.dtype is bool_:
        return args[1] if first.arg else args[2]
    if least is None or not isinstance(first.arg, Index) or args[1].op not in NUMBERS:
        return None
    most = args[1].arg - least
    is_known = first.arg.hi <= most or first.arg.lo > most
    return const(first.arg.hi <= most, bool_) if is_known and first.op == "index" else None


def walk(root: Expr) -> list[Expr]:
    """List every distinct node under `root`, arguments first, Dynamic indices included.

    One stage after another asks for that of the same roots: the last lists are kept, to be read.
    """
    kept = WALKED.get(id(root))
    if kept is not None and kept[0] is root:
        return kept[1]
    order = walk_all([root])
    keep_walk(root, order)
    return order


def keep_walk(root: Expr, order: list[Expr]) -> None:
    """Keep what `walk` lists."""
    if len(WALKED) >= WALKS_KEPT:
        WALKED.clear()
    WALKED[id(root)] = root, order


def walk_all(roots: Iterable[Expr], seen: set[int] | None = None) -> list[Expr]:
    """List what `walk` does of several roots, which share most: each node once.

    Nodes whose ids were `seen` are left out, and `seen` grows.
    """
    order: list[Expr] = []
    seen = set() if seen is None else seen
    stack: list[Expr | None] = [*roots]
    stack.reverse()
    pop, are_seen = stack.pop, seen.issuperset
    while stack:
        expr = pop()
        if expr is None:  # what is below the next is listed
            done: Any = pop()
            order.append(done)
            continue
        number = id(expr)
        if number in seen:
            continue
        seen.add(number)
        below = expr.below
        if below is None:
            below = below_of(expr)
        if are_seen(map(id, below)):
            order.append(expr)
        else:
            stack += (expr, None)
            stack += below[::-1]
    return order


def below_of(expr: Expr) -> tuple[Expr, ...]:
    """List the arguments of an expression, and what is inside its indices."""
    if expr.below is None:
        expr.below = (*expr.args, *dynamic_children(expr))
    return expr.below


def has_load(root: Expr, without: set[int] | None = None) -> bool:
    """Tell whether an expression reads memory; `without` grows by what is known not to."""
    without = set() if without is None else without
    stack, seen = [root], set[int]()
    while stack:
        expr = stack.pop()
        if expr.op == "load":
            return True
        if id(expr) not in seen and id(expr) not in without:
            seen.add(id(expr))
            stack += below_of(expr)
    without |= seen
    return False


def count_operations(exprs: Iterable[Expr]) -> int:
    """Count the simple scalar operations of an element, by the costs of the op table."""
    return sum(OPS[expr.op].cost for expr in exprs if expr.op in OPS)


def indices_of(expr: Expr) -> tuple[Index, ...]:
    """Every Index an expression node carries itself."""
    if expr.op == "load":
        return (expr.arg[1],)
    if expr.op == "index" or (expr.op == DRAWN and expr.arg is not None):
        return (expr.arg,)
    if expr.op == "guard":
        return tuple(condition[0] for condition in expr.arg)
    if expr.op == "tile":
        return tuple(expr.arg[1])
    if expr.op == "element":
        return tuple(index for _, index in expr.arg[1])
    return ()


def dynamics_of(index: Index) -> list[Dynamic]:
    """List the Dynamic atoms of an index, inside div and mod too."""
    found: list[Dynamic] = []
    for atom, _ in index.terms:
        if type(atom) is Axis:
            continue
        if isinstance(atom, Dynamic):
            found.append(atom)
        elif not isinstance(atom, Axis):
            found += dynamics_of(atom.index)
    return found


def dynamic_children(expr: Expr) -> tuple[Expr, ...]:
    """Expressions inside the indices of one node."""
    return tuple([each.expr for index in indices_of(expr) for each in dynamics_of(index)])


def needed(conditions: Iterable[Condition]) -> tuple[Condition, ...]:
    """Leave conditions out that always hold."""
    return tuple([c for c in conditions if not (c[1] <= c[0].lo and c[0].hi <= c[2])])


def rewrite(
    root: Expr,
    axes: Mapping[Axis, Index],
    replace: Callable[[Expr], Expr | None] | None = None,
    moved: dict[Any, Index] | None = None,
) -> Expr:
    """Substitute axes in every index; `replace` may exchange a node (given rebuilt) for another.

    `moved` keeps the new indices for other expressions over the same axes.
    """
    return rewrite_all([root], axes, replace, moved)[0]


def rewrite_all(
    roots: Sequence[Expr],
    axes: Mapping[Axis, Index],
    replace: Callable[[Expr], Expr | None] | None = None,
    moved: dict[Any, Index] | None = None,
) -> list[Expr]:
    """Rewrite several expressions, what they share once."""
    done: dict[int, Expr] = {}
    # Most loads of an expression are at the same place, and others divide the same.
    places: dict[Any, Index] = {} if moved is None else moved

    def move(index: Index) -> Index:
        found = places.get(index)
        if found is None:
            inner = lambda expr: done[id(expr)]  # noqa: E731
            found = places[index] = substitute(index, axes, inner, places)
        return found

    is_plain = not any(map(dynamics_of, axes.values()))
    is_alike = is_plain and replace is None and len(roots) == 1  # a walk of it lists the same
    order = walk(roots[0]) if len(roots) == 1 else walk_all(roots)
    for expr in order:
        args = tuple([done[id(each)] for each in expr.args])
        if expr.op in INDEXED:
            new = Expr(expr.op, args, moved_argument(expr, move), expr.dtype)
            if is_plain and expr.below is not None and len(expr.below) == len(args):
                new.below = args  # as before, nothing is inside its indices
            else:
                is_alike = False
        elif any(map(is_not, args, expr.args)):
            new = Expr(expr.op, args, expr.arg, expr.dtype)
        else:
            new = expr
        if replace is not None:
            new = replace(new) or new
        done[id(expr)] = new
    if is_alike:
        keep_walk(done[id(roots[0])], [done[id(expr)] for expr in order])
    return [done[id(root)] for root in roots]


def moved_argument(expr: Expr, move: Callable[[Index], Index]) -> Any:
    """Map the indices that a node carries itself through `move`."""
    arg = expr.arg
    if expr.op == "load":
        return arg[0], move(arg[1])
    if expr.op == "index":
        return move(arg)
    if expr.op == "guard":
        return tuple([(move(index), lo, hi) for index, lo, hi in arg])
    if expr.op == "element":
        return arg[0], tuple([(axis, move(index)) for axis, index in arg[1]])
    if expr.op == DRAWN:
        return None if arg is None else move(arg)
    return arg[0], tuple([move(index) for index in arg[1]])


def format_expr(root: Expr) -> str:
    """Print an expression on one line; in a large one, what is used twice is named above it.

    Spelt out, a shared expression doubles at every use: 20 rounds of a generator print for ever.
    """
    order = walk(root)
    uses: dict[int, int] = {}
    for expr in order:
        for child in expr.args:
            uses[id(child)] = uses.get(id(child), 0) + 1
    is_large = sum(uses.values()) > PRINT_LIMIT
    text: dict[int, str] = {}
    named: list[str] = []
    for expr in order:
        text[id(expr)] = format_node(expr, [text[id(a)] for a in expr.args])
        if is_large and expr.args and uses.get(id(expr), 0) > 1:
            named.append(f"t{len(named)} = {text[id(expr)]}")
            text[id(expr)] = f"t{len(named) - 1}"
    return NEXT_LINE.join([*named, text[id(root)]])


def format_node(expr: Expr, texts: list[str]) -> str:
    """Print one expression, given its arguments' texts."""
    args = ", ".join(texts)
    if expr.op == "const":
        return repr(expr.arg)
    if expr.op == "load":
        return f"s{expr.arg[0]}[{expr.arg[1]}]"
    if expr.op == "index":
        return f"index({expr.arg})"
    if expr.op == "ref":
        return f"%{expr.arg}"
    if expr.op == "element":
        places = ", ".join(f"{axis.name}={index}" for axis, index in expr.arg[1])
        return f"%{expr.arg[0]}[{places}]"
    if expr.op == "scalar":
        return f"scalar{expr.arg}"
    if expr.op == "tile":
        return f"{expr.arg[0]}[{', '.join(map(repr, expr.arg[1]))}]"
    if expr.op == "guard":
        tests = " & ".join(f"{lo}<={index}<={hi}" for index, lo, hi in expr.arg)
        return f"guard({tests}; {args})"
    if expr.op == DRAWN and expr.arg is not None:
        return f"{expr.op}({args})[{expr.arg}]"
    return f"{expr.dtype.name}({args})" if expr.op == "cast" else f"{expr.op}({args})"


def format_compute(number: int, compute: Compute) -> str:
    """Print one compute: its space, its reduction, its body and where it is stored."""
    space = ", ".join(map(repr, compute.axes))
    over = f" {compute.monoid}[{', '.join(map(repr, compute.reduce))}]" if compute.reduce else ""
    line = f"  %{number} [{space}]{over} {compute.dtype.name} = {format_expr(compute.body)}"
    if compute.store:
        seen = "".join(f" if {lo}<={i}<={hi}" for i, lo, hi in compute.seen)
        line += f"\n      -> s{compute.store[0]}[{compute.store[1]}]{seen}"
    return line


def format_scatter(scatter: Scatter) -> str:
    """Print the scatter of a part."""
    space = ", ".join(map(repr, (*scatter.serial, *scatter.inner)))
    body = f"{scatter.monoid or 'set'} {format_expr(scatter.body)}"
    tests = "".join(f" if {lo}<={i}<={hi}" for i, lo, hi in scatter.conditions)
    return f"  scatter [{space}] s{scatter.slot}[{scatter.target}] {body}{tests}"


def format_along(step: Along) -> str:
    """Print the scan, sort or other step along an axis of a part."""
    where = f"s{step.slot}[{step.target}]"
    if not isinstance(step, Scan):
        head = f"[{', '.join(map(repr, step.rows))}] along {step.axis!r}"
        if isinstance(step, Sort):
            return f"  sort {head} by {step.run} {where} {step.body}"
        if isinstance(step, Elimination):
            head = f"{head} and {step.column!r} to {step.place!r}"
            return f"  {step.kind} of {step.count} columns {head} {where} {step.body}"
        if isinstance(step, Bins):
            return f"  bins {head} by {step.run} of {step.key} {where} {step.body}"
        if isinstance(step, Runs):
            sums = "".join(f" level {axis!r} {expr}" for axis, expr in step.levels)
            stop = f" to {step.stop} of {step.number!r} by {step.lanes}" if step.stop else ""
            where = f"from {step.first}{stop} {where} {step.monoid or 'set'}"
            return f"  runs {head} of {step.key} {where} {step.body}{sums}"
        name = "count" if step.counted is None else f"move behind {step.counted}"
        return f"  radix {head} by {step.run} shift {step.shift} {where} {step.body} {name}"
    space = ", ".join(map(repr, (*step.outer, *step.inner)))
    start = "" if step.start is None else f" from {step.start}"
    tests = "".join(f" if {lo}<={i}<={hi}" for i, lo, hi in step.conditions)
    return f"  scan [{space}] {step.monoid}[{step.axis!r}] {where} {step.body}{start}{tests}"


def format_kernel(kernel: Kernel) -> str:
    """Print a kernel, one compute a line."""
    lines = [f"kernel {kernel.name} ({kernel.hero})"]
    lines += [f"  s{n}: {s.role} {s.dtype.name}[{s.size}]" for n, s in enumerate(kernel.slots)]
    for part in kernel.parts:
        ends = "".join(f" if {lo}<={i}<={hi}" for i, lo, hi in part.ends)
        lines.append(f"  part [{', '.join(map(repr, part.rows))}]{ends}")
        lines += [format_compute(n, c) for n, c in enumerate(part.computes)]
        lines += [format_scatter(part.scatter)] if part.scatter else []
        lines += [format_along(part.along)] if part.along else []
    return "\n".join(lines)
