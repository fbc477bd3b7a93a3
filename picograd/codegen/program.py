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
parallel    task (linear block or task number); thread; fence; barrier (arg: threads of a role);
            shuffle_xor args=(value,) arg=lane mask; atomic_add args=(pointer, index, value) -> old
            (acquires and releases at the scope of the device)
            warp_barrier; match_any args=(value,) arg=bits -> uint32: the lanes of the warp whose
            value is the same in its lowest bits; popcount args=(value,): bits that are set
beside      roles, mbarriers, box copies, asynchronous products: codegen/program_async.py
opaque      mma: arg = what the renderer needs (codegen/tensor_core.py)

A bool is a mask as a value (i1, a C bool) and one byte in memory. Constants, params, scalars and
arrays may be used in every scope after their definition.

Not allowed: a use before its definition or outside the loop that defines it, lanes that differ
between the arguments of an elementwise op, a store through a load-only parameter.
"""

from typing import Any

from picograd.code import TensorMap
from picograd.codegen.program_async import SPREAD, verify_async
from picograd.dtype import DType, bool_
from picograd.errors import check
from picograd.late_methods import dataclass

EVERYWHERE = {
    "const", "param", "scalar", "workspace", "scratch", "shared", "array", "task", "thread",
    "tensor",
}  # fmt: skip
SCOPES = ("loop", "if", "role", "claims")
LANES_DIFFER = {"load", "store", "get", "set", "splat", "pack", "extract"}
OPAQUE = {"mma", "claims", "claims_wait", *SPREAD}  # rules of their own
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


def verify(program: Program) -> Program:
    """Check that a program keeps the rules of the module docstring, and return it."""
    open_scopes: list[int] = [0]
    scope_of: list[int] = []
    for number, instr in enumerate(program.instructions):
        for arg in instr.args:
            check(0 <= arg < number, f"%{number} uses %{arg} before its definition", program)
            is_global = program.instructions[arg].op in EVERYWHERE
            is_visible = is_global or scope_of[arg] in open_scopes
            check(is_visible, f"%{number} uses %{arg} outside its scope", program)
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
    lanes = {program.instructions[arg].lanes for arg in instr.args}
    check(len(lanes) == 1, f"the arguments of %{number} differ in lanes", program)


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
