"""Golden texts: what is generated for a few canonical kernels, so that a refactor shows itself."""

from pathlib import Path

import pytest
from cases import binary, unary
from cuda_tools import H200
from harness import TARGET
from structured import STRUCTURED, softmax

from picograd.codegen.pipeline import STAGES
from picograd.codegen.tile import format_tiles

GOLDEN = Path(__file__).parents[1] / "golden"
CASES = {
    "exp": lambda: unary("exp"), "add": lambda: binary("add"), "softmax": softmax,
    **{
        name: STRUCTURED[name]
        for name in ("layer_norm", "column_sum", "total", "pad", "transpose", "gather", "max_pool")
    },
}  # fmt: skip


@pytest.mark.parametrize("language", ["llvm", "cuda"])
@pytest.mark.parametrize("name", CASES)
def test_golden(name: str, language: str, update_golden: bool) -> None:
    target = TARGET if language == "llvm" else H200
    value, parts = CASES[name]().kernel, []
    parts.append(repr(value))
    for stage, run in STAGES:
        value = run(value, target)
        if stage == "tile":
            parts.append(format_tiles(value))
    if language == "llvm":  # the CUDA text belongs to its own renderer's tests
        parts.append(value)
    text = "\n\n".join(parts) + "\n"
    path = GOLDEN / f"{name}_{language}.txt"
    if update_golden:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert path.read_text() == text, "generated code changed; run with --update-golden if meant"
