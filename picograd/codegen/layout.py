"""Layouts: how the elements of a tile are spread over the threads of a block.

A layout is a bijection (thread, register) <-> coordinate, written as `coordinate`; the list of
layouts is closed. On a CPU a block is one worker, so every tile there is `Blocked` on one thread.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Union

from picograd.helpers import product
from picograd.late_methods import dataclass


@dataclass(frozen=True, slots=True)
class Blocked:
    """`shape` over `threads` (per dimension), `vector` neighbours a thread a step.

    Neighbouring threads differ in the last dimension, or, if `is_first_fastest`, in the first:
    where columns are contiguous in memory and rows are reduced.

    Along a dimension: coordinate = (step * threads + thread) * vector + lane. Registers run over
    the steps of all dimensions (row-major), then over the lanes (row-major).
    A shape that `threads * vector` does not divide has a ragged last step: its users guard it.
    """

    shape: tuple[int, ...]
    threads: tuple[int, ...]
    vector: tuple[int, ...]
    is_first_fastest: bool = False

    def with_alone(self, sizes: tuple[int, ...]) -> "Blocked":
        """Add dimensions of these sizes that each thread walks alone."""
        ones = (1,) * len(sizes)
        shape, threads, vector = (
            (*self.shape, *sizes),
            (*self.threads, *ones),
            (*self.vector, *ones),
        )
        return replace(self, shape=shape, threads=threads, vector=vector)

    @property
    def steps(self) -> tuple[int, ...]:
        """Steps each thread takes along each dimension."""
        sizes = zip(self.shape, self.threads, self.vector, strict=True)
        return tuple(-(-s // (t * v)) for s, t, v in sizes)

    @property
    def thread_count(self) -> int:
        """Threads of a block."""
        return product(self.threads)

    @property
    def register_count(self) -> int:
        """Elements each thread holds."""
        return product(self.steps) * product(self.vector)

    def coordinate(self, thread: int, register: int) -> tuple[int, ...]:
        """Find the element that `register` of `thread` holds."""
        lanes = split(register % product(self.vector), self.vector)
        steps = split(register // product(self.vector), self.steps)
        if self.is_first_fastest:
            threads = split(thread, self.threads[::-1])[::-1]
        else:
            threads = split(thread, self.threads)
        parts = zip(steps, self.threads, threads, self.vector, lanes, strict=True)
        return tuple((s * count + t) * v + lane for s, count, t, v, lane in parts)


@dataclass(frozen=True, slots=True)
class MmaAccumulator:
    """The C fragment of `mma.sync.m16n8` repeated over a block tile of M x N.

    The block has `warps` = (along M, along N); a warp owns a (M/wm) x (N/wn) patch made of
    16 x 8 fragments, row-major. Lane l holds rows l/4 and l/4+8, columns 2*(l%4) and the next
    (PTX ISA, matrix fragments for mma.m16n8k16).
    """

    shape: tuple[int, int]
    warps: tuple[int, int]

    @property
    def fragments(self) -> tuple[int, int]:
        """Fragments of a warp along M and N."""
        return self.shape[0] // self.warps[0] // 16, self.shape[1] // self.warps[1] // 8

    @property
    def thread_count(self) -> int:
        """Threads of a block."""
        return 32 * product(self.warps)

    @property
    def register_count(self) -> int:
        """Elements each thread holds."""
        return product(self.fragments) * 4

    def coordinate(self, thread: int, register: int) -> tuple[int, ...]:
        """Find the element that `register` of `thread` holds."""
        warp, lane = divmod(thread, 32)
        warp_m, warp_n = divmod(warp, self.warps[1])
        fragment, element = divmod(register, 4)
        frag_m, frag_n = divmod(fragment, self.fragments[1])
        row = (warp_m * self.fragments[0] + frag_m) * 16 + lane // 4 + 8 * (element // 2)
        column = (warp_n * self.fragments[1] + frag_n) * 8 + 2 * (lane % 4) + element % 2
        return row, column


@dataclass(frozen=True, slots=True)
class WgmmaAccumulator:
    """The D fragments of `wgmma.m64nN` for `groups` warpgroups along M, each `stacked` high.

    The tile has 64 * groups * stacked rows. Warp w of a group holds rows 16w..16w+15 of each of its
    fragments; inside, as `mma.m16n8` (PTX ISA, wgmma register fragments): register 4*j + e covers
    columns 8j + 2*(l%4) + e%2, rows l/4 + 8*(e/2).
    """

    n: int
    groups: int
    stacked: int = 1

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the tile."""
        return 64 * self.groups * self.stacked, self.n

    @property
    def thread_count(self) -> int:
        """Threads that hold the tile (producers excluded)."""
        return 128 * self.groups

    @property
    def register_count(self) -> int:
        """Elements each thread holds."""
        return self.n // 2 * self.stacked

    def coordinate(self, thread: int, register: int) -> tuple[int, ...]:
        """Find the element that `register` of `thread` holds."""
        warp, lane = divmod(thread, 32)
        group, warp = divmod(warp, 4)
        fragment, register = divmod(register, self.n // 2)
        column_block, element = divmod(register, 4)
        first = 64 * (group * self.stacked + fragment)
        row = first + 16 * warp + lane // 4 + 8 * (element // 2)
        return row, 8 * column_block + 2 * (lane % 4) + element % 2


@dataclass(frozen=True, slots=True)
class RowsOf:
    """One value for each row of a `WgmmaAccumulator`: the four lanes of a row hold the same."""

    fragment: WgmmaAccumulator

    @property
    def thread_count(self) -> int:
        """Threads that hold the rows."""
        return self.fragment.thread_count

    @property
    def register_count(self) -> int:
        """Elements each thread holds."""
        return 2 * self.fragment.stacked

    def coordinate(self, thread: int, register: int) -> tuple[int, ...]:
        """Find the row that `register` of `thread` holds."""
        stack, half = divmod(register, 2)
        row, _ = self.fragment.coordinate(thread, stack * self.fragment.n // 2 + 2 * half)
        return (row,)


@dataclass(frozen=True, slots=True)
class WgmmaOperand:
    """A left operand of `wgmma` in registers: what an accumulator holds, two 16-bit floats in one.

    Sixteen columns of an accumulator lie as the operand of one product wants its depth (PTX ISA).
    """

    fragment: WgmmaAccumulator

    @property
    def thread_count(self) -> int:
        """Threads that hold the operand."""
        return self.fragment.thread_count

    @property
    def register_count(self) -> int:
        """Elements each thread holds, before they are packed."""
        return self.fragment.register_count

    def coordinate(self, thread: int, register: int) -> tuple[int, ...]:
        """Find the element that `register` of `thread` holds."""
        return self.fragment.coordinate(thread, register)


@dataclass(frozen=True, slots=True)
class Swizzled:
    """A shared tile as the bulk copy engine and `wgmma` have it: slabs of 128-byte rows.

    A slab holds 128 bytes of every row; the slabs follow one another. The 16-byte chunks of a row
    are permuted by an exclusive or with the row number: eight rows lie in different banks.
    """

    shape: tuple[int, int]
    itemsize: int

    @property
    def span(self) -> int:
        """Columns of a slab."""
        return 128 // self.itemsize

    @property
    def slabs(self) -> int:
        """Slabs beside one another."""
        return self.shape[1] // self.span

    @property
    def size(self) -> int:
        """Elements of the tile."""
        return self.shape[0] * self.shape[1]


Layout = Union[Blocked, MmaAccumulator, WgmmaAccumulator, RowsOf, WgmmaOperand]


def split(position: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major coordinates of a position."""
    result: list[int] = []
    for size in reversed(shape):
        result.append(position % size)
        position //= size
    return tuple(reversed(result))


def elements(layout: Layout) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """Yield (thread, register, coordinate) of every element a layout holds."""
    for thread in range(layout.thread_count):
        for register in range(layout.register_count):
            yield thread, register, layout.coordinate(thread, register)
