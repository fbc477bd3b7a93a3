"""Interpret a Program with NumPy, all threads of a block in step: the oracle for the renderers.

Every value is an array (threads, lanes). A branch or loop runs its body under a mask of threads.
Blocks that see nothing of one another run side by side, as further threads.
Shared memory remembers who wrote each byte since the last barrier: a read by another thread is an
error, as it would be a race on the device. Roles take turns: each runs until it waits for another
(interpret_async.py). bfloat16 is raw bits in memory and float32 as a value;
8-bit floats are raw bits everywhere (codegen/value.py computes with those).
"""

import copy
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

import numpy as np

from picograd.codegen.interpret_async import ASYNC, WAITS, Queues, Traffic
from picograd.codegen.program import RARE_FROM, SCOPES, Instr, Program
from picograd.codegen.tile_products import multiply_tiles
from picograd.conversion import convert, from_bits, to_bits
from picograd.dtype import DType, bfloat16
from picograd.errors import check, internal
from picograd.graph.row import OPS
from picograd.helpers import round_up

Array = Any
WARP = 32
SIDE_BY_SIDE = 4096  # threads at most of the blocks that run in step
LEAVES = {"const", "scalar", "param", "scratch", "workspace"}  # the same at every visit
TIED = {"role", "choose", "workspace", "scratch", "atomic_add", *ASYNC}  # one block at a time
MEANINGS: dict[str, Callable[..., Array]] = {  # of what has no row in the op table, or is less
    "and": np.logical_and,
    "or": np.logical_or,
    "not": np.logical_not,
    "where": np.where,
    "quotient": lambda a, b: (
        np.where(b == 0, 0, np.trunc(a / np.where(b == 0, 1, b)))
        if a.dtype.kind == "f"
        else whole_quotient(a, b)
    ),
    "remainder": lambda a, b: np.fmod(a, b),
    "whole_exp2": np.exp2,
    "quick_divide": np.divide,
    "quick_reciprocal": lambda a: 1 / a,
    "quick_maximum": np.maximum,
    "quick_minimum": np.minimum,
    "popcount": lambda a: sum(a >> np.uint32(bit) & np.uint32(1) for bit in range(32)),
    "fma": lambda a, b, c: multiply_add(a, b, c) if a.dtype.kind == "f" else a * b + c,
}


def meaning_of(op: str) -> Callable[..., Array] | None:
    """Find the function of arrays that an instruction is, None if it has none."""
    return MEANINGS[op] if op in MEANINGS else OPS[op].numpy if op in OPS else None


def multiply_add(a: Array, b: Array, c: Array) -> Array:
    """Compute a b + c, rounded once or nearly, from exact errors (Dekker, 1971; Knuth)."""
    a, b, c = (each.astype(np.float64) for each in (a, b, c))
    product = a * b
    (high, low), (top, rest) = halves(a), halves(b)
    error = ((high * top - product) + high * rest + low * top) + low * rest
    total = product + c
    part = total - product
    found = total + ((product - (total - part)) + (c - part) + error)
    return np.where(np.isfinite(found), found, total)


def halves(x: Array) -> tuple[Array, Array]:
    """Write float64 as a sum of two numbers of 26 bits."""
    scaled = x * (2.0**27 + 1)
    high = scaled - (scaled - x)
    return high, x - high


def whole_quotient(a: Array, b: Array) -> Array:
    """Divide integers towards zero."""
    b = np.where(b == 0, 1, b)
    return (a - np.fmod(a, b)) // b


def interpret(
    program: Program,
    slots: Sequence[Array],
    scalars: Sequence[Any] = (),
    tasks: Sequence[int] | None = None,
) -> None:
    """Run a program on flat arrays (in storage format), task after task where that can matter."""
    spaces: list[Array] = [np.zeros(size, np.uint8) for size, _ in program.workspaces]
    order = range(program.tasks) if tasks is None else tasks
    count = max(1, SIDE_BY_SIDE // program.threads) if are_apart(program) else near_of(program)
    with np.errstate(all="ignore"):
        for first in range(0, len(order), count):
            Run(program, slots, scalars, spaces, order[first : first + count]).whole()
    for space, (_, is_zeroed) in zip(spaces, program.workspaces, strict=True):
        check(not is_zeroed or not space.any(), "a counter was not left zero", program)


def near_of(program: Program) -> int:
    """Count the blocks that tell one another something: those of a cluster run side by side."""
    found = (instr.arg for instr in program.instructions if instr.op == "store_near")
    return next(found, 1)


def are_apart(program: Program) -> bool:
    """Tell whether no block can see what another one does: none reads what is written."""
    if program.threads > 1 and program.threads % WARP:
        return False
    for instr in program.instructions:
        if instr.op in TIED:
            return False
        pointer = program.instructions[instr.args[0]] if instr.op == "load" else None
        if pointer and pointer.op == "param" and program.parameters[pointer.arg][1] != "in":
            return False
    return True


class Run:
    """Some tasks or blocks in step."""

    def __init__(
        self,
        program: Program,
        slots: Sequence[Array],
        scalars: Sequence[Any],
        spaces: Sequence[Array],
        tasks: Sequence[int],
    ) -> None:
        self.program: Program = program
        self.slots: Sequence[Array] = slots
        self.scalars: Sequence[Any] = scalars
        self.spaces: Sequence[Array] = spaces
        self.tasks: Sequence[int] = tasks
        self.threads: int = program.threads * len(tasks)
        self.block: Array = np.repeat(np.arange(len(tasks)), program.threads).reshape(-1, 1)
        self.values: list[Any] = [None] * len(program.instructions)
        self.scratch: Array = np.zeros(program.scratch_bytes, np.uint8)
        self.room: int = round_up(program.shared_bytes, 16)  # of one block
        self.shared: Array = np.zeros(self.room * len(tasks), np.uint8)
        self.writers = np.full(self.room * len(tasks), -1)
        self.everyone: Array = np.ones((self.threads, 1), bool)
        self.mask = self.everyone
        self.traffic, self.queues = Traffic(program, len(self.shared)), Queues()
        self.ends: dict[int, int] = matching_ends(program)
        # Leaves may be used in every scope after theirs, also where a branch skipped them.
        for number, instr in enumerate(program.instructions):
            if instr.op in LEAVES or instr.op == "array":
                self.values[number] = self.instruction(number, instr)

    def whole(self) -> None:
        """Run every instruction."""
        for _ in self.sequence(0, len(self.program.instructions)):
            internal("all roles wait for one another", self.program)
        self.queues.check_empty(self)

    def sequence(self, first: int, last: int) -> Iterator[None]:
        """Run instructions first..last-1; yield while another role must arrive first."""
        number = first
        while number < last:
            instr = self.program.instructions[number]
            if instr.op == "role":
                number = yield from self.roles(number)
                continue
            if instr.op in SCOPES:
                yield from self.structure(number, instr)
                number = self.ends[number] + 1
                continue
            while instr.op in WAITS and not WAITS[instr.op](self, instr):
                yield
            if instr.op not in LEAVES:
                self.values[number] = self.instruction(number, instr)
            number += 1

    def structure(self, number: int, instr: Instr) -> Iterator[None]:
        """Run a loop or branch for the threads that take it."""
        outer, inside = self.mask, (number + 1, self.ends[number])
        if instr.op == "if":
            self.mask = outer & self.values[instr.args[0]]
            if self.mask.any():
                yield from self.sequence(*inside)
        elif instr.op == "claims":
            yield from self.claims(number, instr)
        else:
            start, stop = (self.values[a] for a in instr.args)
            variable = np.broadcast_to(start, (self.threads, 1)).copy()
            while (inner := outer & (variable < stop)).any():
                self.mask = outer if inner.all() else inner
                self.values[number] = variable.copy()
                yield from self.sequence(*inside)
                variable += instr.arg[0]
        self.mask = outer

    def claims(self, number: int, instr: Instr) -> Iterator[None]:
        """Run the body of a loop over numbers that no block has had."""
        cells, _ = self.view(instr.args[0])
        while True:
            check(self.mask is self.everyone, "numbers are claimed in a branch", self.program)
            self.writers[:] = -1
            claimed, cells[0] = int(cells[0]), cells[0] + 1
            if claimed >= instr.arg:
                return
            self.values[number] = self.spread(claimed, instr.dtype)  # type: ignore[arg-type]
            yield from self.sequence(number + 1, self.ends[number])
            cells[1] += 1

    def claims_wait(self, instr: Instr) -> None:
        """Go on when all that was claimed is done; the last block clears the cells."""
        cells, _ = self.view(instr.args[0])
        count, blocks = instr.arg
        check(cells[1] == count, "what was claimed is not done", self.program)
        cells[2] += 1
        self.writers[:] = -1
        if cells[2] == blocks:
            cells[:3] = 0

    def roles(self, number: int) -> Generator[None, None, int]:
        """Run roles that follow one another, each until it must wait; return what comes next."""
        running: list[tuple[Run, Iterator[None]]] = []
        while number < len(self.program.instructions):
            instr = self.program.instructions[number]
            if instr.op != "role":
                break
            for team in range(instr.arg.teams):
                own = copy.copy(self)
                own.values, own.queues = list(self.values), Queues()
                first = instr.arg.first + team * instr.arg.threads
                place = np.arange(self.threads).reshape(-1, 1) - first
                own.mask = self.mask & (place >= 0) & (place < instr.arg.threads)
                running.append((own, own.sequence(number + 1, self.ends[number])))
            number = self.ends[number] + 1
        while running:
            before, waiting = self.traffic.events, []
            for own, steps in running:
                if next(steps, self) is None:
                    waiting.append((own, steps))
                else:
                    own.queues.check_empty(own)
            if len(waiting) == len(running) and self.traffic.events == before:
                yield  # for a role around these
            running = waiting
        return number

    def spread(self, value: Any, dtype: DType) -> Array:
        """Give every thread the same scalar."""
        if dtype.is_integer:
            bits = np.array(int(value) & ((1 << dtype.bits) - 1), f"uint{dtype.bits}")
            return np.full((self.threads, 1), bits.view(dtype.numpy))
        return np.full((self.threads, 1), value).astype(dtype.numpy)

    def instruction(self, number: int, instr: Instr) -> Any:
        """Run one instruction that is no structure."""
        method = METHODS.get(instr.op)
        if method is not None:
            return method(self, instr)
        dtype, meaning = instr.dtype, meaning_of(instr.op)
        if dtype is None or meaning is None:
            internal(f"no meaning for {instr.op}", self.program)
        return convert(meaning(*[self.values[a] for a in instr.args]), dtype)

    # -- leaves -----------------------------------------------------------------------------------

    def constant(self, instr: Instr) -> Array:
        """Make a constant."""
        return self.spread(instr.arg, instr.dtype)  # type: ignore[arg-type]

    def leaf(self, instr: Instr) -> Array:
        """Make a scalar, the task or the thread number."""
        dtype: DType = instr.dtype  # type: ignore[assignment]
        if instr.op == "thread":
            number: Array = np.arange(self.threads).reshape(-1, 1) % self.program.threads
            return number.astype(dtype.numpy)
        if instr.op == "task":
            return np.asarray(self.tasks)[self.block].astype(dtype.numpy)
        return self.spread(self.scalars[instr.arg], dtype)

    def pointer(self, instr: Instr) -> tuple[str, Array, DType | None]:
        """Point to memory: (space, array of the storage type or raw bytes, dtype)."""
        if instr.op == "param":
            return "slot", self.slots[instr.arg], instr.dtype
        if instr.op == "workspace":
            return "bytes", self.spaces[instr.arg], instr.dtype
        if instr.op == "scratch":
            return "bytes", self.scratch[instr.arg :], instr.dtype
        return "shared", self.shared[instr.arg :], instr.dtype

    def choose(self, instr: Instr) -> Any:
        """Choose a pointer or a number by a position that all threads share."""
        position, *options = instr.args
        (chosen,) = {int(each) for each in np.ravel(self.values[position])}
        return self.values[options[chosen]]

    def view(self, number: int) -> tuple[Array, str]:
        """View the memory behind a pointer in its storage type."""
        space, array, dtype = self.values[number]
        if space == "slot":
            return array, space
        size = len(array) // dtype.itemsize * dtype.itemsize
        return array[:size].view(dtype.storage), space

    # -- memory -----------------------------------------------------------------------------------

    def active(self, mask: Sequence[int], lanes: int) -> Array:
        """Threads and lanes that take part."""
        held = self.mask & self.values[mask[0]] if mask else self.mask
        return held if lanes == 1 else np.broadcast_to(held, (self.threads, lanes))

    def places(self, pointer: int, index: int, held: Array) -> tuple[Array, str, Array]:
        """Find the memory, its space, and the element numbers of every thread and lane."""
        array, space = self.view(pointer)
        places, size = self.values[index] + np.arange(held.shape[1]), array.size
        if space == "shared":
            first, itemsize = self.program.instructions[pointer].arg, array.dtype.itemsize
            size = (self.program.shared_bytes - first) // itemsize
            begin = self.block * (self.room // itemsize)
        used = places[held]
        is_inside = not used.size or (used.min() >= 0 and used.max() < size)
        check(is_inside, "an access outside its memory", self.program)
        if space == "shared":
            places = places + begin
        return array, space, places

    def load(self, instr: Instr) -> Array:
        """Load; threads that are masked out get 0."""
        pointer, index, *mask = instr.args
        held = self.active(mask, instr.lanes)
        array, space, places = self.places(pointer, index, held)
        if space == "shared":
            self.check_race(pointer, places, held)
            first = self.first_bytes(pointer, places)[held]
            self.traffic.read(first, array.dtype.itemsize)
        value = np.zeros(places.shape, array.dtype)
        value[held] = array[places[held]]
        return from_bits(value, bfloat16) if instr.dtype is bfloat16 else value

    def store(self, instr: Instr) -> None:
        """Store for the threads that take part, in order of their numbers."""
        pointer, index, value, *mask = instr.args
        held = self.active(mask, instr.lanes)
        array, space, places = self.places(pointer, index, held)
        stored = np.broadcast_to(self.values[value], places.shape)
        if instr.dtype is bfloat16:
            stored = to_bits(stored, bfloat16)
        array[places[held]] = stored[held]
        if space == "shared":
            first = self.first_bytes(pointer, places)[held]
            self.traffic.overwrite(first)
            self.writers[first] = np.broadcast_to(np.arange(self.threads)[:, None], places.shape)[
                held
            ]

    def count(self, instr: Instr) -> None:
        """Add 1 to a counter for each thread; its writer is none of them, and all have to wait."""
        pointer, index = instr.args
        held = self.active((), 1)
        array, _, places = self.places(pointer, index, held)
        first = self.first_bytes(pointer, places)[held]
        writer = self.writers[first]
        is_safe = (writer == -1) | (writer == self.threads)
        check(is_safe.all(), "a counter is written without a barrier", self.program)
        self.writers[first] = self.threads
        np.add.at(array, places[held], 1)

    def first_bytes(self, pointer: int, places: Array) -> Array:
        """First byte of every element, in shared memory."""
        instr = self.program.instructions[pointer]
        check(instr.dtype is not None, "a pointer has a dtype")
        return instr.arg + places * instr.dtype.itemsize  # type: ignore[no-any-return,union-attr]

    def check_race(self, pointer: int, places: Array, held: Array) -> None:
        """Refuse a read of what another thread wrote since the last barrier."""
        own = np.broadcast_to(np.arange(self.threads)[:, None], places.shape)[held]
        writer = self.writers[self.first_bytes(pointer, places)[held]]
        is_safe = (writer == -1) | (writer == own) | (writer == -2 - own // WARP)
        check(is_safe.all(), "a shared element is read without a barrier", self.program)

    def barrier(self, instr: Instr) -> None:
        """Let every thread see what was written."""
        wanted = instr.arg or self.program.threads
        count = self.mask.reshape(len(self.tasks), -1).sum(1)
        check(((count == 0) | (count == wanted)).all(), "a barrier in a branch", self.program)
        self.writers.reshape(len(self.tasks), -1)[count > 0] = -1

    def warp_barrier(self, instr: Instr) -> None:
        """Let the threads of each warp see what the warp wrote: a writer -2 - w is the warp w."""
        here = np.pad(self.mask[:, 0], (0, -self.threads % WARP), mode="edge").reshape(-1, WARP)
        check((here.all(1) | ~here.any(1)).all(), "a warp barrier in a branch", self.program)
        warps: Array = -2 - np.arange(self.threads) // WARP
        after = np.where(self.mask[:, 0], warps, np.arange(self.threads))  # by a writer's number
        self.writers[:] = np.concatenate((after, np.arange(-2 - len(here), 0)))[self.writers]

    def match_any(self, instr: Instr) -> Array:
        """Find the lanes of each thread's warp whose lowest bits are the same."""
        low = self.values[instr.args[0]] & np.uint32((1 << instr.arg) - 1)
        value = np.broadcast_to(low, (self.threads, 1)).reshape(-1, WARP)
        bits = np.uint32(1) << np.arange(WARP, dtype=np.uint32)
        is_same = value[:, :, None] == value[:, None, :]
        return (is_same * bits).sum(axis=-1, dtype=np.uint32).reshape(-1, 1)

    def array(self, instr: Instr) -> Array:
        """Reserve registers: (threads, size, lanes)."""
        dtype = instr.dtype
        check(dtype is not None, "an array has a dtype")
        return np.zeros((self.threads, instr.arg, instr.lanes), dtype.numpy)  # type: ignore

    def number(self, index: int) -> int | None:
        """Give the index of a register if it is known."""
        instr = self.program.instructions[index]
        return int(instr.arg) if METHODS.get(instr.op) is Run.constant else None

    def get(self, instr: Instr) -> Array:
        """Read registers."""
        array, index = (self.values[a] for a in instr.args)
        is_done = instr.args[0] not in self.queues.working()
        check(is_done, "a product under way is read", self.program)
        number = self.number(instr.args[1])
        if number is not None:
            return array[:, number].copy()
        return array[np.arange(self.threads), np.where(self.mask, index, 0)[:, 0]]

    def set(self, instr: Instr) -> None:
        """Write registers."""
        array, index, value = (self.values[a] for a in instr.args)
        number = self.number(instr.args[1])
        if number is not None:
            np.copyto(array[:, number], value, where=self.mask)
            return
        who = np.flatnonzero(self.mask[:, 0])
        places = np.broadcast_to(index, (self.threads, 1))[who, 0]
        array[who, places] = np.broadcast_to(value, (self.threads, array.shape[2]))[who]

    def atomic_add(self, instr: Instr) -> Array:
        """Add for each thread in turn; give the old values."""
        pointer, index, value = instr.args
        array, _ = self.view(pointer)
        old = np.zeros((self.threads, 1), array.dtype)
        for thread in np.flatnonzero(self.mask[:, 0]):
            place = self.values[index][thread, 0]
            old[thread] = array[place]
            array[place] += self.values[value][thread, 0]
        return old

    def atomic_max(self, instr: Instr) -> None:
        """Raise what is there, whatever the order."""
        pointer, index, value = instr.args
        held = self.active((), 1)
        array, _, places = self.places(pointer, index, held)
        np.maximum.at(array, places[held], np.broadcast_to(self.values[value], places.shape)[held])

    # -- values -----------------------------------------------------------------------------------

    def convert(self, instr: Instr) -> Array:
        """Cast or bitcast."""
        value, dtype = self.values[instr.args[0]], instr.dtype
        source = self.program.instructions[instr.args[0]].dtype
        if dtype is None or source is None:
            internal("a cast without dtype", self.program)
        if instr.op == "cast":
            return convert(value, dtype)
        if "float8" in (source.kind, dtype.kind):
            return value.view(np.dtype(dtype.storage))
        return from_bits(to_bits(value, source), dtype)

    def rare(self, instr: Instr) -> Array:
        """Take the usual value where |x| is small, else compute the function."""
        x, usual, *operands = (self.values[a] for a in instr.args)
        meaning = meaning_of(instr.arg)
        if meaning is None:
            internal(f"{instr.arg} has no meaning", self.program)
        return np.where(np.abs(x) >= RARE_FROM, meaning(*(operands or [x])), usual)

    def lanes(self, instr: Instr) -> Array:
        """Splat, pack or extract lanes."""
        args = [self.values[a] for a in instr.args]
        if instr.op == "splat":
            return np.repeat(args[0], instr.lanes, axis=1)
        if instr.op == "extract":
            return args[0][:, instr.arg : instr.arg + 1]
        rows = [np.broadcast_to(a, (self.threads, 1)) for a in args]
        return np.concatenate(rows, axis=1)

    def interleave(self, instr: Instr) -> Array:
        """Take the lanes of a half of two vectors in turn."""
        half = instr.lanes // 2
        first = half if instr.arg == "high" else 0
        a, b = (np.broadcast_to(self.values[n], (self.threads, instr.lanes)) for n in instr.args)
        chosen = np.stack([a[:, first : first + half], b[:, first : first + half]], axis=2)
        return chosen.reshape(self.threads, instr.lanes)

    def shuffle(self, instr: Instr) -> Array:
        """Exchange values between threads whose numbers differ in some bits."""
        value = np.broadcast_to(self.values[instr.args[0]], (self.threads, instr.lanes))
        return value[np.arange(self.threads) ^ instr.arg]


def matching_ends(program: Program) -> dict[int, int]:
    """Find the `end` of every loop and branch."""
    ends: dict[int, int] = {}
    opened: list[int] = []
    for number, instr in enumerate(program.instructions):
        if instr.op in SCOPES:
            opened.append(number)
        elif instr.op == "end":
            ends[opened.pop()] = number
    return ends


METHODS: dict[str, Callable[[Run, Instr], Any]] = {
    "const": Run.constant, **dict.fromkeys(("scalar", "task", "thread"), Run.leaf),
    **dict.fromkeys(("param", "workspace", "scratch", "shared"), Run.pointer),
    **dict.fromkeys(("cast", "bitcast"), Run.convert),
    **dict.fromkeys(("splat", "pack", "extract"), Run.lanes),
    "load": Run.load, "store": Run.store, "array": Run.array, "get": Run.get, "set": Run.set,
    "interleave": Run.interleave, "rare": Run.rare, "choose": Run.choose,
    "atomic_add": Run.atomic_add, "atomic_max": Run.atomic_max,
    "barrier": Run.barrier, "shuffle_xor": Run.shuffle,
    "count": Run.count, "warp_barrier": Run.warp_barrier, "match_any": Run.match_any,
    "claims_wait": Run.claims_wait, "multiply_tiles": multiply_tiles, **ASYNC,
}  # fmt: skip
