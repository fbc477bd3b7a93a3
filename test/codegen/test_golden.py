"""Golden texts: what is generated for 60 canonical kernels, so that a refactor shows itself."""

from collections.abc import Callable
from pathlib import Path

import pytest
import rowwise_cases
from cases import binary, unary
from contractions import conv, conv_weight_gradient, matmul
from cuda_tools import H200
from harness import TARGET
from structured import softmax
from template_cases import CASES as TEMPLATES

from picograd.codegen.pipeline import STAGES
from picograd.codegen.tile import format_tiles
from picograd.dtype import bfloat16
from picograd.schedule.loop import Kernel
from picograd.target import Target

GOLDEN = Path(__file__).parents[1] / "golden"
UNARY = ("exp", "log", "tanh", "erf", "rsqrt")
ROWWISE = (
    "vector", "rows", "rows_aligned", "rows_short", "rows_log", "rows_double", "columns_wide",
    "chunks", "sort_tiny", "sort_columns", "sort_wide_keys", "sort_down", "sort_runs",
)  # fmt: skip
PRODUCTS: dict[str, Callable[[], Kernel]] = {
    "matmul": lambda: matmul((1, 70, 40, 90)).kernel,
    "matmul_few": lambda: matmul((1, 3, 40, 90), with_bias=True).kernel,
    "matmul_narrow": lambda: matmul((2, 128, 128, 64), bfloat16).kernel,
    "conv": lambda: conv((2, 9, 8, 3), 16, 3, padding=1).kernel,
    "conv_planar": lambda: conv((2, 9, 16, 3), 8, 3, padding=1, channels_last=False).kernel,
    "conv_grouped": lambda: conv((2, 9, 8, 4), 8, 3, stride=2, groups=2).kernel,
    "conv_weight_gradient": lambda: conv_weight_gradient((2, 3, 9, 8), 5, 3).kernel,
}
CASES: dict[str, Callable[[Target], Kernel]] = {
    "add": lambda target: binary("add").kernel,
    **{op: lambda target, op=op: unary(op).kernel for op in UNARY},
    **{name: lambda target, make=make: make().kernel for name, make in TEMPLATES.items()},
    **{name: lambda target, name=name: rowwise_cases.make(name, target) for name in ROWWISE},
    **{name: lambda target, make=make: make() for name, make in PRODUCTS.items()},
    "softmax_long": lambda target: softmax(3, 60000).kernel,
}


def test_there_are_sixty() -> None:
    assert len(CASES) >= 60


@pytest.mark.parametrize("language", ["llvm", "cuda"])
@pytest.mark.parametrize("name", CASES)
def test_golden(name: str, language: str, update_golden: bool) -> None:
    target = TARGET if language == "llvm" else H200
    value, parts = CASES[name](target), []
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
