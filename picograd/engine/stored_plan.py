"""Plans on disk, beside the kernels: a second process schedules nothing that it has seen.

A plan's entry is named by a hash of the structural key of its graph, of the devices, the settings
and our code. It holds what running needs, as JSON: slots, arenas, and the tapes, whose launches
name their kernels by canonical key; the kernels are entries of their own (cache.py, whose rules for
whom a folder may belong to hold for both), and once more in one file (`pack_entries`). What is
damaged, or lacks a kernel, is a miss.

Not stored are plans whose key holds more than plain values (the body of a loop stands for itself),
and those with other actions than tapes and copies. Who wants to see how a plan is made (DEBUG=2) or
checks every IR (VERIFY=1) gets one made.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import Any

from picograd.config import config
from picograd.dtype import BY_NAME, DType
from picograd.engine.backends import get_device
from picograd.engine.cache import DiskCache, disk_cache, entry_key, generator_version, is_count
from picograd.engine.compile import load_named
from picograd.engine.executable import Action, CompiledPlan, TapeRun, check_room
from picograd.engine.plan_key import GraphKey
from picograd.engine.watch import RECORDERS
from picograd.graph.formula import Formula
from picograd.graph.host_call import HostCall
from picograd.graph.shape import ConvSpec
from picograd.number import GivenInt
from picograd.runtime.device import Device, Executable, TapeLaunch
from picograd.schedule.plan import CopyStep, Plan, PlanSlot

LEAST = 16  # kernels that are worth another file


def pack_name(plan: str) -> str:
    """Name the entry that has the kernels of a plan, which has a name too."""
    return hashlib.sha256(f"kernels of {plan}".encode()).hexdigest()


def pack_entries(plan: str, described: Mapping[str, Any], cache: DiskCache) -> None:
    """Write the kernels of a plan as one entry, if they are many: who reads it opens one file.

    A kernel is two entries, its description and its binary, and reading one takes 0.06 ms. They
    stay entries of their own as well, as plans share kernels.

        [["<name of an entry>", <bytes>], ...]\\n<the first entry><the second one>...
    """
    if count_kernels(described) < LEAST or not cache.is_private:
        return
    entries: dict[str, bytes] = {}
    for device, kernels in described["kernels"].items():
        for canonical in kernels:
            name = entry_key(canonical, get_device(device))
            facts = cache.get(name)
            binary = json.loads(facts)["binary"] if facts else ""
            content = cache.get(binary) if binary else None
            if facts is None or content is None:
                return
            entries |= {name: facts, binary: content}
    head = json.dumps([(name, len(content)) for name, content in entries.items()])
    cache.put(pack_name(plan), b"\n".join((head.encode(), b"".join(entries.values()))))


@contextmanager
def entries_of(plan: str, described: Mapping[str, Any], cache: DiskCache) -> Iterator[bool]:
    """Have the kernels of a plan at hand, if one entry has them; ValueError if it is not ours."""
    packed = cache.get(pack_name(plan)) if count_kernels(described) >= LEAST else None
    try:
        if packed is not None:
            head, _, content = packed.partition(b"\n")
            names, sizes = zip(*json.loads(head))
            ends = list(accumulate(sizes))
            cache.near = {
                name: content[end - size : end] for name, size, end in zip(names, sizes, ends)
            }
        yield packed is not None
    finally:
        cache.near = {}


def note_pack(plan: str, executables: Sequence[Executable]) -> None:
    """Tell the kernels of a plan which entry has them as they are: see `keep_improved`."""
    for each in executables:
        each.packs.add(pack_name(plan))


def count_kernels(described: Mapping[str, Any]) -> int:
    """Count the kernels of a plan."""
    return sum(map(len, described["kernels"].values()))


PLAIN = frozenset((int, float, str, bool, type(None), GivenInt, DType, ConvSpec))
KINDS = ("input", "output", "temporary")


def find_stored(found: GraphKey) -> CompiledPlan | None:
    """Load the plan of a graph that an earlier process made; None if there is none."""
    cache = disk_cache()
    if cache is None or config.debug >= 2 or config.verify or RECORDERS:
        return None
    name = entry_name(found)
    text = cache.get(name) if name else None
    if name is None or text is None:
        return None
    try:
        described = json.loads(text)
        with entries_of(name, described, cache) as is_packed:
            compiled = read_plan(described, found)
        if compiled is not None:
            if not is_packed:  # a kernel was compiled anew since
                pack_entries(name, described, cache)
            note_pack(name, compiled.executables)
        return compiled
    except (ValueError, TypeError, LookupError, RecursionError):
        return None


def store_plan(found: GraphKey, compiled: CompiledPlan) -> None:
    """Keep a plan for the next process, if it is one that can be kept."""
    cache = disk_cache()
    if cache is None or config.verify:
        return
    described = describe(compiled)
    name = entry_name(found) if described else None
    if name and described:
        cache.put(name, json.dumps(described, separators=(",", ":")).encode())
        pack_entries(name, described, cache)
        note_pack(name, compiled.executables)


def entry_name(found: GraphKey) -> str | None:
    """Name the entry of a graph's plan; None for a graph that only this process knows."""
    rows, roots = found.key.rows
    if not all(map(is_plain, rows)):
        return None
    machines = []
    for name in sorted({node.device for node in found.order}):
        device = get_device(name)
        machines.append((name, device.target, device.compiler))
    parts = ("plan", rows, roots, machines, config.key(), generator_version())
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def is_plain(value: Any) -> bool:
    """Tell whether the text of a value says all that counts, in any process."""
    kind = type(value)
    if kind is tuple:
        return PLAIN.issuperset(map(type, value)) or all(map(is_plain, value))
    if kind is Formula:
        return bool(value.is_plain)
    return kind in PLAIN or (kind is HostCall and is_plain(value.options))


def describe(compiled: CompiledPlan) -> dict[str, Any] | None:
    """Write a plan as plain data; None if there is more to it."""
    if not all(isinstance(each, (TapeRun, CopyStep)) for each in compiled.actions):
        return None
    kernels: dict[str, dict[str, int]] = {}  # numbers by device and canonical key
    actions: list[Any] = []
    for action in compiled.actions:
        if isinstance(action, CopyStep):
            actions.append([action.source, action.target])
        elif isinstance(action, TapeRun):
            rows = []
            names = kernels.setdefault(action.device.name, {})
            for launch in action.tape.launches:
                number = names.setdefault(launch.executable.canonical, len(names))
                facts = launch.slots, launch.scalars, launch.waits, launch.spaces
                rows.append([number, *facts])
            dtypes = [dtype.name for dtype in action.tape.scalar_dtypes]
            actions.append([action.device.name, action.tape.slot_count, dtypes, rows])
    plan = compiled.plan
    return {
        "slots": [slot_row(slot) for slot in plan.slots],
        "arenas": dict(plan.arenas),
        "outputs": plan.outputs,
        "inputs": compiled.input_numbers,
        "scalars": compiled.scalar_numbers,
        "kernels": {device: list(names) for device, names in kernels.items()},
        "actions": actions,
        "bytes": compiled.nbytes,
    }


def slot_row(slot: PlanSlot) -> list[Any]:
    """Write a slot as plain data."""
    place = [slot.size, slot.device, slot.shape, slot.strides, slot.offset]
    return [KINDS.index(slot.kind), slot.dtype.name, *place]


def read_plan(described: dict[str, Any], found: GraphKey) -> CompiledPlan | None:
    """Make a plan of its description; None if a kernel is gone."""
    slots = tuple([read_slot(row) for row in described["slots"]])
    arenas = described["arenas"]
    inputs, scalars = tuple(described["inputs"]), tuple(described["scalars"])
    check_numbers(inputs, len(found.buffers))
    check_numbers(scalars, len(found.scalars))
    check_numbers(described["outputs"], len(slots))
    plan = Plan(slots, (), (), (), tuple(described["outputs"]), arenas, ())
    names = {slot.device for slot in slots}
    names.update(arenas)
    devices = {name: get_device(name) for name in sorted(names)}
    check_room(plan, devices)
    kernels = {}
    for name, wanted in described["kernels"].items():
        known = load_named(wanted, devices[name])
        if known is None:
            return None
        kernels[name] = known
    actions: list[Action] = []
    for row in described["actions"]:
        if len(row) == 2:
            check_numbers(row, len(slots))
            actions.append(CopyStep(*row))
            continue
        name = row[0]
        actions.append(read_tape(row, kernels[name], devices[name], len(slots)))
    launched = executables_of(actions)
    used = tuple({id(each): each for each in launched}.values())
    numbers = inputs, scalars, used, described["bytes"]
    return CompiledPlan(plan, tuple(actions), devices, *numbers, launches=len(launched))


def read_slot(row: Sequence[Any]) -> PlanSlot:
    """Read what `slot_row` wrote."""
    kind, dtype, size, device, shape, strides, offset = row
    place = tuple(shape), tuple(strides), offset
    return PlanSlot(KINDS[kind], BY_NAME[dtype], size, device, *place)


def read_tape(
    row: Sequence[Any], kernels: Sequence[Executable], device: Device, slots: int
) -> TapeRun:
    """Lay launches out as a tape."""
    _, count, dtypes, rows = row
    launches: list[TapeLaunch] = []
    for number, places, scalars, waits, spaces in rows:
        check_numbers(places, slots)
        check_numbers(scalars, len(dtypes))
        check_numbers(waits or (), len(launches))  # earlier ones
        wanted = tuple(places), tuple(scalars), None if waits is None else tuple(waits)
        check_spaces(spaces, kernels[number])
        launches.append(TapeLaunch(kernels[number], *wanted, spaces))
    scalar_dtypes = [BY_NAME[name] for name in dtypes]
    return TapeRun(device, device.make_tape(launches, count, scalar_dtypes))


def executables_of(actions: Sequence[Action]) -> list[Executable]:
    """List the kernels of tapes, in order of launch."""
    tapes = [action.tape for action in actions if isinstance(action, TapeRun)]
    return [launch.executable for tape in tapes for launch in tape.launches]


def check_spaces(count: Any, executable: Executable) -> None:
    """Raise ValueError unless all workspaces that need not be zero are among the slots, or none."""
    most = sum(not each.is_zeroed for each in executable.code.workspaces)
    if count not in (0, most):
        raise ValueError("a stored plan is not one of ours")


def check_numbers(numbers: Sequence[Any], limit: int) -> None:
    """Raise ValueError unless all are numbers below a limit."""
    if not all(is_count(number) and number < limit for number in numbers):
        raise ValueError("a stored plan is not one of ours")
