"""LLVM IR text of `rare` instructions: a library function where |x| is large, for the lanes there.

The function is the one of float64, whose result is rounded once.

The loop vectoriser turns a call of the scalar function `@rare_sin` into a call of one of its vector
variants, which the attribute "vector-function-abi-variant" names. A variant tests all lanes at once
and goes lane by lane only if one is large. Variants are inlined after the vectoriser has run.
"""

from collections.abc import Sequence

from picograd.codegen.program import RARE_FROM, Instr

LANES = (2, 4, 8, 16, 32)  # the vectoriser may choose any


def rare_call(number: int, instr: Instr, args: Sequence[str]) -> str:
    """Write the call of a vector variant, or of the scalar function, naming its variants."""
    op, lanes, inside = instr.arg, instr.lanes, ", ".join(args)
    if lanes > 1:
        return f"%v{number} = call <{lanes} x float> @rare_{op}_v{lanes}({inside})"
    names = ",".join(f"_ZGV_LLVM_N{n}vv_rare_{op}(rare_{op}_v{n})" for n in LANES)
    promises = f'nounwind willreturn memory(none) "vector-function-abi-variant"="{names}"'
    return f"%v{number} = call float @rare_{op}({inside}) {promises}"


def rare_functions(ops: Sequence[str]) -> list[str]:
    """Write the functions of every operation, and a list that keeps the variants."""
    if not ops:
        return []
    lines = []
    for op in ops:
        lines += scalar_function(op)
        for lanes in LANES:
            lines += vector_function(op, lanes)
    used = [f"ptr @rare_{op}_v{lanes}" for op in ops for lanes in LANES]
    table = f"[{len(used)} x ptr] [{', '.join(used)}]"
    lines.append(f'@llvm.compiler.used = appending global {table}, section "llvm.metadata"')
    lines.append("attributes #1 = { noinline nounwind willreturn cold }")
    lines.append('attributes #2 = { alwaysinline nounwind willreturn "prefer-vector-width"="512" }')
    return lines


def scalar_function(op: str) -> list[str]:
    """Write the choice for one element, and for an array of them in place of `usual`."""
    return [
        f"define internal float @rare_{op}(float %x, float %usual) #1 {{",
        "  %size = call float @llvm.fabs.f32(float %x)",
        f"  %is_rare = fcmp oge float %size, {RARE_FROM:f}",
        "  br i1 %is_rare, label %rare, label %done",
        "rare:",
        "  %wide = fpext float %x to double",
        f"  %value = call double @{op}(double %wide)",
        "  %found = fptrunc double %value to float",
        "  br label %done",
        "done:",
        "  %result = phi float [ %usual, %0 ], [ %found, %rare ]",
        "  ret float %result",
        "}",
        f"define internal void @rare_{op}_all(ptr %from, ptr %to, i64 %count) #1 {{",
        "  br label %loop",
        "loop:",
        "  %n = phi i64 [ 0, %0 ], [ %next, %loop ]",
        "  %x_at = getelementptr float, ptr %from, i64 %n",
        "  %at = getelementptr float, ptr %to, i64 %n",
        "  %x = load float, ptr %x_at",
        "  %usual = load float, ptr %at",
        f"  %result = call float @rare_{op}(float %x, float %usual)",
        "  store float %result, ptr %at",
        "  %next = add i64 %n, 1",
        "  %more = icmp slt i64 %next, %count",
        "  br i1 %more, label %loop, label %done",
        "done:",
        "  ret void",
        "}",
    ]


def vector_function(op: str, lanes: int) -> list[str]:
    """Write a vector variant: the usual result unless any lane is large."""
    vector, mask = f"<{lanes} x float>", f"<{lanes} x i1>"
    return [
        f"define internal {vector} @rare_{op}_v{lanes}({vector} %x, {vector} %usual) #2 {{",
        f"  %from = alloca {vector}",
        f"  %to = alloca {vector}",
        f"  %size = call {vector} @llvm.fabs.v{lanes}f32({vector} %x)",
        f"  %is_rare = fcmp oge {vector} %size, splat (float {RARE_FROM:f})",
        f"  %any = call i1 @llvm.vector.reduce.or.v{lanes}i1({mask} %is_rare)",
        "  br i1 %any, label %rare, label %done",
        "rare:",
        f"  store {vector} %x, ptr %from",
        f"  store {vector} %usual, ptr %to",
        f"  call void @rare_{op}_all(ptr %from, ptr %to, i64 {lanes})",
        f"  %found = load {vector}, ptr %to",
        "  br label %done",
        "done:",
        f"  %result = phi {vector} [ %usual, %0 ], [ %found, %rare ]",
        f"  ret {vector} %result",
        "}",
    ]


def rare_declarations(ops: Sequence[str]) -> dict[str, None]:
    """Declare what the functions call."""
    if not ops:
        return {}
    lines = [f"declare double @{op}(double)" for op in ops]
    lines.append("declare float @llvm.fabs.f32(float)")
    for lanes in LANES:
        vector, mask = f"<{lanes} x float>", f"<{lanes} x i1>"
        lines.append(f"declare {vector} @llvm.fabs.v{lanes}f32({vector})")
        lines.append(f"declare i1 @llvm.vector.reduce.or.v{lanes}i1({mask})")
    return dict.fromkeys(lines)
