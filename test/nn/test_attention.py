"""MultiheadAttention and scaled_dot_product_attention against PyTorch."""

import numpy as np
import pytest
from nn_support import array, compare, copy_state, torch

import picograd
from picograd import Tensor, nn
from picograd.errors import ShapeError, ValueRangeError

MASK = np.triu(np.ones((4, 4), bool), 1)
PADDING = np.array([[False, False, False, True], [False, False, True, True]])
CASES = {
    "plain": ({}, {}),
    "no_weights": ({}, {"need_weights": False}),
    "heads_apart": ({"bias": False}, {"average_attn_weights": False}),
    "bool_masks": ({}, {"attn_mask": MASK, "key_padding_mask": PADDING}),
    "number_mask": ({}, {"attn_mask": array(4, 4)}),
    "mask_per_head": ({}, {"attn_mask": array(4, 4, 4)}),
    "mixed_masks": (
        {},
        {"attn_mask": np.where(MASK, -np.inf, 0).astype(np.float32), "key_padding_mask": PADDING},
    ),
    "more_rows": ({"add_bias_kv": True, "add_zero_attn": True}, {"attn_mask": MASK}),
    "other_sizes": ({"kdim": 6, "vdim": 5}, {}),
}


@pytest.mark.filterwarnings("ignore:Support for mismatched")
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("batch_first", [False, True])
def test_multihead_attention(case, batch_first, device):
    options, call = CASES[case]
    options = dict(options, batch_first=batch_first)
    reference = torch.nn.MultiheadAttention(8, 2, **options)
    ours = nn.MultiheadAttention(8, 2, **options).to(device)
    copy_state(ours, reference)
    shape = (2, 4) if batch_first else (4, 2)
    sizes = (8, options.get("kdim", 8), options.get("vdim", 8))
    compare(ours, reference, [array(*shape, size) for size in sizes], device, **call)


def test_one_tensor_for_all_three_and_no_batch(device):
    reference = torch.nn.MultiheadAttention(8, 2)
    ours = nn.MultiheadAttention(8, 2).to(device)
    copy_state(ours, reference)
    compare(lambda x: ours(x, x, x), lambda x: reference(x, x, x), [array(4, 8)], device)


def test_rows_that_may_look_at_no_key(device):
    """Asked for weights they are NaN, as PyTorch's; without them both give zeros before biases."""
    reference = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    ours = nn.MultiheadAttention(8, 2, batch_first=True).to(device)
    copy_state(ours, reference)
    hidden, values = PADDING | [[False], [True]], array(2, 4, 8)
    x, theirs = Tensor(values, device=device), torch.tensor(values)
    padding = Tensor.of(hidden, device=device)
    for found, wanted in zip(
        ours(x, x, x, key_padding_mask=padding),
        reference(theirs, theirs, theirs, key_padding_mask=torch.tensor(hidden)),
    ):
        np.testing.assert_allclose(found.numpy(), wanted.detach().numpy(), rtol=1e-4, atol=2e-5)
        assert np.isnan(found.numpy()[1]).all() and not np.isnan(found.numpy()[0]).any()
    plain, _ = ours(x, x, x, key_padding_mask=padding, need_weights=False)
    assert not np.isnan(plain.numpy()).any()


def test_dropout_of_weights_is_for_training(device):
    layer = nn.MultiheadAttention(8, 2, dropout=0.5).to(device)
    x = Tensor(array(4, 2, 8), device=device)
    _, weights = layer(x, x, x)
    assert abs(weights.numpy().sum(-1) - 1).max() > 1e-3
    _, weights = layer.eval()(x, x, x)
    np.testing.assert_allclose(weights.numpy().sum(-1), 1.0, rtol=1e-5)


def test_wrong_use_is_named():
    x = Tensor.ones(4, 2, 8)
    with pytest.raises(ValueRangeError, match="embed_dim=8 does not divide by num_heads=3"):
        nn.MultiheadAttention(8, 3)
    with pytest.raises(ShapeError, match=r"attn_mask of shape \(4, 3\), \(4, 4\) wanted"):
        nn.MultiheadAttention(8, 2)(x, x, x, attn_mask=Tensor.ones(4, 3))


def test_projections_are_drawn_anew() -> None:
    """Programs that initialise every layer again call PyTorch's own name for it."""
    attention = nn.MultiheadAttention(4, 2, kdim=3, add_bias_kv=True)
    with picograd.no_grad():
        for parameter in attention.parameters():
            parameter.fill_(7.0)
    attention._reset_parameters()
    for name, parameter in attention.named_parameters():
        if name == "out_proj.weight":  # stays, as in PyTorch
            assert (parameter == 7).all()
        elif name.endswith("proj_bias") or name == "out_proj.bias":
            assert (parameter == 0).all()
        else:
            assert parameter.abs().max() < 3 and parameter.std() > 0.1
    model = nn.Transformer(4, 2, 1, 1, 8)
    before = model.encoder.layers[0].linear1.weight.clone()
    model._reset_parameters()
    assert (model.encoder.layers[0].linear1.weight != before).any()
