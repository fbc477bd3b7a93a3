"""Random programs: drawn line by line while PyTorch runs them, so that every line is legal.

A line is dropped when PyTorch refuses it, or when its value is too large, too sensitive to
rounding, or jumps at a point that rounding may cross; what stays runs on picograd too.
"""

import re
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import pytest
from drawing import Draw
from libraries import PyTorch
from vocabulary import JUMPING, SMOOTH, STATEMENTS, WRITES, choose, normalize, pool, product

torch = pytest.importorskip("torch")

LEAF_DTYPES = ("float32",) * 6 + ("float64", "int32", "int64", "bool", "uint8", "float16")
LARGEST, MOST = 1e3, 1500
EXACT_LIMIT, HALF_LIMIT = 2**18, 128
NAME = re.compile(r"t\d+")


@dataclass
class Program:
    """Lines of Python over `lib`, and what each name must hold after the last line."""

    lines: list[str] = field(default_factory=list)
    values: dict[str, torch.Tensor] = field(default_factory=dict)  # in float64
    narrow: dict[str, torch.Tensor] = field(default_factory=dict)  # in float32: shows the error
    exact: set[str] = field(default_factory=set)
    half: set[str] = field(default_factory=set)

    def text(self) -> str:
        return "\n".join(self.lines)

    def tolerance(self, name: str) -> float:
        """How far float32 may be from float64, by PyTorch's own float32."""
        wide, narrow = self.values[name], self.narrow[name].double()
        scale = float(wide.abs().max()) if wide.numel() else 0.0
        error = float((wide - narrow).abs().max()) if wide.numel() else 0.0
        return 30 * error + 2e-5 * max(1.0, scale)


def execute(line: str, names: dict[str, Any], library: Any) -> None:
    """Run one line on PyTorch; what it computes is in row-major order, as in picograd.

    There a sum of transposed tensors is transposed in memory, so a reshape of it is a copy, which
    PyTorch asks not to rely on. Views stay what they are.
    """
    exec(line, {"lib": library}, names)
    name = target_of(line)
    value = names.get(name)
    if isinstance(value, torch.Tensor) and not value.is_contiguous():
        others = [each for other, each in names.items() if other != name]
        if not any(share_memory(value, each) for each in others):
            names[name] = value.contiguous()


def target_of(line: str) -> str:
    """Name the variable that a line makes or writes."""
    return line.split(" ")[0].split("[")[0].split(".")[0]


def share_memory(a: torch.Tensor, b: torch.Tensor, or_are_one: bool = False) -> bool:
    if a is b:
        return or_are_one
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


def is_calm(value: torch.Tensor, narrow: torch.Tensor) -> bool:
    """Tell whether a value is small, finite and hardly changed by rounding."""
    if value.numel() > MOST or value.dim() > 6 or not value.numel():
        return value.numel() <= MOST and value.dim() <= 6
    scale = float(value.double().abs().max())
    error = float((value.double() - narrow.double()).abs().max())
    limit = LARGEST if value.dtype.is_floating_point else EXACT_LIMIT
    return scale <= limit and error <= 1e-3 * max(1.0, scale)


def is_whole(value: torch.Tensor, limit: float) -> bool:
    """Tell whether every float dtype holds the value exactly."""
    if not value.dtype.is_floating_point:
        return True
    is_finite = bool(torch.isfinite(value).all())
    return is_finite and bool((value == value.round()).all()) and bool((value.abs() <= limit).all())


def try_line(program: Program, line: str, used: set[str], is_smooth: bool = False) -> bool:
    """Add a line if PyTorch accepts it and its value is calm."""
    target = target_of(line)
    wide, narrow = deepcopy(program.values), deepcopy(program.narrow)  # views stay views
    try:
        execute(line, wide, PyTorch(torch.float64))
        execute(line, narrow, PyTorch(torch.float32))
    except (RuntimeError, IndexError, TypeError, ValueError, NameError):
        return False
    values = wide[target], narrow[target]
    if not accept(program, target, line, used, is_smooth, *values):
        return False
    program.values, program.narrow = wide, narrow
    program.lines.append(line)
    return True


def accept(
    program: Program, target: str, line: str, used: set[str], is_smooth: bool,
    value: Any, narrow: Any,
) -> bool:  # fmt: skip
    """Judge a new value and note whether it is exact and whether 16-bit floats made it."""
    if not isinstance(value, torch.Tensor) or not is_calm(value, narrow):
        return False
    if "avg_pool" in line and not has_floats(program, used):
        return False  # PyTorch averages integers
    if value.dtype is torch.uint8 and (".any(" in line or ".all(" in line):
        return False  # PyTorch answers in uint8, not in bool
    is_half = bool(used & program.half) or "float16'" in line
    is_exact = used <= program.exact and not is_smooth
    is_exact = is_exact and is_whole(value, HALF_LIMIT if is_half else EXACT_LIMIT)
    is_wider = "= lib.cast(" in line and "float16'" not in line
    if is_half and not is_exact:
        return False
    names = aliases(program, target) if target in program.values else {target}
    for group, holds in ((program.exact, is_exact), (program.half, is_half and not is_wider)):
        group.update(names) if holds else group.difference_update(names)
    return True


def aliases(program: Program, name: str) -> set[str]:
    """Name the tensors in the memory of this one."""
    memory = program.values[name].untyped_storage().data_ptr()
    return {
        other
        for other, value in program.values.items()
        if value.untyped_storage().data_ptr() == memory or other == name
    }


def has_floats(program: Program, used: set[str]) -> bool:
    return all(program.values[name].dtype.is_floating_point for name in used)


def has_negative(value: torch.Tensor) -> bool:
    return value.dtype.is_floating_point and bool((value < 0).any())


def add_leaf(draw: Draw, program: Program, dtypes: Any = LEAF_DTYPES) -> None:
    rank = draw.choose([0, 1, 2, 2, 3, 3, 4])
    shape = tuple(draw.integers(rank, 1, 5))
    if shape and draw.integer(0, 30) == 0:
        shape = (*shape[:-1], 0)
    dtype, seed = draw.choose(dtypes), draw.integer(0, 20)
    line = f"t{len(program.values)} = lib.leaf({shape}, {seed}, {dtype!r})"
    name = line.split(" ")[0]
    if seed % 2 == 0 or not dtype.startswith("float"):
        program.exact.add(name)
    try_line(program, line, {name} & program.exact or {"inexact"})


def pick(draw: Draw, program: Program) -> str:
    """Pick an operand, recent ones more often."""
    names = list(program.values)
    back = min(draw.integer(0, 3), draw.integer(0, 12))
    return names[max(0, len(names) - 1 - back)]


def fitting(draw: Draw, program: Program, x: str) -> str:
    """Pick a second operand, one that broadcasts with the first where there is one."""
    shape = tuple(program.values[x].shape)
    names = [name for name in program.values if broadcasts(program.values[name].shape, shape)]
    return str(draw.choose(names))


def broadcasts(a: Any, b: Any) -> bool:
    return all(m == n or 1 in (m, n) for m, n in zip(reversed(tuple(a)), reversed(tuple(b))))


def add_line(draw: Draw, program: Program, statements: Any = STATEMENTS) -> None:
    """Draw one statement and add it if it fits."""
    x = pick(draw, program)
    statement = draw.choose(statements)
    template = statement(draw, tuple(program.values[x].shape))
    y = fitting(draw, program, x) if "{y}" in template else x
    if statement is product and program.values[x].dtype is torch.bool:
        return  # PyTorch multiplies some bool matrices, and refuses others
    index = program.values[y]
    if "[{y}]" in template and (not index.dim() or index.dtype is torch.uint8):
        return  # PyTorch takes bytes for a mask; for a single bool picograd has `where`
    if "[{y}]" in template and not program.values[x].numel():
        return  # PyTorch does not look at indices where nothing is read
    if statement is normalize and not program.values[x].dtype.is_floating_point:
        return  # PyTorch lets integers through where they are empty
    text, used = template.format(x=x, y=y), {x, y}
    if template.startswith("lib.realize"):
        program.lines.append(text)
        return
    is_write = template in WRITES
    if is_write and not is_defined(program, template, x, y):
        return
    if is_write and program.values[x].dtype is torch.uint8 and has_negative(index):
        return  # what a negative float becomes as a byte is not defined
    is_whole_kept = program.values[y].dtype.is_floating_point and is_write
    jumps = template in JUMPING or statement is choose
    jumps |= is_whole_kept and not program.values[x].dtype.is_floating_point
    if jumps and not used <= program.exact:
        return
    is_smooth = template in SMOOTH or statement in (normalize, pool) or "mean" in template
    try_line(program, text if is_write else f"t{len(program.values)} = {text}", used, is_smooth)


def repeats_memory(value: torch.Tensor) -> bool:
    """Tell whether several elements of a tensor are one in memory."""
    count = value.untyped_storage().nbytes() // value.element_size()
    places = torch.arange(count).as_strided(value.shape, value.stride(), value.storage_offset())
    return places.unique().numel() < value.numel()


def is_defined(program: Program, template: str, x: str, y: str) -> bool:
    """Tell whether a write reads nothing that it may have overwritten, and no element is two."""
    is_own = x != y and "{y}" in template and y in aliases(program, x)
    return not is_own and not repeats_memory(program.values[x])


def draw_program(
    draw: Draw, length: int = 14, least: int = 0, statements: Any = STATEMENTS
) -> Program:
    """Draw a program: up to `length` attempts at a line, or attempts until it has `least` lines."""
    program = Program()
    add_leaf(draw, program, ("float32",))
    for _ in range(draw.integer(0, 2)):
        add_leaf(draw, program)
    for _ in range(4 * least or draw.integer(1, length)):
        if draw.integer(0, 12) == 0:
            add_leaf(draw, program)
        add_line(draw, program, statements)
        if least and len(program.lines) >= least:
            break
    return program


def replay(lines: list[str]) -> Program | None:
    """Rebuild a program from some of its lines; None if PyTorch refuses one."""
    program = Program()
    for line in lines:
        if line.startswith("lib.realize"):
            is_known = set(NAME.findall(line)) <= set(program.values)
            program.lines += [line] * is_known
        elif not try_line(program, line, set()):
            return None
    return program
