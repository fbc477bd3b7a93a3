"""What the text of LLVM IR says of its loops: which are unrolled, as metadata at their ends."""

from collections.abc import Iterable, Sequence

from picograd.codegen.program import Instr
from picograd.helpers import ceil_div

FEW_ROUNDS = 8  # of a loop that LLVM unrolls fully unasked, if it is not large


class LoopHints:
    """The wishes of a program's loops, and `lines`, the metadata that spells them.

    Where a template says nothing LLVM decides about innermost loops alone: copies of whole loops
    gain nothing, and took a sixth of the time it takes to compile (measured).
    """

    def __init__(self, instructions: Sequence[Instr]) -> None:
        self.instructions = instructions
        self.lines: list[str] = []
        self.notes: dict[str, str] = {}  # names by text
        self.outer: set[int] = set()  # loops that contain one which stays a loop

    def enter(self, loop: int, around: Iterable[int]) -> None:
        """Note that a loop begins inside of others."""
        rounds, wish = self.rounds(loop), self.instructions[loop].arg[1]
        is_copied = rounds is not None and wish is not None and (wish or rounds <= FEW_ROUNDS)
        if not is_copied:
            self.outer.update(around)

    def rounds(self, loop: int) -> int | None:
        """Count the rounds of a loop, None if that is not known."""
        instr = self.instructions[loop]
        bounds = [self.instructions[each] for each in instr.args]
        if [each.op for each in bounds] != ["const", "const"]:
            return None
        start, stop = (each.arg for each in bounds)
        return ceil_div(stop - start, instr.arg[0])

    def leave(self, loop: int) -> str:
        """Spell the wish of a loop, to be put at its end; LLVM warns where one cannot be met.

        A loop that must not be unrolled may be once it works on vectors: what few of them read at
        each round then stays in registers.
        """
        wish = self.instructions[loop].arg[1]
        if wish:
            return "" if self.rounds(loop) is None else self.tag('"llvm.loop.unroll.full"')
        if wish is None:
            once = self.note('"llvm.loop.isvectorized", i32 1')
            whole = f'"llvm.loop.vectorize.followup_vectorized", {once}'
            return self.tag('"llvm.loop.unroll.disable"', whole)
        return self.tag('"llvm.loop.unroll.disable"') if loop in self.outer else ""

    def tag(self, *wishes: str) -> str:
        """Give a loop these wishes."""
        notes = ", ".join([self.note(wish) for wish in wishes])
        name = f"!{len(self.lines)}"
        self.lines.append(f"{name} = distinct !{{{name}, {notes}}}")
        return f", !llvm.loop {name}"

    def note(self, text: str) -> str:
        """Name a wish; loops of the same one share it."""
        if text not in self.notes:
            self.notes[text] = f"!{len(self.lines)}"
            self.lines.append(f"{self.notes[text]} = !{{!{text}}}")
        return self.notes[text]
