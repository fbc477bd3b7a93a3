import importlib
import statistics

import picograd


def test_a_small_gpt_learns_characters(device, capsys, monkeypatch):
    """The loss falls below that of guessing every character alike (M11)."""
    example = importlib.import_module("gpt")
    sizes = example.Sizes
    monkeypatch.setattr(example, "Sizes", lambda vocabulary: sizes(vocabulary, 8, 1, 2, 16))
    losses = example.main(["--device", device, "--steps", "60"])
    assert statistics.mean(losses[-10:]) < 0.8 * losses[0]
    assert "\npicograd " in capsys.readouterr().out


def test_a_token_sees_only_those_before_it(device):
    example = importlib.import_module("gpt")
    picograd.manual_seed(0)
    model = example.GPT(example.Sizes(5, 4, 1, 2, 8)).to(device)
    first, second = (
        model(picograd.Tensor([[1, 2, 3, last]], device=device)).numpy() for last in (0, 4)
    )
    assert (first[:, :3] == second[:, :3]).all() and (first[:, 3] != second[:, 3]).any()
    shared = model.lm_head.weight is model.transformer["wte"].weight
    assert shared and len(list(model.parameters())) == 16


def test_writing_draws_by_temperature(device):
    """Sure of nothing, all letters come; at 0, and with scores far apart, the likeliest does."""
    example = importlib.import_module("gpt")
    picograd.manual_seed(0)
    model = example.GPT(example.Sizes(5, 4, 1, 2, 8)).to(device)
    assert set(example.write(model, [0], 60, temperature=100.0)) == set(range(5))
    surest = example.write(model, [0], 20, temperature=0)
    assert surest == example.write(model, [0], 20, temperature=1e-6)
    assert example.write(model, [0], 20, seed=1) == example.write(model, [0], 20, seed=1)
    assert model.training


def test_the_text_is_shipped(device):
    example = importlib.import_module("gpt")
    assert len(example.TEXT.read_text()) > 20 * example.Sizes.context
