"""Functions that Python calls without ctypes, compiled once for the classes of this process.

Whoever has functions declares them with the objects and the slots that they read (`declare`); they
are compiled together when the first is asked for, and kept on disk as kernels are. Where that
cannot be (another Python, one without a lock), or is not wanted (`PICOGRAD_NATIVE=0`), `CALLS.find`
gives None, and Python does the work; also while they are read or compiled, beside what the program
does (`CALLS.is_coming`): up to half a second, in which a step would wait.
"""

import ctypes
import importlib
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from picograd.buffer import Buffer
from picograd.code import FEW, Code
from picograd.config import config
from picograd.dtype import uint64
from picograd.engine.backends import get_device
from picograd.engine.watch import PROFILES
from picograd.errors import check
from picograd.runtime import cuda_calls, python_calls
from picograd.runtime.cuda_calls import GPU, KERNEL, MAP, TAPE
from picograd.runtime.device import Running
from picograd.runtime.log import log_action
from picograd.runtime.memory import WATCHERS, Allocation, Pool, near_sizes, size_class
from picograd.runtime.pools import has_started
from picograd.runtime.python_calls import ARENA, MADE, PLAN, places
from picograd.runtime.python_code import Translator
from picograd.runtime.python_layout import (
    FASTCALL,
    NO_ARGUMENTS,
    Table,
    callable_of,
    defined,
    is_possible,
    keep_for_ever,
    method_of,
    offsets,
    place_of,
)

NATIVE_AFTER = 16  # uses of a plan
TEXTS = [python_calls.TEXT, cuda_calls.TEXT]
CONSTANTS = python_calls.CONSTANTS | cuda_calls.CONSTANTS
WORLD: dict[str, Any] = {
    "None": None, "False": False, "True": True, "zero": 0, "minus_one": -1, "nothing": (),
    "TypeError": TypeError, "list": list, "tuple": tuple, "int": int, "str": str, "no_text": "",
    "Buffer": Buffer,
    "Allocation": Allocation, "watchers": WATCHERS, "profiles": PROFILES,
    "settings": vars(config), "debug": "debug", "switch": "native", "release": Allocation.__del__,
}  # fmt: skip
SLOTS: dict[type, tuple[str, ...]] = {
    Buffer: ("device", "dtype", "count", "address", "handle", "origin", "room"),
    Allocation: ("address", "size", "pool"),
    Pool: ("free", "in_use", "peak", "allocations"),
    Running: ("running", "is_inside", "context"),
}


class Coded:
    """This class has what machine code does for Python, once there is some.

    `follow` is `take` of a way that is followed (tensor/core/following.py), `first` that of its
    first event, `finish` what ends it where no optimizer does;
    `compute` is that of engine/small.py, and what is around it in pending.py; `wrap` makes the
    tensor of a node that waits (`wrap_own` of tensor/core/recording.py), `show` that of a view
    (`shown`), `stamp` the nodes of steps that were recorded once (tensor/core/repeated.py),
    `record` all of an operation that was (tensor/core/recipes.py); `row` gives `x[i]`,
    `number` what `item` reads, `assign` writes to memory (`write_memory`), `update` there what
    an operation gives that was recorded; `fill` lets a tensor have numbers (`Tensor._fill`).
    """

    compute: Any = None
    first: Any = None
    follow: Any = None
    finish: Any = None
    wrap: Any = None
    show: Any = None
    stamp: Any = None
    record: Any = None
    assign: Any = None
    update: Any = None
    fill: Any = None
    row: Any = None
    number: Any = None
    patience = NATIVE_AFTER  # computations by Python until there is some, whatever their plans

    def count_computation(self) -> None:
        """Count a computation by Python."""
        self.patience -= 1
        if self.patience == 0 and self.compute is None:
            self.begin()
            self.patience = NATIVE_AFTER if CALLS.is_coming else 0

    def begin(self) -> None:
        """Let machine code do this from now on."""
        self.compute = CALLS.find("picograd_small")
        self.wrap, self.show = CALLS.find("picograd_wrap"), CALLS.find("picograd_show")
        self.stamp, self.follow = CALLS.find("picograd_stamp"), CALLS.find("picograd_follow")
        self.first, self.finish = CALLS.find("picograd_first"), CALLS.find("picograd_finish")
        self.record, self.row = CALLS.find("picograd_record"), CALLS.find("picograd_row")
        self.number, self.assign = CALLS.find("picograd_number"), CALLS.find("picograd_assign")
        self.update, self.fill = CALLS.find("picograd_update"), CALLS.find("picograd_fill")


CODED = Coded()


class Native:
    """What machine code knows of a plan: the table it reads, from when it ran often to its end.

    A function that runs the plan holds the table, and so the kernels, until it is done.
    """

    __slots__ = ("address", "is_place", "is_used", "launch", "patience", "table")
    address: int  # of the table; 0 where there is none
    is_place: bool  # a way begins behind it: see engine/followed.py
    is_used: bool  # since the cache of plans looked last
    patience: int  # uses until there is one; 0 where none will be

    def __init__(self, patience: int) -> None:
        self.patience, self.is_used, self.is_place = patience, False, False
        self.end()

    def end(self) -> None:
        """Let the table go: what comes later finds no plan here."""
        self.address = 0
        self.table: Table | None = None
        self.launch: Any = None

    def count_use(self, plan: Any) -> None:
        """Count a use; at the last one, describe the plan, or give that up."""
        self.patience -= 1
        if self.patience > 0 or plan.stretch is None:
            return
        table = plan_table(plan) if CALLS.find("picograd_launch") else None
        launch = None if table is None else CALLS.find("picograd_launch", table)
        if launch is not None and table is not None:
            self.table, self.launch, self.address = table, launch, table.address
            if CODED.compute is None:
                CODED.begin()
        elif CALLS.is_coming or not plan.stretch.device.is_settled(plan.stretch.tape):
            self.patience = 1  # its kernels are compiled anew soon, or are a graph


SLOTS[Native] = "address", "is_place", "is_used", "table"
WORLD["Native"] = Native
TABLES: dict[str, int] = places("plan", PLAN) | places("made", MADE) | places("arena", ARENA)
TABLES |= places("gpu", GPU) | places("tape", TAPE) | places("kernel", KERNEL)
TABLES |= places("map", MAP)
FUNCTIONS = ["picograd_launch", "picograd_release", "picograd_begin", "picograd_kernels"]
INNER = FUNCTIONS[1:]  # what Python does not call by itself


def declare(
    text: str,
    functions: Sequence[str],
    world: Mapping[str, Any],
    slots: Mapping[type, tuple[str, ...]],
    tables: Mapping[str, int],
    constants: Mapping[str, int] | None = None,
) -> None:
    """Add functions, with the objects, slots and tables that they read; before any is compiled.

    All texts share their names: one that another has for something else is an internal error.
    """
    for known, added in (WORLD, world), (TABLES, tables), (CONSTANTS, constants or {}):
        add_names(known, added)
    TEXTS.append(text)
    FUNCTIONS.extend(functions)
    for kind, names in slots.items():
        SLOTS[kind] = *SLOTS.get(kind, ()), *names


def add_names(known: dict[str, Any], added: Mapping[str, Any]) -> None:
    """Add what names stand for; the same number, text or object may be added again."""
    for name, value in added.items():
        before = known.setdefault(name, value)
        is_plain = type(value) in (int, str) and type(value) is type(before)
        is_same = before == value if is_plain else before is value
        check(is_same, f"machine code knows {name} as something else", (before, value))


def sample_of(kind: type) -> Any:
    """Make an object to look at, whose end does nothing."""
    if kind is Allocation:
        return Allocation(0, 0, Pool("sample", lambda size: None, lambda address: None))
    return object.__new__(kind)


BEGIN = """
@public
def picograd_begin(place, object):
    "puts an object into the world"
    table = start()
    table[place] = object
"""


def layout() -> dict[str, int]:
    """Find where slots, words of tables and objects of the world are here."""
    found = dict(TABLES) | places("world", tuple(WORLD))
    for kind, names in SLOTS.items():
        found |= offsets(sample_of(kind), *names)
    found["object.type"] = place_of(sample_of(Buffer), Buffer)
    return found


def source(found: Mapping[str, int]) -> str:
    """Write the functions for a layout of objects."""
    code = Translator(found, CONSTANTS)
    for text in (*TEXTS, BEGIN):
        code.translate(text)
    return code.text(len(WORLD))


def compiled() -> bytes:
    """Read from disk what an earlier process compiled, or compile it."""
    device: Any = get_device("cpu")
    found = layout()
    text = "\n".join([*TEXTS, BEGIN, repr(sorted({**found, **CONSTANTS}.items()))])
    named = Code("calls", "llvm", "picograd_launch", text, 1)  # what the code is made of

    def make() -> bytes:
        code = Code("calls", "llvm", "picograd_launch", source(found), 1)
        return bytes(device.machine.compile(code, FEW))

    binary = bytes(device.remember(named, make))
    importlib.import_module("picograd.runtime.llvm")  # which links it
    return binary


class Compilation:
    """This class makes something in a thread of its own; in this one where none may start."""

    def __init__(self, make: Callable[[], bytes]) -> None:
        self.make, self.binary = make, b""
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self.run, name="picograd-calls")
        if not has_started(self.thread):
            self.run()

    def run(self) -> None:
        """Make it; an error is raised where it is asked for."""
        try:
            self.binary = self.make()
        except BaseException as error:
            self.error = error

    def result(self) -> bytes:
        """Give what was made, once the thread is done."""
        if self.error is not None:
            raise self.error
        return self.binary


class NativeCalls:
    """The functions of this process, by name; see the module docstring."""

    def __init__(self) -> None:
        self.definitions: dict[str, Any] | None = None
        self.compilation: Compilation | None = None  # of them, until they are found
        self.kernels = 0  # the address of `picograd_kernels`

    @property
    def is_coming(self) -> bool:
        """Whether functions are compiled now, that will be found later."""
        return self.compilation is not None

    def find(self, name: str, table: Table | None = None, *own: Any) -> Any:
        """Make a function that reads a table, and its `own` objects; None if it cannot be."""
        if not config.native:
            return None
        if self.definitions is None and not self.begin():
            return None
        definition = (self.definitions or {}).get(name)
        if definition is None:
            return None
        return callable_of(definition, (0 if table is None else table.address, table, *own))

    def begin(self) -> bool:
        """Load the functions; False while they are compiled, which begins at the first call."""
        if self.compilation is None and is_possible():
            self.compilation = Compilation(compiled)
        if self.compilation is not None and self.compilation.thread.is_alive():
            return False
        done, self.compilation, self.definitions = self.compilation, None, {}  # where it fails
        if done is not None:
            self.definitions = self.loaded(done.result())
        return True

    def wait(self) -> None:
        """Wait until functions that are compiled can be found."""
        if self.compilation is not None and self.compilation.thread.is_alive():
            self.compilation.thread.join()

    def loaded(self, binary: bytes) -> dict[str, Any]:
        """Load all functions, and let the end of memory be one of them."""
        device: Any = get_device("cpu")
        try:
            library = device.machine.load(binary, tuple(FUNCTIONS))
        except RuntimeError as error:  # the interpreter's functions cannot be linked to
            log_action("compile", f"no functions that Python calls: {error}")
            return {}
        begin = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_uint64)(
            library["picograd_begin"]
        )
        for number, value in enumerate(WORLD.values()):
            keep_for_ever(value)
            begin(number, id(value))
        keep_for_ever(library)
        log_action("compile", "functions that Python calls")
        end = defined("__del__", library["picograd_release"], NO_ARGUMENTS)
        Allocation.__del__ = method_of(end, Allocation)  # type: ignore[method-assign]
        self.kernels = library["picograd_kernels"]
        named = (name for name in FUNCTIONS if name not in INNER)
        return {name: defined(name, library[name], FASTCALL) for name in named}


CALLS = NativeCalls()
if hasattr(os, "register_at_fork"):  # a child has no such thread, and locks as they were
    os.register_at_fork(before=CALLS.wait)


def plan_table(plan: Any) -> Table | None:
    """Write the table of a short plan, as `PLAN` and `MADE` list it; None for others."""
    if plan.stretch is None or len(plan.plan.slots) > python_calls.SLOTS:
        return None
    device, tape = plan.stretch.device, plan.stretch.tape
    dtypes, table = tape.scalar_dtypes, Table()
    if len(dtypes) > 63 or uint64 in dtypes:  # its numbers may be larger than a signed word
        return None
    entry = device.entry(tape) if device.is_settled(tape) else None
    if entry is None:
        return None
    pool = device.pool
    # a GPU's tape is a graph, whose nodes have addresses
    sizes_sorted = [] if entry.function else [pool.free[size] for size in sorted(plan.sizes)]
    made = plan.plan.slots[len(plan.input_numbers) :]
    sizes = [each for size in plan.plan.arenas.values() for each in near_sizes(size_class(size))]
    head = {
        "enter": entry.function or CALLS.kernels, "runner": table.name(entry.runner),
        "call": entry.call, "addresses": entry.addresses, "scalars": entry.scalars,
        "singles": entry.singles,
        "inputs": len(plan.input_numbers), "made": len(made), "slots": len(plan.plan.slots),
        "outputs": len(plan.plan.outputs), "places": table.part(plan.plan.outputs),
        "numbers": len(dtypes), "floats": sum(d.is_float << n for n, d in enumerate(dtypes)),
        "pool": table.name(pool), "device": table.name(device.name),
        "arena": table.part([x for size in sizes for x in (table.name(pool.free[size]), size)]),
        "arenas": len(sizes),
        "family": 0 if plan.family is None else table.name(plan.family),
        "sorted": table.part([*map(table.name, sizes_sorted)]), "sorts": len(sizes_sorted),
    }  # fmt: skip
    rows = [word for slot in made for word in made_words(slot, pool, table)]
    table.name(tape)
    return table.fill([*[head[name] for name in PLAN], *rows])


def made_words(slot: Any, pool: Pool, table: Table) -> list[int]:
    """Write what is known of a result, as `MADE` lists it; a temporary has no blocks."""
    if slot.kind != "output":
        return [0, max(slot.offset, 0), 0, 0, 0, 0]
    size, count = size_class(slot.size * slot.dtype.itemsize), slot.size
    named = [table.name(each) for each in (pool.free[size], slot.dtype, count, size)]
    return [named[0], 0, *named[1:], size]
