"""Layers equal ONNX's own tests."""

import pytest
from node_cases import listed, run

NAMES = """
basic_conv_with_padding conv_with_autopad_same convtranspose_output_shape convtranspose_pads
convtranspose_dilations maxpool_2d_ceil maxpool_with_argmax_2d_precomputed_strides
averagepool_2d_same_upper lppool_2d_pads averagepool_2d_ceil_last_window_starts_on_pad
gemm_all_attributes batchnorm_epsilon_training_mode layer_normalization_2d_axis1 lrn
sce_mean_weight_ii_log_prob nllloss_NC attention_4d_gqa attention_4d_with_past_and_present
basic_deform_conv_with_padding deform_conv_with_mask_bias maxunpool_export_with_output_shape
"""


@pytest.mark.parametrize("name", listed(NAMES))
def test_nodes(name: str) -> None:
    run(name)
