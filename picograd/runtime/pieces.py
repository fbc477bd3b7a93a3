"""Tapes on the CPU: their native records, run in pieces between which Python handles signals.

A native call that runs long comes back now and then (native.py says when). The handlers of signals
run there: that of Ctrl-C raises KeyboardInterrupt, and the rest of the tape is dropped. A handler
may compute something itself, in the middle of a launch: then that launch is finished first, as
kernels share workspaces, and what the handler runs leaves the tape as it was.
"""

import ctypes
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from picograd.code import MANY_WORK, Code
from picograd.dtype import DType
from picograd.errors import check
from picograd.runtime.device import Executable, Rule, Tape, TapeLaunch
from picograd.runtime.memory import Workspaces
from picograd.runtime.native import PIECE_WORK, RECORD_WORDS
from picograd.runtime.workers import Runner

RANGES_A_THREAD = 8  # ranges a thread takes, at least, of a launch: balance against atomics
LITTLE = 1 << 14  # operations and bytes that are done before another thread is awake
OFTEN = 200  # runs after which warm kernels get all passes: 10 us each are less than that takes
SOON = 16  # runs after which first values of more work do, which lose milliseconds
EARLY = 4  # runs after which other kernels of more work do: a plan of 200 of them loses 0.1 s a run
AT_ONCE = 16  # kernels that get them at one run: who runs a plan of hundreds waits a second at most
PLACE = ("step", "position", "left")  # in the context: where a pause is


def share(tasks: int, threads: int) -> int:
    """Count the tasks of a range, so that threads end at about the same time."""
    return tasks if threads == 1 else tasks // (threads * RANGES_A_THREAD)


class Records:
    """The native form of a tape: its records and tables, as described in native.py."""

    left: int  # runs until warm kernels are improved; below 0 where there are none
    due: int  # the runs there are by then

    def __init__(self, tape: Tape, threads: int, workspaces: Workspaces) -> None:
        count = len(tape.launches)
        every = [each.executable for each in tape.launches]
        warm = [each.code for each in every if each.code.is_warm and not each.is_improved]
        self.left = self.due = min(map(patience, warm), default=-1)
        self.words = (ctypes.c_int64 * ((count + 1) * RECORD_WORDS))()  # one spare: never empty
        self.keep: list[Any] = []
        self.is_parallel, self.workspaces = False, workspaces
        self.addresses = (ctypes.c_uint64 * max(tape.slot_count, 1))()
        self.scalars = (ctypes.c_uint64 * max(len(tape.scalar_dtypes), 1))()
        self.pack_addresses = struct.Struct(f"={tape.slot_count}Q").pack_into
        self.pack_scalars = struct.Struct("=" + "".join(map(cell, tape.scalar_dtypes))).pack_into
        for number, launch in enumerate(tape.launches):
            fields = self.record(launch, threads)
            start = number * RECORD_WORDS
            for offset, value in enumerate(fields, start):
                self.words[offset] = value
        self.call: tuple[int, int, int, int] = (
            ctypes.addressof(self.words),
            count,
            ctypes.addressof(self.addresses),
            ctypes.addressof(self.scalars),
        )
        calls = self.array([*self.call, False, *self.call, True])
        self.calls = calls, calls + 8 * (len(self.call) + 1)  # in memory, the second is timed

    def record(self, launch: TapeLaunch, threads: int) -> list[int]:
        """List the words of one record."""
        executable = launch.executable
        code = executable.code
        check(code.tasks < 1 << 32, f"kernel {code.name} has {code.tasks} tasks")
        shared = () if launch.spaces else self.workspaces.shared_by(code)
        kept = *shared, *executable.workspaces
        self.keep.append(kept)
        blocks = [block.address for block in kept]
        pointers = self.array([0] * len(launch.slots) + blocks)
        cells = self.array([0] * len(launch.scalars))
        work = max(code.work, 1)
        parts = threads if code.work > LITTLE or not code.work else 1
        chunk = max(1, min(share(code.tasks, parts), code.tasks * PIECE_WORK // work))
        self.is_parallel |= threads > 1 and code.tasks > chunk
        slots = [self.array(launch.slots), len(launch.slots)]
        numbers = [self.array(launch.scalars), len(launch.scalars)]
        fields = [executable.function, pointers, cells, code.tasks, chunk, *slots, *numbers]
        return [*fields, 0, 0, work]

    def array(self, values: Sequence[int]) -> int:
        """Store values in memory that lives as long as the tape; its address."""
        memory = (ctypes.c_int64 * max(len(values), 1))(*values)
        self.keep.append(memory)
        return ctypes.addressof(memory)


def cell(dtype: DType) -> str:
    """Find the struct format of a scalar's 8-byte cell: a double or an i64."""
    if dtype.is_float:
        return "d"
    return "Q" if dtype.kind == "uint" else "q"


def patience(code: Code) -> int:
    """Count the runs of a tape after which a warm kernel in it gets all passes."""
    if code.work <= MANY_WORK:
        return OFTEN
    return EARLY if code.inputs else SOON


def improve(tape: Tape, compile_again: Callable[[Sequence[Executable]], Sequence[Any]]) -> None:
    """Give the warm kernels of a tape that has run often all passes; hold the runner's lock.

    What they compute stays the same to the bit. Another tape may have done it for some. What is
    more than `AT_ONCE` waits for the next runs, those of least work longest.
    """
    state = tape.state
    state.left = -1
    warm = [each.executable for each in tape.launches if each.executable.code.is_warm]
    left = [each for each in dict.fromkeys(warm) if not each.is_improved]
    due = [each for each in left if patience(each.code) <= state.due]
    due.sort(key=lambda each: each.code.work, reverse=True)
    chosen = due[:AT_ONCE]
    try:
        libraries = compile_again(chosen)
    except KeyboardInterrupt:
        state.left = 0  # the next run tries again
        raise
    for executable, library in zip(chosen, libraries, strict=True):
        executable.function = library[executable.code.entry]
        executable.library = executable.library, library  # other tapes may run the first
        executable.is_improved = True
    for number, launch in enumerate(tape.launches):
        state.words[number * RECORD_WORDS] = launch.executable.function
    later = [patience(each.code) for each in left if not each.is_improved]
    if later:
        state.left = max(min(later) - state.due, 0)
        state.due += state.left


def finish_pieces(runner: Runner, tape: Tape, timed: bool) -> None:
    """Run the rest of a tape that paused."""
    while runner.resume(runner.state.address, *tape.state.call, timed):
        pass  # handlers of signals run here


def loop_pieces(
    runner: Runner, tape: Tape, addresses: Sequence[int], rules: Sequence[Rule], length: int
) -> None:
    """Run all steps of a loop; hold the runner's lock."""
    if runner.running is not None:
        with inside(runner, tape):
            return loop_pieces(runner, tape, addresses, rules, length)
    state, context = tape.state, runner.state
    words = [word for rule in rules for word in rule]
    table = (ctypes.c_int64 * max(len(words), 1))(*words)
    moves = (ctypes.addressof(table), len(rules), length)
    try:
        runner.running = tape
        state.pack_addresses(state.addresses, 0, *addresses)
        is_paused = runner.loop(context.address, *state.call, *moves, 0, 0, 0)
        while is_paused:
            place = map(context.read, PLACE)
            is_paused = runner.loop(context.address, *state.call, *moves, *place)
    except BaseException:
        drop_rest(runner, tape)
        raise
    finally:
        runner.running = None


def drop_rest(runner: Runner, tape: Tape) -> None:
    """Forget a pause: a launch that stays unfinished leaves its workspaces as the next wants them.

    No thread works on it any more: a pause waits for all.
    """
    context = runner.state
    if context.read("left"):
        for block in tape.launches[context.read("position")].executable.workspaces:
            ctypes.memset(block.address, 0, block.size)
        context.write("left", 0)


@contextmanager
def inside(runner: Runner, tape: Tape) -> Iterator[None]:
    """Let the handler of a signal run a tape, while its thread is in the middle of another run."""
    running, context = runner.running, runner.state
    records, _, *tables = running.state.call
    while context.read("left"):
        runner.resume(context.address, records, context.read("position") + 1, *tables, True)
    place = {field: context.read(field) for field in PLACE}
    held = [(table, bytes(table)) for table in (tape.state.addresses, tape.state.scalars)]
    outer, runner.is_inside = runner.is_inside, True
    runner.running = None
    try:
        yield
    finally:
        runner.is_inside = outer
        for table, content in held:
            ctypes.memmove(table, content, len(content))
        for field, value in place.items():
            context.write(field, value)
        runner.running = running
