"""LLVM IR text of products of bfloat16 by tile registers (AMX): a function for each kind of block.

Registers 0 to 3 hold results, 4 and 5 rows, 6 and 7 columns. They are named by number, as LLVM
allots none where a call may come between; `CONFIGURE` says what all of them are, in each task's
function, and `RELEASE` lets the processor forget them.
"""

from collections.abc import Iterator
from typing import Protocol

from picograd.codegen.program import Instr
from picograd.codegen.tile_products import TileProduct

SHAPES = 1, 0, 64 * 0x0001000100010001, 64 * 0x0001000100010001, 0, 0, 16 * 0x0101010101010101, 0
CONFIGURE = [  # palette 1; eight tiles of 64 bytes a row, and 16 rows
    "  %tiles = alloca [8 x i64], align 64",
    *(
        line
        for number, word in enumerate(SHAPES)
        for line in (
            f"  %tiles{number} = getelementptr i64, ptr %tiles, i64 {number}",
            f"  store i64 {word}, ptr %tiles{number}",
        )
    ),
    "  call void @llvm.x86.ldtilecfg(ptr %tiles)",
]
RELEASE = "  call void @llvm.x86.tilerelease()"
OPERANDS = {"c": "float", "a": "i16", "b": "i16"}
TEXTS = (
    "declare void @llvm.x86.ldtilecfg(ptr)",
    "declare void @llvm.x86.tilerelease()",
    "declare void @llvm.x86.tilezero(i8 immarg)",
    "declare void @llvm.x86.tileloadd64(i8 immarg, ptr, i64)",
    "declare void @llvm.x86.tilestored64(i8 immarg, ptr, i64)",
    "declare void @llvm.x86.tdpbf16ps(i8 immarg, i8 immarg, i8 immarg)",
)
DECLARATIONS = dict.fromkeys(TEXTS)


class Body(Protocol):
    """What the renderer offers: lines that begin and end the function of tasks, and declarations.

    `text[n]` is how the value of instruction n is spelled.
    """

    text: list[str]
    allocas: list[str]
    last: list[str]
    declares: dict[str, None]

    def emit(self, line: str) -> None:
        """Append a line."""


def multiply(body: Body, number: int, instr: Instr) -> str:
    """Call the function of a block, between what begins the use of tiles and what ends it."""
    if not body.last:
        body.allocas += CONFIGURE
        body.last.append(RELEASE)
        body.declares |= DECLARATIONS
    product: TileProduct = instr.arg
    function = "\n".join(lines_of(product))
    body.declares[function] = None
    pointers = []
    for place, name in enumerate(OPERANDS):
        memory, index = (body.text[each] for each in instr.args[2 * place : 2 * place + 2])
        pointer = f"%{name}{number}"
        body.emit(f"{pointer} = getelementptr {OPERANDS[name]}, ptr {memory}, i64 {index}")
        pointers.append(f"ptr {pointer}")
    arguments = ", ".join(pointers)
    body.emit(f"call void @{name_of(product)}({arguments})")
    return ""


def name_of(each: TileProduct) -> str:
    """Name the function of a block."""
    sizes = each.rows, each.columns, each.steps, each.acc_row, each.a_row, each.b_row
    return f"tiles_{'_'.join(map(str, sizes))}{'_first' * each.is_first}"


def lines_of(each: TileProduct) -> Iterator[str]:
    """Write the function of a block."""
    results = [(row, column) for row in range(each.rows) for column in range(each.columns)]
    yield f"define internal void @{name_of(each)}(ptr %c, ptr %a, ptr %b) #0 {{"
    yield "entry:"
    for row, column in results:
        at = 16 * (row * each.acc_row + column)
        yield f"  %c{row}{column} = getelementptr float, ptr %c, i64 {at}"
        if each.is_first:
            yield f"  call void @llvm.x86.tilezero(i8 {2 * row + column})"
        else:
            yield moved("load", 2 * row + column, f"%c{row}{column}", 4 * each.acc_row)
    yield "  br label %loop"
    yield "loop:"
    yield "  %k = phi i64 [ 0, %entry ], [ %next, %loop ]"
    yield f"  %b.at = mul nuw nsw i64 %k, {16 * each.b_row}"
    yield "  %a.at = mul nuw nsw i64 %k, 32"
    for name, count, step, line in (("b", each.columns, 32, each.b_row),
                                    ("a", each.rows, 16 * each.a_row, each.a_row)):  # fmt: skip
        yield f"  %{name}0 = getelementptr i16, ptr %{name}, i64 %{name}.at"
        for number in range(count):
            if number:
                yield f"  %{name}{number} = getelementptr i16, ptr %{name}0, i64 {step}"
            yield moved("load", (4 if name == "a" else 6) + number, f"%{name}{number}", 2 * line)
    for row, column in results:
        registers = f"i8 {2 * row + column}, i8 {4 + row}, i8 {6 + column}"
        yield f"  call void @llvm.x86.tdpbf16ps({registers})"
    yield "  %next = add nuw nsw i64 %k, 1"
    yield f"  %more = icmp ult i64 %next, {each.steps}"
    yield "  br i1 %more, label %loop, label %exit"
    yield "exit:"
    for row, column in results:
        yield moved("store", 2 * row + column, f"%c{row}{column}", 4 * each.acc_row)
    yield "  ret void"
    yield "}"


def moved(kind: str, register: int, pointer: str, step: int) -> str:
    """Load or store a tile whose rows are so many bytes apart."""
    return f"  call void @llvm.x86.tile{kind}d64(i8 {register}, ptr {pointer}, i64 {step})"
