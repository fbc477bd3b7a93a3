"""early: kernels that a GPU launches before those in front of them have ended.

Their blocks take what room there is as soon as all blocks before them have begun, and wait at their
first instruction until these have ended and what they wrote is seen. So a launch costs less where
kernels are short; blocks of long ones would have no room. A replay says which launches are early
(`runtime/replay.py`): to others the instruction means nothing.

Pointers are as good as new behind it: a value that is only read may not be read before. So loops
that store and load again would wait for their stores, and long maps are not among them.
"""

from picograd.codegen.program import Program
from picograd.schedule.loop import Kernel, Part
from picograd.target import Target

SHORT = 8 << 20  # bytes that a kernel moves in the time of a launch or two
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
    are_sums = all(map(stores_sums, kernel.parts))
    return nbytes <= (SUMS if are_sums else SHORT)


def stores_sums(part: Part) -> bool:
    """Tell whether all that is stored is made of sums, an element of each."""
    sums = [compute for compute in part.computes if compute.reduce]
    stored = [compute for compute in part.computes if compute.store is not None]
    return bool(sums) and all(each.axes == sums[0].axes for each in stored)
