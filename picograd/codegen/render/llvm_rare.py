"""LLVM IR text of calls of the C library: the functions of float64, whose results are rounded once.

An operation that has no other spelling calls one for each lane (`library_lines`). A `rare`
instruction calls one where a gauge is large, for those lanes.

The loop vectoriser turns a call of the scalar function `@rare_sin_f32` into a call of one of its
vector variants, which the attribute "vector-function-abi-variant" names. A variant tests all lanes
at once and goes lane by lane only if one is large. Variants are inlined after the vectoriser has
run.
"""

from collections.abc import Iterator, Sequence

from picograd.codegen.program import RARE_FROM, Instr
from picograd.codegen.render.llvm_types import type_name
from picograd.dtype import DType, float64

LANES = (2, 4, 8, 16, 32)  # the vectoriser may choose any
LIBRARY = {"remainder": "fmod"}  # where its name is another
Rare = tuple[str, DType, int]  # an operation, its dtype, and arguments: gauge, usual and operands


def library_declaration(op: str, count: int) -> str:
    """Declare the library's function of an operation with so many operands."""
    return f"declare double @{LIBRARY.get(op, op)}({', '.join(['double'] * count)})"


def library_lines(number: int, instr: Instr, args: Sequence[str]) -> Iterator[str]:
    """Call the library's function of float64, lane by lane, and round its values."""
    dtype, lanes = instr.dtype or float64, instr.lanes
    name, wide = LIBRARY.get(instr.op, instr.op), type_name(float64, lanes)
    found = f"%v{number}" if dtype is float64 else f"%wide{number}"
    if dtype is not float64:
        for place, operand in enumerate(args):
            yield f"%w{number}.{place} = fpext {operand} to {wide}"
        args = [f"{wide} %w{number}.{place}" for place in range(len(args))]
    result = f"{wide} poison"
    for lane in range(lanes) if lanes > 1 else ():
        at = f"{number}.{lane}"
        for place, operand in enumerate(args):
            yield f"%e{at}.{place} = extractelement {operand}, i64 {lane}"
        inside = ", ".join(f"double %e{at}.{place}" for place in range(len(args)))
        yield f"%c{at} = call double @{name}({inside})"
        whole = found if lane == lanes - 1 else f"%i{at}"
        yield f"{whole} = insertelement {result}, double %c{at}, i64 {lane}"
        result = f"{wide} {whole}"
    if lanes == 1:
        yield f"{found} = call double @{name}({', '.join(args)})"
    if dtype is not float64:
        yield f"%v{number} = fptrunc {wide} {found} to {type_name(dtype, lanes)}"


def rare_name(rare: Rare) -> str:
    """Name the scalar function."""
    op, dtype, _ = rare
    return f"rare_{op}_f{dtype.bits}"


def rare_of(instr: Instr) -> Rare:
    """Find what an instruction calls."""
    return instr.arg, instr.dtype or float64, len(instr.args)


def rare_call(number: int, instr: Instr, args: Sequence[str]) -> str:
    """Write the call of a vector variant, or of the scalar function, naming its variants."""
    rare, lanes, inside = rare_of(instr), instr.lanes, ", ".join(args)
    name, (_, dtype, count) = rare_name(rare), rare
    if lanes > 1:
        return f"%v{number} = call {type_name(dtype, lanes)} @{name}_v{lanes}({inside})"
    names = ",".join(f"_ZGV_LLVM_N{n}{'v' * count}_{name}({name}_v{n})" for n in LANES)
    promises = f'nounwind willreturn memory(none) "vector-function-abi-variant"="{names}"'
    return f"%v{number} = call {type_name(dtype)} @{name}({inside}) {promises}"


def rare_functions(rares: Sequence[Rare]) -> list[str]:
    """Write the functions of every operation, and a list that keeps the variants."""
    if not rares:
        return []
    lines = []
    for rare in rares:
        lines += scalar_function(rare)
        for lanes in LANES:
            lines += vector_function(rare, lanes)
    used = [f"ptr @{rare_name(rare)}_v{lanes}" for rare in rares for lanes in LANES]
    table = f"[{len(used)} x ptr] [{', '.join(used)}]"
    lines.append(f'@llvm.compiler.used = appending global {table}, section "llvm.metadata"')
    lines.append("attributes #1 = { noinline nounwind willreturn cold }")
    lines.append('attributes #2 = { alwaysinline nounwind willreturn "prefer-vector-width"="512" }')
    return lines


def parameters_of(rare: Rare, lanes: int = 1) -> list[str]:
    """List the parameters of a function: the gauge, the usual value and the operands."""
    _, dtype, count = rare
    names = ["gauge", "usual", *(f"x{n}" for n in range(count - 2))]
    return [f"{type_name(dtype, lanes)} %{name}" for name in names]


def library_call(rare: Rare) -> Iterator[str]:
    """Call the function of float64 on the operands, or on the gauge if there are none."""
    op, dtype, count = rare
    operands = [f"%x{n}" for n in range(count - 2)] or ["%gauge"]
    is_wide = dtype.bits == 64
    for number, operand in enumerate(operands):
        if not is_wide:
            yield f"  %w{number} = fpext float {operand} to double"
    wide = operands if is_wide else [f"%w{n}" for n in range(len(operands))]
    inside = ", ".join(f"double {operand}" for operand in wide)
    yield f"  %{'found' if is_wide else 'value'} = call double @{LIBRARY.get(op, op)}({inside})"
    if not is_wide:
        yield "  %found = fptrunc double %value to float"


def scalar_function(rare: Rare) -> list[str]:
    """Write the choice for one element, and for rows of them: the second becomes the result."""
    name, kind, count = rare_name(rare), type_name(rare[1]), rare[2]
    parameters = ", ".join(parameters_of(rare))
    lines = [
        f"define internal {kind} @{name}({parameters}) #1 {{",
        f"  %size = call {kind} @llvm.fabs.f{rare[1].bits}({kind} %gauge)",
        f"  %is_rare = fcmp oge {kind} %size, {RARE_FROM:f}",
        "  br i1 %is_rare, label %rare, label %done",
        "rare:",
        *library_call(rare),
        "  br label %done",
        "done:",
        f"  %result = phi {kind} [ %usual, %0 ], [ %found, %rare ]",
        f"  ret {kind} %result",
        "}",
        f"define internal void @{name}_all(ptr %rows, i64 %count) #1 {{",
        "  br label %loop",
        "loop:",
        "  %n = phi i64 [ 0, %0 ], [ %next, %loop ]",
    ]
    for row in range(count):
        lines.append(f"  %first{row} = mul i64 %count, {row}")
        lines.append(f"  %place{row} = add i64 %first{row}, %n")
        lines.append(f"  %at{row} = getelementptr {kind}, ptr %rows, i64 %place{row}")
        lines.append(f"  %a{row} = load {kind}, ptr %at{row}")
    inside = ", ".join(f"{kind} %a{row}" for row in range(count))
    return [
        *lines,
        f"  %result = call {kind} @{name}({inside})",
        f"  store {kind} %result, ptr %at1",
        "  %next = add i64 %n, 1",
        "  %more = icmp slt i64 %next, %count",
        "  br i1 %more, label %loop, label %done",
        "done:",
        "  ret void",
        "}",
    ]


def vector_function(rare: Rare, lanes: int) -> list[str]:
    """Write a vector variant: the usual result unless any lane is large."""
    name, dtype = rare_name(rare), rare[1]
    vector, mask = type_name(dtype, lanes), f"<{lanes} x i1>"
    parameters = parameters_of(rare, lanes)
    lines = [
        f"define internal {vector} @{name}_v{lanes}({', '.join(parameters)}) #2 {{",
        f"  %rows = alloca [{len(parameters)} x {vector}]",
        f"  %size = call {vector} @llvm.fabs.v{lanes}f{dtype.bits}({vector} %gauge)",
        f"  %is_rare = fcmp oge {vector} %size, splat ({type_name(dtype)} {RARE_FROM:f})",
        f"  %any = call i1 @llvm.vector.reduce.or.v{lanes}i1({mask} %is_rare)",
        "  br i1 %any, label %rare, label %done",
        "rare:",
    ]
    for row, parameter in enumerate(parameters):
        lines.append(f"  %at{row} = getelementptr {vector}, ptr %rows, i64 {row}")
        lines.append(f"  store {parameter}, ptr %at{row}")
    return [
        *lines,
        f"  call void @{name}_all(ptr %rows, i64 {lanes})",
        f"  %found = load {vector}, ptr %at1",
        "  br label %done",
        "done:",
        f"  %result = phi {vector} [ %usual, %0 ], [ %found, %rare ]",
        f"  ret {vector} %result",
        "}",
    ]


def rare_declarations(rares: Sequence[Rare]) -> dict[str, None]:
    """Declare what the functions call."""
    lines = []
    for op, dtype, count in rares:
        lines.append(library_declaration(op, max(count - 2, 1)))
        for lanes in (1, *LANES):
            vector, bits = type_name(dtype, lanes), f"f{dtype.bits}"
            suffix = bits if lanes == 1 else f"v{lanes}{bits}"
            lines.append(f"declare {vector} @llvm.fabs.{suffix}({vector})")
            if lanes > 1:
                name = f"@llvm.vector.reduce.or.v{lanes}i1"
                lines.append(f"declare i1 {name}(<{lanes} x i1>)")
    return dict.fromkeys(lines)
