"""Reduce template: rows, columns and whole arrays, with what is computed per row and per element.

Two schemes, chosen per part:
  whole  a grid point does all of its rows: reductions in order, each over the row again, then the
         stores. Sums over all rows (`grand`) go through one partial per grid point.
  split  the reduced axes are cut too: a grid point writes partial results to a workspace, and the
         last one to finish combines them in order and runs what follows. Possible if no
         reduction needs the result of another.
A grid point works on `dims` rows at once: neighbouring columns for column reductions (so that the
inner loop is contiguous), else one row (CPU) or as many as keep a block of threads busy (CUDA).
"""

from collections.abc import Sequence
from dataclasses import replace

from picograd.codegen.templates import map as map_template
from picograd.codegen.templates import sliding_columns
from picograd.codegen.templates.column_blocks import (
    CUDA_COLUMN_THREADS,
    LEAST_OF_BLOCK,
    blocks_together,
    cut_columns,
    even_chunk,
    piece_count,
    side_by_side,
)
from picograd.codegen.templates.column_sums import block_threads, build_column_sums, sums_of
from picograd.codegen.templates.grid import Cut, balanced, cut, ended, in_pieces, merge_part
from picograd.codegen.templates.members import build_parts
from picograd.codegen.templates.rescaled_sums import rescaled_axes
from picograd.codegen.templates.row_pieces import pieces_of, stored_of, threads_of_pieces
from picograd.codegen.templates.rows import GRAND_PIECE, KEPT_REGISTERS, Rows
from picograd.codegen.templates.sharing import HELD_BYTES, is_held, share_elements
from picograd.codegen.templates.threads import Threads, threads_along
from picograd.codegen.templates.transposed import across_rows, crossed_axis, in_blocks
from picograd.codegen.templates.turned_rows import (
    BLOCK,
    block_axis,
    build_turned,
    turned_axis,
    whole_blocks,
)
from picograd.codegen.templates.uneven_rows import cut_uneven
from picograd.codegen.tile import Accumulate, Assign, For, Step, TileKernel, TilePart, When
from picograd.helpers import ceil_div, product, round_up
from picograd.schedule.assemble import hero_of
from picograd.schedule.cost import LONG_ROW, WARP, column_tile
from picograd.schedule.index import Axes, Axis, Index, axes_of, axis_index, position_over
from picograd.schedule.loop import Compute, Condition, Expr, Kernel, Part, const, walk
from picograd.schedule.monoid import identity
from picograd.target import Target

TASK_POINTS = 65536
COLUMNS = 256  # that a CPU task reduces at once: 1 KiB of accumulators, 16 vectors
TASKS_PER_THREAD = 4
CUDA_THREADS, MOST_THREADS = 256, 1024
HELD = 64  # elements of a row that a thread holds from one pass to the next
DEAR = 16  # parts of an expression that waits for arithmetic
EXCHANGED = 4096  # bytes of shared memory that the threads of a block tell one another by
MOST_BLOCKS, BYTES_OF_THREAD = 8, 128  # of a cluster; of a row that one shares
CACHED = 1 << 17  # bytes of a row that the first-level cache holds from one pass to the next
SHORT = 16  # elements of a column
UNROLLED = 4  # rows that a thread of a column reads ahead
FULL_BLOCKS = 1  # whose threads all have elements, for each multiprocessor: else rows get warps
BLOCKS_PER_MULTIPROCESSOR = 8  # of 256 threads: all a multiprocessor can hold


def build(kernel: Kernel, target: Target) -> TileKernel:
    """Write a reduction kernel for the target."""
    if target.has_blocks:
        parts = build_parts(kernel, target, build_part)
        return TileKernel(kernel, parts, threads_of(kernel, target), cluster_of(kernel, target))
    whole = map(merge_part, kernel.parts)
    parts = tuple(each for part in whole for each in build_on_cpu(kernel, part, target))
    return TileKernel(kernel, parts)


def threads_of(kernel: Kernel, target: Target) -> int:
    """Choose the threads of a CUDA block: as many as hold a row that is read several times.

    What is only reduced, and stays in the cache, is rather read again by several blocks in turn.
    """
    if found := block_threads(kernel):
        return found
    part = kernel.parts[0]
    if cluster_of(kernel, target) > 1:
        return threads_of_cluster(part)
    is_column = is_of_columns(kernel, part)
    if is_column and len(kernel.parts) == 1:
        return sliding_columns.threads_for(part, lanes_read(kernel, part), CUDA_THREADS)
    length = inner_size(part)
    if split_axes(part) is None and (threads := threads_of_pieces(part, length)) > 0:
        return max(threads, CUDA_THREADS)
    rows = product(axis.size for axis in part.rows)
    is_alone = len(kernel.parts) == 1 and not is_column
    if length <= HELD * CUDA_THREADS or not is_alone or rows < target.multiprocessors:
        return CUDA_THREADS
    if keeps_shared(kernel, target):
        return MOST_THREADS // min(target.shared_bytes // (bytes_of_row(part) + EXCHANGED), 2)
    is_again = split_axes(part) is None and (bool(stored_of(part)) or bytes_of_row(part) > CACHED)
    return MOST_THREADS if is_again and length <= HELD * MOST_THREADS else CUDA_THREADS


def cluster_of(kernel: Kernel, target: Target) -> int:
    """Count the blocks that share a row, so that it is read once; 1: each block has its own.

    They share those that the first-level cache of one does not have, and those of 16 bits that its
    registers do not: one block would read, compute and store such rows one after the other.
    """
    part = kernel.parts[0]
    is_alone = len(kernel.parts) == 1 and not is_of_columns(kernel, part) and not sums_of(part)
    is_flat = all(compute.axes for compute in part.computes)
    if not (target.has_clusters and is_alone and is_flat and stored_of(part)):
        return 1
    widest = max((expr.dtype.itemsize for expr in held_of(part)), default=HELD_BYTES)
    is_dense = widest < HELD_BYTES and inner_size(part) > KEPT_REGISTERS * MOST_THREADS
    is_long = is_dense or bytes_of_row(part) > target.shared_bytes
    is_once = split_axes(part) is not None or keeps_shared(kernel, target)
    threads = threads_of_cluster(part)
    is_once = is_once or pieces_of(part) > 1
    is_wanted = is_long and not is_once and threads <= MOST_BLOCKS * MOST_THREADS
    return min(MOST_BLOCKS, threads // CUDA_THREADS) if is_wanted else 1


def threads_of_cluster(part: Part) -> int:
    """Count the threads that share a row: few, so that blocks of other rows are there as well."""
    return threads_along(bytes_of_row(part), BYTES_OF_THREAD)


def held_of(part: Part) -> list[Expr]:
    """List the elements of rows that are loaded, each once."""
    exprs = dict.fromkeys(expr for each in part.computes for expr in walk(each.body))
    return [expr for expr in exprs if is_held(part, expr, 1)]


def bytes_of_row(part: Part) -> int:
    """Count the bytes that are read of a row."""
    return inner_size(part) * sum(expr.dtype.itemsize for expr in held_of(part))


def keeps_shared(kernel: Kernel, target: Target) -> bool:
    """Tell whether shared memory keeps rows of 16 bits that are stored again.

    The first-level cache has a row of one array as well, and registers a shorter one. Two blocks
    share a multiprocessor if two rows fit: one computes while the other reads.
    """
    part = kernel.parts[0]
    if not target.has_blocks or len(kernel.parts) > 1 or is_of_columns(kernel, part):
        return False
    arrays, stored = held_of(part), stored_of(part)
    is_narrow = all(expr.dtype.itemsize < HELD_BYTES for expr in arrays)
    is_dear = len(arrays) > 1 or any(len(walk(each.body)) > DEAR for each in stored)
    is_long = inner_size(part) > KEPT_REGISTERS * MOST_THREADS
    has_room = 0 < bytes_of_row(part) <= target.shared_bytes - EXCHANGED
    is_again = bool(stored) and split_axes(part) is None
    rows = product(axis.size for axis in part.rows)
    is_wanted = is_narrow and is_dear and is_long and has_room and is_again
    return is_wanted and rows >= target.multiprocessors


def build_on_cpu(kernel: Kernel, part: Part, target: Target) -> list[TilePart]:
    """Write a part for a CPU: blocks of short rows side by side, what they leave as it is."""
    axis = turned_axis(part) if any(compute.reduce for compute in part.computes) else None
    if axis is None or is_of_columns(kernel, part):
        return [build_part(kernel, part, target)]
    last = block_axis(part)
    blocks, *left = whole_blocks(part, last)
    place = len(blocks.rows) - len(part.rows) + part.rows.index(last)
    row, near = blocks.rows[place], blocks.rows[place + 1 :]
    elements = BLOCK * axis.size * product(each.size for each in near)
    space = cut_rows(replace(blocks, rows=blocks.rows[:place]), target, False, elements)
    found = [build_turned(share_elements(blocks), axis, row, space)]
    return [*found, *(build_part(kernel, each, target) for each in left)]


def is_of_columns(kernel: Kernel, part: Part) -> bool:
    """Tell whether a part reduces columns."""
    hero = kernel.hero if len(kernel.parts) == 1 else hero_of("reduce", part)
    return hero == "reduce.col" and bool(part.rows) and pieces_of(part) == 1


def build_part(kernel: Kernel, part: Part, target: Target) -> TilePart:
    """Choose the scheme of one part."""
    if not any(compute.reduce for compute in part.computes):
        return map_template.build_part(kernel, part, target)
    if sums_of(part):
        return build_column_sums(kernel, share_elements(part), target)
    is_column = is_of_columns(kernel, part)
    is_whole = target.has_blocks and threads_of(kernel, target) % CUDA_THREADS == 0
    if is_column and is_whole and is_short(part, target):
        return map_template.build_part(kernel, part, target)
    if is_column and target.has_blocks:
        lanes = lanes_read(kernel, part)
        windows = sliding_columns.build_columns(part, lanes, threads_of(kernel, target))
        if windows is not None:
            return windows
    rescaled = rescaled_axes(part) if target.has_blocks else None
    if not is_column and rescaled is None:
        is_chain = target.has_blocks and split_axes(part) is None
        least = 1 if keeps_shared(kernel, target) else HELD_BYTES
        part = share_elements(part, least if is_chain and pieces_of(part) == 1 else 0)
    over = rescaled or split_axes(part)
    if over is not None:
        pieces = pieces_of(part)
        splits = split_count(part, product(a.size for a in over) * pieces, is_column, target)
        splits *= min(pieces, 2)  # many short blocks end evenly: each of few holds registers
        splits = min(splits, most_splits(over, target))
        if splits > 1:
            return build_split(kernel, part, target, is_column, over, splits)
    return build_whole(kernel, part, target, is_column)


def lanes_read(kernel: Kernel, part: Part) -> int:
    """Count the neighbours that a thread reads of a column at once."""
    read = replace(part, computes=(replace(part.computes[0], store=None),))
    return map_template.vector_lanes(kernel, read, part.rows[-1])


def is_short(part: Part, target: Target) -> bool:
    """Tell whether so few elements are reduced, at so many places, that a thread does one place."""
    is_flat = all(compute.axes == part.rows for compute in part.computes)
    count = max(product(axis.size for axis in c.reduce) for c in part.computes)
    places = product(axis.size for axis in part.rows)
    return is_flat and count <= SHORT and places >= 2 * CUDA_THREADS * target.multiprocessors


def most_splits(over: Axes, target: Target) -> int:
    """Count the pieces that reduced axes fall into: on a GPU two may be cut, images and rows."""
    cut = over[:2] if target.has_blocks else over[:1]
    return product(axis.size for axis in cut)


def split_axes(part: Part) -> Axes | None:
    """Find the axes that all reductions of a part share, if none depends on another's result."""
    over: set[Axes] = set()
    for compute in part.computes:
        is_row = compute.axes == part.rows and not (part.rows and not compute.axes)
        if not is_row and (compute.reduce or not compute.axes):
            return None
        if compute.reduce:
            over.add(compute.reduce)
        if (compute.reduce or not is_row) and uses_rows(part, compute):
            return None
    return over.pop() if len(over) == 1 else None


def uses_rows(part: Part, compute: Compute) -> bool:
    """Tell whether a compute reads a per-row value, directly or through per-element ones."""
    pending, seen = [compute], set()
    while pending:
        for expr in walk(pending.pop().body):
            if expr.op == "ref" and expr.arg not in seen:
                seen.add(expr.arg)
                found = part.computes[expr.arg]
                if found.axes == part.rows:
                    return True
                pending.append(found)
    return False


def split_count(part: Part, length: int, is_column: bool, target: Target) -> int:
    """Choose into how many pieces the reduced axes are cut."""
    rows = product(axis.size for axis in part.rows)
    if not target.has_blocks:
        tiles = ceil_div(rows, COLUMNS) if is_column else rows
        if is_column and is_narrow(part, target, COLUMNS):
            tiles = rows // part.rows[-1].size
        wanted = min(rows * length // TASK_POINTS, TASKS_PER_THREAD * target.threads)
        return max(1, wanted // tiles)
    if is_column:
        return piece_count(part, length, target)
    blocks = BLOCKS_PER_MULTIPROCESSOR * target.multiprocessors
    pieces = length // LEAST_OF_BLOCK
    return max(1, min(ceil_div(blocks, rows), pieces))


def is_narrow(part: Part, target: Target, columns: int) -> bool:
    """Tell whether a CPU task reduces few neighbouring columns, then those of the next row.

    They lie in memory one after the other; side by side they would be many short streams. Sums
    over all rows are added up over the columns of a task, all at once.
    """
    is_grand = any(not compute.axes for compute in part.computes)
    is_few = len(part.rows) > 1 and part.rows[-1].size < columns
    return is_few and not is_grand and not target.has_blocks


def columns_at_once(part: Part, target: Target) -> int:
    """Choose how many columns a grid point works on, of a part that reads them several times."""
    sizes = [axis.size for axis in part.rows]
    return column_tile(sizes[-1], product(sizes[:-1]), inner_size(part), target)


def cut_rows(part: Part, target: Target, is_column: bool, row: int, columns: int = 0) -> Cut:
    """Cut the rows: the dims are the rows of a grid point, `row` elements each."""
    if not target.has_blocks:
        if is_column:
            return cut(part.rows, columns or COLUMNS)
        total = row * product(a.size for a in part.rows)
        small = total <= map_template.SMALL_POINTS
        return cut(part.rows, max(1, (total if small else TASK_POINTS) // max(1, row)))
    if is_column:
        columns = columns or CUDA_COLUMN_THREADS * 4
        return cut(part.rows[-1:], columns).with_grid(part.rows[:-1])
    return cut(part.rows[-1:], columns).with_grid(part.rows[:-1])


def rows_in_block(kernel: Kernel, part: Part, target: Target) -> int:
    """Choose how many rows a CUDA block reduces: short ones get a warp each.

    Of rows too short for a warp as many as it has threads for, where there are many.
    """
    longest = inner_size(part)
    if (threads := threads_of_pieces(part, longest)) > 0:
        return max(1, threads_of(kernel, target) // threads)
    if longest > LONG_ROW:
        return 2 if reads_once(kernel, part, longest) else 1
    least = CUDA_THREADS // WARP
    if not all(compute.axes for compute in part.computes):
        return least
    width = threads_along(longest, vector_of(kernel, part))
    most = threads_along(part.rows[-1].size, 1)
    count = min(CUDA_THREADS // min(width, WARP), most)
    total = product(axis.size for axis in part.rows)
    is_many = total >= count * FULL_BLOCKS * target.multiprocessors
    return max(count, least) if is_many else least


def reads_once(kernel: Kernel, part: Part, length: int) -> bool:
    """Tell whether each thread of a block would read one vector of a row, once: half of them do.

    A thread that waits for two of them brings a matrix 2 to 10 % sooner (rows of 4 KB, H200).
    """
    sums = sum(1 for compute in part.computes if compute.reduce)
    vectors = sums * length <= CUDA_THREADS * vector_of(kernel, part)
    return vectors and split_axes(part) is not None and len(part.rows) > 0


def vector_of(kernel: Kernel, part: Part) -> int:
    """Choose how many elements of a row a thread of a CUDA block reads at once."""
    inner = [each.reduce[-1] for each in part.computes if each.reduce]
    return map_template.vector_lanes(kernel, part, inner[0]) if inner else 1


def inner_size(part: Part) -> int:
    """Elements of the longest row."""
    sizes = [1]
    for compute in part.computes:
        axes = [a for a in (*compute.axes, *compute.reduce) if a not in part.rows]
        sizes.append(product(a.size for a in axes))
    return max(sizes)


def threads_for(
    kernel: Kernel,
    part: Part,
    target: Target,
    dims: Sequence[Axis],
    is_column: bool,
    lanes: int = 0,
) -> Threads | None:
    """Choose how the threads of a CUDA block share the dims and the row elements.

    `lanes` is how many of these a thread reads at once, if that is known.
    """
    if not target.has_blocks:
        return None
    sizes = tuple(axis.size for axis in dims)
    if is_column:
        lanes = map_template.vector_lanes(kernel, part, part.rows[-1])
        lanes = lanes if sizes and sizes[-1] % lanes == 0 else 1
        ones = (1,) * (len(sizes) - 1)
        columns = threads_along(sizes[-1], lanes) if sizes else 1
        columns = min(columns, CUDA_COLUMN_THREADS)
        inner = (block_threads(kernel) or CUDA_THREADS) // columns
        return Threads(sizes, (*ones, columns), (*ones, lanes), inner, 1, True)
    lanes = lanes or vector_of(kernel, part)
    count = rows_in_block(kernel, part, target) if product(sizes) > 1 else 1
    shape = (*(1 for _ in sizes[:-1]), count) if sizes else ()
    inner = threads_of(kernel, target) // (count if sizes else 1)
    return Threads(sizes, shape, (1,) * len(sizes), inner, lanes)


def build_whole(kernel: Kernel, part: Part, target: Target, is_column: bool) -> TilePart:
    """Write a part whose grid points each do whole rows."""
    lanes = 0
    if target.has_blocks and not is_column:
        widths = {number: slot.dtype.itemsize for number, slot in enumerate(kernel.slots)}
        part, lanes = cut_uneven(part, widths)
    is_read_again = is_column and split_axes(part) is None
    columns = columns_at_once(part, target) if is_read_again else 0
    if target.has_blocks and not is_column:
        columns = rows_in_block(kernel, part, target)
    is_serial = not target.has_blocks and not is_column
    narrow = is_column and is_narrow(part, target, columns or COLUMNS)
    if narrow:
        columns = max(columns or COLUMNS, TASK_POINTS // inner_size(part))
    space = cut_rows(part, target, is_column, inner_size(part), columns)
    if is_serial and space.dims and crossed_axis(part) is not None:
        return build_across(part, in_blocks(space))
    is_long = is_serial and has_grand_sum(part)
    space, pieces = in_pieces(space, GRAND_PIECE) if is_long else (space, ())
    serial = space.dims if is_serial else space.dims[:-1] if narrow else ()
    dims = space.dims[len(serial) :]
    threads = threads_for(kernel, part, target, dims, is_column, lanes)
    ends = ended_rows(part, space, threads)
    inside = tuple(end for end in ends if not axes_of(end[0]) & set(serial) and not is_serial)
    ends = tuple(end for end in ends if end not in inside)
    conditions = inside if is_serial or serial else (*space.conditions, *inside)
    rows = Rows(part, dims, space.axes, conditions, threads, is_column)
    rows.keeps_shared, rows.pieces = keeps_shared(kernel, target), pieces
    body: tuple[Step, ...] = tuple(rows.whole())
    if is_serial or serial:
        body = in_loops(rows, body, space, serial, ends)
    together = MOST_THREADS // threads_of(kernel, target) if rows.keeps_shared else 0
    return replace(with_grand(rows, space, body), together=together)


def with_grand(rows: Rows, space: Cut, body: Sequence[Step]) -> TilePart:
    """Put what comes before and after all rows of a grid point around the steps for them."""
    first, last = rows.grand(product(a.size for a in space.grid), position_over(space.grid))
    steps = (*first, *body, *last)
    return TilePart(space.grid, tuple(rows.tiles), steps, tuple(rows.workspaces))


def in_loops(
    rows: Rows, body: tuple[Step, ...], space: Cut, serial: Axes, ends: tuple[Condition, ...]
) -> tuple[Step, ...]:
    """Run the steps of a row for the rows of a grid point; long sums over them add up pieces."""
    for axis in reversed((*rows.pieces, *serial)):
        if axis in rows.pieces[-1:]:
            body = in_grand_pieces(rows, insert_when(body, space))
        own = tuple(end for end in ends if axis in axes_of(end[0]))
        ends = tuple(end for end in ends if end not in own)
        body = (For(axis, when(own, body)),)
    return when(ends, body if rows.pieces else insert_when(body, space))


def in_grand_pieces(rows: Rows, body: tuple[Step, ...]) -> tuple[Step, ...]:
    """Let the rows of one piece be added up, by the steps given, before grand results get them."""
    first, last = list[Step](), list[Step]()
    for number, compute in enumerate(rows.part.computes):
        if compute.reduce and not compute.axes:
            name, dtype, monoid = f"p{number}", compute.dtype, compute.monoid or "sum"
            rows.scalar_tile(name, dtype)
            first.append(Assign(name, (), const(identity(monoid, dtype), dtype)))
            value = Expr("tile", (), (name, ()), dtype)
            last.append(Accumulate(f"t{number}", (), (), monoid, value, False))
    return (*first, *body, *last)


def has_grand_sum(part: Part) -> bool:
    """Tell whether floats are summed over all rows."""
    if not part.rows:
        return False
    grand = [each for each in part.computes if each.reduce and not each.axes]
    return any(each.dtype.is_float and each.monoid == "sum" for each in grand)


def build_across(part: Part, space: Cut) -> TilePart:
    """Write a part that a CPU reduces row by row, and whose rows are stored across."""
    rows = Rows(part, (), space.axes, (), None, False)
    rows.is_across = True
    return with_grand(rows, space, across_rows(rows.whole(), space, rows.tiles))


def ended_rows(part: Part, space: Cut, threads: Threads | None) -> tuple[Condition, ...]:
    """List the ends of a part that are along its rows alone, in a cut space."""
    lanes = threads.vector[-1] if threads and threads.vector else 1
    rows = set(part.rows)
    along = tuple(end for end in part.ends if axes_of(end[0]) <= rows)
    bare = replace(space, conditions=())
    return ended(bare, replace(part, ends=along), lanes).conditions


def when(conditions: tuple[Condition, ...], body: tuple[Step, ...]) -> tuple[Step, ...]:
    """Run steps under conditions, if there are any."""
    return (When(conditions, body),) if conditions and body else body


def insert_when(body: tuple[Step, ...], space: Cut) -> tuple[Step, ...]:
    """Put the conditions of a serial row loop just inside it."""
    if not space.conditions or not body or not isinstance(body[0], For):
        return body
    inner = (When(space.conditions, body[0].body),)
    return (For(body[0].axis, inner),)


def split_space(kernel: Kernel, part: Part, target: Target, is_column: bool) -> Cut:
    """Cut the rows of a part whose reduced axes are cut over grid points too."""
    if not is_column:
        return Cut(part.rows, (), {}, ())
    if is_narrow(part, target, COLUMNS):
        return Cut(part.rows[:-1], part.rows[-1:], {}, ())
    if target.has_blocks:
        return cut_columns(kernel, part, target)
    return cut_rows(part, target, True, 1)


def build_split(
    kernel: Kernel, part: Part, target: Target, is_column: bool, over: Axes, splits: int
) -> TilePart:
    """Write a part whose reduced axes are cut over grid points too."""
    space = split_space(kernel, part, target, is_column)
    whole, over = (over[:1], over[1:]) if splits > over[0].size else ((), over)
    first, count = over[0], product(axis.size for axis in whole)
    together = blocks_together(part) if is_column and target.has_blocks else 0
    # More blocks than a GPU holds at once would take a second turn.
    pieces = splits // count if together else ceil_div(splits, count)
    chunk = balanced(first.size, ceil_div(first.size, pieces))
    if pieces_of(part) > 1:
        chunk = round_up(chunk, CUDA_THREADS)
    elif not is_column and target.has_blocks and len(over) == 1 and chunk > CUDA_THREADS:
        # chunks are cut out of the contiguous axis of a GPU's loads
        chunk = min(first.size, round_up(chunk, 4 * CUDA_THREADS))
    threads = threads_for(kernel, part, target, space.dims, is_column)
    if is_column and threads and len(over) == 1:
        chunk = even_chunk(first.size, chunk, UNROLLED * threads.inner)
    chunks = ceil_div(first.size, chunk)
    split = Axis("split", count * chunks)
    within = Axis(f"{first.name}_in", chunk)
    index = axis_index(split) % chunks * chunk + axis_index(within)
    is_alone = is_column and not whole and len(over) == 1 and first.size == chunks * chunk
    if threads and is_alone and chunk % threads.inner == 0:
        index = side_by_side(split, within, threads.inner)
    ragged = ((index, 0, first.size - 1),) if first.size % chunk else ()
    outer = dict.fromkeys(whole, axis_index(split) // chunks)
    axes: dict[Axis, Index] = {**space.axes, **outer, first: index}
    conditions = (*space.conditions, *ended_rows(part, space, threads))
    rows = Rows(part, space.dims, axes, conditions, threads, is_column)
    point = position_over(space.grid)
    points = product(a.size for a in space.grid)
    steps = rows.split(split, (within, *over[1:]), ragged, point, points)
    grid = (*space.grid, split)
    return TilePart(
        grid, tuple(rows.tiles), tuple(steps), tuple(rows.workspaces), together=together
    )
