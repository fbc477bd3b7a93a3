import importlib

import numpy as np
import pytest
from decoder_reference import reference

import picograd
from picograd import Tensor

KINDS = [
    {},
    {"bias": True, "head_size": 6},
    {"head_norms": True},
    {
        "stretch": {
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 32,
        }
    },
]


@pytest.mark.parametrize("kind", KINDS, ids=["llama", "qwen2", "qwen3", "llama3"])
def test_decoder_equals_a_float64_reference_with_and_without_cache(device, kind):
    """RoPE, RMSNorm, SwiGLU, grouped queries and the cache of keys and values (M31)."""
    example = importlib.import_module("decoder")
    picograd.manual_seed(0)
    given = {"width": 8, "inside": 12, "layers": 2, "heads": 4, "key_heads": 2, "head_size": 2}
    sizes = example.Sizes(11, 8, **(given | kind))
    model = example.Decoder(sizes).to(device)
    tokens = [3, 1, 4, 1]
    state = {name: x.numpy().astype(np.float64) for name, x in model.state_dict().items()}
    wanted = reference(state, sizes, tokens)
    whole = model(Tensor([tokens], device=device))
    np.testing.assert_allclose(whole.numpy()[0], wanted, rtol=1e-4, atol=1e-5)
    cache, pieces = model.empty_cache(), []
    for first, last in ((0, 3), (3, 4)):
        scores = model(Tensor([tokens[first:last]], device=device), cache, first)
        pieces.append(scores.numpy()[0])
    np.testing.assert_allclose(np.concatenate(pieces), wanted, rtol=1e-4, atol=1e-5)


def test_it_learns_and_writes(device, capsys, monkeypatch):
    example = importlib.import_module("decoder")
    tiny = {"width": 16, "inside": 24, "layers": 1, "heads": 2, "key_heads": 1, "head_size": 8}
    sizes = example.Sizes
    monkeypatch.setattr(example, "Sizes", lambda vocabulary: sizes(vocabulary, 16, **tiny))
    losses = example.main(["--device", device, "--steps", "40"])
    assert np.mean(losses[-5:]) < 0.9 * losses[0]
    assert "\nIt is a truth " in capsys.readouterr().out
