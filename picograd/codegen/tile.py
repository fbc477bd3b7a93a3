"""Tile IR: how one block (or one CPU task) computes its part of a kernel, in whole-tile steps.

    TileKernel = grid axes, threads, tiles, steps      grid: one block per point (CPU: one task)
    Tile       = name, shape, dtype, space, layout
    Step       = Assign | Accumulate | Dot | Store | For | When | Barrier | LastBlock | Scatter
               | MainLoop

A step works on all coordinates of its `dims` (axes of its own, bound to 0..size-1) "at once": the
threads of the block share the work, and the number of steps does not depend on the tile sizes.
Expressions are Loop IR `Expr`s over the grid axes, enclosing `For` axes and the step's dims, plus
`tile` reads: `Expr("tile", (), (tile name, (Index, ...)), dtype)`.

space "register"  each thread keeps the elements its layout gives it; a step that writes or reads
                  the tile walks dims in that same layout, so no communication happens. A tile whose
                  dims are a prefix of the step's dims is read as replicated along the others.
space "shared"    one copy a block (CUDA shared memory; on the CPU the worker's scratch). Between a
                  write and a read by other threads there must be a Barrier.
space "workspace" memory shared by all blocks, for partial results (`tile.workspace` numbers it).

`Accumulate` reduces over its `over` dims: within a thread, then across the threads that share an
element of the result; afterwards all of those hold the result. `Dot` is the matrix product
acc[m,n] += sum_k a[m,k] * b[k,n] on the units its `unit` names. `MainLoop` stands for a whole
pipelined multiplication (producer and consumer roles, an mbarrier ring) with one declared meaning:
acc = sum over all k of a * b; only its rendering is opaque, what follows it is Tile IR again.
"""

from dataclasses import dataclass, field
from typing import Any, Union

from picograd.codegen.layout import Layout
from picograd.dtype import DType
from picograd.schedule.index import Axis, Index
from picograd.schedule.loop import Condition, Expr, Kernel


@dataclass(frozen=True, slots=True)
class Tile:
    """A block-local array; see the module docstring for `space`."""

    name: str
    shape: tuple[int, ...]
    dtype: DType
    space: str  # "register", "shared" or "workspace"
    layout: Layout | None = None
    workspace: int = -1
    row_padding: int = 0  # extra elements after each row of the last dimension (bank conflicts)


@dataclass(frozen=True, slots=True)
class Assign:
    """tile[dims] = expr where `conditions` hold; elsewhere the expr's guards decide."""

    tile: str
    dims: tuple[Axis, ...]
    expr: Expr
    index: tuple[Index, ...] | None = None  # where in the tile, if not at `dims` itself
    layout: Layout | None = None  # how threads walk dims when the tile is not in registers


@dataclass(frozen=True, slots=True)
class Accumulate:
    """tile[dims] = monoid(tile[dims], reduction of expr over `over`).

    `is_first`: the tile holds nothing yet, start from the monoid's identity.
    `layout` covers (*dims, *over).
    """

    tile: str
    dims: tuple[Axis, ...]
    over: tuple[Axis, ...]
    monoid: str
    expr: Expr
    is_first: bool = True
    layout: Layout | None = None


@dataclass(frozen=True, slots=True)
class Dot:
    """acc[m, n] += sum_k a[m, k] * b[k, n] over whole tiles.

    unit "fma" (CPU vectors or CUDA cores), "mma" (mma.sync). Tiles a and b are shared; `a_is_km`
    says that a is stored [k, m], `b_is_nk` that b is stored [n, k]. `a_origin`/`b_origin`: where in
    the shared tiles the product starts, for a register block inside a larger shared tile.

    On the CPU acc may be a shared tile too: the product is then `block` = (rows, columns) large and
    lands at `acc_origin`, in acc's last two dimensions. Leading dimensions of a and b (before the
    last two) are picked by the origins alone. `is_first`: acc = instead of acc +=.
    """

    acc: str
    a: str
    b: str
    depth: int
    unit: str = "fma"
    a_is_km: bool = False
    b_is_nk: bool = False
    a_origin: tuple[Index, ...] | None = None
    b_origin: tuple[Index, ...] | None = None
    acc_origin: tuple[Index, ...] | None = None
    block: tuple[int, int] | None = None
    is_first: bool = False


@dataclass(frozen=True, slots=True)
class Store:
    """slot[index] = expr at every point of dims where all conditions hold."""

    slot: int
    index: Index
    dims: tuple[Axis, ...]
    expr: Expr
    conditions: tuple[Condition, ...] = ()
    layout: Layout | None = None


@dataclass(frozen=True, slots=True)
class For:
    """Run `body` for axis = 0..size-1 in order; uniform over the block."""

    axis: Axis
    body: tuple["Step", ...]
    is_unrolled: bool = False


@dataclass(frozen=True, slots=True)
class When:
    """Run `body` if all conditions hold; conditions are uniform over the block."""

    conditions: tuple[Condition, ...]
    body: tuple["Step", ...]


@dataclass(frozen=True, slots=True)
class Barrier:
    """Wait until all threads of the block are here; shared writes before are seen after."""


@dataclass(frozen=True, slots=True)
class LastBlock:
    """Run `body` in the block that arrives last of `total`, with all workspaces visible.

    `counter` numbers a zeroed workspace of int32 cells and `cell` one of them; the last block
    leaves the cell zero. Deterministic: only *which* block runs the body varies.
    """

    counter: int
    cell: Index
    total: int
    body: tuple["Step", ...]


@dataclass(frozen=True, slots=True)
class ScatterStep:
    """Apply updates in order: for serial axes (sequentially), for inner dims (in parallel)."""

    serial: tuple[Axis, ...]
    dims: tuple[Axis, ...]
    slot: int
    target: Index
    monoid: str | None
    expr: Expr
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class MainLoop:
    """acc[m, n] = sum over k of a[m, k] * b[k, n], pipelined; `schedule` is the generator's."""

    acc: str
    dims: tuple[Axis, Axis, Axis]  # m, n within the block tile; k over the whole depth
    a: Expr
    b: Expr
    schedule: Any = None


Step = Union[
    Assign, Accumulate, Dot, Store, For, When, Barrier, LastBlock, ScatterStep, MainLoop
]


@dataclass(frozen=True, slots=True)
class TileKernel:
    """One kernel as block programs over a grid; `parts` share one launch, block ranges in order."""

    kernel: Kernel
    parts: tuple["TilePart", ...]
    threads: int = 1


@dataclass(frozen=True, slots=True)
class TilePart:
    """The program of one block of one part; the grid is row-major, last axis fastest."""

    grid: tuple[Axis, ...]
    tiles: tuple[Tile, ...]
    steps: tuple[Step, ...]
    workspaces: tuple[tuple[int, bool], ...] = field(default=())  # (bytes, is_zeroed)
