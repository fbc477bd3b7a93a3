"""cost: what work costs on a target, for fusion to decide by. Estimates, good to a factor of two.

    operations   weighted scalar operations of the nodes of a graph, each node once
    bytes        read and written, once for each pass that nothing on the chip spares
    tasks        what may run at once: rows, or tiles of neighbouring columns
    on the chip  what a task reads again for nothing: a core's second-level cache, a block's
                 registers and first-level cache

Six questions are asked. Should a row be worked on again by the kernel that reduced it
(`row_work`)? Should a value that several kernels read be stored (`shared_work`), or an operand of a
product, which is computed anew each time it is packed (`operand_work`)? Should windows of a
product's result be reduced where it is computed (`pool_work`)? Should an operand of a product be
copied so that its rows begin where lines of a GPU's cache do (`repack_work`)? In how many parts
should a GPU sum a product of few results (`sum_parts`)?
"""

from collections.abc import Sequence

from picograd.helpers import ceil_div, product
from picograd.late_methods import Enum, dataclass
from picograd.target import Target

OPERATION_LIMIT = 30  # operations that are rather stored than repeated for many elements
LOAD_BYTES = 4  # of an element of most arrays
OPERATION_BYTES = 0.27  # moved in the time of one: 30 operations on a float are dear to do twice
PASSES = 2  # over a row: what is reduced, and what reads the result beside the row
TASK_POINTS = 65536  # elements of rows that a CPU task works on, at least
BLOCK_POINTS = 4096  # elements that a CUDA block reduces, at least
WIDE = 256  # columns of a CPU task: runs of 1 KiB stream, runs of 256 B took 2.5 times as long
SHORT_RUN = 8  # fewer neighbouring columns are worked on one after the other, as rows are
BLOCK_WIDE, BLOCK_NARROW = 128, 8  # columns of a CUDA block; 8 of 4 bytes are a sector
BLOCK_ELEMENTS = 8192  # that a CUDA block keeps in registers: 32 a thread
# Of kernels that work on rows and keep sums over all of them: threads of a block, blocks of a
# multiprocessor, and sums and elements of 4 bytes that registers of a thread hold then.
SUMMING = ((128, 3, 96), (256, 2, 64), (512, 1, 64))
WARP, LONG_ROW = 32, 1024  # threads; elements of a row that gets a block of threads
WINDOW_OPERATION_BYTES = 0.55  # the same, in windows that slide
PACKED = 256  # rows or columns of the other operand that a packed element meets, at least
PACKED_OPERATION_BYTES = 1.5  # moved in the time of an operation of packing, which hides few
SUMMED_DEPTH = 384  # of a product that tasks do not share
RESULT_POINTS = 16384  # of a CPU task: fewer where tasks share the depth of a product
MULTIPLIED = 30  # multiply-adds a nanosecond of a CPU core: 16 lanes at 2 GHz, or 8 twice at that
MULTIPLIED_IN_BLOCKS = 200  # the same of a multiprocessor, in float32: 128 lanes
PACKED_SHARE = 4  # a block of rows takes a fourth of a cache
PANEL = 64  # columns of a product for which a task reads its packed rows
UNPACKED = 8  # rows or columns of a product up to which nothing is packed
FEW_CHANNELS = 4  # of a convolution: the same
FEW_PRODUCTS = 8  # that a loop over the results has in registers
KEPT_ELEMENTS = 8192  # of its rows that a task keeps rather than computes again
CHEAP = 8  # operations that take no longer than reading what they make
LINE_BYTES = 128  # of a GPU's cache
CHUNK_BYTES, SUM_BYTES = 16, 4  # between which boxes begin; of a sum
SHORT_RUNS = 2 / 3  # exponent: 16 bytes of each row stream at a quarter of the rate (an H200)
# Of products whose operands come in boxes, measured on an H200 (docs/records/0011-products): 16-bit
# floats that a multiprocessor multiplies in a nanosecond; and, in the time of one, what it takes to
# bring an element of a row that begins at a line of the cache, and elsewhere.
BOX_RATE = 2500.0
ALIGNED, MISALIGNED = 54, 115
# Rows and columns that a block brings for a tile, how many elements it has, and how fast they are
# multiplied: of the second one, two blocks bring columns to one another.
BOX_TILES = (((128, 192), 128 * 192, 1.0), ((128, 128), 128 * 256, 0.95))
# Of products whose tiles are fewer than multiprocessors, measured on an H200 (docs/records/0011-
# products): tiles of a product that several blocks multiply and one adds up, and what that takes
# for each; how much longer it takes if what all read does not stay in the cache, and if tiles are
# too few even for that, beside what is then waited for; and how short a part may be.
PART_TILES = (((128, 192), 1.0), ((64, 128), 0.71), ((64, 64), 0.55), ((128, 128), 0.92))
LEAST_SHARED, ADDED, UNCACHED, LONE, WAITED = 22, 650.0, 1.5, 2.5, 5000.0
CACHED_BYTES = 20 << 20
LEAST_PART, MOST_PARTS, LEAST_SIDE, PART_GAIN = 512, 64, 64, 0.9
PLAIN = 4.0  # times as long without boxes, where rows begin between chunks of 16 bytes
CONV_GAIN = 200.0  # multiply-adds of a convolution for which boxes save a processor a nanosecond


@dataclass(frozen=True, slots=True)
class Machine:
    """What the estimates need to know of a target."""

    workers: int  # tasks that run at once
    rate: float  # elements a nanosecond that a worker passes through a reduction
    bandwidth: float  # bytes a nanosecond, of all workers together
    launch: float  # nanoseconds that one more kernel takes
    cache: int  # bytes that a worker reads again for nothing


def machine(target: Target) -> Machine:
    """Describe a target: a core reduces 2 elements a nanosecond and streams 10 bytes (measured on
    a Xeon of 2.5 GHz); a multiprocessor three times that, and 25 bytes (an H100)."""
    if target.shared_bytes:
        count = target.multiprocessors
        return Machine(count, 6.0, 25.0 * count, 3000.0, 128 << 10)
    return Machine(target.threads, 2.0, 10.0 * target.threads, 2000.0, 1 << 20)


@dataclass(frozen=True, slots=True)
class RowWork:
    """Rows that are reduced and then worked on again, in one kernel or in two."""

    rows: int
    length: int
    tasks: int
    tile: int  # elements of a task's rows
    together: float  # nanoseconds
    apart: float

    @property
    def is_together(self) -> bool:
        """Tell whether one kernel is at least as fast."""
        return self.length > 0 and self.together <= self.apart

    def takes(self, operations: int) -> bool:
        """Tell whether a kernel should compute the elements of its rows itself, and store them.

        Each pass computes them anew unless a task keeps them.
        """
        return self.is_together and (operations <= CHEAP or self.tile <= KEPT_ELEMENTS)

    def __str__(self) -> str:
        times = f"{self.together / 1e3:.3g} us in one kernel, {self.apart / 1e3:.3g} us in two"
        return f"{self.rows} rows of {self.length} are {self.tasks} tasks, {times}"


def row_work(
    shape: Sequence[int], reduced: Sequence[int], inner: int, itemsize: int, target: Target
) -> RowWork:
    """Estimate what it takes to reduce rows and to work on them again.

    `inner` is the dimension that is contiguous in memory: if it is not a reduced one, a task works
    on neighbouring columns.
    """
    made = machine(target)
    length = product(shape[d] for d in reduced)
    rows = product(n for d, n in enumerate(shape) if d not in reduced)
    total = rows * length
    tile, points = length, BLOCK_POINTS if target.shared_bytes else TASK_POINTS
    run = LINE_BYTES
    if inner in reduced or shape[inner] < SHORT_RUN:
        tasks = rows if target.shared_bytes else min(rows, ceil_div(total, TASK_POINTS))
    else:
        outer = rows // shape[inner]
        columns = column_tile(shape[inner], outer, length, target)
        tasks = count_tiles(shape[inner], outer, columns, target)
        tile = length * (columns if target.shared_bytes else min(columns, shape[inner]))
        run = columns * itemsize if target.shared_bytes else LINE_BYTES
    tasks = max(tasks, 1)
    busy = min(made.workers, tasks) / made.workers
    reads = 1 if tile * itemsize <= made.cache else PASSES
    streamed = total * itemsize / made.bandwidth
    passed = PASSES * total / made.rate / made.workers
    again = max(1.0, LINE_BYTES / run) ** SHORT_RUNS if reads > 1 else 1.0
    together = max(passed, reads * streamed * again) / busy
    spread = max(min(made.workers, total // points), 1) / made.workers
    apart = max(passed, PASSES * streamed) / spread + made.launch
    return RowWork(rows, length, tasks, tile, together, apart)


def column_tile(inner: int, outer: int, length: int, target: Target) -> int:
    """Choose how many neighbouring columns of `length` elements a task works on again and again.

    On a GPU as many as keep their elements in registers, and fewer where tasks are few; on a CPU
    what streams, or short runs of columns one after the other.
    """
    if not target.shared_bytes:
        return min(WIDE, max(inner, ceil_div(inner * outer, target.threads)))
    columns = BLOCK_WIDE
    while columns > BLOCK_NARROW:
        tasks = count_tiles(inner, outer, columns, target)
        if columns * length <= BLOCK_ELEMENTS and tasks >= target.multiprocessors:
            break
        columns //= 2
    return columns


def row_threads(length: int, sums: int, nbytes: int) -> int:
    """Choose how many threads of a CUDA block share a row of which they keep sums over all rows.

    They hold a row of `nbytes` an element meanwhile. Fewer threads tell one another less.
    """
    held = length * (sums + nbytes / 4)
    for threads, _, most in SUMMING:
        own = WARP if length <= LONG_ROW else threads
        while own < threads and held > most * own:
            own *= 2
        if held <= most * own:
            break
    return own


def summing_blocks(own: int) -> tuple[int, int]:
    """Choose the threads of a block whose rows have so many each; how many run side by side."""
    return next((threads, count) for threads, count, _ in SUMMING if own <= threads)


def takes_column_sums(rows: int, length: int, sums: int, nbytes: int, target: Target) -> bool:
    """Tell whether a kernel that works on rows should also sum over all of them, on a GPU.

    Else another kernel reads `nbytes` of each element again. Registers have to hold the sums of a
    block, and each block leaves its own in memory, where they are summed.
    """
    made, own = machine(target), row_threads(length, sums, nbytes)
    blocks = summing_blocks(own)[1] * target.multiprocessors
    moved = PASSES * 4 * sums * length * blocks
    apart = rows * length * nbytes / made.bandwidth + made.launch
    fits = length * sums <= SUMMING[-1][2] * own
    return fits and moved / made.bandwidth + 2 * made.launch <= apart


def count_tiles(inner: int, outer: int, columns: int, target: Target) -> int:
    """Count the tiles of so many columns; on a CPU one may go on in the next row of columns."""
    if target.shared_bytes:
        return outer * ceil_div(inner, columns)
    return ceil_div(outer * inner, columns)


@dataclass(frozen=True, slots=True)
class RepeatedWork:
    """A value that is computed wherever it is read, or stored before."""

    times: int  # that it is read: by so many kernels, or as a product packs an element
    operations: int
    loads: int
    again: float  # nanoseconds of computing it each time, where it may be kept but for the first
    store: float  # of writing it, and of reading it each time

    @property
    def is_stored(self) -> bool:
        """Tell whether storing it is faster."""
        return self.again > self.store

    def worded(self, readers: str, way: str) -> str:
        """Say what was compared."""
        work = f"{self.operations} operations and {self.loads} loads"
        times = f"{way} {self.again / 1e3:.3g} us, stored {self.store / 1e3:.3g} us"
        return f"{readers}, {work}: {times}"


class SharedWork(RepeatedWork):
    """What several kernels read: computed by each, or stored by one of them or a kernel before."""

    __slots__ = ()

    def __str__(self) -> str:
        return self.worded(f"{self.times} kernels read it", "again")


def shared_work(
    kernels: int, operations: int, loads: int, count: int, itemsize: int, made: Machine
) -> SharedWork:
    """Estimate what sharing a value costs: `count` elements, made of arrays of as many.

    Storing it takes a kernel of its own.
    """
    element = operations * OPERATION_BYTES + loads * LOAD_BYTES
    again = (kernels - 1) * count * element / made.bandwidth
    store = (kernels + 1) * count * itemsize / made.bandwidth + made.launch
    return SharedWork(kernels, operations, loads, again, store)


class WindowWork(SharedWork):
    """What windows of several kernels read: computed in each row of taps, or stored before."""

    __slots__ = ()


def window_work(
    kernels: int, times: float, known: tuple[int, int, int, int], made: Machine
) -> WindowWork:
    """Estimate what windows cost that read a value `times` times each, as they slide.

    `known` are its operations, loads, elements and bytes of one. Memory does not wait for what is
    computed between taps, and registers hold it (docs/records/0014-convolutions).
    """
    operations, loads, count, itemsize = known
    element = operations * WINDOW_OPERATION_BYTES + max(loads - 1, 0) * LOAD_BYTES
    again = (kernels * times - 1) * count * element / made.bandwidth
    store = (kernels + 1) * count * itemsize / made.bandwidth + made.launch
    return WindowWork(kernels, operations, loads, again, store)


class OperandWork(RepeatedWork):
    """An operand of a product: computed whenever it is packed, or stored before."""

    __slots__ = ()

    def __str__(self) -> str:
        return self.worded(f"packed {self.times} times", "computed then")


def operand_work(
    times: int, operations: int, loads: int, count: int, itemsize: int, made: Machine
) -> OperandWork:
    """Estimate what an operand of `count` elements costs that is packed so many times."""
    element = operations * OPERATION_BYTES + loads * LOAD_BYTES
    packed = max(operations * PACKED_OPERATION_BYTES, loads * LOAD_BYTES)
    again = times * count * packed / made.bandwidth
    store = count * (element + (1 + times) * itemsize) / made.bandwidth + made.launch
    return OperandWork(times, operations, loads, again, store)


@dataclass(frozen=True, slots=True)
class PooledProduct:
    """A product whose result is reduced in windows."""

    count: int  # elements of the result
    columns: int
    depth: int
    itemsize: int


@dataclass(frozen=True, slots=True)
class PoolWork:
    """Windows of a product's result: reduced by the task that computes them, or from memory."""

    held: int  # rows of the product that a task computes at once, at least
    walks: int  # tasks, where each computes all rows of an image in order
    together: float  # nanoseconds
    apart: float

    @property
    def is_together(self) -> bool:
        """Tell whether one kernel is at least as fast."""
        return self.together <= self.apart

    def __str__(self) -> str:
        times = f"{self.together / 1e3:.3g} us in one kernel, {self.apart / 1e3:.3g} us in two"
        walks = f" of {self.walks} images" if self.walks else ""
        return f"windows are of {self.held} rows{walks}, {times}"


def pool_work(product: PooledProduct, held: int, walks: int, target: Target) -> PoolWork:
    """Estimate what reducing windows of a product costs, which `held` rows at once make.

    From memory its results are written and read once more. Packed rows that the cache does not keep
    are read again for each panel of columns. Where windows share elements images are tasks, `walks`
    of them: workers may have none, and columns that the cache does not keep are packed anew for
    each block of rows.
    """
    made, count = machine(target), product.count
    passed = count / made.rate / made.workers
    deep = min(product.depth, SUMMED_DEPTH) * product.itemsize
    again = count * product.depth * product.itemsize / PANEL if held * deep > made.cache else 0
    together = passed + again / made.bandwidth
    apart = passed + 2 * count * product.itemsize / made.bandwidth + made.launch
    if walks:
        multiplied = count * product.depth / MULTIPLIED / made.workers
        rounds = ceil_div(walks, made.workers) * made.workers / walks
        together += multiplied * (rounds - 1)
        packed = product.columns * product.depth * product.itemsize
        blocks = count / product.columns * deep / (made.cache / PACKED_SHARE)
        together += packed * blocks / made.bandwidth if packed > made.cache else 0
    return PoolWork(held, walks, together, apart)


def has_whole_tasks(rows: int, columns: int, depth: int, target: Target) -> bool:
    """Tell whether each task of a product sums all of its depth, over blocks of its result."""
    if min(rows, columns) <= UNPACKED:
        return False
    return depth <= SUMMED_DEPTH or rows * columns >= target.threads * RESULT_POINTS


def packings(own: int, other: int, few: int = UNPACKED) -> int:
    """Count how often an operand with `own` rows or columns meets a block of the other's."""
    return other if min(own, other) <= few else ceil_div(other, PACKED)


def is_small(nbytes: int, made: Machine) -> bool:
    """Tell whether reading so much from memory takes no longer than a launch."""
    return nbytes <= made.launch * made.bandwidth


class RowState(Enum):
    """Where the rows of an operand begin: at lines of the cache, at chunks of 16 bytes, or not."""

    LINES = ALIGNED
    CHUNKS = MISALIGNED
    NONE = 0


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of an operand of a product, and what a copy would read and write."""

    state: RowState
    copied_bytes: int


def repack_work(
    sizes: Sequence[int],
    itemsize: int,
    rows: Sequence[Rows],
    copied: Sequence[bool],
    target: Target,
) -> float:
    """Estimate how long a product takes whose operands are copied, or not: nanoseconds.

    `sizes` are batch, M, N and K.
    """
    made = machine(target)
    multiplied = product(sizes) * itemsize / 2 / BOX_RATE / made.workers
    states = [RowState.LINES if c else each.state for c, each in zip(copied, rows, strict=True)]
    if RowState.NONE in states:
        slower = PLAIN
    else:
        slower = min(
            max(1 / rate, sum(n * x.value for n, x in zip(brought, states)) / size)
            for brought, size, rate in BOX_TILES
        )
    moved = sum(each.copied_bytes for c, each in zip(copied, rows, strict=True) if c)
    launch = made.launch if moved else 0  # one kernel makes both copies
    return multiplied * slower + moved / made.bandwidth + launch


def saves_boxes(points: int, moved: int, target: Target) -> bool:
    """Tell whether boxes save a convolution of so many multiply-adds more time than a copy takes.

    What reads channels one by one multiplies 160 in a nanosecond (an H200, docs/records/0014).
    """
    made = machine(target)
    return points / CONV_GAIN / made.workers > made.launch + moved / made.bandwidth


def sum_parts(m: int, n: int, k: int, itemsize: int, target: Target) -> int:
    """Choose in how many parts the products of (m, k) and (k, n) are summed, of which a product
    each is stored in float32: in one, if that takes about as long.
    """
    if min(m, n) < LEAST_SIDE or k < 2 * LEAST_PART:
        return 1
    made = machine(target)
    best, least = 1, PART_GAIN * min(tiled(m, n, k, 1, made), shared_by_blocks(m, n, k, made))
    for parts in range(2, min(MOST_PARTS, k // LEAST_PART) + 1):
        if k % parts == 0 and k // parts * itemsize % CHUNK_BYTES == 0:
            stored = 2 * parts * m * n * SUM_BYTES / made.bandwidth + made.launch
            if (time := tiled(m, n, k, parts, made) + stored) < least:
                best, least = parts, time
    return best


def tiled(m: int, n: int, k: int, parts: int, made: Machine) -> float:
    """Estimate how long blocks take that multiply a tile of a part each, in waves."""
    times = []
    for (rows, columns), rate in PART_TILES:
        tiles = ceil_div(m, rows) * ceil_div(n, columns) * parts
        waves = ceil_div(tiles, made.workers)
        times.append(waves * rows * columns * (k / parts) / BOX_RATE / rate)
    return min(times)


def shared_by_blocks(m: int, n: int, k: int, made: Machine) -> float:
    """Estimate how long it takes where several blocks multiply parts of a tile, and one adds."""
    (rows, columns), rate = PART_TILES[-1]
    tiles = ceil_div(m, rows) * ceil_div(n, columns)
    multiplied = tiles * rows * columns * k / BOX_RATE / made.workers
    if tiles < LEAST_SHARED:
        return multiplied * LONE + WAITED
    is_cached = 2 * min(m, n) * k <= CACHED_BYTES
    slower = 1.0 if is_cached else UNCACHED
    return multiplied / rate * slower + ADDED * ceil_div(made.workers, tiles)
