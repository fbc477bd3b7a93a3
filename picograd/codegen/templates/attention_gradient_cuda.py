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
from collections.abc import Callable
from dataclasses import dataclass, field

from picograd.codegen.layout import WgmmaOperand
from picograd.codegen.operands import bind_roles, expr_axes, guarded, size_of
from picograd.codegen.stream_masks import is_constant, settled
from picograd.codegen.streams import Product, Stream, binary, read, replaced
from picograd.codegen.templates.attention_frame import SPAN, WARPGROUP, Frame, Schedule
from picograd.codegen.tile import Accumulate, Assign, Dot, Step, Tile, TileKernel, TilePart
from picograd.graph.ops import OPS
from picograd.helpers import round_up
from picograd.schedule.index import Axis
from picograd.schedule.loop import Expr, Kernel, const, walk
from picograd.schedule.monoid import COMBINE
from picograd.target import Target

GROUPS = 2  # warpgroups of 64 rows
REGISTERS = 24, 240
MOST_LIVE = 224  # registers of a thread for fragments (the others: addresses, values of rows)
SIZES = 128, 96, 64, 32  # of a block of the stream


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
    for size in SIZES:
        scores = len(stream.scores) + bool(stream.sums)
        if sum(widths) // 2 + scores * size // 2 + len(widths) * size // 4 <= MOST_LIVE:
            return size
    return SIZES[-1]


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
        bodies |= {each.number: each.weight for each in stream.products}
        whole = {number: self.prepared(settled(body)) for number, body in bodies.items()}
        edge = {number: self.prepared(body) for number, body in bodies.items()}
        steps = self.share_power(whole, edge)
        for number in stream.sums:
            steps += self.add_up(number, whole[number], edge[number])
        for each in sorted(stream.products, key=lambda x: len(self.read_by(whole[x.number]))):
            steps += self.multiply_weights(each, whole[each.number], edge[each.number])
        return steps

    def read_by(self, expr: Expr) -> set[str]:
        """List the tiles of scores that an expression reads."""
        own = set(self.names.values())
        return {x.arg[0] for x in walk(expr) if x.op == "tile" and x.arg[0] in own}

    def share_power(self, whole: dict[int, Expr], edge: dict[int, Expr]) -> list[Step]:
        """Compute the power that all weights are made of once, where its score was if it may."""
        frame = self.frame
        powers = [
            {x for e in each.values() for x in walk(e) if is_power(x)} for each in (whole, edge)
        ]
        if any(len(found) != 1 for found in powers):
            return []
        (plain,), (masked,) = powers
        name = frame.add_scores("power", frame.dtype)
        value = read(name, frame.point, plain.dtype)
        for number in whole:
            whole[number] = replaced(whole[number], {plain: value}.get)
            edge[number] = replaced(edge[number], {masked: value}.get)
        guard = guarded(masked, frame.conditions)
        first, second = (Assign(name, frame.dims, x) for x in (plain, guard))
        return frame.chosen([first], [second])

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


def is_power(expr: Expr) -> bool:
    """Tell whether an expression is a power of 2."""
    return expr.op == "quick_exp2"


def power_of(expr: Expr) -> Expr | None:
    """Write exp(x - m), or that over a total, as one power of 2: what is subtracted is of a row."""
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
    base = 2.0 if inner.op == "exp2" else math.e
    score, peak = (scaled(x, math.log2(base)) for x in less.args)
    if total is not None:
        peak = binary("add", peak, Expr("log2", (total,), None, total.dtype))
    return Expr("quick_exp2", (binary("sub", score, peak),), None, less.dtype)


def scaled(expr: Expr, factor: float) -> Expr:
    """Multiply by a number; two numbers are multiplied now."""
    if expr.op in OPS and OPS[expr.op].linear == (0, 1) and is_constant(expr.args[1]):
        expr, factor = expr.args[0], factor * float(expr.args[1].arg)
    return binary("mul", expr, const(factor, expr.dtype))
