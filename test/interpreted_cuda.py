"""A GPU that is not there: kernels for CUDA are generated, and run by the interpreters.

Programs are interpreted thread by thread where they have a meaning in Program IR; those with
asynchronous copies or tensor cores are interpreted as Tile IR.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from picograd.buffer import Buffer
from picograd.code import Code
from picograd.codegen import interpret_program, interpret_tile
from picograd.codegen.program import Program
from picograd.codegen.tile import TileKernel
from picograd.conversion import from_bits, to_bits
from picograd.engine import backends, cache, compile, pending
from picograd.engine.plan_cache import PLANS
from picograd.runtime.cpu import CpuDevice
from picograd.runtime.device import Executable, Tape, as_array, empty_tape
from picograd.schedule.loop import Slot
from picograd.target import cuda_target

NAME = "cuda:0"
Known = dict[str, tuple[TileKernel, Program]]


class InterpretedCuda(CpuDevice):
    """This class is host memory, and interpreters in the place of a GPU."""

    def __init__(self, known: Known) -> None:
        super().__init__(1)
        self.name, self.target, self.compiler = NAME, cuda_target("sm_90a"), "none"
        self.known, self.seen = known, set[str]()

    def compile(self, code: Code) -> bytes:
        return b"interpreted"

    def compile_many(self, codes: Iterable[Code]) -> Iterator[tuple[int, bytes]]:
        yield from enumerate(map(self.compile, codes))

    def load(self, code: Code, binary: bytes) -> Executable:
        return Executable(code, self.known[code.source])

    def make_tape(self, launches: Any, slot_count: int = 0, scalar_dtypes: Any = ()) -> Tape:
        return empty_tape(launches, slot_count, scalar_dtypes)

    def run_tape(self, tape: Tape, addresses: Sequence[int], scalars: Any = ()) -> None:
        for launch in tape.launches:
            places = [addresses[slot] for slot in launch.slots]
            self.interpret(launch.executable, places, [scalars[n] for n in launch.scalars])

    def time_tape(self, tape: Tape, addresses: Sequence[int], scalars: Any = ()) -> list[float]:
        self.run_tape(tape, addresses, scalars)
        return [0.0] * len(tape.launches)

    run_loop = backends.Device.run_loop

    def memory(self, slot: Slot, place: int) -> Any:
        """Give the elements of a slot; what parts of a chain share has none that is touched."""
        buffer = Buffer(NAME, slot.dtype, slot.size, place)
        view = self.view(buffer) if place else np.zeros(buffer.nbytes, np.uint8)
        return as_array(view, buffer, (slot.size,))

    def interpret(self, executable: Executable, places: list[int], scalars: list[Any]) -> None:
        tiles, program = executable.function
        slots = tiles.kernel.slots
        raw = [self.memory(slot, place) for slot, place in zip(slots, places)]
        if any(instr.op == "mma" for instr in program.instructions):
            self.seen.add("tile")
            wide = [from_bits(array, slot.dtype) for array, slot in zip(raw, slots)]
            interpret_tile.interpret(tiles, wide, scalars)
            for array, values, slot in zip(raw, wide, slots):
                if slot.role != "in" and values is not array:
                    array[...] = to_bits(values, slot.dtype)
        else:
            self.seen.add("program")
            interpret_program.interpret(program, raw, scalars)


def noting(known: Known, generate: Callable[..., Code]) -> Callable[..., Code]:
    """Make a generator of kernels that keeps what it made by the text."""

    def noted(kernel: Any, target: Any, trace: Any = None, is_verified: bool = False) -> Code:
        made: dict[str, Any] = {}
        code = generate(kernel, target, made.__setitem__, is_verified)
        known[code.source] = made["tile"], made["program"]
        return code

    return noted


@contextmanager
def interpreted_cuda(monkeypatch: Any) -> Iterator[InterpretedCuda]:
    """Open "cuda:0" as a device that is interpreted.

    On a machine with a GPU nothing of the true device is computed meanwhile, and neither uses a
    plan of the other: their memory is not each other's.
    """
    known: Known = {}
    device = InterpretedCuda(known)
    pending.realize_all()
    PLANS.clear()
    with monkeypatch.context() as patch:
        patch.setattr(compile, "generate", noting(known, compile.generate))
        patch.setattr(compile, "LOADED", {})
        patch.setattr(cache, "find_kernel", lambda *_: None)
        patch.setattr(cache, "lookup", lambda *_: None)
        patch.setitem(backends.OPEN, NAME, device)
        try:
            yield device
        finally:
            PLANS.clear()
