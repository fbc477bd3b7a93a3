"""Parts that the blocks of a CUDA kernel run together before their own, each point once.

    for each number that no block has had: run the point of that number
    wait until all points are done

Whoever waits has nothing claimed, and what is claimed is being run: no block has to be on the
multiprocessors beside another.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from picograd.codegen.block_cuda import Block
from picograd.codegen.deal_cuda import bind_point
from picograd.codegen.linearize_cuda_roles import role
from picograd.codegen.program import Role
from picograd.codegen.tile import Step, TilePart
from picograd.dtype import int32
from picograd.errors import check
from picograd.schedule.index import Axis, axis_index

CELLS = 12, True  # a workspace: bytes, and that they are zero before and after
Write = Callable[[Block, Sequence[Step]], None]


def ahead(block: Block, part: TilePart, number: int, blocks: int, write: Write) -> None:
    """Write a part ahead of that of a block; its cells are the workspace of a number."""
    emitter = block.emitter
    check(not part.workspaces, "a part ahead has no workspaces", part)
    cells = emitter.add("workspace", int32, arg=number)
    shared = emitter.add("shared", int32, arg=block.reserve(4))
    claimed = emitter.add("claims", emitter.index_dtype, (cells, shared), part.blocks)
    with emitter.scope():
        place = Axis("claimed", part.blocks)
        emitter.bind(place, claimed)
        bind_point(block, part.grid, axis_index(place))
        with threads_of_two(block):
            block.declare(part.tiles)
            write(block, part.steps)
    emitter.add("end", None)
    emitter.add("claims_wait", None, (cells,), (part.blocks, blocks))


def power_below(threads: int) -> int:
    """Find how many threads of a block run a part ahead: a power of two."""
    return 1 << threads.bit_length() - 1


@contextmanager
def threads_of_two(block: Block) -> Iterator[None]:
    """Let so many threads of a block run steps."""
    outer = block.thread, block.threads
    count = power_below(block.threads)
    if count == block.threads:
        yield
        return
    with role(block, Role(0, count)):
        own = Axis("worker", count)
        block.emitter.bind(own, block.emitter.index(axis_index(block.thread)))
        block.thread, block.threads, block.team = own, count, count
        yield
    (block.thread, block.threads), block.team = outer, 0
