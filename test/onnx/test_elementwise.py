"""Operators on elements equal ONNX's own tests."""

import pytest
from node_cases import listed, of_attributes, run

NAMES = """
abs add_bcast div_uint8 mod_mixed_sign_float16 pow_types_float32_int64 clip_default_int8_min
clip_default_min bitshift_left_uint8 prelu_broadcast gelu_tanh_1 isinf_negative shrink_soft
hardsigmoid cast_FLOAT_to_FLOAT8E5M2 cast_FLOAT_to_BFLOAT16 cast_FLOAT16_to_UINT4
where_long_example max_int8 dropout_default_mask
"""


@pytest.mark.parametrize("name", listed(NAMES))
def test_nodes(name: str) -> None:
    run(name)


def test_bounds_before_they_were_inputs() -> None:
    x = [-1.0, 0.5, 3.0]
    assert of_attributes("Clip", 6, x, min=0.0, max=1.0) == [0, 0.5, 1]
    assert of_attributes("Clip", 6, x, max=1.0) == [-1, 0.5, 1]
    assert of_attributes("Clip", 6, x) == x
