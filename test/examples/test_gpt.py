import importlib
import statistics

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn


@pytest.fixture
def example(monkeypatch, tmp_path):
    """The example with a network of one layer, which it saves here."""
    found = importlib.import_module("gpt")
    sizes = found.Sizes
    monkeypatch.setattr(found, "Sizes", lambda vocabulary: sizes(vocabulary, 8, 1, 2, 16))
    monkeypatch.setattr(found, "SAVED", tmp_path / "gpt.safetensors")
    return found


def small(example, vocabulary=5, context=4, layers=1, heads=2, width=8):
    picograd.manual_seed(0)
    sizes = type(example.GPT2)
    return example.GPT(sizes(vocabulary, context, layers, heads, width))


def test_a_small_gpt_learns_characters(device, capsys, example):
    """The loss falls below that of guessing every character alike (M11)."""
    losses = example.main(["--device", device, "--steps", "60", "--length", "5"])
    assert statistics.mean(losses[-10:]) < 0.8 * losses[0]
    written = capsys.readouterr().out
    assert "\nIt is a truth " in written and "of pages not learned" in written


def test_training_goes_on_where_it_stopped(device, example, monkeypatch, tmp_path):
    """Six steps in one run have the losses of three, saved, and three more."""
    (tmp_path / "text.txt").write_text("to be or not to be, that is the question. " * 20)
    given = ["--device", device, "--length", "1", "--text", str(tmp_path / "text.txt")]
    given += ["--steps", "6"]
    monkeypatch.setattr(example, "REPORT", 3)
    whole = example.main(given)

    def interrupt(number, steps, most, rate=example.learning_rate):
        if number == 3:
            raise KeyboardInterrupt
        return rate(number, steps, most)

    with monkeypatch.context() as patch:
        patch.setattr(example, "learning_rate", interrupt)
        with pytest.raises(KeyboardInterrupt):
            example.main(given)
    assert nn.load(example.SAVED)["step"] == 3
    rest = example.main([*given, "--resume"])
    np.testing.assert_allclose(rest, whole[3:], rtol=1e-5)


def test_products_in_bfloat16_learn_too(device, example):
    losses = example.main(["--device", device, "--steps", "3", "--length", "1", "--bfloat16"])
    assert np.isfinite(losses).all()


def test_a_token_sees_only_those_before_it(device, example):
    model = small(example).to(device)
    first, second = (model(Tensor([[1, 2, 3, last]], device=device)).numpy() for last in (0, 4))
    assert (first[:, :3] == second[:, :3]).all() and (first[:, 3] != second[:, 3]).any()
    shared = model.lm_head.weight is model.transformer["wte"].weight
    assert shared and len(list(model.parameters())) == 16


def test_the_cache_gives_the_numbers_of_reading_everything(device, example):
    model, tokens = small(example, context=8, layers=2).to(device), [[3, 1, 4, 1, 0, 2, 2]]
    whole = model(Tensor(tokens, device=device)).numpy()
    cache = model.empty_cache()
    pieces = [(0, 3), (3, 4), (4, 6), (6, 7)]
    parts = [model(Tensor([tokens[0][a:b]], device=device), cache, a).numpy() for a, b in pieces]
    np.testing.assert_allclose(np.concatenate(parts, 1), whole, rtol=1e-5, atol=1e-6)


def hugging_face_gpt2(layers, width, vocabulary, context):
    """Draw weights as Hugging Face names and lays them out."""
    generator = np.random.default_rng(0)
    shapes = {"wte.weight": (vocabulary, width), "wpe.weight": (context, width)}
    for number in range(layers):
        name = f"h.{number}"
        for norm in ("ln_1", "ln_2"):
            shapes |= {f"{name}.{norm}.weight": (width,), f"{name}.{norm}.bias": (width,)}
        maps = {"attn.c_attn": (1, 3), "attn.c_proj": (1, 1), "mlp.c_fc": (1, 4)}
        for part, (inside, outside) in (maps | {"mlp.c_proj": (4, 1)}).items():
            shapes[f"{name}.{part}.weight"] = inside * width, outside * width
            shapes[f"{name}.{part}.bias"] = (outside * width,)
        shapes[f"{name}.attn.bias"] = 1, 1, context, context
    shapes |= {"ln_f.weight": (width,), "ln_f.bias": (width,)}
    return {name: generator.normal(0, 0.3, shape) for name, shape in shapes.items()}


def gpt2_reference(w, tokens, layers, heads):
    """GPT-2 in NumPy, in float64: scores of all tokens."""

    def norm(x, name):
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)
        return x * w[f"{name}.weight"] + w[f"{name}.bias"]

    def linear(x, name):
        return x @ w[f"{name}.weight"] + w[f"{name}.bias"]

    x = w["wte.weight"][tokens] + w["wpe.weight"][: len(tokens)]  # T E
    for number in range(layers):
        name = f"h.{number}"
        q, k, v = (
            part.reshape(len(x), heads, -1).swapaxes(0, 1)  # H T D
            for part in np.split(linear(norm(x, f"{name}.ln_1"), f"{name}.attn.c_attn"), 3, 1)
        )
        scores = np.tril(np.exp(q @ k.swapaxes(1, 2) / np.sqrt(q.shape[2])))
        y = scores / scores.sum(2, keepdims=True) @ v
        x = x + linear(y.swapaxes(0, 1).reshape(x.shape), f"{name}.attn.c_proj")
        h = linear(norm(x, f"{name}.ln_2"), f"{name}.mlp.c_fc")
        h = 0.5 * h * (1 + np.tanh(np.sqrt(2 / np.pi) * (h + 0.044715 * h**3)))
        x = x + linear(h, f"{name}.mlp.c_proj")
    return norm(x, "ln_f") @ w["wte.weight"].T


@pytest.mark.parametrize("prefix", ["", "transformer."])
def test_weights_of_hugging_face_load(device, example, tmp_path, prefix):
    state = hugging_face_gpt2(2, 8, 11, 6)
    tokens = [3, 1, 4, 1, 5, 9]
    wanted = gpt2_reference(state, tokens, 2, 2)
    saved = {f"{prefix}{name}": Tensor(each.astype("f")) for name, each in state.items()}
    nn.save(saved, tmp_path / "model.safetensors")
    model = small(example, 11, 6, 2).to(device)
    example.load_gpt2(model, nn.load(tmp_path / "model.safetensors"))
    found = model(Tensor([tokens], device=device)).numpy()[0]
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4)


def test_gpt2_has_124_million_parameters(example):
    s = example.GPT2
    layer = 12 * s.width * s.width + 13 * s.width
    assert (s.vocabulary + s.context + 2) * s.width + s.layers * layer == 124_439_808
