"""CompiledPlan: a plan with loaded kernels, run as often as wanted on other buffers.

A run allocates the outputs and one arena for the temporaries, fills the table of addresses (one
entry a plan slot) and hands every stretch of launches on one device to it as one tape.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Union

from picograd.buffer import Buffer, RuntimeScalar
from picograd.config import config
from picograd.engine.backends import get_device
from picograd.engine.compile import executables
from picograd.engine.debug import TOTALS, log_copy, log_launches, log_plan_run, start_copy
from picograd.engine.plan_key import GraphKey, leaf_buffer
from picograd.engine.profile import PROFILES
from picograd.runtime.device import Device, Tape, TapeLaunch
from picograd.schedule.plan import CopyStep, KernelLaunch, Plan

ABSURD = 1 << 40  # bytes; index arithmetic and launch limits are made for less


@dataclass(frozen=True, slots=True)
class TapeRun:
    """A stretch of launches on one device."""

    device: Device
    tape: Tape


@dataclass(slots=True)
class CompiledPlan:
    """See the module docstring."""

    plan: Plan
    actions: tuple[Union[TapeRun, CopyStep], ...]
    devices: dict[str, Device]
    input_numbers: tuple[int, ...]  # which buffer of the graph key each input slot is
    scalar_numbers: tuple[int, ...]

    def run(
        self, buffers: Sequence[Buffer], values: Sequence[int | float], origin: str = ""
    ) -> list[Buffer]:
        """Run on the buffers and scalars of a graph key; returns one buffer a root."""
        watch = start_watch() if config.debug or PROFILES else None
        plan = self.plan
        inputs = [buffers[number] for number in self.input_numbers]
        scalars = [values[number] for number in self.scalar_numbers]
        arenas = {name: self.devices[name].allocate(size) for name, size in plan.arenas.items()}
        found: list[Any] = list(inputs)
        addresses = [buffer.address for buffer in inputs]
        for slot in plan.slots[len(inputs) :]:
            if slot.kind == "output":
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
            elif watch is None:
                action.device.run_tape(action.tape, addresses, scalars)
            else:
                time_tape(action, addresses, scalars)
        if watch is not None:
            end_watch(watch, plan)
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
            buffer: Buffer = buffers[number]
            return buffer
        slot = self.plan.slots[number]
        return Buffer(slot.device, slot.dtype, slot.size, addresses[number])


def start_watch() -> tuple[int, float, float]:
    """Note the launches and their time so far, and the time of day."""
    return TOTALS.launches, TOTALS.seconds, time.perf_counter()


def end_watch(watch: tuple[int, float, float], plan: Plan) -> None:
    """Tell DEBUG and the profiles how long a plan took."""
    launches, seconds, start = watch
    wall = time.perf_counter() - start
    if config.debug:
        log_plan_run(TOTALS.launches - launches, TOTALS.seconds - seconds, wall)
    for profile in PROFILES:
        profile.add_span("host", f"plan of {len(plan.kernels)} kernels", start, wall, {})


def time_tape(
    action: TapeRun, addresses: Sequence[int], scalars: Sequence[int | float]
) -> None:
    """Run one stretch kernel by kernel, timed by the device's clock, and tell who watches."""
    device, tape = action.device, action.tape
    start = time.perf_counter()
    seconds = device.time_tape(tape, addresses, scalars)
    for profile in PROFILES:
        profile.add_launches(device, tape, start, seconds)
    if config.debug:
        log_launches(tape, seconds, device)


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
    buffer_numbers = {id(buffer): number for number, buffer in enumerate(found.buffers)}
    scalar_numbers = {id(scalar): number for number, scalar in enumerate(found.scalars)}
    input_order = tuple(buffer_numbers[id(leaf_buffer(node))] for node in plan.inputs)
    scalar_order = tuple(scalar_numbers[id(node.arg)] for node in plan.scalars)
    names = {slot.device for slot in plan.slots} | set(plan.arenas)
    devices = {name: get_device(name) for name in names}
    check_room(plan, devices)
    actions: list[Union[TapeRun, CopyStep]] = []
    scalar_dtypes = [node.dtype for node in plan.scalars]

    def place(step: Union[KernelLaunch, CopyStep]) -> str:
        return step.device if isinstance(step, KernelLaunch) else ""

    for name, group in groupby(plan.steps, place):
        steps = list(group)
        launches = [step for step in steps if isinstance(step, KernelLaunch)]
        if not launches:
            actions += [step for step in steps if isinstance(step, CopyStep)]
            continue
        device = devices[name]
        loaded = executables([launch.kernel for launch in launches], device)
        records = [
            TapeLaunch(executable, launch.slots, launch.scalars)
            for executable, launch in zip(loaded, launches, strict=True)
        ]
        tape = device.make_tape(records, len(plan.slots), scalar_dtypes)
        actions.append(TapeRun(device, tape))
    return CompiledPlan(plan, tuple(actions), devices, input_order, scalar_order)


def check_room(plan: Plan, devices: dict[str, Device]) -> None:
    """Raise OutOfMemoryError for an absurdly large buffer before code for it is generated."""
    for slot in plan.slots:
        nbytes = slot.size * slot.dtype.itemsize
        if slot.kind != "input" and nbytes >= ABSURD:
            devices[slot.device].allocate(nbytes)


def scalar_values(scalars: Sequence[RuntimeScalar]) -> list[int | float]:
    """Read the present values of runtime scalars."""
    return [scalar.value for scalar in scalars]
