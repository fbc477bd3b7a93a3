"""Program: one line of the final code per instruction, in order.

    Program = name, parameters, instructions
    Instr   = op, dtype, lanes, args, arg         its value is its position in the list

`args` are positions of earlier instructions. A value is a scalar, or a vector of `lanes` > 1.
Variables that change live in arrays (`array`, `get`, `set`); every other value is defined once.

structure   loop args=(start, stop) arg=(step, is_unrolled) ... end     value: the loop variable, of
            the index dtype (int64 on the CPU, int32 on CUDA unless an index may pass 2**31)
            (is_unrolled: True, False: up to the compiler, None: never; on the CPU the compiler
            decides about innermost loops alone)
            if args=(condition,) ... end
            claims args=(cells, shared) arg=count ... end     value: a number below `count` that no
            block has had, as long as there are any; all threads of a block get it. The cells are
            three int32 of a zeroed workspace, `shared` is one
            claims_wait args=(cells,) arg=(count, blocks): until what was done of every number is
            there; the cells are zero when all blocks were here
memory      param arg=number -> pointer; workspace arg=number; scratch arg=byte offset -> pointer
            shared arg=(byte offset) -> pointer
            load args=(pointer, index[, mask]), dtype, lanes    mask false reads nothing, gives 0;
            one for all lanes, or one a lane
            store args=(pointer, index, value[, mask])
            array arg=size, dtype -> register array; get args=(array, index)
            set args=(array, index, value)
            choose args=(position, options...) arg="in", "out" or "inout" (params of that role),
            "workspace" or "scalar": the one at a position that all threads of a block share
values      const arg=value; scalar arg=number; elementwise op names of graph/ops.py; cast; bitcast;
            fma args=(a, b, c); and/or/not on masks (dtype bool);
            splat args=(scalar,) lanes; pack args=(scalars...) lanes
            extract args=(vector,) arg=lane
            interleave args=(a, b) arg="low" or "high": lanes of that half of both in turn
            quotient, remainder: integer division that truncates; the divisor is not 0 and nothing
            overflows. add, mul, quotient, remainder with arg="nowrap" are index arithmetic (no
            overflow; dividends not negative); add, mul, maximum, minimum with arg="reduce" may be
            reassociated
            rare args=(x, usual, operands...) arg=op: usual, but where |x| >= RARE_FROM the
            library's op of the operands, of x if there are none; of a GPU only float32 without
            operands. On the CPU a vector leaves the straight line only if one of its lanes must
parallel    task (linear block or task number); thread; barrier (arg: threads of a role);
            shuffle_xor args=(value,) arg=lane mask; atomic_add args=(pointer, index, value) -> old
            (acquires and releases at the scope of the device)
            atomic_max args=(pointer, index, value): raises a uint32 in global memory
            count args=(pointer, index): adds 1 to an int32 in shared memory, whatever the order
            warp_barrier; match_any args=(value,) arg=bits -> uint32: the lanes of the warp whose
            value is the same in its lowest bits; popcount args=(value,): bits that are set
beside      roles, mbarriers, box copies, asynchronous products: below
tiles       multiply_tiles args=(acc, place, a, place, b, place) arg=TileProduct (tile_products.py)
opaque      mma: arg = what the renderer needs (codegen/tensor_core.py)

A bool is a mask as a value (i1, a C bool) and one byte in memory. Constants, params, scalars and
arrays may be used in every scope after their definition.

Not allowed: a use before its definition or outside the loop that defines it, lanes that differ
between the arguments of an elementwise op, a store through a load-only parameter.

Program instructions that run beside others: roles, mbarriers, copies of boxes, products.

roles     role arg=Role ... end     some warps of the block; roles that follow one another run at
          the same time, and outside of them every thread runs
          uniform args=(value,)     the same value, known to be equal in all lanes of a warp
          elect -> bool             one lane of each warp, always the same
barriers  live in shared memory (`shared` of uint64), `index` counts them; a phase ends when all
          arrivals and all bytes that it waits for have come
          barrier_init args=(barriers, index) arg=arrivals; barrier_publish
          barrier_arrive args=(barriers, index); barrier_expect, the same with arg=bytes to come
          barrier_wait args=(barriers, index, parity): until a phase of that parity has ended
          barrier_arrive_all, as barrier_arrive, at that of each block of a cluster, arg=how many;
          cluster_barrier arg=how many: blocks of that number of the grid are a cluster, and wait
          for one another; cluster_arrive, cluster_wait, the same in two: after these all see what
          was stored in shared memory before
          store_near args=(shared, index, value) arg=how many: into that of each block of a cluster
flags     int32 in a zeroed workspace
          flag_raise args=(flags, index): what this warp stored before its last warp_barrier is
          there for whoever waits; flag_wait args=(flags, index): until it is raised, and lowers it
copies    tensor arg=number -> a tensor map of the launch; prefetch_map args=(tensor,)
          copy_box args=(tensor, shared, place, barriers, index, *at): the bytes arrive there;
          of windows: args=(..., *at, *offsets) arg=how many offsets
          copy_box_all args=(tensor, shared, place, barriers, index, rank, *at) arg=(count, rows,
          span): so many boxes, one below the other; block `rank` of a cluster brings one to all
          unfilled args=(shared, place) arg=bytes: nothing is copied there, and what is read from
          there is in no result
          store_box args=(tensor, shared, place, *at), a group of its own
          store_box_wait arg=pending: until at most so many groups of this thread are being read
          async_fence: what this thread stored is seen by `store_box`, and what it read of a box
          it has, before another box overwrites it
operands  wgmma_pack args=(packed, array) arg=dtype: pairs of an array, rounded, as uint32; numbers
          of float32 by themselves, rounded to TF32
          wgmma_keep args=(packed, small): they stay; `small` is below 256, and no compiler knows
products  descriptor args=(shared, place) arg=leading -> uint64: where a swizzled operand begins;
          `leading` bytes lie between slabs, if it does not run along K
          wgmma args=(acc, a, b) arg=Wgmma: `a` is a descriptor, or packed registers; wgmma_fence
          before the first, and after packing; wgmma_commit: a group;
          wgmma_wait args=accs arg=pending: until at most so many groups are under way, the
          accumulators not among them
          mma_packed args=(acc, packed, shared, place) arg=Mma, at once: TF32 of packed registers by
          a swizzled operand that begins at a place, along any of its sides; no group is under way

`verify_async` finds a barrier that somebody waits for and nobody arrives at, a copy into a stage
that nobody waited to be free, unless it is filled once, an accumulator that is read while a product
is under way, products at once beside others, and an arrival after such a product without a fence.
The interpreter finds, for the sizes it runs: deadlocks, a stage overwritten before it was read or
read before it arrived, and a box overwritten before it left.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from picograd.code import TensorMap
from picograd.dtype import DType, bool_
from picograd.errors import check, internal
from picograd.late_methods import dataclass

SPREAD = {
    "uniform", "elect", "prefetch_map",
    "barrier_init", "barrier_publish", "barrier_arrive", "barrier_expect",
    "barrier_wait", "copy_box", "copy_box_all", "barrier_arrive_all", "cluster_barrier",
    "cluster_arrive", "cluster_wait", "store_near",
    "store_box", "unfilled", "store_box_wait", "async_fence",
    "descriptor", "wgmma", "wgmma_fence", "wgmma_commit", "wgmma_wait",
    "wgmma_pack", "wgmma_keep", "mma_packed", "flag_raise", "flag_wait",
}  # fmt: skip
K_BYTES = 32  # of each row, that one `wgmma` multiplies
ARRIVES = ("barrier_arrive", "barrier_arrive_all", "barrier_expect", "flag_raise")


@dataclass(frozen=True, slots=True)
class Role:
    """`teams` times `threads` threads from `first` on; each team runs the role by itself.

    `registers`: of each thread while it runs. `follows`: another role ends where this one begins.
    Roles inside of a role are some of its warps.
    """

    first: int
    threads: int
    teams: int = 1
    registers: int = 0
    follows: bool = False


@dataclass(frozen=True, slots=True)
class Wgmma:
    """One product of 64 x n x 32 bytes of K by a warpgroup, added to registers from `register` on.

    `dtypes` are those of the operands, two of 8 bits may differ. `a_offset`, `b_offset`: bytes from
    where the descriptors of the operands begin; of packed registers, how many come before.
    `is_first`: the registers are set, not added to.
    """

    n: int
    dtypes: tuple[DType, DType]
    count: int  # registers of the accumulator
    register: int
    a_offset: int
    b_offset: int
    a_is_k_major: bool
    b_is_k_major: bool
    has_packed: bool = False
    is_first: bool = False

    @property
    def dtype(self) -> DType:
        """Type of the left operand, as wide as the right one."""
        return self.dtypes[0]


@dataclass(frozen=True, slots=True)
class Mma:
    """A product of 64 x n x depth by a warpgroup: float32, of which the unit reads TF32.

    The left operand is in registers as an accumulator has it, the right one in a stage of slabs of
    so many `rows`: [n, k] if `b_is_nk`, else [k, n].
    """

    n: int
    depth: int
    rows: int
    b_is_nk: bool
    is_first: bool = False


def ended_once(instructions: Sequence[Any]) -> set[int]:
    """Find the barriers of which only the first phase is waited for: stages are filled once."""
    waits = [instr.args for instr in instructions if instr.op == "barrier_wait"]
    later = set()
    for barriers, _, parity in waits:
        number = instructions[parity]
        if number.args or number.arg != 0:
            later.add(barriers)
    return {barriers for barriers, *_ in waits} - later


def verify_async(program: object, instructions: Sequence[Any]) -> None:
    """Check the rules of the module docstring that can be seen without running."""
    waited: dict[int, int] = {}
    arrived: set[int] = set()
    once = ended_once(instructions)
    is_free = [False]  # for each open scope, whether it waited
    groups: list[set[int]] = [set()]  # of accumulators; the last one is not committed
    is_fenced = True  # what threads read of boxes
    for number, instr in enumerate(instructions):
        is_fenced |= instr.op == "async_fence"
        if instr.op in ("loop", "if", "role", "claims"):
            is_free.append(False)
        elif instr.op == "end":
            is_free.pop()
        elif instr.op in ("barrier_wait", "flag_wait"):
            waited[instr.args[0]] = number
            is_free[-1] |= instr.op == "barrier_wait"
        elif instr.op in ARRIVES:
            arrived.add(instr.args[0])
            check(is_fenced, f"%{number} arrives, and reads of boxes are not fenced", program)
        elif instr.op in ("copy_box", "copy_box_all"):
            is_ready = is_free[-1] or instr.args[3] in once
            check(is_ready, f"%{number} fills a stage without waiting for it", program)
        elif instr.op == "wgmma":
            groups[-1].add(instr.args[0])
        elif instr.op == "mma_packed":
            check(not any(groups), f"%{number} multiplies beside a product under way", program)
            is_fenced = False
        elif instr.op == "wgmma_commit":
            groups.append(set())
        elif instr.op == "wgmma_wait":
            groups = groups[max(len(groups) - 1 - instr.arg, 0) :]
            early = [acc for acc in instr.args if any(acc in group for group in groups)]
            check(not early, f"%{number} does not wait for what it names", program)
        elif instr.op == "get":
            is_done = all(instr.args[0] not in group for group in groups)
            check(is_done, f"%{number} reads a product under way", program)
    for barriers, number in waited.items():
        check(barriers in arrived, f"%{number} waits, and nothing arrives", program)
    check(not any(groups), "a product is never waited for", program)


EVERYWHERE = {
    "const", "param", "scalar", "workspace", "scratch", "shared", "array", "task", "thread",
    "tensor",
}  # fmt: skip
SCOPES = ("loop", "if", "role", "claims")
LANES_DIFFER = {"load", "store", "get", "set", "splat", "pack", "extract"}
OPAQUE = {"mma", "multiply_tiles", "claims", "claims_wait", *SPREAD}  # rules of their own
MASKED = {"load": 3, "store": 4}  # arguments, of which the last one is a mask
RARE_FROM = 2.0**40
NUMBERED = {
    "param": "parameters",
    "scalar": "scalars",
    "workspace": "workspaces",
    "tensor": "tensors",
}


@dataclass(frozen=True, slots=True)
class Instr:
    """One instruction; see the module docstring."""

    op: str
    dtype: DType | None
    args: tuple[int, ...] = ()
    arg: Any = None
    lanes: int = 1


@dataclass(frozen=True, slots=True)
class Program:
    """A linear program for one block (CUDA) or one task (CPU)."""

    name: str
    instructions: tuple[Instr, ...]
    parameters: tuple[tuple[DType, str], ...]  # (dtype, role) of the slots
    workspaces: tuple[tuple[int, bool], ...] = ()  # (bytes, is_zeroed)
    scalars: tuple[DType, ...] = ()
    threads: int = 1
    tasks: int = 1  # CPU tasks or CUDA blocks
    shared_bytes: int = 0
    scratch_bytes: int = 0
    tensors: tuple[TensorMap, ...] = ()
    together: int = 0  # CUDA blocks that a multiprocessor is to have registers for, if not 0

    def __repr__(self) -> str:
        return format_program(self)


def zeroed_last(
    instructions: list[Instr], workspaces: list[tuple[int, bool]]
) -> tuple[list[Instr], list[tuple[int, bool]]]:
    """Number workspaces so that those whose content a launch needs come last."""
    order = sorted(range(len(workspaces)), key=lambda number: workspaces[number][1])
    numbers = {old: new for new, old in enumerate(order)}
    moved = [
        replace(each, arg=numbers[each.arg]) if each.op == "workspace" else each
        for each in instructions
    ]
    return moved, [workspaces[number] for number in order]


def verify(program: Program) -> Program:
    """Check that a program keeps the rules of the module docstring, and return it."""
    open_scopes: list[int] = [0]
    scope_of: list[int] = []
    for number, instr in enumerate(program.instructions):
        for arg in instr.args:  # texts are written where they are needed: there are many
            if not 0 <= arg < number:
                internal(f"%{number} uses %{arg} before its definition", program)
            is_global = program.instructions[arg].op in EVERYWHERE
            if not is_global and scope_of[arg] not in open_scopes:
                internal(f"%{number} uses %{arg} outside its scope", program)
        verify_instruction(program, number, instr)
        if instr.op == "end":
            check(len(open_scopes) > 1, f"%{number} ends nothing", program)
            open_scopes.pop()
        if instr.op in SCOPES:
            open_scopes.append(number + 1)
        scope_of.append(open_scopes[-1])
    check(len(open_scopes) == 1, "a loop or branch is not closed", program)
    verify_async(program, program.instructions)
    return program


def verify_instruction(program: Program, number: int, instr: Instr) -> None:
    """Check one instruction by itself."""
    if instr.op in NUMBERED:
        count = len(getattr(program, NUMBERED[instr.op]))
        is_there = isinstance(instr.arg, int) and 0 <= instr.arg < count
        check(is_there, f"%{number} names {instr.op} {instr.arg} of {count}", program)
    if instr.op == "store":
        check(not is_input(program, instr.args[0]), f"%{number} stores to an input", program)
    if instr.op in MASKED and len(instr.args) == MASKED[instr.op]:
        mask = program.instructions[instr.args[-1]]
        is_mask = mask.dtype is bool_ and mask.lanes in (1, instr.lanes)
        check(is_mask, f"the mask of %{number} is no bool of 1 or {instr.lanes} lanes", program)
    if instr.op in LANES_DIFFER or instr.op in OPAQUE or not instr.args:
        return
    if len({program.instructions[arg].lanes for arg in instr.args}) > 1:
        internal(f"the arguments of %{number} differ in lanes", program)


def is_input(program: Program, number: int) -> bool:
    """Tell whether an instruction points to memory that is only read."""
    instr = program.instructions[number]
    if instr.op == "choose":
        return any(is_input(program, option) for option in instr.args[1:])
    return instr.op == "param" and program.parameters[instr.arg][1] == "in"


def format_program(program: Program) -> str:
    """Print a program, one instruction a line."""
    facts = f"tasks {program.tasks}, threads {program.threads}"
    lines, depth = [f"program {program.name} ({facts})"], 1
    for number, instr in enumerate(program.instructions):
        depth -= instr.op == "end"
        lines.append("  " * depth + format_instruction(number, instr))
        depth += instr.op in SCOPES
    return "\n".join(lines)


def format_instruction(number: int, instr: Instr) -> str:
    """Print one instruction."""
    args = ", ".join(f"%{arg}" for arg in instr.args)
    arg = "" if instr.arg is None else f" [{instr.arg}]"
    lanes = f"x{instr.lanes}" if instr.lanes > 1 else ""
    head = f"%{number}: {instr.dtype.name}{lanes} = " if instr.dtype else ""
    return f"{head}{instr.op}({args}){arg}" if args else f"{head}{instr.op}{arg}"
