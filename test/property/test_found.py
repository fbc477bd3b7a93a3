"""Programs that once went wrong, shrunk: each stays as a plain test."""

import pytest
from libraries import PyTorch
from programs import Program, execute
from test_programs import check_program

torch = pytest.importorskip("torch")

FOUND = {
    # a reader recorded after a write, computed after the write ran
    "read after write": """
        t0 = lib.leaf((4,), 1, 'float32')
        t0 -= 1
        t1 = t0 * 2""",
    "read after two writes": """
        t0 = lib.leaf((4,), 1, 'float32')
        t0 -= 1
        t1 = t0 * 2
        lib.realize(t0)
        t0 *= t1
        t2 = t0 + t1""",
    # a view of a view was the leaf itself, which its own tensor had left to a write
    "a view undone after a write": """
        t0 = lib.leaf((2,), 1, 'float32')
        t1 = t0.reshape((2, 1))
        t0 -= 1
        t2 = t1.reshape((2,))
        t0 *= 2
        t3 = t2 + t0""",
    # fusion took the outer product of a stored value with itself for its diagonal
    "outer product in one domain": """
        t0 = lib.leaf((2,), 1, 'float32')
        t1 = t0.exp2().clamp(0, 8)
        t2 = t1.reshape((2, 1)) * t1""",
    "outer comparison in one domain": """
        t0 = lib.leaf((1, 2, 1), 10, 'float32')
        t1 = t0 + 1
        t2 = t1.reshape((1, 1, 2, 1, 1, 1)) == t1""",
    "outer product of row sums": """
        t0 = lib.leaf((3, 4), 2, 'float32')
        t1 = t0.sum(dim=(1,))
        t2 = t1.reshape((3, 1)) * t1""",
    # float64 to a 16-bit float was a call of a library function that is not there
    "float64 to bfloat16": """
        t0 = lib.leaf((3, 5), 2, 'float64')
        t1 = lib.cast(t0, 'bfloat16')
        t2 = lib.cast(t0, 'float16')""",
    "scatter into a number": """
        t0 = lib.leaf((), 5, 'float32')
        t1 = t0.scatter_add(0, lib.index((3,), 3, 1), lib.leaf((3,), 4, 'float32'))""",
    "gather from a number": """
        t0 = lib.leaf((), 5, 'float32')
        t1 = lib.gather(t0, 0, lib.index((3,), 4, 1))""",
    "index_add to a number": """
        t0 = lib.leaf((), 5, 'float32')
        t1 = t0.index_add(0, lib.index((1,), 1, 1), t0)
        t2 = t0.index_select(0, lib.index((1,), 1, 1))""",
    "movedim and unfold of a number": """
        t0 = lib.leaf((), 5, 'float32')
        t1 = t0.movedim(0, 0)
        t2 = t0.unfold(0, 1, 2)""",
    # sabotage that nothing else noticed: each names the line it guards
    "two tensors swapped, elements moved": """
        t0 = lib.leaf((40,), 1, 'float32')
        t1 = lib.leaf((40,), 3, 'float32')
        t2 = t0.flip((0,))
        t0 = lib.assign(t0, t1.flip((0,)))
        t1 = lib.assign(t1, t2)""",
    "old contents read by a later kernel than the write": """
        t0 = lib.leaf((6, 6), 1, 'float32')
        t1 = t0.sin().sum()
        t2 = ((t0 @ t0) * t1) @ t0
        t0 *= 2
        t3 = t0 + 1""",
    "old contents needed by what needs the new ones": """
        t0 = lib.leaf((6, 6), 1, 'float32')
        t1 = t0.flip((0,))
        t0 += 1
        t2 = t1 @ (t0 @ t0)
        del t1""",
    "old contents of a product read after the write": """
        t0 = lib.leaf((6, 6), 1, 'float32')
        t1 = lib.leaf((6, 6), 3, 'float32')
        t2 = t1 @ (t1 @ t0)
        t3 = t0 @ t2
        t0 -= 3""",
    "plans that differ in the shape of a leaf alone": """
        t0 = lib.leaf((2, 3), 2, 'float32')
        t1 = lib.leaf((4, 3), 4, 'float32')
        t2 = t0.sum(0)
        t3 = t1.sum(0)""",
    "one value read inside a guard and outside": """
        t0 = lib.leaf((6,), 2, 'float32')
        t1 = t0.reshape((2, 3)).permute((1, 0)).reshape((6,))
        t2 = lib.pad(t1[:2], (0, 4)) + t1
        t3 = t1 + lib.pad(t1[:2], (0, 4))""",
    "a guard that another one made needless": """
        t0 = lib.leaf((4,), 2, 'float32')
        t1 = lib.pad(t0, (0, 4))
        t2 = lib.pad(t1[:4], (0, 4), value=3) + t1
        t3 = t1 - lib.pad(t1[:4], (0, 4), value=3)""",
    # a window over a stored value of one element joined the kernel that stores it
    "a window read by a window": """
        t0 = lib.leaf((1, 1, 1, 1), 1, 'float32')
        t1 = lib.max_pool2d(t0, 2, stride=3, padding=1)
        t2 = t1.cos()
        t3 = lib.avg_pool2d(t2, 3, stride=2, padding=1)""",
    # readers of an output by way of `detach` did not learn that it had been stored
    "a window over a detached output": """
        t0 = lib.leaf((1,), 1, 'float32')
        t1 = t0 + 1
        t2 = lib.max_pool2d(t1.reshape((1, 1, 1, 1)), 2, stride=1, padding=1)
        t2[:, 0] = t2
        t3 = lib.avg_pool2d(t2, 2, stride=3, padding=0)""",
    # a reduction of a permuted row value took the rows in their own order
    "a mean over permuted rows": """
        t0 = lib.leaf((3, 1, 2, 5), 11, 'float32')
        t1 = t0.var(-2)
        t2 = t1.permute((2, 0, 1))
        t3 = t2.mean()""",
    "a sum over permuted inner axes": """
        t0 = lib.leaf((2, 3, 4), 11, 'float32')
        t1 = t0 - t0.mean(dim=(1, 2), keepdim=True)
        t2 = t1.permute((0, 2, 1))
        t3 = (t2 * lib.leaf((2, 4, 3), 3, 'float32')).sum(dim=(1, 2))""",
    # a run-time index into one element was not seen to be 0
    "a gather from one element of a product": """
        t0 = lib.leaf((2, 4), 1, 'float32')
        t1 = lib.conv2d(t0.reshape((1, 1, 2, 4)), lib.leaf((1, 1, 1, 1), 1, 'float32'), None)
        t2 = t1.square().index_select(0, lib.index((1,), 7, 1))
        t3 = lib.cat([t2, t2], 2)""",
    # LLVM aborted the process on shuffled vectors of bfloat
    "strided bfloat16": """
        t0 = lib.leaf((8, 10), 2, 'float32')
        t1 = lib.cast(t0, 'bfloat16')
        lib.realize(t1)
        t2 = t1[:, 1]""",
    # a plan whose temporaries are all empty has no arena
    "empty temporaries": """
        t0 = lib.leaf((5, 0), 9, 'float32')
        t1 = t0.clamp(min=0)[lib.index((1, 2), 6, 5, -5)]
        t2 = t1.index_add(0, lib.index((1,), 2, 1), t1)
        t3 = t1[0::2, 0, :]
        t2[1:] = t3""",
    # a number is one slice, and its own transpose
    "slices of a number": """
        t0 = lib.leaf((), 5, 'float32')
        t1 = t0.index_fill(0, lib.index((3,), 2, 1), 2)
        t2 = t0.index_copy(0, lib.index((1,), 2, 1), t0 * 2)
        t3 = t0.index_reduce(0, lib.index((1,), 2, 1), t0 * 2, 'mean')
        t4 = t0.mT + t0.mH + t0.H
        t5 = t0.inner(lib.leaf((3,), 3, 'float32'))
        t6 = lib.leaf((3,), 3, 'float32').inner(t0)""",
    # an index that is a tensor of no axes chooses a view, and one that is not contiguous is copied
    "views by numbers": """
        t0 = lib.leaf((3, 4), 5, 'float32')
        t1 = lib.index((), 3, 3)
        t2 = t0[t1]
        t1 += 1
        t2 *= 2
        t3 = t0[:, 1:2].ravel()
        t0 -= 1""",
}


@pytest.mark.parametrize("together", [False, True], ids=["apart", "together"])
@pytest.mark.parametrize("name", FOUND)
def test_found(name: str, together: bool, device: str) -> None:
    program = Program([line.strip() for line in FOUND[name].strip().splitlines()])
    for line in program.lines:
        execute(line, program.values, PyTorch(torch.float64))
        execute(line, program.narrow, PyTorch(torch.float32))
    check_program(program, device, together)
