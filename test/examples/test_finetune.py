import importlib
import json

import numpy as np
import pytest

import picograd
from picograd import nn

CONFIG = {
    "model_type": "llama",
    "vocab_size": 11,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "max_position_embeddings": 32,
}


@pytest.fixture
def example(monkeypatch, tmp_path):
    found = importlib.import_module("finetune")
    monkeypatch.setattr(found, "SAVED", tmp_path / "output" / "adapters.safetensors")
    return found


@pytest.fixture
def folder(tmp_path):
    """A small model as Hugging Face saves it, and a text of numbers."""
    llm, decoder = (importlib.import_module(name) for name in ("llm", "decoder"))
    picograd.manual_seed(0)
    model = decoder.Decoder(llm.decoder_sizes(CONFIG, 32))
    state = {f"model.{name}": each for name, each in model.state_dict().items()}
    state["lm_head.weight"] = state.pop("model.lm_head.weight")
    nn.save(state, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "text.txt").write_text("1 2 3 4 5 " * 100)
    return tmp_path


def given(folder, device, *more):
    options = ["--device", device, "--tokens", "--text", str(folder / "text.txt")]
    return [str(folder), *options, "--context", "8", "--prompt", "1 2", "--length", "2", *more]


def test_adapters_alone_learn_and_are_saved(device, example, folder):
    losses = example.main(given(folder, device, "--steps", "60", "--batch-size", "8"))
    assert np.mean(losses[-5:]) < losses[0] - 0.05
    saved = nn.load(example.SAVED)
    assert sorted(saved) == [
        f"layers.0.self_attn.{name}_proj.{part}.weight" for name in "qv" for part in ("down", "up")
    ]
    assert any(each.abs().max().item() > 0 for name, each in saved.items() if ".up." in name)
    assert example.main(given(folder, device, "--steps", "0", "--resume")) == []


def test_new_adapters_change_nothing(device, example, folder):
    llm = importlib.import_module("llm")
    model, tokens = llm.load(folder, 8, device), picograd.Tensor([[1, 2, 3]], device=device)
    before = model(tokens).numpy()
    adapters = example.adapt(model, 2)
    np.testing.assert_array_equal(model(tokens).numpy(), before)
    assert sum(each.numel() for each in adapters.values()) == 2 * 2 * (16 + 16)


def test_it_says_what_to_pass(example):
    with pytest.raises(SystemExit, match="no folder was given"):
        example.main([])
