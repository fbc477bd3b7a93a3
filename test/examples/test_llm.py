import importlib
import json

import numpy as np
import pytest
from decoder_reference import reference

import picograd
from picograd import Tensor, nn

DECODER = {
    "vocab_size": 11,
    "hidden_size": 8,
    "intermediate_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 4,
    "max_position_embeddings": 32,
    "rms_norm_eps": 1e-6,
    "rope_theta": 500.0,
}
STRETCH = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
FAMILIES = {
    "llama": {"model_type": "llama"},
    "llama3": {"model_type": "llama", "rope_scaling": STRETCH, "tie_word_embeddings": True},
    "qwen2": {"model_type": "qwen2", "tie_word_embeddings": True},
    "qwen3": {"model_type": "qwen3"},
}


def write_folder(folder, config, files=2):
    """Write a model with random weights as Hugging Face lays it out, over several files."""
    llm, decoder = (importlib.import_module(name) for name in ("llm", "decoder"))
    picograd.manual_seed(0)
    (folder / "config.json").write_text(json.dumps(DECODER | config))
    model = decoder.Decoder(llm.decoder_sizes(DECODER | config, 32))
    state = dict(model.state_dict())
    named = {f"model.{name}": each for name, each in state.items() if name != "lm_head.weight"}
    if config.get("tie_word_embeddings"):
        state["lm_head.weight"] = state["embed_tokens.weight"]
    else:
        named["lm_head.weight"] = state["lm_head.weight"]
    names = sorted(named)
    for number in range(files):
        part = {name: named[name].contiguous() for name in names[number::files]}
        nn.save(part, folder / f"model-{number + 1:05}-of-{files:05}.safetensors")
    return model.sizes, {name: each.numpy().astype(np.float64) for name, each in state.items()}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_folder_gives_the_numbers_of_its_weights(device, tmp_path, family):
    llm = importlib.import_module("llm")
    sizes, state = write_folder(tmp_path, FAMILIES[family])
    tokens = [3, 1, 4, 1, 5, 9]
    found = llm.load(tmp_path, 32, device)(Tensor([tokens], device=device)).numpy()[0]
    np.testing.assert_allclose(found, reference(state, sizes, tokens), rtol=1e-4, atol=1e-5)


def test_it_writes_the_likeliest_tokens(device, tmp_path):
    llm = importlib.import_module("llm")
    sizes, state = write_folder(tmp_path, FAMILIES["qwen3"])
    given = [str(tmp_path), "--device", device, "--tokens", "--temperature", "0", "--length", "4"]
    (text,) = llm.main([*given, "--prompt", "3 1 4"])
    tokens = [3, 1, 4]
    for _ in range(4):
        tokens.append(int(reference(state, sizes, tokens)[-1].argmax()))
    assert [int(number) for number in text.split()] == tokens
    both = llm.main([*given, "--prompt", "3 1 4", "--prompt", "7"])
    assert both[0] == text and len(both[1].split()) == 5


def test_gpt2_and_bfloat16(device, tmp_path):
    llm = importlib.import_module("llm")
    gpt = importlib.import_module("gpt")
    config = {"model_type": "gpt2", "vocab_size": 11, "n_positions": 8}
    config |= {"n_layer": 1, "n_head": 2, "n_embd": 8}
    model = gpt.GPT(gpt.Sizes(11, 8, 1, 2, 8))
    state = {}
    for name, each in model.state_dict().items():
        is_map = "c_" in name and each.ndim == 2
        state[name] = (each.T if is_map else each).contiguous()
    nn.save(state, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(config))
    tokens = Tensor([[3, 1, 4]])
    found = llm.load(tmp_path, 8)(tokens).numpy()
    np.testing.assert_allclose(found, model(tokens).numpy(), rtol=1e-5, atol=1e-6)
    given = [str(tmp_path), "--device", device, "--tokens", "--length", "2", "--bfloat16"]
    (text,) = llm.main([*given, "--prompt", "3 1 4"])
    assert len(text.split()) == 5


@pytest.mark.parametrize("missing", ["folder", "config", "tokenizer", "weights", "family"])
def test_it_says_what_is_missing(tmp_path, missing):
    llm = importlib.import_module("llm")
    given = [str(tmp_path), "--tokens"]
    wanted = {
        "folder": "no folder was given",
        "config": "has no config.json",
        "tokenizer": "tokenizer.json is missing",
        "weights": "has no .safetensors",
        "family": "model_type 'mamba' is not known",
    }
    if missing in ("tokenizer", "family"):
        write_folder(tmp_path, {"model_type": "llama"}, 1)
    if missing in ("family", "weights"):
        (tmp_path / "config.json").write_text(json.dumps(DECODER | {"model_type": "mamba"}))
    if missing == "tokenizer":
        given = given[:1]
    with pytest.raises(SystemExit, match=wanted[missing]):
        llm.main([] if missing == "folder" else given)
