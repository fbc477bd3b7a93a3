"""CompiledPlan: a plan with loaded kernels, run as often as wanted on other buffers.

A run allocates the outputs and one arena for the temporaries, fills the table of addresses (one
entry a plan slot) and hands every stretch of launches on one device to it as one tape. Host calls
run between tapes. The body of a loop is a tape of its own, which the device runs for all steps,
moving addresses in between; with host calls in it, step by step.
"""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import Any, Protocol, Union

from picograd.buffer import Buffer, RuntimeScalar, Storage
from picograd.config import config
from picograd.dtype import DType, accumulate_dtype
from picograd.engine.backends import get_device
from picograd.engine.compile import executables
from picograd.engine.debug import (
    TOTALS,
    log_copy,
    log_host_call,
    log_launches,
    log_plan_run,
    start_copy,
)
from picograd.engine.native_calls import NATIVE_AFTER, Native
from picograd.engine.plan_key import GraphKey, leaf_buffer
from picograd.engine.scratch import place_workspaces, rows_of_one, tape_launches
from picograd.engine.watch import PROFILES, RECORDERS
from picograd.errors import TraceError, internal
from picograd.graph.host_call import run
from picograd.graph.node import Node
from picograd.graph.room import ABSURD
from picograd.graph.row import INPUTS
from picograd.helpers import product
from picograd.late_methods import dataclass
from picograd.number import Given, GivenInt
from picograd.runtime.device import Device, Executable, Rule, Scalars, Tape, at_step
from picograd.runtime.memory import size_class
from picograd.schedule.plan import (
    Binding,
    CopyStep,
    HostStep,
    KernelLaunch,
    LoopStep,
    Plan,
    RowCopy,
    Step,
)

ADDRESS = attrgetter("address")
# Bytes that a plan takes for each row of its key, slot, and launch with its Loop IR (measured).
NODE_BYTES, SLOT_BYTES, LAUNCH_BYTES = 350, 300, 5000


@dataclass(frozen=True, slots=True)
class TapeRun:
    """A stretch of launches on one device."""

    device: Device
    tape: Tape


@dataclass(frozen=True, slots=True)
class LoopRun:
    """A loop: the actions of its body, run for every step on other addresses."""

    device: Device
    step: LoopStep
    actions: tuple["Action", ...]
    offsets: tuple[int, ...]  # of the body's slots, among its temporaries
    moves: tuple[tuple[Binding, int, tuple[int, int, int, int]], ...]  # bytes of a row, a rule

    def run(self, outer: Sequence[int], scalars: Scalars, is_timed: bool) -> None:
        """Run all steps on the addresses of the outer plan's slots, with its scalars."""
        step = self.step
        missing = step.missing(scalars)
        length = step.length - missing
        for copy in step.copies_before(missing):
            self.copy(copy, outer)
        space = outer[step.space] if step.space >= 0 else 0
        addresses = [space + offset for offset in self.offsets]
        rules: list[Rule] = []
        for binding, size, (number, move, mask, shift) in self.moves:
            base = outer[binding.slot] + binding.first_of(missing) * size
            rules.append((number, base, move, mask, shift))
        first = self.actions[0] if len(self.actions) == 1 else None
        if isinstance(first, TapeRun) and is_timed:
            time_loop(first, addresses, rules, length)
        elif isinstance(first, TapeRun):
            self.device.run_loop(first.tape, addresses, rules, length)
        else:
            for t in range(length if self.actions else 0):
                run_actions(self.actions, at_step(addresses, rules, t), (), is_timed)
        for copy in step.copies_after(missing):
            self.copy(copy, outer)

    def copy(self, copy: RowCopy, outer: Sequence[int]) -> None:
        """Copy a row of one slot to another, after all work given before."""
        dtype = self.row_dtype(copy)
        size = copy.size * dtype.itemsize
        pair = (
            Buffer(self.device.name, dtype, copy.size, outer[slot] + row * size)
            for slot, row in ((copy.target, copy.target_row), (copy.source, copy.source_row))
        )
        copy_buffer(*pair)

    def row_dtype(self, copy: RowCopy) -> DType:
        """Find the dtype of a carry by the slot its rows are in."""
        for number, binding in self.step.bindings:
            if binding.slot in (copy.source, copy.target):
                return self.step.body.slots[number].dtype
        return internal("a loop copies what its body does not touch", copy)


@dataclass(frozen=True, slots=True)
class HostRun:
    """A call of a host function, between stretches of launches."""

    device: Device
    step: HostStep
    dtypes: tuple[DType, ...]  # of what it reads, and last of what it writes

    def run(self, addresses: Sequence[int], is_timed: bool) -> None:
        """Call the function on the slots at these addresses."""
        step, start = self.step, time.perf_counter()
        shapes = (*step.shapes, step.shape)
        *inputs, output = (
            (Buffer(self.device.name, dtype, product(shape), addresses[slot]), shape)
            for slot, shape, dtype in zip(step.slots, shapes, self.dtypes)
        )
        if output[0].count:
            self.device.call_host(partial(run, step.call), inputs, output)
        if is_timed:
            self.tell(start, time.perf_counter() - start)

    def tell(self, start: float, seconds: float) -> None:
        """Tell who watches how long the call took."""
        shapes = {"shapes": self.step.shapes}
        for profile in PROFILES:
            profile.add_span("host", f"host {self.step.call}", start, seconds, shapes)
        log_host_call(self.step.call, self.step.shapes, seconds)


def loop_run(device: Device, step: LoopStep, actions: tuple["Action", ...]) -> LoopRun:
    """Prepare a loop: what is the same in every run is found once."""
    slots = step.body.slots
    offsets = tuple([max(slot.offset, 0) for slot in slots])
    moves = []
    for number, binding in step.bindings:
        size = slots[number].nbytes
        rule = number, binding.step * size, binding.mask, binding.shift
        moves.append((binding, size, rule))
    return LoopRun(device, step, actions, offsets, tuple(moves))


Action = Union[TapeRun, CopyStep, HostRun, LoopRun]


class Runnable(Protocol):
    """What the cache of plans keeps, and traces run: a plan, or one bound to sizes."""

    nbytes: int
    key: Any
    native: Native

    @property
    def executables(self) -> tuple[Executable, ...]:
        """The kernels it runs, each once."""

    @property
    def is_worn(self) -> bool:
        """Whether another plan would do better from now on."""

    @property
    def may_follow(self) -> bool:
        """Whether a way may end in it, and begin behind it."""

    def run(self, buffers: Sequence[Buffer], values: Scalars, origin: Any = "") -> list[Buffer]:
        """Run on the buffers and scalars of a graph key; returns one buffer a root."""


@dataclass(eq=False)
class CompiledPlan:
    """See the module docstring."""

    plan: Plan
    actions: tuple[Action, ...]
    devices: dict[str, Device]
    input_numbers: tuple[int, ...]  # which buffer of the graph key each input slot is
    scalar_numbers: tuple[int, ...]
    executables: tuple[Executable, ...] = ()  # each once
    nbytes: int = 0  # of memory it takes beside the code, about
    key: Any = None  # in the cache of plans
    launches: int = 0  # of kernels, those of a loop's body once
    stretch: TapeRun | None = None  # all that it does, if that is one stretch of launches
    family: Any = None  # of graphs that differ in sizes, which is told of each run
    fills_one: bool = False  # it fills one new buffer and needs nothing else than memory
    native: Native = field(default_factory=partial(Native, NATIVE_AFTER))

    def __post_init__(self) -> None:
        """Note what a run needs of a plan that is one stretch of launches."""
        plan, first = self.plan, self.actions[0] if len(self.actions) == 1 else None
        if isinstance(first, TapeRun) and set(self.devices) == {first.device.name}:
            self.stretch = first
        made = plan.slots[len(self.input_numbers) :]
        self.unkept: list[Any] = [None] * len(made)
        # of results what a buffer is made of, of temporaries where they are in the arena
        self.places: list[Any] = [
            (slot.dtype, slot.size) if slot.kind == "output" else max(slot.offset, 0)
            for slot in made
        ]
        outputs = [slot for slot in made if slot.kind == "output"]
        # of the blocks of results
        self.sizes = {size_class(slot.size * slot.dtype.itemsize) for slot in outputs}
        self.fills_one = (
            self.stretch is not None
            and not plan.arenas
            and not self.scalar_numbers
            and len(made) == len(outputs) == 1
        )

    @property
    def is_worn(self) -> bool:
        """Whether another plan would do better from now on: never."""
        return False

    @property
    def may_follow(self) -> bool:
        """Whether a way may end in it, and begin behind it: always."""
        return True

    def run(
        self, buffers: Sequence[Buffer], values: Scalars, origin: Any = "",
        kept: list[Any] | None = None,
    ) -> list[Buffer]:  # fmt: skip
        """Run on the buffers and scalars of a graph key; returns one buffer a root.

        What it makes may lie in buffers that are `kept`, at the places of `new_results`.
        """
        inputs = [buffers[number] for number in self.input_numbers]
        numbers = self.scalar_numbers
        scalars = [values[number] for number in numbers] if numbers else ()
        return self.launch(inputs, scalars, origin, kept)

    def new_results(self) -> list[int]:
        """Say for each root where in `kept` a buffer for it would stand; -1 where it is none."""
        first, slots = len(self.input_numbers), self.plan.slots
        counts = Counter(self.plan.outputs)
        return [
            slot - first if slots[slot].kind == "output" and counts[slot] == 1 else -1
            for slot in self.plan.outputs
        ]

    def launch(
        self, inputs: list[Buffer], scalars: Scalars, origin: Any = "",
        kept: list[Any] | None = None,
    ) -> list[Buffer]:  # fmt: skip
        """Run on the buffers and scalars that it takes, in its own order."""
        native = self.native.launch
        results: list[Buffer] | None = native and native(inputs, scalars, origin, kept)
        if results is not None:
            return results
        if self.family is not None:
            self.family.last = -1
        if self.stretch is None or config.debug or PROFILES:
            return self.run_actions(inputs, scalars, origin, kept)
        device, plan = self.stretch.device, self.plan
        found: list[Any] = inputs
        addresses = [*map(ADDRESS, inputs)]
        base = 0
        device.sort(self.sizes)
        if plan.arenas:  # none when every temporary is empty
            (size,) = plan.arenas.values()
            arena = device.allocate(size)
            base = arena.address
        made, words = [], []
        # The last first: bools of checks are early, and live on, and the others keep their blocks.
        for place, buffer in zip(reversed(self.places), reversed(kept or self.unkept)):
            if buffer is not None:
                words.append(buffer.address)
            elif isinstance(place, int):
                words.append(base + place)
            else:
                dtype, count = place
                buffer = device.new_buffer(dtype, count, origin)
                words.append(buffer.address)
            made.append(buffer)
        found += reversed(made)
        addresses += reversed(words)
        device.run_tape(self.stretch.tape, addresses, scalars)
        return [found[number] for number in plan.outputs]

    def fill(self, held: list[Buffer], origin: Any = "") -> Buffer:
        """Run a plan that fills one new buffer from those of a list: what `launch` does, shorter.

        The caller has seen that the plan `fills_one`, and that nobody watches. Takes the list.
        """
        if self.family is not None:
            self.family.last = -1
        stretch: Any = self.stretch
        device = stretch.device
        dtype, count = self.places[0]
        buffer: Buffer = device.new_buffer(dtype, count, origin)
        held.append(buffer)
        device.run_tape(stretch.tape, [each.address for each in held])
        return buffer

    def run_actions(
        self, inputs: Sequence[Buffer], scalars: Scalars, origin: Any,
        kept: list[Any] | None = None,
    ) -> list[Buffer]:  # fmt: skip
        """Run what is no single stretch of launches, or is watched."""
        watch = start_watch() if config.debug or PROFILES else None
        plan = self.plan
        arenas = {name: self.devices[name].allocate(size) for name, size in plan.arenas.items()}
        found: list[Any] = list(inputs)
        addresses = [buffer.address for buffer in inputs]
        for slot, own in zip(plan.slots[len(inputs) :], kept or self.unkept):
            if own is not None:
                found.append(own)
                addresses.append(own.address)
            elif slot.kind == "output":
                buffer = self.devices[slot.device].new_buffer(slot.dtype, slot.size, origin)
                found.append(buffer)
                addresses.append(buffer.address)
            else:
                found.append(None)
                arena = arenas.get(slot.device)  # none when every temporary is empty
                addresses.append(arena.address + slot.offset if arena is not None else 0)
        for action in self.actions:
            if isinstance(action, CopyStep):
                self.copy(action, found, addresses)
            else:
                run_actions((action,), addresses, scalars, watch is not None)
        if watch is not None:
            end_watch(watch, self.launches)
            for recorder in RECORDERS:
                recorder.add_run(plan, inputs, origin)
        return [found[number] for number in plan.outputs]

    def copy(self, step: CopyStep, buffers: list[Any], addresses: list[int]) -> None:
        """Copy one slot to another, across devices through the host."""
        pair = [
            self.slot_buffer(number, buffers, addresses) for number in (step.target, step.source)
        ]
        target, source = pair
        copy_buffer(target, source)

    def slot_buffer(self, number: int, buffers: list[Any], addresses: list[int]) -> Buffer:
        """Give the buffer of a slot; a temporary gets one that does not own its memory."""
        if buffers[number] is not None:
            return buffers[number]
        slot = self.plan.slots[number]
        return Buffer(slot.device, slot.dtype, slot.size, addresses[number])


def start_watch() -> tuple[int, float, float]:
    """Note the launches and their time so far, and the time of day."""
    return TOTALS.launches, TOTALS.seconds, time.perf_counter()


def end_watch(watch: tuple[int, float, float], count: int) -> None:
    """Tell DEBUG and the profiles how long a plan took."""
    launches, seconds, start = watch
    wall = time.perf_counter() - start
    if config.debug:
        log_plan_run(TOTALS.launches - launches, TOTALS.seconds - seconds, wall)
    for profile in PROFILES:
        profile.add_span("host", f"plan of {count} kernels", start, wall, {})


def run_actions(
    actions: Sequence[Action], addresses: Sequence[int], scalars: Scalars,
    is_timed: bool,
) -> None:  # fmt: skip
    """Run stretches of launches and loops on a table of addresses."""
    for action in actions:
        if isinstance(action, LoopRun):
            action.run(addresses, scalars, is_timed)
        elif isinstance(action, HostRun):
            action.run(addresses, is_timed)
        elif isinstance(action, CopyStep):
            internal("a loop's body copies a whole array", action)
        elif is_timed:
            start = time.perf_counter()
            seconds = action.device.time_tape(action.tape, addresses, scalars)
            tell(action, start, seconds, 1)
        else:
            action.device.run_tape(action.tape, addresses, scalars)


def time_loop(
    action: TapeRun, addresses: Sequence[int], rules: Sequence[Rule], length: int
) -> None:
    """Run a loop kernel by kernel, timed; what all steps of a kernel took is told as one."""
    start = time.perf_counter()
    totals = [0.0] * len(action.tape.launches)
    for t in range(length):
        found = action.device.time_tape(action.tape, at_step(addresses, rules, t))
        totals = [a + b for a, b in zip(totals, found, strict=True)]
    tell(action, start, totals, length)


def tell(action: TapeRun, start: float, seconds: Sequence[float], times: int) -> None:
    """Tell who watches how long the launches of a tape took, run so many times."""
    for profile in PROFILES:
        profile.add_launches(action.device, action.tape, start, seconds, times)
    if config.debug:
        log_launches(action.tape, seconds, action.device, times)


def copy_buffer(target: Buffer, source: Buffer) -> None:
    """Copy a whole buffer, on one device or between two."""
    giver, taker = get_device(source.device), get_device(target.device)
    start = start_copy(giver)
    if giver is taker:
        taker.copy(target, source)
    else:
        taker.copy_in(target, giver.copy_out(source))
    log_copy(start, giver.name, taker.name, source.nbytes, taker)


def compile_plan(plan: Plan, found: GraphKey) -> CompiledPlan:
    """Compile every kernel of a plan and lay its launches out as tapes.

    The plan numbers its inputs by its own walk; `found` is the walk that finds them at each run.
    """
    if any(node.op in INPUTS and node.realized is None for node in plan.inputs):
        problem = "a value of one step was used outside picograd.scan"
        raise TraceError("scan", problem, "return it from the function, in the carry or in y")
    buffer_numbers = {id(buffer): number for number, buffer in enumerate(found.buffers)}
    scalar_numbers = {id(scalar): number for number, scalar in enumerate(found.scalars)}
    input_order = tuple(buffer_numbers[id(leaf_buffer(node))] for node in plan.inputs)
    scalar_order = tuple(scalar_numbers[id(node.arg)] for node in plan.scalars)
    names = sorted({slot.device for slot in plan.slots} | set(plan.arenas))
    devices = {name: get_device(name) for name in names}
    check_room(plan, devices)
    loaded: dict[tuple[str, int], Executable] = {}  # by device: two may share a kernel
    for name in devices:  # all kernels of a device in one batch
        kernels = [each.kernel for each in all_launches(plan) if each.device == name]
        made = executables(kernels, devices[name])
        loaded |= {(name, id(kernel)): each for kernel, each in zip(kernels, made, strict=True)}
    placed = place_workspaces(plan, loaded)
    actions = compile_steps(placed, devices, loaded)
    plan = replace(plan, slots=placed.slots, arenas=placed.arenas)
    kernels_used = tuple({id(each): each for each in loaded.values()}.values())
    nbytes = NODE_BYTES * len(found.order) + SLOT_BYTES * len(plan.slots)
    count = sum(1 for _ in all_launches(plan))
    nbytes += LAUNCH_BYTES * count
    numbers = input_order, scalar_order, kernels_used, nbytes
    return CompiledPlan(without_memory(plan), actions, devices, *numbers, launches=count)


def without_memory(plan: Plan) -> Plan:
    """Replace the leaves of a plan by ones without a buffer: a kept plan keeps no memory alive."""
    empty = (
        Node("buffer", (), Storage(None), node.shape, node.dtype, node.device)
        for node in plan.inputs
    )
    return replace(plan, inputs=tuple(empty))


def all_launches(plan: Plan) -> Iterator[KernelLaunch]:
    """List the launches of a plan and of the bodies of its loops."""
    for step in plan.steps:
        if isinstance(step, KernelLaunch):
            yield step
        elif isinstance(step, LoopStep):
            yield from all_launches(step.body)


def compile_steps(
    plan: Plan,
    devices: dict[str, Device],
    loaded: Mapping[tuple[str, int], Executable],
    rows: Sequence[Sequence[int]] = (),
) -> tuple[Action, ...]:
    """Lay the launches of a plan out as tapes, between its copies and loops.

    Of the body of a loop, `rows` lists slots that may be rows of one array.
    """
    actions: list[Action] = []
    scalar_dtypes = [accumulate_dtype(node.dtype) for node in plan.scalars]

    def place(step: Step) -> str:
        return step.device if isinstance(step, KernelLaunch) else ""

    for name, group in groupby(plan.steps, place):
        launches: list[KernelLaunch] = []
        for step in group:
            if isinstance(step, KernelLaunch):
                launches.append(step)
            elif isinstance(step, CopyStep):
                actions.append(step)
            elif isinstance(step, HostStep):
                # complex numbers are pairs of real ones: steps count these
                dtypes = tuple([plan.slots[slot].dtype.real for slot in step.slots])
                actions.append(HostRun(devices[step.device], step, dtypes))
            else:
                body = compile_steps(step.body, devices, loaded, rows_of_one(plan, step))
                actions.append(loop_run(devices[step.device], step, body))
        if launches:
            made = tape_launches(plan, launches, loaded, rows)
            tape = devices[name].make_tape(made, len(plan.slots), scalar_dtypes)
            actions.append(TapeRun(devices[name], tape))
    return tuple(actions)


def check_room(plan: Plan, devices: dict[str, Device]) -> None:
    """Raise OutOfMemoryError for an absurdly large buffer before code for it is generated."""
    for slot in plan.slots:
        nbytes = slot.size * slot.dtype.itemsize
        if slot.kind != "input" and nbytes >= ABSURD:
            devices[slot.device].allocate(nbytes)


def scalar_values(scalars: Sequence[RuntimeScalar | Given | GivenInt]) -> list[int | float]:
    """Read the present values of runtime scalars."""
    return [scalar.value for scalar in scalars]
