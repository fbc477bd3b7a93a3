"""Tests mirror the tree: picograd/room/file.py is tested by test/room/test_file.py.

`ELSEWHERE` names the test of a file that would need a copy of another file's fixtures.
"""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

ELSEWHERE = {
    "distributions/composed.py": "test_distributions.py",
    "distributions/constraints.py": "test_distributions.py",
    "distributions/discrete.py": "test_distributions.py",
    "distributions/distribution.py": "test_distributions.py",
    "distributions/gamma_family.py": "test_distributions.py",
    "distributions/kl.py": "test_distributions.py",
    "distributions/multivariate.py": "test_distributions.py",
    "distributions/transforms.py": "test_distributions.py",
    "distributions/univariate.py": "test_distributions.py",
    "late_names.py": "test_pytorch_scripts.py",
    "accelerator.py": "test_pytorch_scripts.py",
    "autograd/anomaly.py": "test_autograd.py",
    "autograd/functional.py": "test_autograd.py",
    "autograd/profiler.py": "test_autograd.py",
    "backends/cpu.py": "test_pytorch_scripts.py",
    "backends/cuda.py": "test_pytorch_scripts.py",
    "backends/cudnn.py": "test_pytorch_scripts.py",
    "backends/mkldnn.py": "test_pytorch_scripts.py",
    "backends/mps.py": "test_pytorch_scripts.py",
    "cuda/amp.py": "test_pytorch_scripts.py",
    "distributed.py": "test_pytorch_scripts.py",
    "fx.py": "test_pytorch_scripts.py",
    "mps.py": "test_pytorch_scripts.py",
    "nn/members.py": "nn/test_module.py",
    "nn/parallel.py": "nn/test_lazy.py",
    "nn/torch_writer.py": "nn/test_files_of_objects.py",
    "cache.py": "engine/test_cache.py",
    "engine/held_back.py": "engine/test_profile.py",
    "engine/memory_picture.py": "engine/test_profile.py",
    "engine/watch.py": "engine/test_profile.py",
    "runtime/native_threads.py": "runtime/test_native.py",
    "nn/utils/fusion.py": "nn/utils/test_parametrize.py",
    "nn/utils/parametrizations.py": "nn/utils/test_parametrize.py",
    "nn/utils/prune.py": "nn/utils/test_parametrize.py",
    "nn/utils/reparametrize.py": "nn/utils/test_parametrize.py",
    "optim/lr_scheduler.py": "test_pytorch_scripts.py",
    "optim/optimizer.py": "test_pytorch_scripts.py",
    "optim/swa_utils.py": "test_pytorch_scripts.py",
    "scripting.py": "test_pytorch_scripts.py",
    "settings.py": "test_pytorch_scripts.py",
    "typed.py": "test_pytorch_scripts.py",
    "utils/checkpoint.py": "test_pytorch_scripts.py",
    "utils/data/dataloader.py": "test_pytorch_scripts.py",
    "utils/data/dataset.py": "test_pytorch_scripts.py",
    "utils/data/sampler.py": "test_pytorch_scripts.py",
    "utils/tensorboard.py": "test_pytorch_scripts.py",
    "codegen/angles.py": "codegen/test_elementary.py",
    "codegen/block_cuda.py": "codegen/test_linearize_cuda.py",
    "codegen/erfc_fit.py": "codegen/test_elementary.py",
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
    "tensor/network/activation_functions.py": "tensor/test_conventions.py",
    "tensor/network/attention.py": "nn/test_attention.py",
    "tensor/making/from_data.py": "tensor/core/test_exchange.py",
    "tensor/network/convolution_functions.py": "nn/test_functional_conv.py",
    "tensor/network/dropout.py": "nn/test_functional_dropout.py",
    "tensor/transforms/jit_gradient.py": "tensor/test_jit_idioms.py",
    "tensor/transforms/jit_names.py": "tensor/transforms/test_jit_state.py",
    "tensor/transforms/jit_replay.py": "tensor/test_jit_idioms.py",
    "tensor/transforms/jit_trace.py": "tensor/test_jit_idioms.py",
    "tensor/making/initial_values.py": "tensor/test_conventions.py",
    "tensor/network/losses.py": "nn/test_losses.py",
    "tensor/network/normalization.py": "nn/test_functional_norm.py",
    "tensor/math/arithmetic.py": "ops/test_arithmetic.py",
    "tensor/shaping/joining.py": "ops/test_arranging.py",
    "tensor/shaping/assembling.py": "ops/test_assembling.py",
    "tensor/math/bessel.py": "ops/test_special_functions.py",
    "tensor/making/distributions.py": "ops/test_distributions.py",
    "tensor/families.py": "test_pytorch_names.py",
    "tensor/linalg/fourier.py": "ops/test_linear_systems.py",
    "tensor/math/gamma.py": "ops/test_special_functions.py",
    "tensor/math/zeta.py": "ops/test_special_functions.py",
    "tensor/network/grid_sample.py": "ops/test_grid.py",
    "tensor/linalg/host.py": "ops/test_host.py",
    "tensor/linalg/decompositions.py": "ops/test_linear_systems.py",
    "tensor/linalg/systems.py": "ops/test_linear_systems.py",
    "tensor/making/tensors_like.py": "ops/test_making.py",
    "tensor/shaping/methods_assemble.py": "ops/test_assembling.py",
    "tensor/core/methods_family.py": "test_pytorch_names.py",
    "tensor/math/normal_distribution.py": "ops/test_special_functions.py",
    "tensor/indexing/partial_writes.py": "ops/test_placing.py",
    "tensor/network/pooling.py": "ops/test_pooling.py",
    "tensor/network/pooling_functions.py": "nn/test_functional_pool.py",
    "tensor/reductions/equal_runs.py": "ops/test_statistics.py",
    "tensor/network/interpolation.py": "ops/test_sampling.py",
    "tensor/math/transcendental.py": "ops/test_special.py",
    "tensor/math/special.py": "ops/test_special_functions.py",
    "tensor/reductions/statistics.py": "ops/test_statistics.py",
    "tensor/math/methods_elementwise.py": "ops/test_elementwise.py",
    "tensor/shaping/methods_movement.py": "ops/test_movement.py",
    "tensor/math/methods_operator.py": "tensor/test_tensor.py",
    "tensor/linalg/methods_product.py": "ops/test_products.py",
    "tensor/core/calling.py": "tensor/core/test_spelling.py",
    "tensor/core/function.py": "tensor/core/test_stubs.py",
    "tensor/math/primitives.py": "ops/test_table.py",
    "tensor/methods.py": "tensor/core/test_stubs.py",
    "tensor/public.py": "tensor/core/test_stubs.py",
    "tensor/indexing/masking.py": "tensor/transforms/test_masked_choice.py",
    "tensor/core/recording.py": "tensor/test_tensor.py",
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
