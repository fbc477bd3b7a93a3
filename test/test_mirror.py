"""Tests mirror the tree: picograd/room/file.py is tested by test/room/test_file.py.

`ELSEWHERE` names the test of a file that would need a copy of another file's fixtures. `MISSING`
may only shrink: a file of it that has its test must leave the list, a new file may not join it.
"""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

ELSEWHERE = {
    "codegen/block_cuda.py": "codegen/test_linearize_cuda.py",
    "codegen/linearize_cpu.py": "codegen/render/test_llvm.py",
    "codegen/linearize_cuda_mainloop.py": "codegen/templates/test_contract_cuda.py",
    "codegen/linearize_cuda_reduce.py": "codegen/test_linearize_cuda.py",
    "codegen/mainloop_operands.py": "codegen/templates/test_contract_cuda.py",
    "codegen/templates/contract.py": "codegen/templates/test_contract_cpu.py",
    "codegen/templates/map.py": "codegen/test_templates_cuda.py",
    "codegen/templates/reduce.py": "codegen/test_templates_cuda.py",
    "codegen/templates/rows.py": "codegen/test_templates_cuda.py",
    "codegen/templates/scatter.py": "codegen/test_templates_cuda.py",
    "engine/explain.py": "test_explain.py",
    "nn/pooling.py": "nn/test_layers.py",
    "tensor/methods_in_place.py": "tensor/test_in_place.py",
    "tensor/methods_convolution.py": "tensor/test_tensor.py",
    "tensor/methods_elementwise.py": "ops/test_elementwise.py",
    "tensor/methods_movement.py": "ops/test_movement.py",
    "tensor/methods_operator.py": "tensor/test_tensor.py",
    "tensor/methods_product.py": "ops/test_products.py",
    "tensor/methods_reduce.py": "ops/test_reduce.py",
    "tensor/recording.py": "tensor/test_tensor.py",
}
MISSING: set[str] = {
    "codegen/linearize_merge.py",
    "codegen/linearize_scan.py",
    "codegen/linearize_scan_cuda.py",
    "codegen/linearize_sort_cpu.py",
    "codegen/linearize_sort_cuda.py",
    "codegen/templates/scan.py",
    "codegen/templates/sort.py",
    "nn/conv_transpose.py",
    "nn/distances.py",
    "nn/functional.py",
    "nn/functional_activation.py",
    "nn/functional_attention.py",
    "nn/functional_basic.py",
    "nn/functional_norm.py",
    "nn/functional_shape.py",
    "nn/group_norm.py",
    "nn/loss_modules.py",
    "nn/losses_margin.py",
    "nn/losses_regression.py",
    "nn/recurrent_cells.py",
    "nn/shaping.py",
    "nn/utils.py",
    "tensor/activation.py",
    "tensor/assembling.py",
    "tensor/fourier.py",
    "tensor/host.py",
    "tensor/linear_algebra.py",
    "tensor/methods_assemble.py",
    "tensor/methods_order.py",
    "tensor/methods_select.py",
    "tensor/methods_special.py",
    "tensor/pooling.py",
    "tensor/special.py",
    "tensor/writing.py",
}


def sources() -> list[str]:
    package = ROOT / "picograd"
    found = [path.relative_to(package).as_posix() for path in package.rglob("*.py")]
    return sorted(name for name in found if not Path(name).name.startswith("__"))


def mirror(name: str) -> Path:
    path = Path(name)
    return ROOT / "test" / path.parent / f"test_{path.name}"


@pytest.mark.parametrize("name", sources())
def test_file_has_a_test(name: str) -> None:
    if name in ELSEWHERE:
        assert (ROOT / "test" / ELSEWHERE[name]).exists()
        assert not mirror(name).exists(), "it has a test of its own: take it off the list"
    else:
        wanted = mirror(name).relative_to(ROOT)
        assert mirror(name).exists() == (name not in MISSING), f"{name} <-> {wanted}"


def test_lists_name_files_that_exist() -> None:
    assert set(ELSEWHERE) | MISSING <= set(sources())
    assert not set(ELSEWHERE) & MISSING
