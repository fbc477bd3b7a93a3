"""Operators that move elements equal ONNX's own tests."""

import pytest
from node_cases import listed, of_attributes, run

NAMES = """
reshape_zero_and_negative_dim slice_neg_steps slice_negative_axes wrap_pad reflect_pad
edge_pad constant_pad_axes gathernd_example_int32_batch_dim1 scatternd_add
scatter_elements_with_negative_indices split_1d_uneven_split_opset18
onehot_with_negative_axis depthtospace_crd_mode_example col2im_pads
center_crop_pad_crop_and_pad tensorscatter_circular compress_1 triu_neg
einsum_batch_diagonal sequence_insert_at_front split_to_sequence_2
optional_has_element_empty_optional_input identity_sequence
"""


@pytest.mark.parametrize("name", listed(NAMES))
def test_nodes(name: str) -> None:
    run(name)


def test_attributes_before_they_were_inputs() -> None:
    x = [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert of_attributes("Slice", 1, x, starts=[1], ends=[3], axes=[1]) == [[1, 2], [4, 5]]
    assert of_attributes("Slice", 1, x, starts=[1, -2], ends=[2, 3]) == [[4, 5]]
    padded = of_attributes("Pad", 2, x, pads=[0, 1, 0, -1], value=7.0)
    assert padded == [[7, 0, 1], [7, 3, 4]]
    assert of_attributes("Pad", 2, [[1.0, 2.0]], pads=[0, 0, 0, 1], mode="reflect") == [[1, 2, 1]]
