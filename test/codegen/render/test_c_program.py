"""The lines that languages of the C family have alike."""

from picograd.codegen.program import Instr, Program
from picograd.codegen.render.c_program import Writer
from picograd.dtype import bool_, float32, int32


def written(*instructions: Instr) -> list[str]:
    program = Program("k", instructions, ((float32, "in"), (float32, "out")), ((64, False),))
    return [line.strip() for line in Writer(program).body().splitlines()]


INPUT, OUTPUT = Instr("param", float32, arg=0), Instr("param", float32, arg=1)
FIRST, LAST = Instr("const", int32, arg=0), Instr("const", int32, arg=8)


def test_a_loop_with_a_masked_load_and_a_store() -> None:
    loop = Instr("loop", int32, (2, 3), (4, True))
    mask = Instr("less", bool_, (4, 3))
    load = Instr("load", float32, (0, 4, 5), lanes=1)
    store = Instr("store", float32, (1, 4, 6, 5))
    lines = written(INPUT, OUTPUT, FIRST, LAST, loop, mask, load, store, Instr("end", None))
    assert lines == [
        "#pragma unroll",
        "for (int v4 = 0; v4 < 8; v4 += 4) {",
        "const bool v5 = v4 < 8;",
        "const float v6 = v5 ? s0[v4] : float{};",
        "if (v5) s1[v4] = v6;",
        "}",
    ]


def test_vectors_are_read_whole_and_computed_lane_by_lane() -> None:
    load = Instr("load", float32, (0, 2), lanes=2)
    twice = Instr("add", float32, (3, 3), lanes=2)
    store = Instr("store", float32, (1, 2, 4), lanes=2)
    assert written(INPUT, OUTPUT, FIRST, load, twice, store) == [
        "const Vector<float, 2> v3 = *(const Vector<float, 2>*)(s0 + 0);",
        "const Vector<float, 2> v4 = {v3[0] + v3[0], v3[1] + v3[1]};",
        "*(Vector<float, 2>*)(s1 + 0) = v4;",
    ]


def test_a_choice_and_a_workspace() -> None:
    choice = Instr("choose", float32, (2, 0, 0), "in")
    space = Instr("workspace", float32, arg=0)
    assert written(INPUT, OUTPUT, FIRST, choice, space) == [
        "const float* __restrict__ v3;",
        "switch (0) { case 0: v3 = s0; break; default: v3 = s0; }",
        "float* const v4 = (float*)w0;",
    ]
