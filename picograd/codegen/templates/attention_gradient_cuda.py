"""Gradients of attention on Hopper: streams over scores whose maxima and totals are known.

    for each tile of rows: hold the rows of every product of scores in shared memory
      pipeline over blocks of the stream that a mask shows:
        scores = rows @ streamed^T                     wgmma, all products at once
        powers = exp(score - maximum) / total          one multiply-add, one power of 2
        weights of each product, of powers and scores  elements of the fragments
        result += weights @ streamed                   wgmma, the weights in registers
      store results

    dq        rows are queries: scores q k^T and g v^T, the result ds k
    dk, dv    rows are keys: the same scores across, the results ds^T q and p^T g

What has one value a row, such as maxima, is in registers of that row; what has one value a place of
the stream comes to shared memory with the boxes, computed by a warp of its own: 0 behind the end.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from picograd.codegen.layout import WgmmaOperand
from picograd.codegen.operands import bind_roles, cast, expr_axes, guarded, size_of
from picograd.codegen.stream_masks import (
    hiding,
    is_constant,
    is_number,
    scaled,
    settled,
    unmasked,
    unscaled,
)
from picograd.codegen.streams import Product, Stream, binary, is_tile, read, replaced
from picograd.codegen.templates.attention_frame import SPAN, WARPGROUP, Frame, Schedule
from picograd.codegen.tile import Accumulate, Assign, Dot, Step, Tile, TileKernel, TilePart
from picograd.dtype import bool_
from picograd.errors import internal
from picograd.graph.elementwise import ELEMENTWISE
from picograd.graph.ops import OPS
from picograd.helpers import round_up
from picograd.schedule.index import Axis
from picograd.schedule.loop import Expr, Kernel, const, walk
from picograd.schedule.monoid import COMBINE, identity
from picograd.target import Target

GROUPS = 2  # warpgroups of 64 rows
REGISTERS = 40, 232
MOST_LIVE = 232  # registers of a thread for fragments (the others: addresses, values of rows)
SIZES = 128, 112, 96, 64, 32  # of a block of the stream


def build(kernel: Kernel, stream: Stream, target: Target) -> TileKernel:
    """Write a kernel of one part."""
    frame = Frame(stream, Schedule(GROUPS, block_size(stream), REGISTERS), target)
    program = Writer(frame).part()
    return TileKernel(kernel, (program,), WARPGROUP * (1 + GROUPS))


def block_size(stream: Stream) -> int:
    """Find how many places of the stream there are registers for.

    A thread holds half a value for each column of what is summed and of each score, and a quarter
    for each place of the weights, which are packed.
    """
    widths = [round_up(size_of(each.columns), SPAN) for each in stream.products]
    is_twice = is_read_twice(stream)
    scores = len(stream.scores) + bool(stream.sums) + is_twice
    for size in SIZES:
        live = sum(widths) // 2 + scores * size // 2 + len(widths) * size // 4
        if live <= MOST_LIVE and (size <= SPAN or not is_twice):
            return size
    return SIZES[-1]


def is_read_twice(stream: Stream) -> bool:
    """Tell whether scores are read beside the powers that are made of them: both are held."""
    weights = [each.weight for each in stream.products]
    powers = {x for weight in weights for x in exponentials_in(weight)}
    inside = {x.arg for power in powers for x in walk(power) if x.op == "ref"}
    none = dict.fromkeys(powers, const(0.0, stream.computes[0].dtype))
    rest = {x.arg for weight in weights for x in walk(replaced(weight, none.get)) if x.op == "ref"}
    return not inside.isdisjoint(rest)


@dataclass(slots=True)
class Vectors:
    """Parts of expressions that have one value a row, or one a place of the stream."""

    of_rows: dict[Expr, str] = field(default_factory=dict)
    of_places: dict[Expr, str] = field(default_factory=dict)


class Writer:
    """This class writes the part; see the module docstring."""

    def __init__(self, frame: Frame) -> None:
        self.frame, self.stream = frame, frame.stream
        self.vectors = Vectors()
        self.names: dict[int, str] = {}
        for score in self.stream.scores:
            self.names[score.number] = frame.add_scores(f"score{score.number}", frame.dtype)

    def part(self) -> TilePart:
        """Write the program of a block."""
        frame, stream = self.frame, self.stream
        steps: list[Step] = [self.multiply(number) for number in range(len(stream.scores))]
        steps += self.weigh()
        begun: list[Step] = [frame.start_reduction(number) for number in stream.reductions]
        begun += [frame.start_product(each) for each in stream.products]
        begun += self.hold_rows()
        values = self.fill_places()
        frame.fill_memory([each.tile for each in values])
        return frame.part(begun, frame.pipeline(values, steps))

    def multiply(self, number: int) -> Step:
        """Write the product of a block of scores."""
        score = self.stream.scores[number]
        held = self.frame.hold(score.row, score.depth)
        ring = self.frame.streamed(score.streamed, score.depth)
        depth = self.frame.tiles[held].shape[1]
        name = self.names[score.number]
        return Dot(name, held, ring, depth, "wgmma", b_is_nk=True, is_first=True)

    # -- elements of a block ----------------------------------------------------------------------

    def weigh(self) -> list[Step]:
        """Write powers, then sums and products: those of the fewest scores first."""
        stream = self.stream
        bodies = {number: stream.computes[number].body for number in stream.sums}
        for each in stream.products:
            bodies[each.number], factor = without_factor(each.weight)
            self.frame.factors[each.number] = factor
        steps = self.share_power(bodies)
        whole = {number: self.prepared(settled(body)) for number, body in bodies.items()}
        edge = {number: self.prepared(body) for number, body in bodies.items()}
        for number in stream.sums:
            steps += self.add_up(number, whole[number], edge[number])
        for each in sorted(stream.products, key=lambda x: len(self.read_by(whole[x.number]))):
            steps += self.multiply_weights(each, whole[each.number], edge[each.number])
        return steps

    def read_by(self, expr: Expr) -> set[str]:
        """List the tiles of scores that an expression reads."""
        own = set(self.names.values())
        return {x.arg[0] for x in walk(expr) if x.op == "tile" and x.arg[0] in own}

    def share_power(self, bodies: dict[int, Expr]) -> list[Step]:
        """Compute the power that every weight is a multiple of once, of scores that masks hide.

        Where they do, it is 0, so that masks of the weights are left out; it is 0 for all of a row
        that they hide, whose maximum is -inf, if they were.
        """
        found = {x for body in bodies.values() for x in exponentials_in(body)}
        powers = [Power.of(each) for each in found]
        if len(powers) != 1 or not all(is_multiple(x, found) for x in bodies.values()):
            return []
        (power,), frame = powers, self.frame
        visible = {number: unmasked(body, hiding(power.score)) for number, body in bodies.items()}
        is_masked = visible != bodies
        value = read("power", frame.point, frame.dtype)
        bodies |= {n: replaced(x, dict.fromkeys(found, value).get) for n, x in visible.items()}
        name, steps = self.edit(power.score, bodies)
        score = binary("mul", read(name, frame.point, frame.dtype), power.factor)
        less = self.prepared(power.less(is_masked))
        frame.add_scores("power", frame.dtype)
        exponent = binary("sub", score, less)
        exponential = Expr("quick_exp2", (exponent,), None, frame.dtype)
        return [*steps, Assign("power", frame.dims, exponential)]

    def edit(self, score: Expr, bodies: Mapping[int, Expr]) -> tuple[str, list[Step]]:
        """Edit scores, where they are if nobody else reads them; -inf where they are hidden."""
        frame = self.frame
        whole, edge = self.prepared(settled(score)), cast(self.prepared(score), frame.dtype)
        own = {x.arg for x in walk(score) if x.op == "ref"}
        others = {x.arg for body in bodies.values() for x in walk(body) if x.op == "ref"}
        is_plain = is_tile(unrounded(whole))
        is_free = len(own) == 1 and own.isdisjoint(others)
        if is_free:
            name = self.names[own.pop()]
        else:
            name = frame.add_scores("edited", frame.dtype)
        if frame.conditions:
            fill = const(identity("max", frame.dtype), frame.dtype)
            edge = Expr("guard", (edge, fill), frame.conditions, frame.dtype)
        plain = [] if is_free and is_plain else [Assign(name, frame.dims, unrounded(whole))]
        return name, frame.chosen(plain, [Assign(name, frame.dims, edge)])

    def add_up(self, number: int, whole: Expr, edge: Expr) -> list[Step]:
        """Add the elements of a block to a sum of rows."""
        frame, compute = self.frame, self.stream.computes[number]
        name = frame.add_scores(f"element{number}", compute.dtype)
        part = frame.add_rows(f"part{number}", compute.dtype)
        guard = guarded(edge, frame.conditions)
        first, second = (Assign(name, frame.dims, x) for x in (whole, guard))
        monoid, here = str(compute.monoid), frame.point[:1]
        element = read(name, frame.point, compute.dtype)
        before, own = (read(x, here, compute.dtype) for x in (f"value{number}", part))
        total = binary(COMBINE[monoid], before, own)
        sums = frame.row, frame.place
        return [
            *frame.chosen([first], [second]),
            Accumulate(part, sums[:1], sums[1:], monoid, element, layout=frame.scored),
            Assign(f"value{number}", sums[:1], total),
        ]

    def multiply_weights(self, each: Product, whole: Expr, edge: Expr) -> list[Step]:
        """Round the weights of a product to a left operand, and multiply."""
        frame = self.frame
        name = f"weight{each.number}"
        layout = WgmmaOperand(frame.scored)
        frame.add(name, (frame.height, frame.size), layout, frame.half)
        whole, edge = map(unrounded, (whole, edge))
        if any(expr.op == "load" for expr in walk(edge)) or any(map(is_power, walk(edge))):
            edge = guarded(edge, frame.conditions)
        first, second = (Assign(name, frame.dims, x) for x in (whole, edge))
        value = frame.streamed(each.value, each.columns)
        dot = Dot(f"value{each.number}", name, value, frame.size, "wgmma")
        return [*frame.chosen([first], [second]), dot]

    # -- expressions ------------------------------------------------------------------------------

    def prepared(self, body: Expr) -> Expr:
        """Write a body at one place of a block: powers of 2, vectors, and scores in tiles."""
        frame = self.frame
        found = self.with_vectors(replaced(body, power_of))

        def find(expr: Expr) -> Expr | None:
            if expr.op != "ref":
                return None
            return read(self.names[expr.arg], frame.point, expr.dtype)

        return bind_roles(replaced(found, find), frame.rows, frame.over)

    def with_vectors(self, body: Expr) -> Expr:
        """Replace the largest parts that have one value a row, or a place, by reads of those."""
        axes: dict[int, set[Axis]] = {}
        is_loaded: dict[int, bool] = {}
        rows, over = ({*x, *self.stream.batch} for x in (self.stream.rows, self.stream.over))
        for expr in walk(body):
            axes[id(expr)] = own_axes(expr).union(*(axes[id(x)] for x in expr.args))
            is_loaded[id(expr)] = expr.op == "load" or any(is_loaded[id(x)] for x in expr.args)
            if expr.op == "ref":
                axes[id(expr)] = rows | over

        def find(expr: Expr) -> Expr | None:
            if not is_loaded[id(expr)] or expr.dtype.bits != 32:
                return None
            if axes[id(expr)] <= rows:
                return self.vector(expr, self.vectors.of_rows, "row", 0)
            if axes[id(expr)] <= over:
                return self.vector(expr, self.vectors.of_places, "place", 1)
            return None

        return outermost(body, find)

    def vector(self, expr: Expr, known: dict[Expr, str], kind: str, dim: int) -> Expr:
        """Read what has one value a row, or a place; it is added where it is new."""
        name = known.setdefault(expr, f"{kind}{len(known)}")
        return read(name, self.frame.point[dim : dim + 1], expr.dtype)

    def hold_rows(self) -> list[Step]:
        """Load what has one value a row."""
        frame = self.frame
        steps: list[Step] = []
        for expr, name in self.vectors.of_rows.items():
            frame.add_rows(name, expr.dtype)
            value = guarded(bind_roles(expr, frame.rows), frame.rows.conditions)
            steps.append(Assign(name, (frame.row,), value))
        return steps

    def fill_places(self) -> list[Assign]:
        """Compute what has one value a place of the stream, as a stage of a ring."""
        frame = self.frame
        steps: list[Assign] = []
        for expr, name in self.vectors.of_places.items():
            frame.tiles[name] = Tile(name, (frame.size,), expr.dtype, "shared")
            value = guarded(bind_roles(expr, frame.over), frame.over.conditions)
            steps.append(Assign(name, (frame.place,), value))
        return steps


def own_axes(expr: Expr) -> set[Axis]:
    """Find the axes of an expression itself, without what it is made of."""
    return expr_axes(Expr(expr.op, (), expr.arg, expr.dtype))


def outermost(root: Expr, find: Callable[[Expr], Expr | None]) -> Expr:
    """Replace the outermost parts of an expression that `find` knows."""
    found = find(root)
    if found is not None:
        return found
    args = tuple([outermost(each, find) for each in root.args])
    return Expr(root.op, args, root.arg, root.dtype)


def unrounded(expr: Expr) -> Expr:
    """Take conversions off: weights are rounded once, where they are packed."""
    while expr.args and OPS[expr.op].keeps_value:
        (expr,) = expr.args
    return expr


def exponentials_in(body: Expr) -> list[Expr]:
    """List the largest parts of a body that are exp(x - m), or that over a total."""
    found: list[Expr] = []

    def find(expr: Expr) -> Expr | None:
        if parts_of(expr) is None:
            return None
        found.append(expr)
        return expr

    outermost(body, find)
    return found


def is_multiple(body: Expr, of: set[Expr]) -> bool:
    """Tell whether a body is 0 wherever the one of `of` in it is."""
    if body in of:
        return True
    row = OPS.get(body.op)
    if row is None or not row.linear:
        return False
    parts = [body.args[place] for place in row.linear]
    if row.linear == (1, 2):
        return any(is_number(x, 0.0) for x in parts) and any(is_multiple(x, of) for x in parts)
    return any(is_multiple(x, of) for x in parts)


Parts = tuple[Expr, Expr, Expr | None, float]


def parts_of(expr: Expr) -> Parts | None:
    """Read exp(x - m), or that over a total: x, m, the total, and the base of the exponential."""
    total: Expr | None = None
    inner = expr
    if expr.op in OPS and OPS[expr.op].linear == (0,) and len(expr.args) == 2:
        total, inner = expr.args[1], unrounded(expr.args[0])
    is_exponential = inner.op in OPS and OPS[inner.op].is_exponential
    if not is_exponential or len(inner.args) != 1:
        return None
    less = inner.args[0]
    if less.op not in OPS or OPS[less.op].factors != (1, -1) or less.dtype.bits != 32:
        return None
    score, peak = less.args
    base = ELEMENTWISE[inner.op].numpy(1.0)  # type: ignore[misc]
    return score, peak, total, float(base)


@dataclass(frozen=True, slots=True)
class Power:
    """A power of 2 of `factor` times `score`, less what has one value a row."""

    score: Expr
    factor: Expr
    peak: Expr
    exponent: Expr

    @staticmethod
    def of(expr: Expr) -> "Power":
        """Read exp(x - m), or that over a total, as such a power."""
        found = parts_of(expr) or internal("an exponential of a difference", expr)
        score, peak, total, base = found
        inner, scale = unscaled(score)
        exponent = scaled(peak, math.log2(base))
        if total is not None:
            logarithm = Expr("log", (total,), None, total.dtype)
            exponent = binary("add", exponent, scaled(logarithm, math.log2(math.e)))
        return Power(inner, const(scale * math.log2(base), peak.dtype), peak, exponent)

    def less(self, is_safe: bool) -> Expr:
        """Write what is subtracted; if it is to be safe, so much of a hidden row that 0 is left."""
        if not is_safe:
            return self.exponent
        dtype = self.peak.dtype
        is_low = Expr("equal", (self.peak, const(-math.inf, dtype)), None, bool_)
        return Expr("where", (is_low, const(math.inf, dtype), self.exponent), None, dtype)


def without_factor(weight: Expr) -> tuple[Expr, float]:
    """Take the numbers off that a weight is multiplied by last: the result is, instead."""
    weight, factor = unrounded(weight), 1.0
    while weight.op in OPS and OPS[weight.op].linear == (0, 1) and is_constant(weight.args[1]):
        factor *= float(weight.args[1].arg)
        weight = unrounded(weight.args[0])
    return weight, factor


def is_power(expr: Expr) -> bool:
    """Tell whether an expression is an exponential."""
    return expr.op in OPS and OPS[expr.op].is_exponential


def power_of(expr: Expr) -> Expr | None:
    """Write exp(x - m), or that over a total, as one power of 2: what is subtracted is of a row."""
    if parts_of(expr) is None:
        return None
    power = Power.of(expr)
    score = binary("mul", cast(power.score, power.factor.dtype), power.factor)
    less = binary("sub", score, power.less(False))
    return Expr("quick_exp2", (less,), None, less.dtype)
