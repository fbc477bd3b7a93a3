"""The null device: everything but the running. It plans, compiles on request and counts.

For tests of what would run on a machine that is not there, and for measuring host time alone.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from picograd.buffer import Buffer
from picograd.code import Code
from picograd.errors import no_data
from picograd.helpers import product
from picograd.runtime.device import (
    Bytes,
    Device,
    Executable,
    HostFunction,
    Scalars,
    Shaped,
    Tape,
    check_size,
)
from picograd.runtime.memory import Allocation, Pool, Workspaces
from picograd.runtime.nvrtc import compile_batches, nvrtc_version
from picograd.target import Target, cuda_target

FIRST_ADDRESS = 1 << 32  # not 0, and aligned as any device's memory


class NullDevice(Device):
    """Stands for a machine with `target`; `copy_out` gives zeros, or raises without values."""

    def __init__(
        self, target: Target | None = None, is_compiling: bool = False, has_values: bool = True
    ) -> None:
        """Open; with `is_compiling`, CUDA kernels really go through NVRTC."""
        self.name = "null" if has_values else "meta"
        self.has_values = has_values
        self.target = target or cuda_target("sm_90a")
        self.is_compiling = is_compiling and self.target.language == "cuda"
        self.compiler = nvrtc_version() if self.is_compiling else "none"
        self.next_address: int = FIRST_ADDRESS
        self.pool: Pool = Pool(self.name, self.reserve, lambda address: None)
        self.workspaces: Workspaces = Workspaces(self.pool, lambda address, size: None)
        self.launches = self.copied_bytes = self.compiled = self.host_calls = 0

    def reserve(self, size: int) -> int:
        """Hand out addresses nobody may touch."""
        address, self.next_address = self.next_address, self.next_address + size
        return address

    def allocate(self, nbytes: int) -> Allocation:
        """Count an allocation."""
        return self.pool.allocate(nbytes)

    def sort(self, sizes: Iterable[int]) -> None:
        """Hand out blocks of some sizes by address from now on, as a GPU does."""
        self.pool.sort(sizes)

    def copy_in(self, buffer: Buffer, array: Bytes) -> None:
        """Count a copy."""
        check_size(buffer, array.nbytes)
        self.copied_bytes += buffer.nbytes

    def copy_out(self, buffer: Buffer) -> Bytes:
        """Count a copy; zeros, or NoDataError on the device of shapes alone."""
        if not self.has_values:
            raise no_data("numpy")
        self.copied_bytes += buffer.nbytes
        return np.zeros(buffer.nbytes, np.uint8)

    def copy(self, destination: Buffer, source: Buffer) -> None:
        """Count a copy."""
        check_size(destination, source.nbytes)
        self.copied_bytes += source.nbytes

    def copy_common(self, destination: Shaped, source: Shaped) -> None:
        """Count a copy."""
        counts = map(min, destination[1], source[1])
        self.copied_bytes += product(counts) * source[0].dtype.itemsize

    def compile(self, code: Code) -> bytes:
        """Count a compilation, and do it if asked to at opening."""
        return next(binary for _, binary in self.compile_many([code]))

    def compile_many(self, codes: Iterable[Code]) -> Iterator[tuple[int, bytes]]:
        """Count compilations, and do them if asked to at opening."""
        codes = list(codes)
        self.compiled += len(codes)
        if self.is_compiling:
            yield from compile_batches(codes, self.target.arch)
        else:
            yield from ((position, b"null") for position in range(len(codes)))

    def load(self, code: Code, binary: bytes) -> Executable:
        """Make an executable that does nothing."""
        return Executable(code, None, None, self.workspaces.own(code))

    def prepare(self, tape: Tape) -> list[tuple[Allocation, ...]]:
        """Find memory for the workspaces of the launches."""
        launches = [each for each in tape.launches if not each.spaces]
        return [self.workspaces.shared_by(each.executable.code) for each in launches]

    def run_tape(self, tape: Tape, addresses: Sequence[int], scalars: Scalars = ()) -> None:
        """Count the launches."""
        self.launches += len(tape.launches)

    def time_tape(self, tape: Tape, addresses: Sequence[int], scalars: Scalars = ()) -> list[float]:
        """Count the launches; each took no time."""
        self.run_tape(tape, addresses, scalars)
        return [0.0] * len(tape.launches)

    def call_host(self, function: HostFunction, inputs: Sequence[Shaped], output: Shaped) -> None:
        """Count a call and its copies; nothing is called."""
        self.host_calls += 1
        self.copied_bytes += sum(buffer.nbytes for buffer, _ in (*inputs, output))

    def synchronize(self) -> None:
        """Return at once."""

    def empty_cache(self) -> None:
        """Forget free blocks."""
        self.pool.empty()
