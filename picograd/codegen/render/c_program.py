"""Writer: the instructions of a Program as lines of the C family, one instruction a line.

A language is a `Writer` with a `dialect`, rows for the instructions that it writes in its own way
(`statements`, `values`), and text around them. Where memory has address spaces, a pointer's type
begins with the name of its own (`space`).
"""

from collections.abc import Callable, Mapping

from picograd.codegen.program import SCOPES, Instr, Program
from picograd.codegen.render.c import CUDA_C, Dialect, elementwise, literal, type_name
from picograd.dtype import DType, int32
from picograd.errors import check

Statement = Callable[[str, list[str], Instr], list[str]]
Value = Callable[[list[str], Instr], str]
PARAMETERS = {"param": "s", "scalar": "c", "tensor": "t"}  # first letters of their names


class Writer:
    """Writes the lines of one program; `names[n]` is how the value of instruction n is spelled."""

    dialect: Dialect = CUDA_C
    statements: Mapping[str, Statement] = {}
    values: Mapping[str, Value] = {}

    def __init__(self, program: Program) -> None:
        self.program: Program = program
        self.names: list[str] = [f"v{number}" for number in range(len(program.instructions))]

    def body(self) -> str:
        """Write all instructions."""
        lines, depth = [], 1
        for number, instr in enumerate(self.program.instructions):
            depth -= instr.op == "end"
            for line in self.instruction(number, instr):
                is_pragma = line.startswith("#")
                lines.append(line if is_pragma else "  " * depth + line)
            depth += instr.op in SCOPES
        return "\n".join(lines)

    def instruction(self, number: int, instr: Instr) -> list[str]:
        """Write one instruction; values that are only names (constants, pointers) write nothing."""
        args, name = [self.names[a] for a in instr.args], self.names[number]
        if instr.op in self.statements:
            return self.statements[instr.op](name, args, instr)
        if instr.op in COMMON:
            return COMMON[instr.op](self, name, args, instr)
        inline = self.inline_text(instr)
        if inline is not None:
            self.names[number] = inline
            return []
        check(instr.dtype is not None, f"%{number} {instr.op} has no dtype", self.program)
        dtype = instr.dtype or int32
        if instr.op == "load":
            has_lane_mask = len(args) == 3 and self.program.instructions[instr.args[2]].lanes > 1
            write = self.masked_lanes if has_lane_mask else self.load_text
            text = write(instr, args)
        else:
            text = self.value_text(args, instr, dtype)
        return [f"const {self.type_of(instr)} {name} = {text};"]

    def type_of(self, instr: Instr, lanes: int = 0) -> str:
        """Name the type of what an instruction gives, or of other lanes of it."""
        return type_name(instr.dtype or int32, lanes or instr.lanes, self.dialect)

    def space(self, number: int) -> str:
        """Begin the type of a pointer; of a language without address spaces with nothing."""
        return ""

    def inline_text(self, instr: Instr) -> str | None:
        """Text of a value that needs no variable of its own."""
        if instr.op in PARAMETERS:
            return f"{PARAMETERS[instr.op]}{instr.arg}"
        if instr.op == "const" and instr.dtype is not None:
            text = literal(instr.arg, instr.dtype, self.dialect)
            if instr.lanes > 1:
                return self.dialect.value.format(
                    self.type_of(instr), ", ".join([text] * instr.lanes)
                )
            return text
        return None

    def zero(self, typed: str) -> str:
        """Write a value of a type that is zero."""
        return self.dialect.value.format(typed, "")

    def masked_lanes(self, instr: Instr, args: list[str]) -> str:
        """Read lanes each under its own mask."""
        pointer, index, mask = args
        zero = self.zero(self.type_of(instr, 1))
        lanes = [(self.dialect.lane.format(mask, n), n) for n in range(instr.lanes)]
        return f"{{{', '.join(f'{m} ? {pointer}[{index} + {n}] : {zero}' for m, n in lanes)}}}"

    def load_text(self, instr: Instr, args: list[str]) -> str:
        """Read one scalar or aligned vector; a false mask reads nothing and gives zero."""
        pointer, index = args[:2]
        typed = self.type_of(instr)
        if instr.lanes == 1:
            place = f"{pointer}[{index}]"
        else:
            place = f"*(const {self.space(instr.args[0])}{typed}*)({pointer} + {index})"
        return place if len(args) == 2 else self.choice(instr, args[2], place, typed)

    def choice(self, instr: Instr, mask: str, place: str, typed: str) -> str:
        """Read a place if a mask holds, else give zero."""
        return f"{mask} ? {place} : {self.zero(typed)}"

    def value_text(self, args: list[str], instr: Instr, dtype: DType) -> str:
        """Write the expression of a value that is not a load."""
        if instr.op in self.values:
            return self.values[instr.op](args, instr)
        if instr.op == "get":
            return f"{args[0]}[{args[1]}]"
        if instr.op == "splat":
            return f"{{{', '.join(args * instr.lanes)}}}"
        if instr.op == "extract":
            return self.dialect.lane.format(args[0], instr.arg)
        if instr.op == "pack":
            return f"{{{', '.join(args)}}}"
        return self.computed(args, instr, dtype)

    def computed(self, args: list[str], instr: Instr, dtype: DType) -> str:
        """Write an elementwise operation, lane by lane."""
        sources = [self.program.instructions[a] for a in instr.args]
        dtypes = [source.dtype or int32 for source in sources]
        op = f"rare_{instr.arg}" if instr.op == "rare" else instr.op
        if instr.lanes == 1:
            return elementwise(op, args, dtypes, dtype, self.dialect)
        lanes = []
        for lane in range(instr.lanes):
            picked = [self.lane_of(a, s, lane) for a, s in zip(args, sources, strict=True)]
            lanes.append(elementwise(op, picked, dtypes, dtype, self.dialect))
        return f"{{{', '.join(lanes)}}}"

    def lane_of(self, text: str, source: Instr, lane: int) -> str:
        """Text of one lane of an argument, which may be the same in all of them."""
        if source.op == "const" and source.dtype is not None:
            return literal(source.arg, source.dtype, self.dialect)
        return self.dialect.lane.format(text, lane) if source.lanes > 1 else text

    def loop(self, name: str, args: list[str], instr: Instr) -> list[str]:
        """Write a loop head; `is_unrolled` None forbids unrolling, a number says how far."""
        (first, last), (step, is_unrolled) = args, instr.arg
        head = f"for ({self.type_of(instr)} {name} = {first}; {name} < {last}; {name} += {step}) {{"
        if is_unrolled is None:
            return ["#pragma unroll 1", head]
        if is_unrolled > 1:
            return [f"#pragma unroll {is_unrolled}", head]
        return ["#pragma unroll", head] if is_unrolled else [head]

    def array(self, name: str, args: list[str], instr: Instr) -> list[str]:
        """Declare a register array."""
        return [f"{self.type_of(instr)} {name}[{instr.arg}];"]

    def store(self, name: str, args: list[str], instr: Instr) -> list[str]:
        """Write one scalar or aligned vector to memory."""
        pointer, index, value = args[:3]
        place = f"{pointer}[{index}]"
        if instr.lanes > 1:
            place = f"*({self.space(instr.args[0])}{self.type_of(instr)}*)({pointer} + {index})"
        text = f"{place} = {value};"
        return [f"if ({args[3]}) {text}" if len(args) == 4 else text]

    def shared(self, name: str, args: list[str], instr: Instr) -> list[str]:
        """Name a place in the block's shared memory."""
        return [self.pointer(name, instr, f"shared_memory() + {instr.arg}")]

    def workspace(self, name: str, args: list[str], instr: Instr) -> list[str]:
        """Name a workspace as a pointer to elements of the instruction's dtype."""
        return [self.pointer(name, instr, f"w{instr.arg}")]

    def pointer(self, name: str, instr: Instr, place: str) -> str:
        """Name a place in memory as elements of the instruction's dtype."""
        typed = f"{self.type_of(instr)}*"
        inside = f"({place})" if " " in place else place
        return f"{typed} const {name} = ({typed}){inside};"

    def choose(self, name: str, args: list[str], instr: Instr) -> list[str]:
        """Choose by a jump that a whole block takes: selections cost each thread every option."""
        declared = f"{self.chosen_type(instr)} {name};"
        cases = [f"case {n}: {name} = {option}; break;" for n, option in enumerate(args[1:-1])]
        last = f"default: {name} = {args[-1]};"
        return [declared, f"switch ({args[0]}) {{ {' '.join(cases)} {last} }}"]

    def chosen_type(self, instr: Instr) -> str:
        """Name the type of what `choose` chooses: a scalar, a workspace or a slot."""
        typed = self.type_of(instr)
        if instr.arg == "scalar":
            return typed
        if instr.arg == "workspace":
            return f"{typed}*"
        return f"{'const ' if instr.arg == 'in' else ''}{typed}* __restrict__"


COMMON: dict[str, Callable[[Writer, str, list[str], Instr], list[str]]] = {
    "loop": Writer.loop,
    "if": lambda writer, name, args, instr: [f"if ({args[0]}) {{"],
    "end": lambda writer, name, args, instr: ["}"],
    "store": Writer.store,
    "array": Writer.array,
    "set": lambda writer, name, args, instr: [f"{args[0]}[{args[1]}] = {args[2]};"],
    "shared": Writer.shared,
    "workspace": Writer.workspace,
    "choose": Writer.choose,
}
