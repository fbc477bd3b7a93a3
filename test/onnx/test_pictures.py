"""Resizing and sampling equal ONNX's own tests."""

import pytest
from node_cases import listed, run

NAMES = """
resize_downsample_scales_cubic_antialias resize_tf_crop_and_resize
resize_upsample_sizes_nearest_ceil_half_pixel resize_downsample_sizes_nearest_not_larger
resize_upsample_scales_cubic_align_corners upsample_nearest gridsample_bicubic
affine_grid_2d roialign_aligned_false roialign_mode_max
"""


@pytest.mark.parametrize("name", listed(NAMES))
def test_nodes(name: str) -> None:
    run(name)
