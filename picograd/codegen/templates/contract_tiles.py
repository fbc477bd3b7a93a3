"""Products of bfloat16 by the tile registers of a CPU: blocks of 32 x 32, 32 elements of K a step.

Rows are packed as they are, `[m][k]`. Columns are packed in a panel `[k][lane]`, in which pairs of
K are then put in turn, `[k / 2][lane][2]`, as tiles are read. Both are 0 beyond the end of K.
"""

from dataclasses import replace

from picograd.codegen import cuts
from picograd.codegen.operands import Contraction, narrow
from picograd.codegen.templates.contract_plan import (
    CACHE_BYTES,
    Plan,
    cut_columns,
    cut_rows,
    is_nested,
    is_range,
)
from picograd.codegen.templates.contract_thin import pack
from picograd.codegen.tile import Step, Tile
from picograd.codegen.tile_products import STEP, TILE
from picograd.dtype import bfloat16, float32
from picograd.helpers import ceil_div, round_up
from picograd.schedule.index import Axis, Index, axis_index
from picograd.schedule.loop import Expr
from picograd.target import Target

PANEL = "panel"  # tile of the columns of a panel, before they are paired
DEPTH = 512  # longest depth block: results are read and written once for each
MOST_ROWS = 512
TASKS = 4  # a worker


def choose(product: Contraction, target: Target) -> Plan | None:
    """Choose blocks for a product of bfloat16; None if the target has no tiles, or it is none."""
    if not target.multiplies_tiles or not is_suited(product):
        return None
    batch, m, n, k = product.sizes
    a, b = narrow(product.a), narrow(product.b)
    product = replace(product, a=a, b=b)
    blocks = ceil_div(k, DEPTH)
    size = round_up(ceil_div(k, blocks), STEP)
    deep = Axis("deep", ceil_div(k, size))
    depth = cuts.range_cut(product.depth, size, (deep,))
    height = min(round_up(m, TILE), 2 * TILE)
    tasks = TASKS * target.threads if target.threads > 1 else 1
    most = max(tasks // max(batch, 1), 1)
    share = ceil_div(m, min(most, ceil_div(m, height)))
    rows, task, loop = cut_rows(product, round_up(share, height), MOST_ROWS, height, True)
    wide = CACHE_BYTES // (4 * rows.size)
    return Plan(
        product,
        rows,
        cut_columns(product, min(wide, n), TILE, 2),
        depth,
        height,
        task,
        loop,
        part=Axis("part", 1),
        is_km=False,
        packs_all=False,
        is_paired=True,
    )


def is_suited(product: Contraction) -> bool:
    """Tell whether a product is one of matrices of bfloat16 that fill tiles."""
    _, m, n, k = product.sizes
    is_small = min(m, n) < TILE or k < STEP
    is_plain = not (product.ends or product.windows or product.twin or is_nested(product))
    if is_small or not is_plain or product.dtype is not float32:
        return False
    has_ranges = all(is_range(product, axes) for axes in (product.columns, product.rows))
    is_matrix = has_ranges and sum(axis.size > 1 for axis in product.depth) == 1
    return is_matrix and all(narrow(x).dtype is bfloat16 for x in (product.a, product.b))


def tiles(plan: Plan) -> tuple[Tile, ...]:
    """List the packed blocks, and the block of results."""
    depth, lanes, rows = plan.depth.size, plan.columns.lanes, plan.rows_padded
    line = 64  # bytes, beside rows: they do not all fall in one set of the cache
    return (
        Tile(plan.a, (rows, depth), bfloat16, "shared", row_padding=line // 2),
        Tile(PANEL, (depth, lanes), bfloat16, "shared"),
        Tile(plan.b, (1, plan.panels, depth // 2, 2 * lanes), bfloat16, "shared"),
        Tile(plan.c, (rows, plan.width), float32, "shared", row_padding=line // 4),
    )


def pair(plan: Plan, block: Index) -> Step:
    """Put pairs of the columns of a panel in turn."""
    panel = axis_index(plan.columns.panel)
    pairs = Axis("pair", plan.depth.size // 2)
    lanes = Axis("lane", plan.columns.lanes)
    parity = Axis("parity", 2)
    row, lane, side = map(axis_index, (pairs, lanes, parity))
    element = row * 2 + side, lane
    read = Expr("tile", (), (PANEL, element), bfloat16)
    return pack(plan.b, (pairs, lanes, parity), read, (block, panel, row, lane * 2 + side))
