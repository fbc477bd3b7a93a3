"""What the asynchronous instructions of program.py mean, for the interpreter of programs.

What is asynchronous happens as late as it may: a product reads its operands when it is waited for,
a box is read when its slot is to be free again. Whatever was written too early is then found, both
as a wrong value and by the checks. A box that is copied in arrives at once, so that whoever fills
stages runs as far ahead as the barriers let it.
"""

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from functools import cache
from typing import Any

import numpy as np

from picograd.code import TensorMap
from picograd.codegen.program import Instr, Mma, Program, Wgmma
from picograd.conversion import from_bits, to_bits
from picograd.errors import check
from picograd.late_methods import dataclass

Array = Any
FREE, ARRIVED, SEEN, READ = range(4)  # a byte of a stage: empty, there, may be read, was read
WARP = 32
GROUP = 128  # threads of a warpgroup
ROW = 128  # bytes of a row of a slab
TF32_BITS = np.uint32(0xFFFFE000)  # of a float32 that the tensor cores read
TF32_HALF = np.uint32(0x1000)  # half of the last of these
SWIZZLE_PERIOD = 1024  # bytes between groups of 8 rows


@dataclass
class Barrier:
    """One mbarrier: what its phase still waits for, and phases that have ended."""

    arrivals: int
    pending: int
    bytes: int = 0
    ended: int = 0
    filled: list[Array] = field(default_factory=list)  # bytes that arrived in this phase
    stored: list[Array] = field(default_factory=list)  # what those stored before that arrived


class Traffic:
    """What the roles of a block share: barriers, and the state of its bytes of shared memory."""

    def __init__(self, program: Program, size: int) -> None:
        self.program, self.events = program, 0
        self.barriers: dict[int, Barrier] = {}
        self.state: Array = np.full(size, FREE, np.uint8)
        self.is_leaving: Array = np.zeros(size, bool)
        self.is_outside: Array = np.zeros(size, bool)  # of arrays: nobody has to read these zeros
        self.is_unfenced: Array = np.zeros(size, bool)

    def overwrite(self, first: Array) -> None:
        """Note an ordinary store to elements of shared memory, by the first byte of each."""
        check(not self.is_leaving[first].any(), "a box is overwritten before it left", self.program)
        self.is_unfenced[first] = True

    def read(self, first: Array, itemsize: int) -> None:
        """Note an ordinary load of elements of shared memory, by the first byte of each."""
        every = first.reshape(-1, 1) + np.arange(itemsize)
        state = self.state[every]
        check((state != ARRIVED).all(), "a stage is read before it arrived", self.program)
        self.state[every] = np.where(state == SEEN, READ, state)

    def finish(self, barrier: Barrier) -> None:
        """End the phase of a barrier if nothing is missing."""
        self.events += 1
        check(barrier.pending >= 0, "more arrivals than a barrier expects", self.program)
        if barrier.pending == 0 and barrier.bytes == 0:
            barrier.ended, barrier.pending = barrier.ended + 1, barrier.arrivals


class Queues:
    """What one team has under way: products that are not waited for, boxes that are leaving."""

    def __init__(self) -> None:
        self.open: list[tuple[Instr, Array, Array]] = []
        self.groups: list[list[tuple[Instr, Array, Array]]] = []
        self.boxes: dict[int, list[Callable[[], None]]] = {}

    def working(self) -> set[int]:
        """List the accumulators of products under way."""
        if not self.open and not self.groups:
            return set()
        return {instr.args[0] for group in (self.open, *self.groups) for instr, _, _ in group}

    def check_empty(self, run: Any) -> None:
        """Check that everything was waited for."""
        check(not self.working(), "a product is never waited for", run.program)
        check(not any(self.boxes.values()), "a box is never waited for", run.program)


def elect(run: Any, instr: Instr) -> Array:
    """Choose the first active lane of each warp."""
    found = np.zeros((run.threads, 1), bool)
    active = np.flatnonzero(run.mask[:, 0])
    found[active[np.unique(active // WARP, return_index=True)[1]]] = True
    return found


# -- barriers -------------------------------------------------------------------------------------


def address_of(run: Any, pointer: int, place: int, itemsize: int) -> Array:
    """Find the byte of shared memory of every thread's element."""
    first = run.program.instructions[pointer].arg
    return (first + np.broadcast_to(run.values[place], (run.threads, 1)) * itemsize)[:, 0]


def barriers_of(run: Any, instr: Instr, first: int = 0) -> list[Barrier]:
    """Find the barrier that each active thread names."""
    place = address_of(run, instr.args[first], instr.args[first + 1], 8)
    held = np.flatnonzero(run.mask[:, 0])
    if instr.op == "barrier_init":
        for number in set(place[held]):
            run.traffic.barriers[number] = Barrier(instr.arg, instr.arg)
    missing = set(place[held]) - run.traffic.barriers.keys()
    check(not missing, "a barrier is not initialised", run.program)
    return [run.traffic.barriers[place[thread]] for thread in held]


def arrive(run: Any, instr: Instr) -> None:
    """Arrive, and expect bytes."""
    threads = np.flatnonzero(run.mask[:, 0])
    for thread, barrier in zip(threads, barriers_of(run, instr), strict=True):
        is_own = (run.writers == thread) | (run.writers == -2 - thread // WARP)
        barrier.stored.append(np.flatnonzero(is_own))
        barrier.pending -= 1
        barrier.bytes += instr.arg or 0
        run.traffic.finish(barrier)


def arrive_all(run: Any, instr: Instr) -> None:
    """Arrive for all blocks of a cluster: the others do what this one does."""
    for _ in range(instr.arg):
        arrive(run, replace(instr, arg=None))


def cluster_wait(run: Any, instr: Instr) -> None:
    """Let all blocks of a cluster see what each has stored."""
    check(run.mask.all(), "a barrier in a branch", run.program)
    run.writers[:] = -1


def store_near(run: Any, instr: Instr) -> None:
    """Store a value of each block, of its first threads, into every block of its cluster."""
    pointer, index, value = instr.args
    array, _ = run.view(pointer)
    thread = np.arange(run.threads).reshape(-1, 1) % run.program.threads
    held = run.mask & (thread < instr.arg)
    begin = (run.block // instr.arg * instr.arg + thread) * (run.room // array.dtype.itemsize)
    places = (begin + run.values[index])[held]
    array[places] = np.broadcast_to(run.values[value], held.shape)[held]
    run.writers[run.first_bytes(pointer, places)] = np.flatnonzero(held)


def is_ended(run: Any, instr: Instr) -> bool:
    """Tell whether the phase that active threads wait for has ended."""
    parity = np.broadcast_to(run.values[instr.args[2]], (run.threads, 1))[run.mask[:, 0], 0]
    barriers = barriers_of(run, instr)
    return all(b.ended % 2 != p for b, p in zip(barriers, parity, strict=True))


def wait(run: Any, instr: Instr) -> None:
    """See what arrived."""
    for barrier in barriers_of(run, instr):
        for place in barrier.filled:
            run.traffic.state[place] = SEEN
        for place in barrier.stored:
            run.writers[place] = -1
        barrier.filled, barrier.stored = [], []


# -- flags ----------------------------------------------------------------------------------------


def flags_of(run: Any, instr: Instr) -> tuple[Array, Array]:
    """Find the flags in memory, and those that active threads name."""
    flags, _ = run.view(instr.args[0])
    places = np.broadcast_to(run.values[instr.args[1]], (run.threads, 1))
    return flags, places[run.mask]


def flag_raise(run: Any, instr: Instr) -> None:
    """Raise flags."""
    flags, places = flags_of(run, instr)
    check(not flags[places].any(), "a flag is raised twice", run.program)
    flags[places] = 1


def is_raised(run: Any, instr: Instr) -> bool:
    """Tell whether the flags that active threads wait for are raised."""
    flags, places = flags_of(run, instr)
    return bool(flags[places].all())


def flag_wait(run: Any, instr: Instr) -> None:
    """Lower the flags that were waited for."""
    flags, places = flags_of(run, instr)
    flags[places] = 0


# -- boxes ----------------------------------------------------------------------------------------


def places_in(tensor: TensorMap, at: Sequence[int]) -> tuple[Array, Array]:
    """Find the elements of a box: which lie inside of the array, and where, by (row, column)."""
    positions: list[Array] = []
    for d, (first, extent) in enumerate(zip(at, tensor.box, strict=True)):
        positions.append((first + np.arange(extent)).reshape(-1, *(1,) * d))
    return inside(tensor, positions)


def windows_in(tensor: TensorMap, at: Sequence[int], offsets: Sequence[int]) -> tuple[Array, Array]:
    """Find the elements of a box of windows: see `places_in`."""
    windows = tensor.windows
    check(windows is not None, "a map without windows", tensor)
    first, counts, steps = windows.first, windows.counts, windows.steps  # type: ignore[union-attr]
    rest = np.arange(tensor.box[1])
    positions: list[Array] = [at[0] + np.arange(tensor.box[0])]
    for d, begin in enumerate(at[1:-1]):
        number, off = divmod(begin - first[d], steps[d])
        is_there = off == 0 and 0 <= number < counts[d]
        check(is_there, f"no window begins at {begin} of dimension {d + 1}", tensor)
        rest = rest + number
        each: Array = first[d] + rest % counts[d] * steps[d] + offsets[d]
        positions.append(each.reshape(-1, 1))
        rest = rest // counts[d]
    positions.append((at[-1] + rest).reshape(-1, 1))
    return inside(tensor, positions)


def inside(tensor: TensorMap, positions: Sequence[Array]) -> tuple[Array, Array]:
    """Tell which positions, one array for each dimension, an array has, and where they lie."""
    held: Any = np.True_
    place: Any = np.int64(tensor.offset)
    for d, where in enumerate(positions):
        held = held & (where >= 0) & (where < tensor.sizes[d])
        place = place + where * (tensor.strides[d - 1] if d else 1)
    shape = tensor.box[1], tensor.box[0]
    return np.broadcast_to(held, np.shape(place)).reshape(shape), place.reshape(shape)


def find_box(
    tensor: TensorMap, at: Sequence[int], offsets: Sequence[int] = ()
) -> tuple[Array, Array]:
    """Tell which elements of a box an array has, and where they lie."""
    is_plain = tensor.windows is None
    return places_in(tensor, at) if is_plain else windows_in(tensor, at, offsets)


def read_box(
    slot: Array, tensor: TensorMap, at: Sequence[int], offsets: Sequence[int] = ()
) -> Array:
    """Read a box of an array, 0 outside of it."""
    held, place = find_box(tensor, at, offsets)
    return np.where(held, slot[np.where(held, place, 0)], slot.dtype.type(0))


def swizzled(start: int, rows: int) -> Array:
    """Find the bytes of the rows of a box, in shared memory from `start` on."""
    linear: Array = start + np.arange(rows * ROW)
    return linear ^ (linear >> 7 & 7) << 4


def copy_box(run: Any, instr: Instr) -> None:
    """Copy a box to shared memory; its bytes arrive at a barrier."""
    tensor, start, values = box_of(run, instr, 5)
    (barrier,) = barriers_of(run, instr, 3)
    rank = len(tensor.sizes)
    bring(run, barrier, tensor, start, values[:rank], values[rank:])


def copy_box_all(run: Any, instr: Instr) -> None:
    """Copy the boxes of all blocks of a cluster: the others bring what this one would have."""
    tensor, start, values = box_of(run, instr, 6)
    (barrier,) = barriers_of(run, instr, 3)
    count, rows, _ = instr.arg
    for number in range(count):
        near, far, *rest = values
        place = start + number * rows * ROW
        bring(run, barrier, tensor, place, (near, far + number * rows, *rest), ())


def box_of(run: Any, instr: Instr, first: int) -> tuple[TensorMap, int, list[int]]:
    """Find what a copy is of, where it goes, and its numbers from the `first` argument on."""
    tensor = run.program.tensors[run.program.instructions[instr.args[0]].arg]
    threads = np.flatnonzero(run.mask[:, 0])
    check(len(threads) == 1, "one thread copies a box", run.program)
    start = address_of(run, instr.args[1], instr.args[2], tensor.dtype.itemsize)[threads[0]]
    numbers = [np.broadcast_to(run.values[a], (run.threads, 1)) for a in instr.args[first:]]
    return tensor, int(start), [int(each[threads[0], 0]) for each in numbers]


def bring(
    run: Any,
    barrier: Barrier,
    tensor: TensorMap,
    start: int,
    at: Sequence[int],
    offsets: Sequence[int],
) -> None:
    """Let a box arrive."""
    check(start % SWIZZLE_PERIOD == 0, "a box begins at a multiple of 1024 bytes", run.program)
    value = read_box(run.slots[tensor.slot], tensor, at, offsets)
    target = swizzled(start, tensor.box[1])
    is_late = run.traffic.state[target] == ARRIVED  # what was seen, who reads it now is told
    is_free = ~is_late | run.traffic.is_outside[target]
    check(is_free.all(), "a stage is overwritten before it was read", run.program)
    held, _ = find_box(tensor, at, offsets)
    run.traffic.is_outside[target] = ~np.repeat(held, tensor.dtype.itemsize)
    run.shared[target] = np.ascontiguousarray(value).view(np.uint8).reshape(-1)
    run.traffic.state[target] = ARRIVED
    barrier.filled.append(target)
    barrier.bytes -= len(target)
    check(barrier.bytes >= 0, "more bytes than a barrier expects", run.program)
    run.traffic.finish(barrier)


def unfilled(run: Any, instr: Instr) -> None:
    """Let products read what no box fills."""
    dtype = run.program.instructions[instr.args[0]].dtype
    shared, place = instr.args
    start = int(address_of(run, shared, place, dtype.itemsize)[0])
    run.traffic.state[start : start + instr.arg] = SEEN


def store_box(run: Any, instr: Instr) -> None:
    """Begin to copy boxes out of shared memory, one for each active thread."""
    tensor = run.program.tensors[run.program.instructions[instr.args[0]].arg]
    starts = address_of(run, instr.args[1], instr.args[2], tensor.dtype.itemsize)
    at = [np.broadcast_to(run.values[a], (run.threads, 1))[:, 0] for a in instr.args[3:]]
    for thread in np.flatnonzero(run.mask[:, 0]):
        source = swizzled(starts[thread], tensor.box[1])
        writer = run.writers[source]
        is_known = (writer == thread) | (writer == -2 - thread // WARP) | (writer == -1)
        check(is_known.all(), "a box is stored without a barrier", run.program)
        check(not run.traffic.is_unfenced[source].any(), "a box without a fence", run.program)
        run.traffic.is_leaving[source] = True
        corner = [int(each[thread]) for each in at]
        queue = run.queues.boxes.setdefault(int(thread), [])
        queue.append(leaving(run, tensor, source, corner))


def leaving(run: Any, tensor: TensorMap, source: Array, at: list[int]) -> Callable[[], None]:
    """Make what copies a box out when it is waited for."""

    def leave() -> None:
        held, place = places_in(tensor, at)
        slot = run.slots[tensor.slot]
        slot[place[held]] = run.shared[source].view(slot.dtype).reshape(held.shape)[held]
        run.traffic.is_leaving[source] = False

    return leave


def store_box_wait(run: Any, instr: Instr) -> None:
    """Let all but so many boxes of each active thread leave."""
    for thread in np.flatnonzero(run.mask[:, 0]):
        queue = run.queues.boxes.get(int(thread), [])
        while len(queue) > instr.arg:
            queue.pop(0)()


def async_fence(run: Any, instr: Instr) -> None:
    """Show what active threads stored to the copy engine."""
    own = np.flatnonzero(run.mask[:, 0])
    is_own = np.zeros(run.threads + run.threads // WARP + 3, bool)  # of each writer
    is_own[own] = is_own[-2 - own // WARP] = True
    run.traffic.is_unfenced[is_own[run.writers]] = False


# -- products -------------------------------------------------------------------------------------


def descriptor(run: Any, instr: Instr) -> Array:
    """Describe an operand as the hardware takes it."""
    pointer, place = instr.args
    itemsize = run.program.instructions[pointer].dtype.itemsize
    start = address_of(run, pointer, place, itemsize).astype(np.uint64).reshape(-1, 1)
    fixed = 1 << 62 | (SWIZZLE_PERIOD >> 4) << 32 | (instr.arg >> 4) << 16
    return (start & np.uint64(0x3FFFF)) >> np.uint64(4) | np.uint64(fixed)


def product(run: Any, instr: Instr) -> None:
    """Begin a product."""
    a, b = (run.values[arg].copy() for arg in instr.args[1:])  # packed registers as they are now
    run.queues.open.append((instr, a, b))


def commit(run: Any, instr: Instr) -> None:
    """Make a group of the products since the last one."""
    run.queues.groups.append(run.queues.open)
    run.queues.open = []


def wait_products(run: Any, instr: Instr) -> None:
    """Finish all but so many groups; then their operands may be overwritten."""
    queues = run.queues
    check(not queues.open, "products are waited for that are in no group", run.program)
    while len(queues.groups) > instr.arg:
        read = [multiply(run, *each) for each in queues.groups.pop(0)]
        for place in read:
            run.traffic.state[place] = READ


def multiply(run: Any, instr: Instr, a: Array, b: Array) -> Array:
    """Add one product to the accumulators of every warpgroup; the bytes that it read."""
    spec: Wgmma = instr.arg
    acc, read = run.values[instr.args[0]], []
    groups = np.flatnonzero(run.mask[::GROUP, 0])
    for group in groups:
        threads = np.arange(group * GROUP, (group + 1) * GROUP)
        check(run.mask[threads].all(), "a product by a part of a warpgroup", run.program)
        if spec.has_packed:
            left = unpacked(spec, a[threads])
            a_place: Array = np.zeros(0, np.int64)
        else:
            left, a_place = operand(run, spec, int(a[threads[0], 0]), 64, True)
        right, b_place = operand(run, spec, int(b[threads[0], 0]), spec.n, False)
        held = acc[group * GROUP : (group + 1) * GROUP, spec.register :, 0]
        accumulate(held, left @ right.T, spec.is_first)
        read += [a_place, b_place]
    return np.concatenate(read)


def pack(run: Any, instr: Instr) -> None:
    """Round pairs of registers to one each."""
    packed, array = (run.values[arg] for arg in instr.args)
    held = run.mask[:, 0]
    if instr.arg.bits == 32:
        whole = np.ascontiguousarray(array[held, :, 0], np.float32).view(np.uint32)
        packed[held, :, 0] = whole + TF32_HALF & TF32_BITS
        return
    bits = to_bits(np.ascontiguousarray(array[..., 0]), instr.arg)
    bits = np.ascontiguousarray(bits).view(np.uint16).astype(np.uint32)
    made = bits[:, ::2] | bits[:, 1::2] << np.uint32(16)
    packed[held, :, 0] = made[held]


def unpacked(spec: Wgmma, registers: Array) -> Array:
    """Read a left operand (64, 16) from the registers of a warpgroup, four of each thread."""
    found = np.zeros((64, 16))
    warp, lane = np.divmod(np.arange(GROUP), 32)
    for element in range(8):
        raw = registers[:, spec.a_offset + element // 2].reshape(-1) >> np.uint32(element % 2 * 16)
        row = 16 * warp + lane // 4 + 8 * (element // 2 % 2)
        column = 8 * (element // 4) + 2 * (lane % 4) + element % 2
        halves = (raw & np.uint32(0xFFFF)).astype(np.uint16).view(spec.dtype.storage)
        found[row, column] = from_bits(halves, spec.dtype).astype(np.float64)
    return found


def product_at_once(run: Any, instr: Instr) -> None:
    """Multiply packed registers by a stage that is there."""
    spec: Mma = instr.arg
    acc, packed = (run.values[arg] for arg in instr.args[:2])
    start = int(address_of(run, instr.args[2], instr.args[3], 4)[np.flatnonzero(run.mask)[0]])
    shape = (spec.n, spec.depth) if spec.b_is_nk else (spec.depth, spec.n)
    row, column = np.arange(shape[0]).reshape(-1, 1), np.arange(shape[1])
    slab, near = np.divmod(column, ROW // 4)
    place = start + slab * (spec.rows * ROW) + row * ROW + near * 4
    place = place ^ (place >> 7 & 7) << 4
    is_there = (run.traffic.state[place] >= SEEN).all()
    check(is_there, "a stage is read before it arrived", run.program)
    each = place.reshape(*shape, 1) + np.arange(4)
    raw = np.ascontiguousarray(run.shared[each]).view(np.uint32)[..., 0] & TF32_BITS
    right = raw.view(np.float32).astype(np.float64)
    right = right.T if spec.b_is_nk else right
    for group in np.flatnonzero(run.mask[::GROUP, 0]):
        threads = np.arange(group * GROUP, (group + 1) * GROUP)
        check(run.mask[threads].all(), "a product by a part of a warpgroup", run.program)
        left = np.zeros((64, spec.depth))
        words = np.ascontiguousarray(packed[threads, : spec.depth // 2, 0])
        left[fragment(spec.depth // 2)] = words.view(np.float32)
        accumulate(acc[group * GROUP : (group + 1) * GROUP, :, 0], left @ right, spec.is_first)
    run.traffic.state[each.reshape(-1)] = READ


def accumulate(registers: Array, made: Array, is_first: bool) -> None:
    """Put a product (64, n) into the registers (128, ...) of a warpgroup, or add it to them."""
    value = made[fragment(made.shape[1] // 2)].astype(np.float32)
    held = registers[:, : value.shape[1]]
    held[...] = value if is_first else held + value


@cache
def fragment(registers: int) -> tuple[Array, Array]:
    """Find the rows and columns (128, registers) of an accumulator that every thread holds."""
    warp, lane = np.divmod(np.arange(GROUP).reshape(-1, 1), 32)
    block, element = np.divmod(np.arange(registers), 4)
    row = 16 * warp + lane // 4 + 8 * (element // 2)
    return row, 8 * block + 2 * (lane % 4) + element % 2


def operand(run: Any, spec: Wgmma, bits: int, rows: int, is_left: bool) -> tuple[Array, Array]:
    """Read an operand (rows, depth) that a descriptor describes, as the hardware does."""
    is_k_major = spec.a_is_k_major if is_left else spec.b_is_k_major
    dtype = spec.dtypes[0 if is_left else 1]
    start = ((bits & 0x3FFF) << 4) + (spec.a_offset if is_left else spec.b_offset)
    size = dtype.itemsize
    row, k = np.arange(rows).reshape(-1, 1), np.arange(32 // size)
    if is_k_major:
        place = start + row // 8 * SWIZZLE_PERIOD + row % 8 * ROW + k * size
    else:
        slab, leading = np.divmod(row, ROW // size), (bits >> 16 & 0x3FFF) << 4
        place = start + slab[0] * leading + slab[1] * size
        place = place + k // 8 * SWIZZLE_PERIOD + k % 8 * ROW
    place = place ^ (place >> 7 & 7) << 4
    is_there = (run.traffic.state[place] >= SEEN).all()
    check(is_there, "a stage is read before it arrived", run.program)
    each = place.reshape(rows, -1, 1) + np.arange(size)
    raw = run.shared[each].view(dtype.storage)[..., 0]
    if dtype.bits == 32:
        raw = (raw.view(np.uint32) & TF32_BITS).view(np.float32)
    return from_bits(raw, dtype).astype(np.float64), each.reshape(-1)


WAITS = {"barrier_wait": is_ended, "flag_wait": is_raised}  # whether what is waited for came
ASYNC: dict[str, Callable[[Any, Instr], Any]] = {
    **dict.fromkeys(("tensor", "prefetch_map"), lambda run, instr: None),
    "elect": elect,
    "uniform": lambda run, instr: run.values[instr.args[0]],
    "barrier_init": barriers_of,
    "barrier_publish": lambda run, instr: None,
    "barrier_arrive": arrive,
    "barrier_arrive_all": arrive_all,
    "cluster_barrier": lambda run, instr: None,
    "cluster_arrive": lambda run, instr: None,
    "cluster_wait": cluster_wait,
    "store_near": store_near,
    "barrier_expect": arrive,
    "barrier_wait": wait,
    "flag_raise": flag_raise,
    "flag_wait": flag_wait,
    "copy_box": copy_box,
    "copy_box_all": copy_box_all,
    "unfilled": unfilled,
    "store_box": store_box,
    "store_box_wait": store_box_wait,
    "async_fence": async_fence,
    "descriptor": descriptor,
    "wgmma": product,
    "wgmma_pack": pack,
    "mma_packed": product_at_once,
    "wgmma_keep": lambda run, instr: None,
    "wgmma_fence": lambda run, instr: None,
    "wgmma_commit": commit,
    "wgmma_wait": wait_products,
}
