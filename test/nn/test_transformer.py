"""Transformer layers and stacks against PyTorch."""

import numpy as np
import pytest
from nn_support import array, compare, copy_state, torch

from picograd import Tensor, nn
from picograd.errors import ValueRangeError

CAUSAL = np.triu(np.full((4, 4), -np.inf, np.float32), 1)
PADDING = np.array([[False, False, False, True], [False, False, True, True]])
SIZES = (8, 2, 12, 0.0)
pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor", "ignore:Support for mis")


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_encoder_layer(norm_first, activation, device):
    options = dict(norm_first=norm_first, activation=activation, batch_first=True)
    reference = torch.nn.TransformerEncoderLayer(*SIZES, **options)
    ours = nn.TransformerEncoderLayer(*SIZES, **options).to(device)
    copy_state(ours, reference)
    compare(ours, reference, [array(2, 4, 8)], device, src_key_padding_mask=PADDING)


@pytest.mark.parametrize("norm_first", [False, True])
def test_decoder(norm_first, device):
    options = dict(norm_first=norm_first)
    stacks = []
    for room in (nn, torch.nn):
        layer = room.TransformerDecoderLayer(*SIZES, **options)
        stacks.append(room.TransformerDecoder(layer, 2, room.LayerNorm(8)))
    ours, reference = stacks[0].to(device), stacks[1]
    copy_state(ours, reference)
    data = [array(4, 2, 8), array(5, 2, 8)]
    compare(ours, reference, data, device, tgt_mask=CAUSAL, tgt_is_causal=True)


def test_transformer(device):
    options = dict(d_model=8, nhead=2, num_encoder_layers=1, num_decoder_layers=1)
    options |= dict(dim_feedforward=12, dropout=0.0, batch_first=True)
    ours, reference = nn.Transformer(**options).to(device), torch.nn.Transformer(**options)
    copy_state(ours, reference)
    compare(ours, reference, [array(2, 5, 8), array(2, 4, 8)], device, tgt_mask=CAUSAL)


def test_causal_mask_is_pytorchs():
    mask = nn.Transformer.generate_square_subsequent_mask(4)
    np.testing.assert_array_equal(mask.numpy(), CAUSAL)


def test_copies_are_independent():
    stack = nn.TransformerEncoder(nn.TransformerEncoderLayer(*SIZES), 2)
    first, second = (layer.linear1.weight for layer in stack.layers)
    assert first is not second
    np.testing.assert_array_equal(first.numpy(), second.numpy())
    nn.init.zeros_(first)
    assert second.numpy().any()


def test_dropout_changes_training_only(device):
    layer = nn.TransformerEncoderLayer(8, 2, 12, 0.5).to(device)
    x = Tensor(array(4, 2, 8), device=device)
    assert (layer(x).numpy() != layer(x).numpy()).any()
    layer.eval()
    np.testing.assert_array_equal(layer(x).numpy(), layer(x).numpy())


def test_unknown_activation_is_named():
    with pytest.raises(ValueRangeError, match="activation='swish' is unknown"):
        nn.TransformerEncoderLayer(8, 2, activation="swish")
