"""Programs of each family of kernels in memory whose every block ends at a page nobody may touch.

Run as a script, by `test_cpu.py`: it prints the name of each program before it runs, so that the
last name is that of the one that reached beyond its memory. `before` as an argument puts blocks
behind such a page instead. Temporaries have such pages between them, scratch memory of threads too.
"""

import ctypes
import faulthandler
import mmap
import sys
from collections.abc import Callable, Sequence

import numpy as np

import picograd
import picograd.nn.functional as F
from picograd import Tensor
from picograd.helpers import round_up
from picograd.runtime import memory, workers
from picograd.runtime.cpu import System
from picograd.schedule import memory as placing

PAGE = mmap.PAGESIZE
IS_BEFORE = "before" in sys.argv
HOLES: dict[int, list[int]] = {}  # of arenas, by their size: places of pages nobody may touch
KEPT: list[mmap.mmap] = []
WANTED: dict[workers.Runner, int] = {}


def protect(address: int) -> None:
    """Let nobody read or write a page."""
    failed = ctypes.CDLL(None).mprotect(ctypes.c_void_p(address), ctypes.c_size_t(PAGE), 0)
    assert not failed


def begin(room: int, nbytes: int) -> int:
    """Where a block of so many bytes begins in room for it."""
    return 0 if IS_BEFORE else room - nbytes


def pages(size: int) -> int:
    """Take whole pages, with one before and one behind that nobody may touch."""
    KEPT.append(mmap.mmap(-1, size + 2 * PAGE))
    address = ctypes.addressof(ctypes.c_char.from_buffer(KEPT[-1])) + PAGE
    protect(address - PAGE)
    protect(address + size)
    return address


def reserve(system: System, size: int) -> int:
    """Take a block for `Pool`."""
    if size in HOLES:
        address = pages(round_up(size, PAGE))
        for place in HOLES[size]:
            protect(address + place)
        return address
    room = round_up(size, PAGE)
    address = pages(room) + begin(room, size)
    ctypes.memset(address, 0xFF, size)  # NaN
    return address


def place_temporaries(lifetimes: Sequence[placing.Lifetime]) -> placing.Placement:
    """Give each temporary pages of its own, and one behind; no other block has such a size."""
    at, offsets, holes = 0, [], []
    for life in lifetimes:
        room = round_up(max(life.nbytes, 1), PAGE)
        offsets.append(at + begin(room, life.nbytes))
        holes.append(at + room)
        at += room + PAGE
    size = at + 2753  # odd: of no array of numbers
    while size in HOLES:
        size += PAGE
    HOLES[size] = holes
    return offsets, size


def reserve_scratch(runner: workers.Runner, nbytes: int) -> None:
    """Give every thread scratch memory of its own, of the most bytes that a kernel wanted."""
    if nbytes <= WANTED.get(runner, 0):
        return
    WANTED[runner] = nbytes
    room = round_up(nbytes, PAGE)
    runner.stride = room + PAGE
    address = pages(runner.stride * runner.count)
    for thread in range(runner.count):
        protect(address + thread * runner.stride + room)
    runner.scratch_address = address + begin(room, round_up(nbytes, 64))
    for state in {runner.serial, runner.state}:
        state.write("scratch", runner.scratch_address)
        state.write("stride", runner.stride)


def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def conv(rank: int, **options: object) -> Callable[..., Tensor]:
    return lambda x, w: getattr(F, f"conv{rank}d")(x, w, **options)


PROGRAMS: dict[str, tuple[Callable[..., Tensor], tuple[tuple[int, ...], ...]]] = {
    "conv1d with a stride": (conv(1, stride=2), ((1, 3, 28), (5, 3, 3))),
    "conv1d, dilated": (conv(1, dilation=3, padding=2), ((2, 5, 31), (7, 5, 3))),
    "conv2d": (conv(2, padding=1), ((1, 3, 9, 11), (5, 3, 3, 3))),
    "conv2d in phases": (conv(2, stride=2), ((1, 3, 31, 31), (20, 3, 3, 3))),
    "conv2d in groups": (conv(2, groups=3, stride=(2, 1)), ((1, 9, 13, 7), (6, 3, 3, 2))),
    "conv3d": (conv(3, stride=2, padding=1), ((1, 2, 5, 6, 7), (3, 2, 3, 3, 3))),
    "transposed": (
        lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1, output_padding=1),
        ((1, 5, 7, 3), (5, 3, 3, 3)),
    ),
    "pooled": (
        lambda x, w: F.max_pool2d(F.relu(F.conv2d(x, w)), 3, 2, ceil_mode=True),
        ((1, 3, 15, 17), (5, 3, 3, 3)),
    ),
    "patches": (
        lambda x: F.fold(F.unfold(x, 3, stride=2) ** 2, (9, 11), 3, stride=2),
        ((1, 3, 9, 11),),
    ),
    "product": (lambda x, w: F.gelu(x @ w), ((33, 129), (129, 17))),
    "turned product": (lambda x, w: (x.T @ w.T).softmax(0), ((65, 31), (15, 65))),
    "of one row": (lambda x, w: x @ w, ((1, 257), (257, 33))),
    "norm": (lambda x, w: F.layer_norm(x, (129,), w), ((7, 129), (129,))),
    "softmax of columns": (lambda x: x.softmax(0).cumsum(0), ((65, 7),)),
    "sorted": (lambda x: x.sort(0)[0] + x.topk(1, 1)[0], ((33, 17),)),
    "rows by index": (lambda x: x[picograd.arange(40) * 7 % 13] @ x.T, ((13, 9),)),
    "attention": (attend, ((1, 2, 33, 17),) * 3),
    "resized": (lambda x: F.interpolate(x, size=(11, 6), mode="bilinear"), ((1, 3, 7, 9),)),
    "joined": (
        lambda x, w: F.pad(picograd.cat([x, w.flip(0)]), (1, 2)).roll(1, 0),
        ((7, 5), (3, 5)),
    ),
}


def main() -> None:
    """Run all programs and their gradients, in several dtypes."""
    faulthandler.enable()
    memory.SMALLEST = 1
    memory.size_class = lambda nbytes: nbytes  # type: ignore[assignment]
    System.reserve = reserve  # type: ignore[method-assign]
    placing.place_temporaries = place_temporaries  # type: ignore[assignment]
    workers.Runner.reserve_scratch = reserve_scratch  # type: ignore[method-assign]
    random = np.random.default_rng(0)
    for name, (program, shapes) in PROGRAMS.items():
        arrays = [random.standard_normal(shape) for shape in shapes]
        for dtype in (picograd.float32, picograd.bfloat16):
            print(name, dtype, flush=True)
            leaves = [picograd.tensor(a, dtype=dtype).requires_grad_() for a in arrays]
            result = program(*leaves)
            (result * result).sum().backward()
            found = [each.float().numpy() for each in (result, *(leaf.grad for leaf in leaves))]
            assert all(np.isfinite(each).all() for each in found), name
    print("all")


if __name__ == "__main__":
    main()
