"""Reductions and norms equal ONNX's own tests."""

import pytest
from node_cases import listed, run

NAMES = """
reduce_sum_empty_axes_input_noop reduce_max_empty_set reduce_l2_keep_dims_example
reduce_log_sum_exp_default_axes_keepdims_example
argmax_negative_axis_keepdims_example_select_last_index logsoftmax_large_number
hardmax_one_hot cumsum_1d_reverse_exclusive cumprod_2d_axis_0 l1normalization_axis_0 mvn
top_k top_k_smallest top_k_same_values_largest
"""


@pytest.mark.parametrize("name", listed(NAMES))
def test_nodes(name: str) -> None:
    run(name)
