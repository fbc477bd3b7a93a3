"""Functions of tile products: each kind once, between what begins and ends the use of tiles."""

from picograd.codegen.program import Instr
from picograd.codegen.render.llvm_tiles import lines_of, multiply, name_of
from picograd.codegen.tile_products import TileProduct

BLOCK = TileProduct(2, 1, 3, acc_row=48, a_row=128, b_row=64, is_first=False)


class Lines:
    def __init__(self) -> None:
        self.text = [f"%v{number}" for number in range(6)]
        self.allocas: list[str] = []
        self.last: list[str] = []
        self.declares: dict[str, None] = {}
        self.lines: list[str] = []

    def emit(self, line: str) -> None:
        self.lines.append(line)


def test_a_block_loads_what_it_adds_to_and_stores_it() -> None:
    text = "\n".join(lines_of(BLOCK))
    counts = {"tileloadd64": 2 + 2 + 1, "tdpbf16ps": 2, "tilestored64": 2, "tilezero": 0}
    for name, count in counts.items():
        assert text.count(f"@llvm.x86.{name}(") == count, name
    assert "icmp ult i64 %next, 3" in text
    first = TileProduct(1, 2, 3, 48, 128, 64, is_first=True)
    text = "\n".join(lines_of(first))
    assert text.count("tilezero") == 2
    assert name_of(first) != name_of(BLOCK)


def test_equal_blocks_share_a_function_and_tiles_are_configured_once() -> None:
    body = Lines()
    instr = Instr("multiply_tiles", None, tuple(range(6)), BLOCK)
    for number in (6, 7):
        multiply(body, number, instr)
    assert sum("ldtilecfg(ptr %tiles)" in line for line in body.allocas) == 1
    assert body.last == ["  call void @llvm.x86.tilerelease()"]
    assert sum(text.startswith("define") for text in body.declares) == 1
    assert sum(f"call void @{name_of(BLOCK)}" in line for line in body.lines) == 2
