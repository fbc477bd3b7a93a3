"""Reductions of the result of a product on a GPU: over all of its rows, or all of its columns.

    block: its tile of results; sums of the tile along what is reduced
           leave them in a workspace; the last block of these columns adds up those of all, in
           order, and finishes: statistics of a batch, gradients of biases

The tile is in registers when it is reduced: nothing is read again. `Contraction.computes` holds the
product, its elements, the reductions of elements, and what is computed of those.
"""

from collections.abc import Mapping

from picograd.codegen.layout import Blocked
from picograd.codegen.operands import (
    Contraction,
    Role,
    element_values,
    guarded,
    is_across,
    is_element,
)
from picograd.codegen.tile import Accumulate, Assign, LastBlock, Step, Store, Tile
from picograd.late_methods import dataclass
from picograd.schedule.index import Axis, Index, axis_index, substitute
from picograd.schedule.loop import Compute, Expr, rewrite
from picograd.schedule.monoid import identity

WARP = 32


@dataclass(frozen=True, slots=True)
class Blocks:
    """Which sums a block has: of `cell`, one of so many `cells` of what is kept, a share of all.

    Its `shares` are along what is reduced.
    """

    cell: Index
    cells: int
    share: Index
    shares: int
    threads: int


@dataclass(frozen=True, slots=True)
class Sums:
    """The reductions of a tile: `kept` is its dimension of results, `gone` those that they reduce.

    `along` are the axes of what is kept, and conditions, at a block's coordinates, `across` those
    of all that an element is at. `layout` is that of (kept, *gone).
    """

    c: Contraction
    kept: Axis
    gone: tuple[Axis, ...]
    along: Role
    across: Role
    layout: Blocked
    blocks: Blocks

    @property
    def own(self) -> Blocked:
        """Layout of the sums of a block: its threads share them as they share the tile."""
        whole = self.layout
        return Blocked(whole.shape[:1], whole.threads[:1], whole.vector[:1], whole.is_first_fastest)

    @property
    def finished(self) -> tuple[Blocked, Blocked]:
        """Layouts of the sums of all blocks, and of all shares of them."""
        (width,), blocks = self.layout.shape[:1], self.blocks
        lanes = (
            1 << (min(width, WARP) - 1).bit_length()
        )  # threads that share an element: a power of two
        each = Blocked((width,), (lanes,), (1,), True)
        shape, threads = (width, blocks.shares), (lanes, blocks.threads // lanes)
        return each, Blocked(shape, threads, (1, 1), True)

    @property
    def workspaces(self) -> tuple[tuple[int, bool], ...]:
        """Memory for the sums of every block, and to count those that are done."""
        count = self.blocks.cells * self.blocks.shares * self.kept.size
        sizes = [(count * compute.dtype.itemsize, False) for _, compute in reductions(self.c)]
        return (*sizes, (4 * self.blocks.cells, True))

    @property
    def tiles(self) -> tuple[Tile, ...]:
        """Sums of a block, of all blocks, and the workspaces between them."""
        found = []
        width, blocks = self.kept.size, self.blocks
        for place, (number, compute) in enumerate(reductions(self.c)):
            dtype = compute.dtype
            found.append(Tile(f"sum{number}", (width,), dtype, "register", self.own))
            total = Tile(f"total{number}", (width,), dtype, "register", self.finished[0])
            shape = blocks.cells, blocks.shares, width
            left = Tile(f"left{number}", shape, dtype, "workspace", workspace=place)
            found += total, left
        return tuple(found)


def reductions(c: Contraction) -> list[tuple[int, Compute]]:
    """List the reductions of the result, with their numbers."""
    return [(n, compute) for n, compute in enumerate(c.computes) if is_across(c, compute)]


def is_kept(c: Contraction, axes: tuple[Axis, ...]) -> bool:
    """Tell whether the reductions of a result keep these axes of it, and not the others."""
    (_, first), *_ = reductions(c)
    return set(first.reduce).isdisjoint(axes)


def write_sums(sums: Sums, read: Mapping[int, Expr]) -> list[Step]:
    """Write what follows the stores of a tile; `read` are the products at a point of it."""
    c, blocks, here = sums.c, sums.blocks, (axis_index(sums.kept),)
    done = element_values(c, sums.across.values, read)
    adding: list[Step] = []
    leaving: list[Step] = []
    for number, compute in reductions(c):
        monoid = compute.monoid or "sum"
        body = rewrite(compute.body, sums.across.values, done)
        body = guarded(body, sums.across.conditions, identity(monoid, body.dtype))
        name = f"sum{number}"
        adding.append(Accumulate(name, (sums.kept,), sums.gone, monoid, body, True, sums.layout))
        value = Expr("tile", (), (name, here), compute.dtype)
        place = blocks.cell, blocks.share, *here
        leaving.append(Assign(f"left{number}", (sums.kept,), value, place, sums.own))
    counter = len(reductions(c))
    last = LastBlock(counter, blocks.cell, blocks.shares, tuple(finish(sums)))
    return [*adding, *leaving, last]


def finish(sums: Sums) -> list[Step]:
    """Add up the sums of all blocks, and store what is wanted of them."""
    c, blocks = sums.c, sums.blocks
    each, whole = sums.finished
    place, share = Axis("place", sums.kept.size), Axis("share", blocks.shares)
    values = moved(sums.along, sums.kept, place)
    found: list[Step] = []
    done: dict[int, Expr] = {}

    def replace_ref(expr: Expr) -> Expr | None:
        return done[expr.arg] if expr.op == "ref" else None

    for number, compute in reductions(c):
        at = blocks.cell, axis_index(share), axis_index(place)
        left = Expr("tile", (), (f"left{number}", at), compute.dtype)
        name, monoid = f"total{number}", compute.monoid or "sum"
        found.append(Accumulate(name, (place,), (share,), monoid, left, True, whole))
        done[number] = Expr("tile", (), (name, (axis_index(place),)), compute.dtype)
    for number, compute in enumerate(c.computes):
        if number == c.number or is_element(c, compute):
            continue
        if number not in done:
            done[number] = rewrite(compute.body, values.values, replace_ref)
        if compute.store:
            slot, index = compute.store
            where = substitute(index, values.values)
            found.append(Store(slot, where, (place,), done[number], values.conditions, each))
    return found


def moved(role: Role, axis: Axis, other: Axis) -> Role:
    """Name the positions of a role by another axis."""
    here = {axis: axis_index(other)}
    values = {each: substitute(index, here) for each, index in role.values.items()}
    tests = tuple((substitute(index, here), low, high) for index, low, high in role.conditions)
    return Role(values, tests)
