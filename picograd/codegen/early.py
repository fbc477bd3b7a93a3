"""early: kernels that a GPU launches before those in front of them have ended.

Their blocks take what room there is as soon as all blocks before them have begun, and wait at their
first instruction until these have ended and what they wrote is seen. So a launch costs less where
kernels are short; blocks of long ones would have no room. A replay says which launches are early
(`runtime/replay.py`): to others the instruction means nothing.

Pointers are as good as new behind it: a value that is only read may not be read before. So what
loads again after a store would wait for it. With all kernels of up to 8 MB a step of a small GPT
took a quarter longer (H200): only sums, which store at their end, and the least kernels are early.
"""

from picograd.codegen.program import Program
from picograd.schedule.loop import Kernel, Part
from picograd.target import Target

SHORT = 64 << 10  # bytes of a kernel that takes what its launch does
SUMS = 96 << 20  # the same of sums, which are stored once, at their end
POINTERS = 24  # operands of one instruction: NVRTC takes 30


def begins_early(kernel: Kernel, program: Program, target: Target) -> bool:
    """Tell whether a kernel may be launched before those in front of it have ended."""
    if not target.has_clusters:  # what has these has the instructions
        return False
    pointers = len(program.parameters) + len(program.workspaces)
    if not 0 < pointers <= POINTERS:
        return False
    nbytes = 0
    for slot in kernel.slots:
        nbytes += slot.size * slot.dtype.itemsize
    are_sums = kernel.hero == "reduce.row" and all(map(stores_sums, kernel.parts))
    return nbytes <= (SUMS if are_sums else SHORT)


def stores_sums(part: Part) -> bool:
    """Tell whether all that is stored is made of sums, an element of each."""
    sums = [compute for compute in part.computes if compute.reduce]
    stored = [compute for compute in part.computes if compute.store is not None]
    return bool(sums) and all(each.axes == sums[0].axes for each in stored)
