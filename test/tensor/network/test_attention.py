"""scaled_dot_product_attention against PyTorch: masks, scales, shared heads."""

import numpy as np
import pytest
from nn_support import array, compare, torch

from picograd import nn

MASK = np.triu(np.ones((4, 4), bool), 1)


@pytest.mark.parametrize(
    "options",
    [{}, {"is_causal": True}, {"scale": 0.3}, {"attn_mask": ~MASK}, {"attn_mask": array(4, 4)}],
    ids=["plain", "causal", "scale", "bool", "numbers"],
)
def test_scaled_dot_product_attention(options, device):
    functions = nn.functional, torch.nn.functional
    ours, theirs = (f.scaled_dot_product_attention for f in functions)
    compare(ours, theirs, [array(2, 3, 4, 5) for _ in range(3)], device, **options)


def test_rows_that_see_nothing_are_zero(device):
    mask = np.ones((4, 4), bool)
    mask[1] = False
    functions = nn.functional, torch.nn.functional
    ours, theirs = (f.scaled_dot_product_attention for f in functions)
    compare(ours, theirs, [array(2, 4, 5) for _ in range(3)], device, attn_mask=mask)


def test_shared_key_heads(device):
    data = [array(2, 4, 3, 5), array(2, 2, 3, 5), array(2, 2, 3, 5)]
    functions = nn.functional, torch.nn.functional
    ours, theirs = (f.scaled_dot_product_attention for f in functions)
    compare(ours, theirs, data, device, enable_gqa=True)
