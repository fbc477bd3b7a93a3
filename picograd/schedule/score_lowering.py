"""score_lowering: write the sinks of a stream as computes of Loop IR.

    %0 [b, i, j] sum[d] = q * k                        the product, at every place of the region
    %1 [b, i] max[j] = edit(%0)
    %2 [b, i] sum[j] = exp(edit(%0) - %1)
    %3 [b, i, v] sum[j] = exp(edit(%0) - %1) * v       the weights are divided after the sum
    %4 [b, i, v] = %3 / %2
    %5 [b, i, j] = gradient(%0)                        stored, where somebody asks for it

What a stream over j makes of this, one block of j after another, is the template's.
"""

from collections.abc import Iterator, Sequence

from picograd.dtype import accumulate_dtype, bool_
from picograd.errors import internal
from picograd.graph.row import OPS, Role
from picograd.schedule.group import Facts
from picograd.schedule.heroes import contract_operands
from picograd.schedule.index import Axis, Index, Indices, axes_of, axis_index
from picograd.schedule.loop import Compute, Condition, Expr, const, rewrite
from picograd.schedule.lower import LOWERINGS, PartBuilder, apply
from picograd.schedule.monoid import identity
from picograd.schedule.score_sinks import Stream
from picograd.schedule.scores import Sink

Finished = tuple[Facts, Compute, Indices]


def stream_computes(members: Sequence[Facts], part: PartBuilder) -> Iterator[Finished]:
    """Yield each sink with its compute and its own indices; it is finished before the next."""
    stream: Stream = members[0].stream
    sinks = {sink.facts.number: sink for sink in stream.sinks}
    members = [member for member in members if member.number in sinks]
    members.sort(key=lambda each: place_of(each, stream))
    for member in members:
        sink = sinks[member.number]
        role = member.node.row.role
        is_early = role is Role.REDUCE and sink.places
        write = summed if is_early else WRITERS[role]
        yield write(sink, stream, part)


def place_of(member: Facts, stream: Stream) -> int:
    """Order sinks: sums of rows that are no scores, what reduces the other side, and the rest."""
    if any(sink.places for sink in stream.sinks if sink.facts is member):
        return 0 if member.node.row.role is Role.REDUCE else 2
    return 1 if stream.is_across(member) else 2


def score_product(self: PartBuilder, facts: Facts, indices: Indices) -> Expr:
    """Sum an element of the product that a region is made of, where it is read.

    What 16-bit floats are summed to is not rounded on the way to the exponential.
    """
    node = facts.node
    left, b, over = contract_operands(node, indices)
    a, _ = left
    wide = accumulate_dtype(node.dtype)
    fill = const(0, node.dtype)
    bound = self.bound
    self.bound = bound + over
    factors: list[Expr] = []
    for number, at in enumerate((a, b)):
        tests = self.tests_of_source(node, number, at)
        value = self.guarded(facts.inputs[number], at, tests, fill)
        value = apply("cast", (value,), wide)
        factors.append(value)
    self.bound = bound
    body = Expr("mul", tuple(factors), None, wide)
    inside = set().union(*map(axes_of, indices))
    own = tuple(axis for axis in bound if axis in inside)
    number = len(self.computes)
    self.computes.append(Compute(own, over, "sum", body, wide))
    return Expr("ref", (), number, wide)


LOWERINGS[Role.CONTRACT] = score_product  # nowhere else is a product read where it is not stored


def reduced(sink: Sink, stream: Stream, part: PartBuilder) -> Finished:
    """Write a maximum or a sum over the side that is streamed."""
    member = sink.facts
    node = member.node
    (source,) = member.inputs
    monoid, over = node.arg
    wide = node.dtype
    if monoid == "sum":
        wide = accumulate_dtype(wide)
    at = stream.at[source.number]
    part.bound = (*stream.rows, *stream.over)
    value = part.value(source, at)
    tests = part.tests_of_source(node, 0, at)
    body = ended(apply("cast", (value,), wide), tests, monoid)
    kept = tuple(index for d, index in enumerate(at) if d not in over)
    return member, Compute(stream.rows, stream.over, monoid, body, wide), kept


def multiplied(sink: Sink, stream: Stream, part: PartBuilder) -> Finished:
    """Write a product summed over the side that is streamed."""
    member, operand = sink.facts, sink.operand
    node = member.node
    other = 1 - operand
    source = member.inputs[operand]
    value = member.inputs[other]
    at = stream.at[source.number]
    wide = accumulate_dtype(node.dtype)
    out = node.arg[2]
    own = node.arg[operand]
    places = dict(zip(own, at, strict=True))
    columns: list[Axis] = []
    for label, size in zip(out, node.shape, strict=True):
        if label in places:
            continue
        axis = Axis(f"v{len(columns)}", size)
        if stream.further:
            axis = stream.columns.setdefault(axis.name, axis)
        places[label] = axis_index(axis)
        if size != 1:
            columns.append(axis)
    rows, over = stream.cut(sink.side)
    part.bound = (*rows, *over)
    weight = part.value(source, at)
    total = total_of(sink, stream, part) if sink.is_divided else None
    if total is not None:
        weight = undivided(weight, total)
    part.bound = (*rows, *columns, *over)
    there = tuple(places[label] for label in node.arg[other])
    first, second = (apply("cast", (x,), wide) for x in (weight, part.value(value, there)))
    factors = (first, second) if operand == 0 else (second, first)
    tests = part.tests_of_source(node, operand, at)
    body = ended(Expr("mul", factors, None, wide), tests, "sum")
    axes = (*rows, *columns)
    compute = Compute(axes, over, "sum", body, wide)
    if sink.powers:
        compute = joined(compute, sink, second, (stream, part))
    if total is not None:
        compute = divided(compute, sink, total, part)
    return member, compute, tuple(places[label] for label in out)


def joined(compute: Compute, sink: Sink, value: Expr, place: tuple[Stream, PartBuilder]) -> Compute:
    """Write a product whose weights are a sum of softmaxes as the same sum of their products."""
    stream, part = place
    wide = compute.dtype
    operand = sink.operand
    weight = compute.body.args[operand]
    narrow = sink.facts.inputs[operand].node.dtype
    found: dict[Expr, Expr] = {}
    for facts in sink.powers:
        at = stream.at[facts.number]
        power = part.value(facts, at)
        rounded = apply("cast", (power,), narrow)
        first = apply("cast", (rounded,), wide)
        factors = (first, value) if operand == 0 else (value, first)
        body = Expr("mul", factors, None, wide)
        summed = Compute(compute.axes, compute.reduce, "sum", body, wide)
        number = numbered(summed, part)
        found[power] = Expr("ref", (), number, wide)
    body = rewrite(weight, {}, found.get)
    return Compute(compute.axes, (), None, body, wide)


def kept(sink: Sink, stream: Stream, part: PartBuilder) -> Finished:
    """Write what is stored of every place."""
    member = sink.facts
    (source,) = member.inputs
    at = stream.at[source.number]
    axes = (*stream.rows, *stream.over)
    part.bound = axes
    dtype = member.node.dtype
    value = apply("cast", (part.value(source, at),), dtype)
    return member, Compute(axes, (), None, value, dtype), at


def summed(sink: Sink, stream: Stream, part: PartBuilder) -> Finished:
    """Write a sum of rows that are no scores."""
    member = sink.facts
    node = member.node
    (source,) = member.inputs
    monoid, over = node.arg
    rest = iter(sink.places)
    axes: list[Axis] = []
    places: list[Index] = []
    for d, size in enumerate(source.node.shape):
        if d in over:
            axis = Axis(f"r{d}", size)
            axes.append(axis)
            places.append(axis_index(axis))
        else:
            places.append(next(rest))
    at = tuple(places)
    part.bound = (*stream.rows, *axes)
    wide = accumulate_dtype(node.dtype)
    body = apply("cast", (part.value(source, at),), wide)
    body = ended(body, part.tests_of_source(node, 0, at), monoid)
    summed_over = tuple(axes)
    compute = Compute(stream.rows, summed_over, monoid, body, wide)
    return member, compute, sink.places


def made(sink: Sink, stream: Stream, part: PartBuilder) -> Finished:
    """Write what is computed of other sinks, for every row."""
    rows = stream.rows
    member = sink.facts
    places = sink.places
    part.bound = rows
    body = part.build(member, places)
    compute = Compute(rows, (), None, body, body.dtype)
    return member, compute, places


WRITERS = {Role.REDUCE: reduced, Role.CONTRACT: multiplied, Role.PASS: kept, Role.ELEMENTWISE: made}


def total_of(sink: Sink, stream: Stream, part: PartBuilder) -> Expr:
    """Refer to what the weights of a product are divided by."""
    total = sink.total or stream.total
    if total is None:
        internal("weights are divided by no total", stream.sinks)
    _, value = part.available[total.number]
    return value


def ended(body: Expr, tests: Sequence[Condition], monoid: str) -> Expr:
    """Leave out what lies beyond the end of the side that is streamed, where its size varies."""
    if not tests:
        return body
    fill = const(identity(monoid, body.dtype), body.dtype)
    return Expr("guard", (body, fill), tuple(tests), body.dtype)


def undivided(weight: Expr, total: Expr) -> Expr:
    """Leave out the division of weights by the total of their row."""

    def replace(expr: Expr) -> Expr | None:
        row = OPS.get(expr.op)  # None of what guards
        if row is None or len(expr.args) != 2 or row.linear != (0,):
            return None
        value, divisor = expr.args
        is_total = under_casts(divisor) == under_casts(total)
        return value if is_total else None

    return rewrite(weight, {}, replace)


def under_casts(expr: Expr) -> Expr:
    """Find what is converted."""
    while expr.args and expr.op in OPS and OPS[expr.op].keeps_value:
        expr = expr.args[0]
    return expr


def numbered(compute: Compute, part: PartBuilder) -> int:
    """Add a compute, once, and number it."""
    if compute not in part.computes:
        part.computes.append(compute)
    return part.computes.index(compute)


def divided(compute: Compute, sink: Sink, total: Expr, part: PartBuilder) -> Compute:
    """Divide a product of weights by the totals of their rows.

    Rows that a mask empties stay 0: their total is 0, or NaN, the sum of exp(-inf - -inf).
    """
    wide = compute.dtype
    number = numbered(compute, part)
    ref = Expr("ref", (), number, wide)
    divisor = apply("cast", (total,), wide)
    body = Expr("div", (ref, divisor), None, wide)
    if sink.is_masked:
        zero = const(0.0, wide)
        is_none = Expr("equal", (ref, zero), None, bool_)
        body = Expr("where", (is_none, zero, body), None, wide)
    return Compute(compute.axes, (), None, body, wide)
