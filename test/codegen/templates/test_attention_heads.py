"""In which order blocks take the heads of a batch."""

import pytest
from attention_forms import plain
from test_attention_frame import stream_of

from picograd.codegen.templates.attention_heads import CACHED, head_axes


@pytest.mark.parametrize("heads, length, group", [(16, 512, 16), (24, 4096, 12), (7, 65536, 1)])
def test_the_heads_of_a_group_stay_in_the_cache(heads, length, group):
    stream = stream_of(plain, 1, heads, length, 128)
    outer, inner = head_axes(stream, 2, 2, 132)
    assert outer.size * inner.size == heads and inner.size == group
    assert group == 1 or group * length * 2 * 128 * 2 <= CACHED
    assert head_axes(stream, 2, 1, 132)[1].size == heads  # who reads once needs no cache


@pytest.mark.parametrize("tiles, blocks, group", [(4, 132, 32), (8, 132, 16), (32, 132, 4)])
def test_a_group_of_heads_has_a_tile_for_each_block(tiles, blocks, group):
    stream = stream_of(plain, 1, 128, 512, 128)
    assert head_axes(stream, 2, tiles, blocks)[1].size == group
