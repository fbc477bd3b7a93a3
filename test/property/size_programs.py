"""Random programs whose leaves have axes of n and m elements, run at several sizes by PyTorch."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from drawing import Draw
from libraries import PyTorch
from size_vocabulary import SIZE_STATEMENTS, SPECIAL, Statement

torch = pytest.importorskip("torch")

LEAF_DTYPES = ("float32",) * 8 + ("float64", "int32", "int64", "bool", "uint8", "float16")
LARGEST, MOST = 1e4, 6000
Sizes = tuple[int, int]
REFUSED = (
    RuntimeError, IndexError, TypeError, ValueError, NameError, ArithmeticError, AttributeError,
)  # fmt: skip


@dataclass
class SizeProgram:
    """Lines over `lib`, `n` and `m`; for every pair of sizes what each name holds in the end.

    `wide` is in float64, `narrow` as written: their difference is how far rounding may lead.
    Gradients of leaves are named `d` and the leaf.
    """

    sizes: list[Sizes]
    leaves: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    wide: list[dict[str, Any]] = field(default_factory=list)
    narrow: list[dict[str, Any]] = field(default_factory=list)

    def text(self) -> str:
        return "\n".join([f"sizes = {self.sizes}", *self.leaves, *self.lines])


def run_program(program: SizeProgram, sizes: Sizes, library: Any, leaves: Any = None) -> Any:
    """Run all lines for one pair of sizes; returns what every name holds."""
    known = {"lib": library, "n": sizes[0], "m": sizes[1]}
    names = make_leaves(program, sizes, library) if leaves is None else dict(leaves)
    for line in program.lines:
        exec(line, known, names)
    return names


def make_leaves(program: SizeProgram, sizes: Sizes, library: Any) -> dict[str, Any]:
    known = {"lib": library, "n": sizes[0], "m": sizes[1]}
    names: dict[str, Any] = {}
    for line in program.leaves:
        exec(line, known, names)
        name = line.split(" ")[0]
        if str(names[name].dtype).endswith(("float32", "float64")):
            names[name].requires_grad_()
    return names


def loss_of(names: dict[str, Any], leaves: dict[str, Any]) -> Any:
    """Add up what gradients can flow from."""
    total = None
    for name, value in names.items():
        if name not in leaves and hasattr(value, "requires_grad") and value.requires_grad:
            part = (value * 0.5).sum()
            total = part if total is None else total + part
    return total


def run_all(program: SizeProgram, library: Any) -> list[dict[str, Any]]:
    """Run for all sizes in PyTorch; values and gradients as arrays."""
    found = []
    for sizes in program.sizes:
        leaves = make_leaves(program, sizes, library)
        names = run_program(program, sizes, library, leaves)
        values = {name: value.detach().clone() for name, value in names.items()}
        total = loss_of(names, leaves)
        if total is not None:
            total.backward()
            for name, leaf in leaves.items():
                if leaf.grad is not None:
                    values[f"d{name}"] = leaf.grad
        found.append(values)
    return found


def is_calm(wide: Any, narrow: Any) -> bool:
    """Tell whether rounding hardly changes a value; NaN and infinities stay where they are."""
    if wide.numel() > MOST or wide.shape != narrow.shape:
        return False
    if not wide.dtype.is_floating_point:
        return bool((wide == narrow).all())
    wide, narrow = wide.double(), narrow.double()
    is_finite = wide.isfinite()
    if not bool((is_finite == narrow.isfinite()).all()):
        return False
    wide, narrow = wide[is_finite], narrow[is_finite]
    if not wide.numel():
        return True
    scale = float(wide.abs().max())
    return scale <= LARGEST and float((wide - narrow).abs().max()) <= 1e-3 * max(1.0, scale)


def evaluate(program: SizeProgram) -> bool:
    """Run a program on PyTorch; tells whether it is legal and calm for all sizes."""
    try:
        wide = run_all(program, PyTorch(torch.float64))
        narrow = run_all(program, PyTorch(None))
    except REFUSED:
        return False
    for a, b in zip(wide, narrow):
        if a.keys() != b.keys() or not all(is_calm(a[name], b[name]) for name in a):
            return False
    program.wide, program.narrow = wide, narrow
    return True


def tolerance(wide: Any, narrow: Any) -> float:
    """How far a float may be from float64, by PyTorch's own error."""
    a, b = wide.double(), narrow.double()
    is_finite = a.isfinite() & b.isfinite()
    scale = float(a[is_finite].abs().max()) if bool(is_finite.any()) else 0.0
    error = float((a - b)[is_finite].abs().max()) if bool(is_finite.any()) else 0.0
    unit = {torch.float16: 4e-3, torch.bfloat16: 3e-2}.get(narrow.dtype, 2e-5)
    return 30 * error + unit * max(1.0, scale)


def draw_sizes(draw: Draw) -> list[Sizes]:
    """Draw pairs: mostly small and different ones, sometimes one or none, sometimes far apart."""
    count = draw.integer(4, 6)
    least = draw.choose([2, 2, 2, 2, 1, 0])
    most = draw.choose([5, 9, 9, 12, 20, 40])
    is_one = draw.integer(0, 2) == 0  # m does not vary
    fixed = draw.integer(2, 5)
    found: list[Sizes] = []
    for _ in range(count):
        n = draw.integer(least, most)
        found.append((n, fixed if is_one else draw.integer(least, min(most, 9))))
    return found


def draw_leaf(draw: Draw, program: SizeProgram, is_float: bool) -> None:
    rank = draw.choose([1, 2, 2, 3, 3, 3, 4])
    choices = ["n", "n", "n", "m", "2", "3", "4", "1", "2 * n", "n + 1", "n * m"]
    sizes = [draw.choose(choices) for _ in range(rank)]
    if "n" not in sizes and not program.leaves:
        sizes[draw.integer(0, rank - 1)] = "n"
    dtype = "float32" if is_float else draw.choose(LEAF_DTYPES)
    name = f"t{len(program.leaves)}"
    line = f"{name} = lib.leaf(({', '.join(sizes)},), {draw.integer(0, 20)}, {dtype!r})"
    if draw.integer(0, 12) == 0 and dtype in ("float32", "float64"):
        line += f" * lib.leaf((1,), 0, {dtype!r}).fill_(float({draw.choose(SPECIAL)!r})).abs()"
    program.leaves.append(line)
    if not evaluate(program):
        program.leaves.pop()


def draw_size_program(draw: Draw, statements: Any = SIZE_STATEMENTS) -> SizeProgram:
    """Draw leaves, and lines that PyTorch accepts for all sizes."""
    program = SizeProgram(draw_sizes(draw))
    for number in range(draw.integer(1, 3)):
        draw_leaf(draw, program, number == 0)
    length = draw.integer(1, 8)
    evaluate(program)
    for _ in range(4 * length):
        if program.leaves:
            add_statement(draw, program, draw.choose(statements))
        if len(program.lines) >= length:
            break
    return program


def add_statement(draw: Draw, program: SizeProgram, statement: Statement) -> None:
    """Draw one line; it stays if PyTorch accepts it for all sizes."""
    names = list(program.wide[0]) if program.wide else []
    names = [name for name in names if name[0] != "d"]
    x = names[max(0, len(names) - 1 - min(draw.integer(0, 3), draw.integer(0, 12)))]
    shape = tuple(program.wide[0][x].shape)
    text = statement(draw, len(shape))
    fits = [name for name in names if broadcasts(program, x, name)]
    text = text.replace("{x}", x).replace("{y}", draw.choose(fits))
    is_write = text.startswith("!")
    line = text[1:] if is_write else f"v{len(program.lines)} = {text}"
    program.lines.append(line)
    if not evaluate(program):
        program.lines.pop()
        evaluate(program)


def broadcasts(program: SizeProgram, x: str, y: str) -> bool:
    """Tell whether two names have shapes that go together, for all sizes."""
    for values in program.wide:
        pairs = zip(reversed(values[x].shape), reversed(values[y].shape))
        if not all(a == b or 1 in (a, b) for a, b in pairs):
            return False
    return True


def replay(sizes: list[Sizes], lines: list[str]) -> SizeProgram | None:
    """Rebuild a program from some of its lines; None if PyTorch refuses it."""
    program = SizeProgram(sizes)
    for line in lines:
        is_leaf = line[0] == "t" and "= lib.leaf((" in line
        (program.leaves if is_leaf else program.lines).append(line)
    return program if program.leaves and evaluate(program) else None


def close(found: Any, wide: Any, narrow: Any) -> bool:
    """Tell whether a value is PyTorch's."""
    if tuple(found.shape) != tuple(wide.shape):
        return False
    if not wide.dtype.is_floating_point:
        return bool(np.array_equal(found, wide.numpy()))
    limit = tolerance(wide, narrow)
    wanted = wide.double().numpy()
    return bool(np.allclose(found.astype(np.float64), wanted, limit, limit, equal_nan=True))
