"""Reductions of the result of a product on a GPU: over all of its rows, or all of its columns.

    block: its tile of results; sums of the tile along what is reduced
           leave them in a workspace; the last block of a group adds up those of the group,
           the last group those of all, in order, and finishes

So are statistics of a batch and gradients of biases. The tile is in registers when it is reduced:
nothing is read again. `Contraction.computes` holds the
product, its elements, the reductions of elements, and what is computed of those.
"""

from collections.abc import Mapping

from picograd.codegen.layout import Blocked
from picograd.codegen.operands import (
    Contraction,
    Role,
    element_values,
    finished,
    guarded,
    is_across,
)
from picograd.codegen.tensor_core import SimtSchedule
from picograd.codegen.tile import Accumulate, Assign, Barrier, LastBlock, Step, Store, Tile
from picograd.dtype import DType
from picograd.helpers import ceil_div, divisors
from picograd.late_methods import dataclass
from picograd.schedule.index import Axis, Index, axis_index, constant, substitute
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

    @property
    def group(self) -> int:
        """Count the shares of a group: about as many as there are groups, if they are even."""
        fitting = [n for n in divisors(self.shares, self.shares) if n * n >= self.shares]
        return min(fitting)

    @property
    def groups(self) -> int:
        """Count the groups."""
        return self.shares // self.group


@dataclass(frozen=True, slots=True)
class Sums:
    """The reductions of a tile: `kept` is its dimension of results, `gone` those that they reduce.

    `along` are the axes of what is kept, and conditions, at a block's coordinates, `across` those
    of all that an element is at. `layout` is that of (kept, *gone). If it `is_spread`, each thread
    has all of the tile but along the first dimension that is reduced.
    """

    c: Contraction
    kept: Axis
    gone: tuple[Axis, ...]
    along: Role
    across: Role
    layout: Blocked
    blocks: Blocks
    is_spread: bool = False

    @property
    def own(self) -> Blocked:
        """Layout of the sums of a block."""
        whole = self.shared if self.is_spread else self.layout
        shape = whole.shape[:1]
        threads = whole.threads[:1]
        vector = whole.vector[:1]
        return Blocked(shape, threads, vector, whole.is_first_fastest)

    @property
    def alone(self) -> Blocked:
        """Layout of what threads have of what is spread."""
        shape = self.layout.shape[:2]
        threads = self.layout.threads[:2]
        return Blocked(shape, threads, (1, 1))

    @property
    def shared(self) -> Blocked:
        """Layout of what threads have, as they add it up from shared memory."""
        shape = self.layout.shape[:2]
        rows = even(self.kept.size)
        threads = self.blocks.threads // rows
        return Blocked(shape, (rows, threads), (1, 1))

    @property
    def total(self) -> Blocked:
        """Layout of the sums of several blocks."""
        width = self.kept.size
        lanes = even(width)
        return Blocked((width,), (lanes,), (1,), True)

    def parts(self, count: int) -> Blocked:
        """Layout of so many parts of the sums of several blocks."""
        width = self.kept.size
        lanes = even(width)
        threads = self.blocks.threads // lanes
        return Blocked((width, count), (lanes, threads), (1, 1), True)

    @property
    def workspaces(self) -> tuple[tuple[int, bool], ...]:
        """Memory for the sums of blocks and of groups, and to count those that are done."""
        blocks = self.blocks
        found = []
        for count in (blocks.shares, blocks.groups):
            size = blocks.cells * count * self.kept.size
            for _, each in reductions(self.c):
                nbytes = size * each.dtype.itemsize
                found.append((nbytes, False))
        cells = 4 * blocks.cells
        found.append((cells * blocks.groups, True))
        found.append((cells, True))
        return tuple(found)

    @property
    def tiles(self) -> tuple[Tile, ...]:
        """Sums of a block, of groups and of all blocks, and the workspaces between them."""
        found: list[Tile] = []
        every = reductions(self.c)
        for place, (number, compute) in enumerate(every):
            dtype = compute.dtype
            found += self.tiles_of(number, dtype)
            group = place + len(every)
            found += self.left("left", number, dtype, self.blocks.shares, place)
            found += self.left("group", number, dtype, self.blocks.groups, group)
        return tuple(found)

    def tiles_of(self, number: int, dtype: DType) -> list[Tile]:
        """Declare the sums of a block, and what its threads have of them before."""
        shape = (self.kept.size,)
        found = [Tile(f"sum{number}", shape, dtype, "register", self.own)]
        if self.is_spread:
            spread = self.alone
            found.append(Tile(f"own{number}", spread.shape, dtype, "register", spread))
            found.append(Tile(f"shared{number}", spread.shape, dtype, "shared"))
        return found

    def left(self, name: str, number: int, dtype: DType, count: int, workspace: int) -> list[Tile]:
        """Declare so many parts in a workspace, and their sums."""
        width = self.kept.size
        shape = self.blocks.cells, count, width
        parts = Tile(f"{name}{number}", shape, dtype, "workspace", workspace=workspace)
        total = Tile(f"{name}_sum{number}", (width,), dtype, "register", self.total)
        return [parts, total]


def sums_of(
    c: Contraction,
    schedule: SimtSchedule,
    dims: tuple[Axis, Axis],
    places: tuple[Index, Index],
    roles: tuple[Role, Role],
) -> Sums:
    """Find the reductions of a result in a tile: of each row, or of each column.

    `places` number the tile along both.
    """
    rows, columns = roles
    values = {**rows.values, **columns.values}
    across = Role(values, (*rows.conditions, *columns.conditions))
    layout = schedule.layout
    _, m, n, _ = c.sizes
    cells = ceil_div(m, layout.shape[0])
    shares = ceil_div(n, layout.shape[1])
    cell, share = places
    kept, gone = dims
    along = rows
    if not is_kept(c, c.rows):
        kept, gone = gone, kept
        cell, share = share, cell
        cells, shares = shares, cells
        along = columns
        turned = layout.shape[::-1], layout.threads[::-1], layout.vector[::-1]
        layout = Blocked(*turned, True)
    blocks = Blocks(cell, cells, share, shares, schedule.threads)
    return Sums(c, kept, (gone,), along, across, layout, blocks)


def even(count: int) -> int:
    """Choose as many threads as elements: a power of two, of a warp at most."""
    return 1 << (min(count, WARP) - 1).bit_length()


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
        adding += add_tile(sums, number, monoid, body)
        value = tile_read(f"sum{number}", here, compute)
        place = blocks.cell, blocks.share, *here
        leaving.append(Assign(f"left{number}", (sums.kept,), value, place, sums.own))
    counter = 2 * len(reductions(c))
    group = blocks.share // blocks.group
    cell = blocks.cell * blocks.groups + group
    rest = add_group(sums, group, counter + 1)
    return [*adding, *leaving, LastBlock(counter, cell, blocks.group, tuple(rest))]


def add_tile(sums: Sums, number: int, monoid: str, body: Expr) -> list[Step]:
    """Add up a tile: by way of shared memory where no two threads of a warp share an element."""
    name, layout = f"sum{number}", sums.layout
    if not sums.is_spread:
        return [Accumulate(name, (sums.kept,), sums.gone, monoid, body, True, layout)]
    thread, *alone = sums.gone
    dims = sums.kept, thread
    here = tuple(map(axis_index, dims))
    own = Expr("tile", (), (f"own{number}", here), body.dtype)
    told = Expr("tile", (), (f"shared{number}", here), body.dtype)
    return [
        Accumulate(f"own{number}", dims, tuple(alone), monoid, body, True, layout),
        Assign(f"shared{number}", dims, own, here, sums.alone),
        Barrier(),
        Accumulate(name, (sums.kept,), (thread,), monoid, told, True, sums.shared),
    ]


def tile_read(name: str, where: tuple[Index, ...], compute: Compute) -> Expr:
    """Read what a reduction left."""
    return Expr("tile", (), (name, where), compute.dtype)


def add_parts(sums: Sums, name: str, first: Index, count: int, place: Axis) -> list[Step]:
    """Add up so many parts of the sums of a cell, from the first on."""
    layout = sums.parts(count)
    part = Axis("part", count)
    at = sums.blocks.cell, first + axis_index(part), axis_index(place)
    found: list[Step] = []
    for number, compute in reductions(sums.c):
        left = tile_read(f"{name}{number}", at, compute)
        total, monoid = f"{name}_sum{number}", compute.monoid or "sum"
        found.append(Accumulate(total, (place,), (part,), monoid, left, True, layout))
    return found


def add_group(sums: Sums, group: Index, counter: int) -> list[Step]:
    """Add up the sums of a group of blocks; the last group goes on."""
    blocks, place = sums.blocks, Axis("place", sums.kept.size)
    found = add_parts(sums, "left", group * blocks.group, blocks.group, place)
    here = (axis_index(place),)
    for number, compute in reductions(sums.c):
        value = tile_read(f"left_sum{number}", here, compute)
        at = blocks.cell, group, *here
        found.append(Assign(f"group{number}", (place,), value, at, sums.total))
    last = LastBlock(counter, blocks.cell, blocks.groups, tuple(finish(sums)))
    return [*found, last]


def finish(sums: Sums) -> list[Step]:
    """Add up the sums of all groups, and store what is wanted of them."""
    c, place = sums.c, Axis("place", sums.kept.size)
    values = moved(sums.along, sums.kept, place)
    found = add_parts(sums, "group", constant(0), sums.blocks.groups, place)

    def total(number: int, compute: Compute) -> Expr:
        return tile_read(f"group_sum{number}", (axis_index(place),), compute)

    for out in finished(c, values.values, total):
        store = Store(out.slot, out.index, (place,), out.expr, values.conditions, sums.total)
        found.append(store)
    return found


def moved(role: Role, axis: Axis, other: Axis) -> Role:
    """Name the positions of a role by another axis."""
    here = {axis: axis_index(other)}
    values = {each: substitute(index, here) for each, index in role.values.items()}
    tests = tuple((substitute(index, here), low, high) for index, low, high in role.conditions)
    return Role(values, tests)
