"""Render a Program as LLVM IR text.

The entry point reads the pointers and scalars and calls one internal function whose pointer
parameters carry `noalias`: a kernel's slots never overlap (an updated array is one "inout" slot).
Workspaces have no `noalias`, because other tasks write to them while this one runs.

Fast-math flags: only the sums of reductions may be reassociated, and contract with a product to
fma. Other arithmetic is rounded as written, as on every device (docs/design/0009-random-bits.md).
"""

from collections.abc import Callable

from picograd.codegen.program import Instr, Program
from picograd.codegen.render import llvm_rare, llvm_tiles
from picograd.codegen.render.llvm_loops import LoopHints
from picograd.codegen.render.llvm_types import (
    in_turn,
    literal,
    mangled,
    masked,
    memory_type,
    saturating,
    type_name,
    widened,
)
from picograd.dtype import DType, bfloat16, bool_
from picograd.errors import check, internal

TITLE = "LLVM IR"
FLAGS = {"reduce": " reassoc nsz contract", "mul": " contract"}
BINARY = {  # op: (float, signed, unsigned)
    "add": ("fadd", "add", "add"),
    "sub": ("fsub", "sub", "sub"),
    "mul": ("fmul", "mul", "mul"),
    "div": ("fdiv", "", ""),
    "quotient": ("", "sdiv", "udiv"),
    "remainder": ("frem", "srem", "urem"),
    **dict.fromkeys(("bitwise_and", "and"), ("", "and", "and")),
    **dict.fromkeys(("bitwise_or", "or"), ("", "or", "or")),
    "bitwise_xor": ("", "xor", "xor"),
    "shift_left": ("", "shl", "shl"),
    "shift_right": ("", "ashr", "lshr"),
}
COMPARE = {
    "less": ("olt", "slt", "ult"),
    "less_equal": ("ole", "sle", "ule"),
    "equal": ("oeq", "eq", "eq"),
    "not_equal": ("une", "ne", "ne"),
}
EXTREME = {"maximum": ("maximum", "smax", "umax"), "minimum": ("minimum", "smin", "umin")}
FLOAT_INTRINSICS = {
    "abs": "fabs", "sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "trunc": "trunc",
    "round": "roundeven", "exp": "exp", "log": "log", "sin": "sin", "cos": "cos", "pow": "pow",
    "fma": "fma",
}  # fmt: skip


def kind(dtype: DType) -> int:
    """Column of the spelling tables: float 0, signed 1, unsigned (and bool) 2."""
    return 0 if dtype.is_float else 1 if dtype.kind == "int" else 2


def render(program: Program) -> str:
    """Write the module text of a program."""
    return Renderer(program).module()


class Renderer:
    """Writes the lines of one program; `text[n]` is how instruction n's value is spelled."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.instructions: tuple[Instr, ...] = program.instructions
        self.text: list[str] = []
        self.lines: list[str] = []
        self.allocas: list[str] = []
        self.last: list[str] = []
        self.declares: dict[str, None] = {}
        self.label: str = "task0"
        self.open: list[tuple[str, int]] = []
        self.hints = LoopHints(self.instructions)
        rare = [instr for instr in self.instructions if instr.op == "rare"]
        self.rare_ops = list(dict.fromkeys(map(llvm_rare.rare_of, rare)))
        self.declares |= llvm_rare.rare_declarations(self.rare_ops)

    # -- the module -------------------------------------------------------------------------------

    def module(self) -> str:
        """Write the whole module."""
        for number, instr in enumerate(self.instructions):
            self.text.append(self.instruction(number, instr))
        slots, scalars = self.program.parameters, self.program.scalars
        parameters = [f"ptr noalias %s{n}" for n in range(len(slots))]
        parameters += [f"ptr %w{n}" for n in range(len(self.program.workspaces))]
        parameters += [f"{type_name(d)} %c{n}" for n, d in enumerate(scalars)]
        parameters += ["ptr noalias %scratch", "i64 %begin", "i64 %end"]
        body = [
            f"define internal void @body({', '.join(parameters)}) #0 {{",
            "entry:",
            *self.allocas,
            "  br label %head",
            "head:",
            "  %task = phi i64 [ %begin, %entry ], [ %next_task, %done ]",
            "  %more = icmp slt i64 %task, %end",
            "  br i1 %more, label %task0, label %return",
            "task0:",
            *self.lines,
            "  br label %done",
            "done:",
            "  %next_task = add nuw nsw i64 %task, 1",
            "  br label %head",
            "return:",
            *self.last,
            "  ret void",
            "}",
        ]
        parts = [
            *body,
            "",
            *self.entry(parameters),
            "",
            *self.declares,
            'attributes #0 = { noinline nounwind "prefer-vector-width"="512" }',
            *self.hints.lines,
        ]
        parts += llvm_rare.rare_functions(self.rare_ops)
        return "\n".join(parts) + "\n"

    def entry(self, parameters: list[str]) -> list[str]:
        """Write the function the runtime calls."""
        name = self.program.name
        arguments = "ptr %buffers, ptr %scalars, ptr %scratch, i64 %begin, i64 %end"
        lines = [f"define void @{name}({arguments}) {{"]
        count = len(self.program.parameters)
        for n in range(count + len(self.program.workspaces)):
            value = f"s{n}" if n < count else f"w{n - count}"
            lines.append(f"  %a{value} = getelementptr ptr, ptr %buffers, i64 {n}")
            lines.append(f"  %{value} = load ptr, ptr %a{value}")
        for n, dtype in enumerate(self.program.scalars):
            cell = "double" if dtype.is_float else "i64"
            lines.append(f"  %ac{n} = getelementptr i64, ptr %scalars, i64 {n}")
            if type_name(dtype) == cell:
                lines.append(f"  %c{n} = load {cell}, ptr %ac{n}")
                continue
            convert = "fptrunc" if dtype.is_float else "trunc"
            lines.append(f"  %r{n} = load {cell}, ptr %ac{n}")
            if dtype.is_float and dtype.bits == 16:  # by way of float: no library call
                lines.append(f"  %f{n} = fptrunc double %r{n} to float")
                cell, source = "float", f"%f{n}"
            else:
                source = f"%r{n}"
            narrow = "bfloat" if dtype is bfloat16 else type_name(dtype)
            name = f"%b{n}" if dtype is bfloat16 else f"%c{n}"
            lines.append(f"  {name} = {convert} {cell} {source} to {narrow}")
            if dtype is bfloat16:
                lines.append(f"  %c{n} = bitcast bfloat {name} to i16")
        arguments = ", ".join(p.replace("noalias ", "") for p in parameters)
        return [*lines, f"  call void @body({arguments})", "  ret void", "}"]

    # -- spelling ---------------------------------------------------------------------------------

    def emit(self, line: str) -> None:
        """Append one line to the body."""
        self.lines.append("  " + line)

    def start(self, label: str) -> None:
        """Open a basic block."""
        self.lines.append(f"{label}:")
        self.label = label

    def of(self, position: int) -> str:
        """Spell a value with its type."""
        instr = self.instructions[position]
        return f"{type_name(self.dtype(position), instr.lanes)} {self.text[position]}"

    def dtype(self, position: int) -> DType:
        """Find the dtype of a value."""
        dtype = self.instructions[position].dtype
        if dtype is None:
            internal(f"%{position} has no dtype", self.program)
        return dtype

    def call(self, number: int, name: str, result: str, args: list[str]) -> str:
        """Call a function, declaring it at its first use."""
        types = ", ".join(a.rsplit(" ", 1)[0] for a in args)
        self.declares[f"declare {result} @{name}({types})"] = None
        self.emit(f"%v{number} = call {result} @{name}({', '.join(args)})")
        return f"%v{number}"

    def address(self, number: int, pointer: int, index: int, dtype: DType) -> str:
        """Compute the address of an element."""
        self.emit(
            f"%p{number} = getelementptr inbounds {memory_type(dtype)},"
            f" ptr {self.text[pointer]}, i64 {self.text[index]}"
        )
        return f"%p{number}"

    def instruction(self, number: int, instr: Instr) -> str:
        """Write one instruction and return how its value is spelled."""
        method = METHODS.get(instr.op)
        return self.elementwise(number, instr) if method is None else method(self, number, instr)

    def leaf(self, number: int, instr: Instr) -> str:
        """Name a value that needs no line."""
        names = {"param": "%s", "workspace": "%w", "scalar": "%c"}
        if instr.op == "const":
            check(instr.dtype is not None, "a constant has a dtype")
            return literal(instr.arg, instr.dtype)  # type: ignore[arg-type]
        return "%task" if instr.op == "task" else f"{names[instr.op]}{instr.arg}"

    def scratch(self, number: int, instr: Instr) -> str:
        """Point into the worker's scratch memory."""
        self.allocas.append(
            f"  %v{number} = getelementptr inbounds i8, ptr %scratch, i64 {instr.arg}"
        )
        return f"%v{number}"

    # -- structure --------------------------------------------------------------------------------

    def loop(self, number: int, instr: Instr) -> str:
        """Open a loop."""
        start, stop = (self.text[a] for a in instr.args)
        step = instr.arg[0]
        self.hints.enter(number, [each for _, each in self.open])
        self.emit(f"br label %head{number}")
        previous = self.label
        self.start(f"head{number}")
        again = f"[ %next{number}, %latch{number} ]"
        self.emit(f"%v{number} = phi i64 [ {start}, %{previous} ], {again}")
        self.emit(f"%more{number} = icmp slt i64 %v{number}, {stop}")
        self.emit(f"br i1 %more{number}, label %body{number}, label %exit{number}")
        self.start(f"body{number}")
        self.open.append((f"nsw i64 %v{number}, {step}", number))
        return f"%v{number}"

    def branch(self, number: int, instr: Instr) -> str:
        """Open a branch."""
        self.emit(f"br i1 {self.text[instr.args[0]]}, label %then{number}, label %exit{number}")
        self.start(f"then{number}")
        self.open.append(("", number))
        return ""

    def end(self, number: int, instr: Instr) -> str:
        """Close the innermost loop or branch."""
        increment, opened = self.open.pop()
        if increment:
            self.emit(f"br label %latch{opened}")
            self.start(f"latch{opened}")
            self.emit(f"%next{opened} = add {increment}")
            self.emit(f"br label %head{opened}{self.hints.leave(opened)}")
        else:
            self.emit(f"br label %exit{opened}")
        self.start(f"exit{opened}")
        return ""

    # -- memory -----------------------------------------------------------------------------------

    def load(self, number: int, instr: Instr) -> str:
        """Load, under a branch if there is a mask; the vectoriser makes masked loads of those."""
        pointer, index, *mask = instr.args
        dtype, lanes = self.dtype(number), instr.lanes
        memory, align = memory_type(dtype, lanes), dtype.itemsize
        address, name = self.address(number, pointer, index, dtype), f"%m{number}"
        if mask and self.instructions[mask[0]].lanes > 1:
            function, declared = masked("load", dtype, lanes)
            self.declares[declared] = None
            self.emit(
                f"{name} = call {memory} @{function}(ptr {address}, i32 {align},"
                f" {self.of(mask[0])}, {memory} zeroinitializer)"
            )
        elif mask:
            self.emit(f"br i1 {self.text[mask[0]]}, label %load{number}, label %join{number}")
            previous = self.label
            self.start(f"load{number}")
            self.emit(f"%t{number} = load {memory}, ptr {address}, align {align}")
            self.emit(f"br label %join{number}")
            self.start(f"join{number}")
            zero = "zeroinitializer"
            self.emit(
                f"{name} = phi {memory} [ %t{number}, %load{number} ], [ {zero}, %{previous} ]"
            )
        else:
            self.emit(f"{name} = load {memory}, ptr {address}, align {align}")
        if dtype is not bool_:
            return name
        self.emit(f"%v{number} = icmp ne {memory} {name}, zeroinitializer")
        return f"%v{number}"

    def store(self, number: int, instr: Instr) -> str:
        """Store, under a branch if there is a mask."""
        pointer, index, value, *mask = instr.args
        dtype, lanes = self.dtype(value), instr.lanes
        is_branch = bool(mask) and lanes == 1
        if is_branch:
            self.emit(f"br i1 {self.text[mask[0]]}, label %store{number}, label %join{number}")
            self.start(f"store{number}")
        stored = self.of(value)
        if dtype is bool_:
            self.emit(f"%b{number} = zext {stored} to {memory_type(dtype, lanes)}")
            stored = f"{memory_type(dtype, lanes)} %b{number}"
        address = self.address(number, pointer, index, dtype)
        if mask and self.is_first_alone(mask[0]):
            memory = memory_type(dtype)
            self.emit(f"%e{number} = extractelement {stored}, i32 0")
            self.emit(f"store {memory} %e{number}, ptr {address}, align {dtype.itemsize}")
        elif mask and not is_branch:
            function, declared = masked("store", dtype, lanes)
            self.declares[declared] = None
            place = f"ptr {address}, i32 {dtype.itemsize}"
            self.emit(f"call void @{function}({stored}, {place}, {self.of(mask[0])})")
        else:
            self.emit(f"store {stored}, ptr {address}, align {dtype.itemsize}")
        if is_branch:
            self.emit(f"br label %join{number}")
            self.start(f"join{number}")
        return ""

    def is_first_alone(self, mask: int) -> bool:
        """Tell whether a mask is known to show the first lane alone.

        With AVX-512, LLVM 22 stores what was truncated as wide as it was, where a mask is so.
        """
        instr = self.instructions[mask]
        shown = [self.instructions[lane].arg for lane in instr.args]
        return instr.op == "pack" and shown == [True] + [False] * (instr.lanes - 1)

    def array(self, number: int, instr: Instr) -> str:
        """Reserve a register array; LLVM turns those of constant indices into registers."""
        element = type_name(self.dtype(number), instr.lanes)
        self.allocas.append(f"  %v{number} = alloca [{instr.arg} x {element}], align 64")
        return f"%v{number}"

    def element(self, number: int, array: int, index: int) -> str:
        """Compute the address of an array element."""
        element = type_name(self.dtype(array), self.instructions[array].lanes)
        self.emit(
            f"%p{number} = getelementptr inbounds {element},"
            f" ptr {self.text[array]}, i64 {self.text[index]}"
        )
        return f"%p{number}"

    def get(self, number: int, instr: Instr) -> str:
        """Read an array element."""
        address = self.element(number, *instr.args)
        self.emit(f"%v{number} = load {type_name(self.dtype(number), instr.lanes)}, ptr {address}")
        return f"%v{number}"

    def set(self, number: int, instr: Instr) -> str:
        """Write an array element."""
        array, index, value = instr.args
        self.emit(f"store {self.of(value)}, ptr {self.element(number, array, index)}")
        return ""

    def atomic_add(self, number: int, instr: Instr) -> str:
        """Add atomically and return the old value."""
        pointer, index, value = instr.args
        address = self.address(number, pointer, index, self.dtype(number))
        self.emit(f"%v{number} = atomicrmw add ptr {address}, {self.of(value)} acq_rel")
        return f"%v{number}"

    # -- vectors ----------------------------------------------------------------------------------

    def splat(self, number: int, instr: Instr) -> str:
        """Repeat a scalar."""
        vector = type_name(self.dtype(number), instr.lanes)
        self.emit(f"%i{number} = insertelement {vector} poison, {self.of(instr.args[0])}, i64 0")
        mask = f"<{instr.lanes} x i32> zeroinitializer"
        self.emit(f"%v{number} = shufflevector {vector} %i{number}, {vector} poison, {mask}")
        return f"%v{number}"

    def pack(self, number: int, instr: Instr) -> str:
        """Build a vector of scalars."""
        vector, value = type_name(self.dtype(number), instr.lanes), "poison"
        for lane, arg in enumerate(instr.args):
            name = f"%i{number}_{lane}"
            self.emit(f"{name} = insertelement {vector} {value}, {self.of(arg)}, i64 {lane}")
            value = name
        return value

    def extract(self, number: int, instr: Instr) -> str:
        """Take one lane."""
        self.emit(f"%v{number} = extractelement {self.of(instr.args[0])}, i64 {instr.arg}")
        return f"%v{number}"

    def interleave(self, number: int, instr: Instr) -> str:
        """Take the lanes of a half of two vectors in turn."""
        a, b = (self.of(each) for each in instr.args)
        self.emit(f"%v{number} = shufflevector {a}, {b}, {in_turn(instr.lanes, instr.arg)}")
        return f"%v{number}"

    # -- elementwise ------------------------------------------------------------------------------

    def elementwise(self, number: int, instr: Instr) -> str:
        """Write an elementwise operation."""
        op, args = instr.op, [self.of(a) for a in instr.args]
        dtype = self.dtype(instr.args[-1])
        column, vector = kind(dtype), type_name(dtype, instr.lanes)
        operands = ", ".join(self.text[a] for a in instr.args)
        value = f"%v{number}"
        if op in BINARY:
            self.emit(f"{value} = {self.arithmetic(instr, column)} {vector} {operands}")
        elif op in COMPARE:
            compare = "fcmp" if column == 0 else "icmp"
            self.emit(f"{value} = {compare} {COMPARE[op][column]} {vector} {operands}")
        elif op in EXTREME:
            name = f"llvm.{EXTREME[op][column]}.{mangled(dtype, instr.lanes)}"
            flags = FLAGS["reduce"] if instr.arg == "reduce" and column == 0 else ""
            self.declares[f"declare {vector} @{name}({vector}, {vector})"] = None
            self.emit(f"{value} = call{flags} {vector} @{name}({', '.join(args)})")
        elif op == "where":
            self.emit(f"{value} = select {', '.join(args)}")
        elif op == "not":
            ones = "true" if instr.lanes == 1 else "splat (i1 true)"
            self.emit(f"{value} = xor {vector} {operands}, {ones}")
        elif op == "neg":
            negation = f"fneg {vector}" if column == 0 else f"sub {vector} zeroinitializer,"
            self.emit(f"{value} = {negation} {operands}")
        elif op == "bitwise_not":
            ones = "-1" if instr.lanes == 1 else f"splat ({type_name(dtype)} -1)"
            self.emit(f"{value} = xor {vector} {operands}, {ones}")
        elif column == 0 or op == "abs":
            return self.function(number, instr, args)
        elif op in ("floor", "ceil", "round", "trunc"):
            return self.text[instr.args[0]]
        else:
            internal(f"LLVM cannot spell {op} of {dtype.name}", self.program)
        return value

    def arithmetic(self, instr: Instr, column: int) -> str:
        """Spell a binary operation with its flags."""
        name = BINARY[instr.op][column]
        if column == 0:
            return name + FLAGS.get(instr.arg or instr.op, "")
        if instr.arg == "nowrap":
            return {"quotient": "udiv", "remainder": "urem"}.get(instr.op, name + " nsw")
        return name

    def function(self, number: int, instr: Instr, args: list[str]) -> str:
        """Call an intrinsic, or libm's function."""
        dtype = self.dtype(number)
        vector = type_name(dtype, instr.lanes)
        if not dtype.is_float:
            if dtype.kind != "int":
                return self.text[instr.args[0]]
            name = f"llvm.abs.{mangled(dtype, instr.lanes)}"
            return self.call(number, name, vector, [args[0], "i1 false"])
        if instr.op not in FLOAT_INTRINSICS:
            self.declares[llvm_rare.library_declaration(instr.op, len(args))] = None
            self.lines += [f"  {line}" for line in llvm_rare.library_lines(number, instr, args)]
            return f"%v{number}"
        name = f"llvm.{FLOAT_INTRINSICS[instr.op]}.{mangled(dtype, instr.lanes)}"
        return self.call(number, name, vector, args)

    def rare(self, number: int, instr: Instr) -> str:
        """Call the function of one element, with the names of its variants, or the variant."""
        self.emit(llvm_rare.rare_call(number, instr, [self.of(a) for a in instr.args]))
        return f"%v{number}"

    def cast(self, number: int, instr: Instr) -> str:
        """Convert between dtypes; float to integer saturates and NaN gives 0."""
        source, target = self.dtype(instr.args[0]), self.dtype(number)
        value, result = self.of(instr.args[0]), type_name(target, instr.lanes)
        check(target is not bfloat16, "codegen/value.py rounds to bfloat16", self.program)
        if source is bfloat16:
            self.lines += [f"  {line}" for line in widened(number, value, instr.lanes)]
            return f"%v{number}"
        if source.is_float and not target.is_float:
            lines = saturating(number, value, source, target, instr.lanes)
            self.lines += [f"  {line}" for line in lines]
            return f"%v{number}"
        if source.is_float:
            op = "fpext" if target.bits > source.bits else "fptrunc"
        elif target.is_float:
            op = "sitofp" if source.kind == "int" else "uitofp"
        else:
            width = 1 if source is bool_ else source.bits
            widen = "sext" if source.kind == "int" else "zext"
            op = widen if target.bits > width else "trunc" if target.bits < width else "bitcast"
        self.emit(f"%v{number} = {op} {value} to {result}")
        return f"%v{number}"

    def bitcast(self, number: int, instr: Instr) -> str:
        """Reinterpret bits."""
        result = type_name(self.dtype(number), instr.lanes)
        self.emit(f"%v{number} = bitcast {self.of(instr.args[0])} to {result}")
        return f"%v{number}"


METHODS: dict[str, Callable[[Renderer, int, Instr], str]] = {
    **dict.fromkeys(("param", "workspace", "scalar", "const", "task"), Renderer.leaf),
    "scratch": Renderer.scratch, "loop": Renderer.loop, "if": Renderer.branch,
    "end": Renderer.end, "load": Renderer.load, "store": Renderer.store,
    "array": Renderer.array, "get": Renderer.get, "set": Renderer.set,
    "atomic_add": Renderer.atomic_add, "splat": Renderer.splat,
    "interleave": Renderer.interleave, "pack": Renderer.pack, "extract": Renderer.extract,
    "cast": Renderer.cast, "bitcast": Renderer.bitcast, "rare": Renderer.rare,
    "multiply_tiles": llvm_tiles.multiply,
}  # fmt: skip
