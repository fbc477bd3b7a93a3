"""Attention of several heads with given weights against PyTorch; with a layer: test_attention."""

from types import SimpleNamespace

import numpy as np
import pytest
from nn_support import array, torch

import picograd
from picograd import Tensor
from picograd.errors import DTypeError, ShapeError

MASK = np.triu(np.ones((4, 4), bool), 1)
PADDING = np.array([[False, False, False, True], [False, False, True, True]])


def test_with_given_weights(device):
    """As a function: one matrix for all, or one each, with masks and learnt rows."""
    wide, small = [array(4, 2, 8)] * 3, [array(4, 2, 8), array(4, 2, 6), array(4, 2, 5)]
    row, bias = array(1, 1, 8), array(24)
    out = array(8, 8), array(8)
    apart = dict(q_proj_weight=array(8, 8), k_proj_weight=array(8, 6), v_proj_weight=array(8, 5))
    for inputs, first, more in (
        (wide, array(24, 8), dict(attn_mask=MASK, key_padding_mask=PADDING)),
        (small, None, dict(use_separate_proj_weight=True, need_weights=False, **apart)),
    ):
        results = []
        for library in (picograd, torch):
            give = lambda v, of=library: None if v is None else of.tensor(v)  # noqa: E731
            named = {k: give(v) if isinstance(v, np.ndarray) else v for k, v in more.items()}
            call = library.nn.functional.multi_head_attention_forward
            weights = give(first), give(bias), give(row), give(row), True, 0.5
            given = [give(x) for x in inputs]
            found = call(*given, 8, 2, *weights, *map(give, out), training=False, **named)
            results.append([each.numpy() for each in found if each is not None])
        for ours, theirs in zip(*results, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
    with pytest.raises(ShapeError, match="6 features wanted"):
        call = picograd.nn.functional.multi_head_attention_forward
        call(*[Tensor(x) for x in wide], 6, 2, *[None] * 4, False, 0.0, *map(Tensor, out))


def test_forward_asks_a_stand_in_for_weights_alone() -> None:
    """Adapters call `MultiheadAttention.forward` on a module of their own."""
    settings = ("embed_dim", "num_heads", "dropout", "batch_first", "add_zero_attn", "training")
    weights = ("in_proj_weight", "in_proj_bias", "bias_k", "bias_v")
    layer = picograd.nn.MultiheadAttention(8, 2)
    x, adapter = Tensor(array(4, 2, 8)), picograd.nn.Module()
    for name in (*settings, *weights):
        object.__setattr__(adapter, name, getattr(layer, name))
    out = layer.out_proj.weight, layer.out_proj.bias
    object.__setattr__(adapter, "out_proj", SimpleNamespace(weight=out[0], bias=out[1]))
    found, wanted = type(layer).forward(adapter, x, x, x), layer(x, x, x)
    np.testing.assert_array_equal(found[0].numpy(), wanted[0].numpy())


def test_masks_of_integers_are_refused() -> None:
    """They would be added to the scores, where a mask of 0 and 1 was meant."""
    x, mask = picograd.ones(1, 3, 4), picograd.ones(3, 3, dtype=picograd.int64)
    with pytest.raises(DTypeError, match="attn_mask is int64"):
        picograd.nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=mask)
    layer = picograd.nn.MultiheadAttention(4, 2, batch_first=True)
    for option in (dict(attn_mask=mask), dict(key_padding_mask=mask[:1])):
        with pytest.raises(DTypeError, match="mask is int64.*Fix: call .bool"):
            layer(x, x, x, **option)
