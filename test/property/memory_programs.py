"""Random programs about memory: views are kept and written through, with the dtypes they name.

A line is kept if PyTorch accepts it for two sets of values (a jitted function is called with both)
and if what it makes is defined: see `undefined` for what PyTorch leaves open.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from drawing import Draw
from libraries import PyTorch
from memory_vocabulary import DTYPES, JUMPING, MEMORY_STATEMENTS, cast, jump_reduce
from programs import execute, repeats_memory, share_memory
from vocabulary import Statement

torch = pytest.importorskip("torch")

# Few shapes, so that kernels are compiled once and used by many programs.
SHAPES = ((), (2,), (3,), (4,), (2, 3), (3, 3), (2, 2, 3), (1, 3), (0,), (2, 0), (2, 3), (5,))
SHIFTS = (0, 100)  # added to the seeds of leaves: two sets of values
LARGEST, EXACT = 1e3, 64
FLOAT_ONLY = ("softmax", "logcumsumexp")
REFUSALS = (RuntimeError, IndexError, TypeError, ValueError, NameError, AttributeError)
EPSILON = {"float64": 1e-12, "float32": 2e-6, "float16": 4e-3, "bfloat16": 3e-2}
# `x.add_(`, `x[0] += `, `x = `, `x[0], x[1] = `; not `x == `
WRITE = re.compile(r"\{x\}(\[[^=]*\])?(\.\w+_\(| (//|[-+*/%&|^])?= )")
# a mask picks elements: `t1[t0 > 1]`, `t1[t0]`, also for `+=`, but not where it is written alone
DEPENDENT = re.compile(r"\[\(?t\d+ [!>]|\.nonzero\(|masked_s|\[t\d+\]")
MASKED_WRITE = re.compile(r"t\d+\[[^=]*\] = ")
Names = dict[str, Any]


@dataclass
class MemoryProgram:
    """Lines of Python over `lib`; what the names hold, with their dtypes and in float64."""

    lines: list[str] = field(default_factory=list)
    narrow: list[Names] = field(default_factory=lambda: [{} for _ in SHIFTS])
    wide: list[Names] = field(default_factory=lambda: [{} for _ in SHIFTS])

    def depends_on_values(self) -> bool:
        """Tell whether a shape depends on values: such a line cannot be jitted."""
        lines = [line for line in self.lines if not MASKED_WRITE.match(line)]
        return any(DEPENDENT.search(line) for line in lines)

    def tolerance(self, run: int, name: str) -> float:
        """How far a value may be off: PyTorch's own error against float64, and the dtype's."""
        narrow, wide = self.narrow[run][name], self.wide[run][name]
        if not narrow.numel() or not narrow.dtype.is_floating_point:
            return 0.0
        error = float((narrow.double() - wide.double()).abs().max())
        scale = max(1.0, float(wide.abs().max()))
        return 30 * error + EPSILON[name_of(narrow.dtype)] * scale


def name_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def libraries(run: int) -> tuple[PyTorch, PyTorch]:
    return PyTorch(None, SHIFTS[run]), PyTorch(torch.float64, SHIFTS[run])


def extended(program: MemoryProgram, line: str) -> bool:
    """Add a line if PyTorch accepts it and all values stay calm; else run the rest again."""
    try:
        for run in range(len(SHIFTS)):
            for names, library in zip((program.narrow[run], program.wide[run]), libraries(run)):
                execute(line, names, library)
        is_kept = all(is_calm(program, run) for run in range(len(SHIFTS)))
    except REFUSALS:
        is_kept = False
    if is_kept:
        program.lines.append(line)
    else:
        again = run_lines(program.lines)
        program.narrow, program.wide = again.narrow, again.wide
    return is_kept


def run_lines(lines: Sequence[str]) -> MemoryProgram:
    program = MemoryProgram(list(lines))
    for run in range(len(SHIFTS)):
        for names, library in zip((program.narrow[run], program.wide[run]), libraries(run)):
            for line in lines:
                execute(line, names, library)
    return program


def is_calm(program: MemoryProgram, run: int) -> bool:
    """Tell whether all values are small tensors, finite and hardly changed by rounding."""
    for name, narrow in program.narrow[run].items():
        wide = program.wide[run][name]
        if not isinstance(narrow, torch.Tensor) or narrow.dim() > 4 or narrow.numel() > 100:
            return False
        if narrow.shape != wide.shape or narrow.dtype.is_complex:
            return False
        if not narrow.dtype.is_floating_point:
            if not torch.equal(narrow, wide.to(narrow.dtype)):
                return False
        elif narrow.numel():
            scale = float(wide.abs().max())
            error = float((wide - narrow.double()).abs().max())
            bound = max(1e-3, EPSILON[name_of(narrow.dtype)])
            if not (scale <= LARGEST and error <= bound * max(1.0, scale)):
                return False
    return True


def is_exact(program: MemoryProgram, name: str) -> bool:
    """Tell whether a value is so round that every library has exactly this one."""
    for narrow, wide in zip(program.narrow, program.wide):
        value = wide[name]
        if not value.dtype.is_floating_point:
            continue
        eighths = value * 8
        is_round = bool((eighths == eighths.round()).all()) and bool((value.abs() <= EXACT).all())
        if not is_round or not torch.equal(value, narrow[name].double()):
            return False
    return True


def undefined(program: MemoryProgram, template: str, x: str, y: str, is_write: bool) -> bool:
    """Tell whether PyTorch leaves open what a line does. The one list of differences, by reason."""
    for names in program.narrow:
        a, b = names[x], names[y]
        if is_write and "{y}" in template and a.numel() and b.numel() and share_memory(a, b):
            return True  # elements may be overwritten before they are read
        if "masked_scatter" in template and share_memory(a, b, or_are_one=True):
            return True  # the same
        if is_write and repeats_memory(a):
            return True  # several elements are one in memory: PyTorch refuses most such writes
        if "[{y}]" in template and (not b.dim() or b.dtype is torch.uint8):
            return True  # bytes as a mask are deprecated; one bool adds an axis
        if "[{y}]" in template and not a.numel():
            return True  # indices are not looked at where nothing is read
        if "lib.index(" in template and not a.numel():
            return True  # the same
        if not a.dtype.is_floating_point and any(name in template for name in FLOAT_ONLY):
            return True  # PyTorch lets integers through where they are empty
        if a.dtype is torch.uint8 and (".any(" in template or ".all(" in template):
            return True  # PyTorch answers in uint8, not in bool
        if a.dtype is torch.bool and "@" in template:
            return True  # PyTorch multiplies some bool matrices, and refuses others
        if converts_badly(template, a, b, is_write):
            return True
    return False


def converts_badly(template: str, a: Any, b: Any, is_write: bool) -> bool:
    """Tell whether a float may become an integer that its dtype does not hold."""
    to_integer = is_write and not a.dtype.is_floating_point and b.dtype.is_floating_point
    to_integer |= "lib.cast" in template and a.dtype.is_floating_point
    source = b if is_write else a
    least = 0 if "uint8" in template or (is_write and a.dtype is torch.uint8) else -120
    return to_integer and bool(((source < least) | (source > 120)).any())


def pick_second(draw: Draw, program: MemoryProgram, x: str) -> str:
    """Pick a second operand, mostly one that broadcasts with the first."""
    shape = program.narrow[0][x].shape
    names = list(program.narrow[0])
    fitting = [
        name for name in names
        if all(m == n or 1 in (m, n) for m, n in zip(
            reversed(program.narrow[0][name].shape), reversed(shape)))
    ]  # fmt: skip
    return str(draw.choose(fitting if draw.integer(0, 4) else names))


def add_line(draw: Draw, program: MemoryProgram, statements: Sequence[Statement]) -> None:
    """Draw one statement and add it if it is legal and defined."""
    names = list(program.narrow[0])
    x = draw.choose(names[-4:] if draw.boolean() else names)
    statement = draw.choose(statements)
    template = statement(draw, tuple(program.narrow[0][x].shape))
    y = pick_second(draw, program, x) if "{y}" in template else x
    text = template.format(x=x, y=y)
    if template.startswith("lib.realize"):
        program.lines.append(text)
        return
    is_write = WRITE.match(template) is not None
    jumps = template in JUMPING or statement in (jump_reduce, cast)
    jumps |= not program.narrow[0][x].dtype.is_floating_point
    if jumps and not (is_exact(program, x) and is_exact(program, y)):
        return
    if undefined(program, template, x, y, is_write):
        return
    extended(program, text if is_write else f"t{len(program.lines)} = {text}")


def draw_memory_program(
    draw: Draw, length: int = 12, statements: Sequence[Statement] = MEMORY_STATEMENTS,
    dtypes: Sequence[str] = DTYPES, seeds: Sequence[int] = range(10),
) -> MemoryProgram:  # fmt: skip
    """Draw leaves, then attempts at lines; one or two dtypes prevail in a program."""
    program = MemoryProgram()
    few = [draw.choose(dtypes) for _ in range(2)]
    for number in range(draw.integer(2, 3)):
        shape, dtype = draw.choose(SHAPES), draw.choose(few)
        extended(program, f"t{number} = lib.leaf({shape}, {draw.choose(seeds)}, {dtype!r})")
    for _ in range(draw.integer(3, 2 * length)):
        if len(program.lines) < length:
            add_line(draw, program, statements)
    return program


def replay(lines: list[str]) -> MemoryProgram | None:
    """Rebuild a program from some of its lines; None if PyTorch refuses one."""
    program = MemoryProgram()
    for line in lines:
        if line.startswith("lib.realize"):
            program.lines.append(line)
        elif not extended(program, line):
            return None
    return program
