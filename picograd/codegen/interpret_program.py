"""Interpret a Program with NumPy, all threads of a block in step: the oracle for the renderers.

Every value is an array (threads, lanes). A branch or loop runs its body under a mask of threads.
Shared memory remembers who wrote each byte since the last barrier: a read by another thread is an
error, as it would be a race on the device. Roles take turns: each runs until it waits for another
(interpret_async.py). bfloat16 is raw bits in memory and float32 as a value;
8-bit floats are raw bits everywhere (codegen/casts.py computes with those).
"""

import copy
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

import numpy as np

from picograd.codegen.interpret_async import ASYNC, WAITS, Queues, Traffic
from picograd.codegen.program import RARE_FROM, SCOPES, Instr, Program
from picograd.conversion import convert, from_bits, to_bits
from picograd.dtype import DType, bfloat16
from picograd.errors import check, internal
from picograd.graph.elementwise import ELEMENTWISE

Array = Any
WARP = 32
SPECIAL: dict[str, Callable[..., Array]] = {
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
    "quick_reciprocal": lambda a: 1 / a,
    "quick_maximum": np.maximum,
    "quick_minimum": np.minimum,
    "popcount": lambda a: sum(a >> np.uint32(bit) & np.uint32(1) for bit in range(32)),
    "fma": lambda a, b, c: a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64),
}


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
    """Run a program on flat arrays (in storage format), task after task."""
    spaces: list[Array] = [np.zeros(size, np.uint8) for size, _ in program.workspaces]
    with np.errstate(all="ignore"):
        for task in range(program.tasks) if tasks is None else tasks:
            Run(program, slots, scalars, spaces, task).whole()
    for space, (_, is_zeroed) in zip(spaces, program.workspaces, strict=True):
        check(not is_zeroed or not space.any(), "a counter was not left zero", program)


class Run:
    """One task or block."""

    program: Program
    scalars: Sequence[Any]
    slots: Sequence[Array]
    spaces: Sequence[Array]
    task: int
    threads: int
    ends: dict[int, int]

    def __init__(
        self,
        program: Program,
        slots: Sequence[Array],
        scalars: Sequence[Any],
        spaces: Sequence[Array],
        task: int,
    ) -> None:
        self.program, self.slots, self.scalars, self.spaces = (program, slots, scalars, spaces)
        self.task, self.threads = task, program.threads
        self.values: list[Any] = [None] * len(program.instructions)
        self.scratch: Array = np.zeros(program.scratch_bytes, np.uint8)
        self.shared: Array = np.zeros(program.shared_bytes, np.uint8)
        self.writers = np.full(program.shared_bytes, -1)
        self.mask: Array = np.ones((self.threads, 1), bool)
        self.traffic, self.queues = Traffic(program), Queues()
        self.ends = matching_ends(program)
        # Leaves may be used in every scope after theirs, also where a branch skipped them.
        for number, instr in enumerate(program.instructions):
            if instr.op in ("const", "scalar", "param", "scratch", "workspace", "array"):
                self.values[number] = self.instruction(number, instr)

    def whole(self) -> None:
        """Run every instruction."""
        for _ in self.block(0, len(self.program.instructions)):
            internal("all roles wait for one another", self.program)
        self.queues.check_empty(self)

    def block(self, first: int, last: int) -> Iterator[None]:
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
            self.values[number] = self.instruction(number, instr)
            number += 1

    def structure(self, number: int, instr: Instr) -> Iterator[None]:
        """Run a loop or branch for the threads that take it."""
        outer, inside = self.mask, (number + 1, self.ends[number])
        if instr.op == "if":
            self.mask = outer & self.values[instr.args[0]]
            if self.mask.any():
                yield from self.block(*inside)
        else:
            start, stop = (self.values[a] for a in instr.args)
            variable = np.broadcast_to(start, (self.threads, 1)).copy()
            while (outer & (variable < stop)).any():
                self.mask = outer & (variable < stop)
                self.values[number] = variable.copy()
                yield from self.block(*inside)
                variable += instr.arg[0]
        self.mask = outer

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
                running.append((own, own.block(number + 1, self.ends[number])))
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
        return np.full((self.threads, 1), value).astype(dtype.numpy)

    def instruction(self, number: int, instr: Instr) -> Any:
        """Run one instruction that is no structure."""
        method = METHODS.get(instr.op)
        if method is not None:
            return method(self, instr)
        dtype = instr.dtype
        if dtype is None:
            internal(f"no meaning for {instr.op}", self.program)
        args = [self.values[a] for a in instr.args]
        made = SPECIAL.get(instr.op) or ELEMENTWISE[instr.op].numpy
        return convert(made(*args), dtype)  # type: ignore[misc]

    # -- leaves -----------------------------------------------------------------------------------

    def leaf(self, instr: Instr) -> Any:
        """Make a constant, a scalar, the task or the thread number."""
        dtype = instr.dtype
        if instr.op == "thread":
            return np.arange(self.threads).reshape(-1, 1).astype(dtype.numpy)  # type: ignore
        values = {"const": lambda: instr.arg, "task": lambda: self.task}
        value = values.get(instr.op, lambda: self.scalars[instr.arg])()
        if dtype is not None and dtype.is_integer:
            value = np.array(int(value) & ((1 << dtype.bits) - 1), f"uint{dtype.bits}")
            return np.full((self.threads, 1), value.view(dtype.numpy))
        return self.spread(value, dtype)  # type: ignore[arg-type]

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

    def places(self, index: int, lanes: int) -> Array:
        """Element numbers of every thread and lane."""
        return self.values[index] + np.arange(lanes)

    def active(self, mask: Sequence[int], lanes: int) -> Array:
        """Threads and lanes that take part."""
        held = self.mask & self.values[mask[0]] if mask else self.mask
        return np.broadcast_to(held, (self.threads, lanes))

    def check_places(self, places: Array, held: Array, array: Array) -> None:
        """Refuse an access outside the memory."""
        used = places[held]
        is_inside = not used.size or (used.min() >= 0 and used.max() < array.size)
        check(is_inside, "an access outside its memory", self.program)

    def load(self, instr: Instr) -> Array:
        """Load; threads that are masked out get 0."""
        pointer, index, *mask = instr.args
        array, space = self.view(pointer)
        places, held = (self.places(index, instr.lanes), self.active(mask, instr.lanes))
        self.check_places(places, held, array)
        if space == "shared":
            self.check_race(pointer, places, held)
        value = np.zeros(places.shape, array.dtype)
        value[held] = array[places[held]]
        return from_bits(value, bfloat16) if instr.dtype is bfloat16 else value

    def store(self, instr: Instr) -> None:
        """Store for the threads that take part, in order of their numbers."""
        pointer, index, value, *mask = instr.args
        array, space = self.view(pointer)
        places, held = (self.places(index, instr.lanes), self.active(mask, instr.lanes))
        self.check_places(places, held, array)
        stored = np.broadcast_to(self.values[value], places.shape)
        if instr.dtype is bfloat16:
            stored = to_bits(stored, bfloat16)
        array[places[held]] = stored[held]
        if space == "shared":
            self.traffic.overwrite(self.bytes_of(pointer, places)[0][held])
            for byte in self.bytes_of(pointer, places):
                threads = np.broadcast_to(np.arange(self.threads)[:, None], places.shape)
                self.writers[byte[held]] = threads[held]

    def bytes_of(self, pointer: int, places: Array) -> list[Array]:
        """First byte of every element, in shared memory."""
        instr = self.program.instructions[pointer]
        check(instr.dtype is not None, "a pointer has a dtype")
        return [instr.arg + places * instr.dtype.itemsize]  # type: ignore[union-attr]

    def check_race(self, pointer: int, places: Array, held: Array) -> None:
        """Refuse a read of what another thread wrote since the last barrier."""
        threads = np.broadcast_to(np.arange(self.threads)[:, None], places.shape)
        for byte in self.bytes_of(pointer, places):
            writer = self.writers[byte[held]]
            own = threads[held]
            is_safe = (writer == -1) | (writer == own) | (writer == -2 - own // WARP)
            check(is_safe.all(), "a shared element is read without a barrier", self.program)

    def barrier(self, instr: Instr) -> None:
        """Let every thread see what was written."""
        wanted = instr.arg or self.threads
        check(self.mask.sum() in (0, wanted), "a barrier in a branch", self.program)
        self.writers[...] = -1

    def warp_barrier(self, instr: Instr) -> None:
        """Let the threads of each warp see what the warp wrote: a writer -2 - w is the warp w."""
        here = np.pad(self.mask[:, 0], (0, -self.threads % WARP), mode="edge").reshape(-1, WARP)
        check((here.all(1) | ~here.any(1)).all(), "a warp barrier in a branch", self.program)
        is_seen = (self.writers >= 0) & here.all(1)[self.writers // WARP]
        self.writers[is_seen] = -2 - self.writers[is_seen] // WARP

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

    def get(self, instr: Instr) -> Array:
        """Read registers."""
        array, index = (self.values[a] for a in instr.args)
        is_done = instr.args[0] not in self.queues.working()
        check(is_done, "a product under way is read", self.program)
        return array[np.arange(self.threads), np.where(self.mask, index, 0)[:, 0]]

    def set(self, instr: Instr) -> None:
        """Write registers."""
        array, index, value = (self.values[a] for a in instr.args)
        who = np.flatnonzero(self.mask[:, 0])
        place = np.broadcast_to(index, (self.threads, 1))[who, 0]
        array[who, place] = np.broadcast_to(value, (self.threads, array.shape[2]))[who]

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
        x, usual = (self.values[a] for a in instr.args)
        function = ELEMENTWISE[instr.arg].numpy
        check(function is not None, f"{instr.arg} has no meaning")
        return np.where(np.abs(x) < RARE_FROM, usual, function(x))  # type: ignore[misc]

    def lanes(self, instr: Instr) -> Array:
        """Splat, pack or extract lanes."""
        args = [self.values[a] for a in instr.args]
        if instr.op == "splat":
            return np.repeat(args[0], instr.lanes, axis=1)
        if instr.op == "extract":
            return args[0][:, instr.arg : instr.arg + 1]
        rows = [np.broadcast_to(a, (self.threads, 1)) for a in args]
        return np.concatenate(rows, axis=1)

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
    **dict.fromkeys(("const", "scalar", "task", "thread"), Run.leaf),
    **dict.fromkeys(("param", "workspace", "scratch", "shared"), Run.pointer),
    **dict.fromkeys(("cast", "bitcast"), Run.convert),
    **dict.fromkeys(("splat", "pack", "extract"), Run.lanes),
    "load": Run.load, "store": Run.store, "array": Run.array, "get": Run.get, "set": Run.set,
    "rare": Run.rare, "choose": Run.choose,
    "atomic_add": Run.atomic_add, "barrier": Run.barrier, "shuffle_xor": Run.shuffle,
    "fence": lambda run, instr: None, "warp_barrier": Run.warp_barrier, "match_any": Run.match_any,
    **ASYNC,
}  # fmt: skip
