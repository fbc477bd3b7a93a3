"""streams: an attention kernel seen as products of scores, reductions and products of weights.

    score[b, i, j]  = sum over d of row[b, i, d] * streamed[b, j, d]
    reduction[b, i] = max, or sum, over j of a body of scores
    product[b, i, v] = sum over j of weight(scores) * value[b, j, v]
    across[b, j, v] = sum over i of weight(scores) * value[b, i, v]          on a CPU, beside others

`analyse` finds which loop axes are streamed over (j), which are rows (i) and which are a batch: a
row axis that the streamed operands have too. Bodies refer to scores, and to the maximum of their
row if that is computed by the same kernel (`peak`): it is only known at the end of the stream.
What is stored of every place is `kept`, and sums of rows that are no scores are `early`: they are
known before the stream.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from picograd.codegen.boxes import view_of
from picograd.codegen.operands import Role, bind_roles, expr_axes, guarded, narrow, size_of
from picograd.dtype import DType, bool_
from picograd.errors import internal
from picograd.graph.ops import OPS
from picograd.late_methods import dataclass
from picograd.schedule.index import Axis, Index, substitute
from picograd.schedule.loop import Compute, Condition, Expr, Kernel, Part, const, walk
from picograd.schedule.monoid import COMBINE, identity
from picograd.schedule.score_masks import is_found

MOST_COLUMNS = 256  # of products that share a part: a thread holds half a value for each


@dataclass(frozen=True, slots=True)
class Score:
    """A product that scores are made of: compute `number`."""

    number: int
    depth: tuple[Axis, ...]
    row: Expr
    streamed: Expr
    added: int | None = None  # the score to whose tile it is added, if it has none


@dataclass(frozen=True, slots=True)
class Product:
    """A product of weights: compute `number`."""

    number: int
    columns: tuple[Axis, ...]
    weight: Expr
    value: Expr


@dataclass(frozen=True, slots=True)
class Stream:
    """See the module docstring; `sums` are the numbers of all reductions but the peak."""

    computes: tuple[Compute, ...]
    batch: tuple[Axis, ...]
    rows: tuple[Axis, ...]
    over: tuple[Axis, ...]
    scores: tuple[Score, ...]
    sums: tuple[int, ...]
    products: tuple[Product, ...]
    peak: int | None
    stops: tuple[Condition, ...]  # where the stream ends, if its size varies
    ends: tuple[Condition, ...]  # of the rows: beyond them nobody looks
    shown: tuple[Index, ...] = ()  # a place adds nothing where one of them is below 0
    kept: tuple[int, ...] = ()  # the computes that are stored of every place
    early: tuple[int, ...] = ()  # those of sums of rows that are no scores
    least: Expr | None = None  # what the peak of a row is at least
    across: tuple[Product, ...] = ()  # products of weights that are summed over rows
    row_stops: tuple[Condition, ...] = ()  # where the rows end that those sum
    others: tuple[int, ...] = ()  # the peaks of further softmaxes

    @property
    def edited(self) -> tuple[Score, ...]:
        """The scores that have a tile of their own."""
        return tuple([each for each in self.scores if each.added is None])

    @property
    def depths(self) -> list[int]:
        """Sizes of what each score sums over."""
        return [size_of(each.depth) for each in self.scores]

    @property
    def widths(self) -> list[int]:
        """Columns of each product of weights."""
        return [size_of(each.columns) for each in self.products]

    @property
    def weighed(self) -> tuple[Product, ...]:
        """All products of weights."""
        return (*self.products, *self.across)

    @property
    def reductions(self) -> tuple[int, ...]:
        """Number the reductions of rows, the peaks first."""
        return (*self.peaks, *self.sums)

    @property
    def peaks(self) -> tuple[int, ...]:
        """The maxima that are waited for, one of each softmax."""
        return () if self.peak is None else (self.peak, *self.others)

    def product_like(self, compute: Compute) -> Product | None:
        """Find a product with the columns of a compute; None for a compute of rows."""
        kept = {*self.batch, *self.rows}
        own = {axis for axis in compute.axes if axis not in kept}
        found = (each for each in self.products if set(each.columns) == own)
        return next(found, None) if own else None

    def start_of(self, number: int, rows: Role) -> Expr:
        """Find what a reduction begins with: nothing, or what the peak is at least."""
        if number == self.peak and self.least is not None:
            least = bind_roles(self.least, rows)
            return guarded(least, rows.conditions)
        compute = self.computes[number]
        start = identity(str(compute.monoid), compute.dtype)
        return const(start, compute.dtype)

    @property
    def exponential(self) -> str:
        """The operation that the peak is subtracted for."""
        for number in (*self.sums, *(each.number for each in self.products)):
            for expr in walk(self.computes[number].body):
                less = expr.args[0] if len(expr.args) == 1 else expr
                if any(is_ref(each, self.peak) for each in less.args) and expr.args:
                    row = OPS.get(expr.op)
                    if row is not None and row.is_exponential:
                        return expr.op
        return internal("a peak that is subtracted nowhere", self.computes)

    def peak_under(self, number: int) -> int | None:
        """Find the peak with which a sum changes."""
        refs = {expr.arg for expr in walk(self.computes[number].body) if expr.op == "ref"}
        return next((peak for peak in self.peaks if peak in refs), None)

    def is_repaired(self, number: int) -> bool:
        """Tell whether a sum changes when its peak does."""
        return self.peak_under(number) is not None


def is_ref(expr: Expr, number: int | None) -> bool:
    """Tell whether an expression is the value of a compute."""
    return expr.op == "ref" and expr.arg == number


def analyse(kernel: Kernel, part: Part) -> Stream:
    """Sort the axes and computes of an attention kernel."""
    computes, guards, row_guards = opened(part)
    found = [guard for guard in guards if is_found(guard[0])]
    over = [c.reduce for c in computes if c.reduce][-1]
    early = early_in(computes, over)
    scores, sums, products, peaks = [], [], [], []
    for number, compute in enumerate(computes):
        if not compute.reduce or number in early or is_over_rows(compute, part):
            pass
        elif compute.reduce != over:
            scores.append(score_of(number, compute, over))
        elif set(compute.axes) != set(part.rows):
            columns = tuple(axis for axis in compute.axes if axis not in part.rows)
            products.append(product_of(number, compute, columns))
        elif compute.monoid == "max" and is_read(computes, number):
            peaks.append(number)
        else:
            sums.append(number)
    if not scores:
        internal("a stream has scores", kernel)
    stream = Stream(
        computes,
        *parted_rows(part, scores, products),
        over,
        tuple(scores),
        tuple(sums),
        tuple(products),
        peaks[0] if peaks else None,
        tuple([guard for guard in guards if guard not in found]),
        part.ends,
        tuple([index for index, _, _ in found]),
        kept_in(computes, (*part.rows, *over)),
        early,
        None,
        across_in(computes, part, over),
        row_guards,
        tuple(peaks[1:]),
    )
    return with_parted_peak(stream)


def parted_rows(
    part: Part, scores: Sequence[Score], products: Sequence[Product]
) -> tuple[tuple[Axis, ...], tuple[Axis, ...]]:
    """Part the rows that streamed operands have too, those of a batch, from the others.

    So are those that sums over other rows keep: heads that share keys have gradients of their own.
    """
    streamed = [each.streamed for each in scores]
    streamed += [each.value for each in products]
    shared = set().union(*map(expr_axes, streamed))
    for compute in part.computes:
        if is_over_rows(compute, part):
            shared.update(compute.axes)
    batch = [axis for axis in part.rows if axis in shared]
    rows = [axis for axis in part.rows if axis not in shared]
    return tuple(batch), tuple(rows)


def with_parted_peak(stream: Stream) -> Stream:
    """Part the maximum of a row from what it is at least."""
    if stream.peak is None:
        return stream
    computes = list(stream.computes)
    peak = computes[stream.peak]
    body, least = parted_peak(peak.body, stream.over)
    computes[stream.peak] = replace(peak, body=body)
    return replace(stream, computes=tuple(computes), least=least)


def parted_peak(body: Expr, over: Sequence[Axis]) -> tuple[Expr, Expr | None]:
    """Part what a peak is the greatest of: scores, and what is one value a row."""
    if body.op != COMBINE["max"]:
        return body, None
    for scores, least in (body.args, body.args[::-1]):
        has_score = any(part.op == "ref" for part in walk(least))
        if not has_score and expr_axes(least).isdisjoint(over):
            return scores, least
    return body, None


def narrow_streams(stream: Stream) -> list[Stream]:
    """Cut a stream in those of no more columns than registers have room for: parts of a launch.

    Each multiplies the scores that it reads; the first has whatever is no product.
    """
    last: list[Product] = []
    groups = [last]
    for each in stream.products:
        columns = [size_of(one.columns) for one in (*last, each)]
        if last and sum(columns) > MOST_COLUMNS:
            last = []
            groups.append(last)
        last.append(each)
    if len(groups) == 1:
        return [stream]
    return [narrowed(stream, group, group is groups[0]) for group in groups]


def narrowed(stream: Stream, products: Sequence[Product], is_first: bool) -> Stream:
    """Leave other products out of a stream, and unless it is the first what is none."""

    def stored(compute: Compute) -> Compute:
        found = stream.product_like(compute)
        is_own = is_first if found is None else found in products
        return compute if is_own else replace(compute, store=None)

    sums, kept = (stream.sums, stream.kept) if is_first else ((), ())
    bodies = [each.weight for each in products]
    bodies += [stream.computes[number].body for number in (*sums, *kept)]
    read: set[int] = set()
    for body in bodies:
        read.update(part.arg for part in walk(body) if part.op == "ref")
    scores = [x for x in stream.scores if not read.isdisjoint((x.number, x.added))]
    computes = map(stored, stream.computes)
    return replace(
        stream,
        computes=tuple(computes),
        scores=tuple(scores),
        sums=sums,
        products=tuple(products),
        kept=kept,
    )


def early_in(computes: Sequence[Compute], over: tuple[Axis, ...]) -> tuple[int, ...]:
    """Number the sums of rows that are no scores."""
    found = []
    for number, compute in enumerate(computes):
        is_of_rows = set(over).isdisjoint((*compute.axes, *compute.reduce))
        if is_of_rows and compute.reduce:
            found.append(number)
    return tuple(found)


def across_in(
    computes: Sequence[Compute], part: Part, over: tuple[Axis, ...]
) -> tuple[Product, ...]:
    """List the products of weights that are summed over rows."""
    around = {*part.rows, *over}
    found = []
    for number, compute in enumerate(computes):
        if is_over_rows(compute, part):
            columns = [axis for axis in compute.axes if axis not in around]
            found.append(product_of(number, compute, tuple(columns)))
    return tuple(found)


def kept_in(computes: Sequence[Compute], axes: tuple[Axis, ...]) -> tuple[int, ...]:
    """Number the computes that are stored of every place."""
    found = []
    for number, compute in enumerate(computes):
        is_whole = set(axes) <= set(compute.axes)
        if is_whole and not compute.reduce:
            found.append(number)
    return tuple(found)


def opened(part: Part) -> tuple[tuple[Compute, ...], tuple[Condition, ...], tuple[Condition, ...]]:
    """Take the guards around whole bodies off: they are where the stream ends, and what of it a
    row sees, and where the rows end."""
    stops: dict[Condition, None] = {}
    row_stops: dict[Condition, None] = {}
    found = []
    over = [c.reduce for c in part.computes if c.reduce][-1]
    for compute in part.computes:
        is_across = is_over_rows(compute, part)
        ends = row_stops if is_across else stops
        while (is_across or compute.reduce == over) and compute.body.op == "guard":
            ends.update(dict.fromkeys(compute.body.arg))
            compute = replace(compute, body=compute.body.args[0])
        found.append(compute)
    return tuple(found), tuple(stops), tuple(row_stops)


def is_over_rows(compute: Compute, part: Part) -> bool:
    """Tell whether a compute is summed over rows."""
    return bool(compute.reduce) and set(compute.reduce) <= set(part.rows)


def is_read(computes: tuple[Compute, ...], number: int) -> bool:
    """Tell whether a later sum over the stream reads a compute."""
    return any(
        is_ref(expr, number)
        for compute in computes[number + 1 :]
        if compute.reduce
        for expr in walk(compute.body)
    )


def score_of(number: int, compute: Compute, over: tuple[Axis, ...]) -> Score:
    """Tell the two factors of a product of scores apart."""
    a, b = compute.body.args
    is_first = expr_axes(a).isdisjoint(over)
    return Score(number, compute.reduce, *((a, b) if is_first else (b, a)))


def product_of(number: int, compute: Compute, columns: tuple[Axis, ...]) -> Product:
    """Tell weights and values apart: weights refer to scores."""
    a, b = compute.body.args
    is_first = any(expr.op == "ref" for expr in walk(a))
    return Product(number, columns, *((a, b) if is_first else (b, a)))


def replaced(root: Expr, find: Callable[[Expr], Expr | None]) -> Expr:
    """Replace parts of an expression, the outermost first: `find` is asked for each as it was."""
    done: dict[int, Expr] = {}
    for expr in walk(root):
        new = find(expr)
        if new is None:
            args = tuple([done[id(each)] for each in expr.args])
            is_same = all(a is b for a, b in zip(args, expr.args, strict=True))
            new = expr if is_same else Expr(expr.op, args, expr.arg, expr.dtype)
        done[id(expr)] = new
    return done[id(root)]


def read(name: str, index: Sequence[Index], dtype: DType) -> Expr:
    """Read an element of a tile."""
    return Expr("tile", (), (name, tuple(index)), dtype)


def subtracted(peak: Expr, scaled: Expr) -> Expr:
    """Find what is subtracted of scores: 0 for a row of which nothing was seen, or inf - inf."""
    dtype = peak.dtype
    lowest = const(float("-inf"), dtype)
    is_low = Expr("equal", (peak, lowest), None, bool_)
    return Expr("where", (is_low, const(0.0, dtype), scaled), None, dtype)


def is_tile(expr: Expr) -> bool:
    """Tell whether an expression is an element of a tile as it is."""
    return expr.op == "tile"


def unconverted(expr: Expr) -> Expr:
    """Take conversions off that change nothing: a score is not rounded to the dtype it has."""
    while expr.op in OPS and OPS[expr.op].keeps_value and expr.args[0].dtype is expr.dtype:
        expr = expr.args[0]
    return expr


def left(
    stream: Stream, number: int, roles: Sequence[Role], held: Callable[[int, Expr], Expr]
) -> tuple[int, Index, Expr]:
    """Find what a stored compute leaves at the places of roles: its slot, where, and the value."""
    compute = stream.computes[number]
    value = result_of(stream, Expr("ref", (), number, compute.dtype), held)
    slot, place = placed_in(compute, *roles)
    return slot, place, bind_roles(value, *roles)


def placed(condition: Condition, place: Role) -> Condition:
    """Put places into a condition."""
    index, lo, hi = condition
    return substitute(index, place.values), lo, hi


def placed_in(compute: Compute, *roles: Role) -> tuple[int, Index]:
    """Find where a compute is stored at the places of roles: its slot, and the place there."""
    values = {axis: place for each in roles for axis, place in each.values.items()}
    slot, place = compute.store or internal("a stream leaves what is stored", compute)
    return slot, substitute(place, values)


def result_of(stream: Stream, root: Expr, held: Callable[[int, Expr], Expr]) -> Expr:
    """Write what is computed of finished sums: `held` says where that of a number is."""

    def find(expr: Expr) -> Expr | None:
        if expr.op != "ref":
            return None
        compute = stream.computes[expr.arg]
        if compute.reduce:
            return held(expr.arg, expr)
        return result_of(stream, compute.body, held)

    return replaced(root, find)


def has_boxes(stream: Stream, operand: Expr, axes: tuple[Axis, ...]) -> bool:
    """Tell whether rows of an operand lie as boxes can bring them."""
    plain = narrow(operand)
    if plain.op != "load":
        return False
    _, index = plain.arg
    return view_of(index, axes, stream.rows, stream.batch, plain.dtype.itemsize) is not None
