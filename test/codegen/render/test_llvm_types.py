"""How LLVM IR spells types and constants."""

from picograd.codegen.render.llvm_types import literal, mangled, memory_type, type_name
from picograd.dtype import bool_, float16, float32, float64, int8, uint8


def test_spellings() -> None:
    assert type_name(float16) == "half" and type_name(bool_, 4) == "<4 x i1>"
    assert memory_type(bool_, 4) == "<4 x i8>" and mangled(float64, 2) == "v2f64"


def test_constants() -> None:
    assert literal(True, bool_) == "true" and literal(200, int8) == "-56"
    assert literal(200, uint8) == literal(-56, uint8) and literal(1.5, float64)[:5] == "0x3FF"
    assert literal(0.1, float32) != literal(0.1, float64)
    assert literal(1e300, float32) == literal(float("inf"), float32)
