"""Tests mirror the tree: picograd/room/file.py is tested by test/room/test_file.py.

`ELSEWHERE` names the test of a file that would need a copy of another file's fixtures.
"""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

ELSEWHERE = {
    "codegen/angles.py": "codegen/test_elementary.py",
    "codegen/block_cuda.py": "codegen/test_linearize_cuda.py",
    "codegen/error_function.py": "codegen/test_elementary.py",
    "codegen/linearize_cpu.py": "codegen/render/test_llvm.py",
    "codegen/linearize_cuda_mainloop.py": "codegen/templates/test_contract_cuda.py",
    "codegen/linearize_cuda_reduce.py": "codegen/test_linearize_cuda.py",
    "codegen/linearize_radix_cuda.py": "codegen/test_rowwise.py",
    "codegen/linearize_runs_cuda.py": "codegen/test_rowwise.py",
    "codegen/linearize_scan.py": "codegen/test_rowwise.py",
    "codegen/linearize_scan_cuda.py": "codegen/test_rowwise.py",
    "codegen/linearize_sort_cpu.py": "codegen/test_rowwise.py",
    "codegen/linearize_sort_cuda.py": "codegen/test_rowwise.py",
    "codegen/mainloop_operands.py": "codegen/templates/test_contract_cuda.py",
    "codegen/pairs.py": "codegen/test_elementary.py",
    "codegen/render/llvm_types.py": "codegen/render/test_llvm.py",
    "codegen/templates/contract.py": "codegen/templates/test_contract_cpu.py",
    "codegen/templates/map.py": "codegen/test_templates_cuda.py",
    "codegen/templates/reduce.py": "codegen/test_templates_cuda.py",
    "codegen/templates/rows.py": "codegen/test_templates_cuda.py",
    "codegen/templates/scan.py": "codegen/test_rowwise.py",
    "codegen/templates/scatter.py": "codegen/test_templates_cuda.py",
    "codegen/templates/sort.py": "codegen/test_rowwise.py",
    "graph/axes.py": "engine/test_sizes.py",
    "graph/bounded.py": "engine/test_sizes.py",
    "graph/bounded_rules.py": "engine/test_sizes.py",
    "graph/size_bounds.py": "engine/test_sizes.py",
    "engine/explain.py": "test_explain.py",
    "graph/host_fourier.py": "graph/test_host_call.py",
    "graph/host_gamma.py": "graph/test_host_call.py",
    "graph/host_matrices.py": "graph/test_host_call.py",
    "tensor/activation_functions.py": "tensor/test_conventions.py",
    "tensor/attention.py": "nn/test_attention.py",
    "tensor/converting.py": "tensor/test_exchange.py",
    "tensor/convolution_functions.py": "nn/test_functional_conv.py",
    "tensor/dropout.py": "nn/test_functional_dropout.py",
    "tensor/jit_gradient.py": "tensor/test_jit_idioms.py",
    "tensor/jit_names.py": "tensor/test_jit_state.py",
    "tensor/jit_replay.py": "tensor/test_jit_idioms.py",
    "tensor/jit_trace.py": "tensor/test_jit_idioms.py",
    "tensor/initial.py": "tensor/test_conventions.py",
    "tensor/losses.py": "nn/test_losses.py",
    "tensor/methods_network.py": "tensor/test_conventions.py",
    "tensor/normalization.py": "nn/test_functional_norm.py",
    "tensor/arithmetic.py": "ops/test_arithmetic.py",
    "tensor/arranging.py": "ops/test_arranging.py",
    "tensor/assembling.py": "ops/test_assembling.py",
    "tensor/bessel.py": "ops/test_special_functions.py",
    "tensor/distributions.py": "ops/test_distributions.py",
    "tensor/families.py": "test_pytorch_names.py",
    "tensor/fourier.py": "ops/test_linear_systems.py",
    "tensor/gamma.py": "ops/test_special_functions.py",
    "tensor/zeta.py": "ops/test_special_functions.py",
    "tensor/grid.py": "ops/test_grid.py",
    "tensor/host.py": "ops/test_host.py",
    "tensor/linear_algebra.py": "ops/test_linear_systems.py",
    "tensor/linear_systems.py": "ops/test_linear_systems.py",
    "tensor/making.py": "ops/test_making.py",
    "tensor/methods_assemble.py": "ops/test_assembling.py",
    "tensor/methods_family.py": "test_pytorch_names.py",
    "tensor/methods_special.py": "ops/test_special.py",
    "tensor/normal.py": "ops/test_special_functions.py",
    "tensor/placing.py": "ops/test_placing.py",
    "tensor/pooling.py": "ops/test_pooling.py",
    "tensor/pooling_functions.py": "nn/test_functional_pool.py",
    "tensor/runs.py": "ops/test_statistics.py",
    "tensor/sampling.py": "ops/test_sampling.py",
    "tensor/special.py": "ops/test_special.py",
    "tensor/special_functions.py": "ops/test_special_functions.py",
    "tensor/statistics.py": "ops/test_statistics.py",
    "tensor/methods_in_place.py": "tensor/test_in_place.py",
    "tensor/methods_elementwise.py": "ops/test_elementwise.py",
    "tensor/methods_movement.py": "ops/test_movement.py",
    "tensor/methods_operator.py": "tensor/test_tensor.py",
    "tensor/methods_product.py": "ops/test_products.py",
    "tensor/methods_reduce.py": "ops/test_reduce.py",
    "tensor/masking.py": "tensor/test_chosen.py",
    "tensor/recording.py": "tensor/test_tensor.py",
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
        assert mirror(name).exists(), f"{name} <-> {wanted}"


def test_lists_name_files_that_exist() -> None:
    assert set(ELSEWHERE) <= set(sources())
