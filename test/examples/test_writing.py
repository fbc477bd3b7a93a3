import importlib

import numpy as np
import pytest

import picograd
from picograd import Tensor


@pytest.fixture
def writing():
    return importlib.import_module("writing")


def model_of(name, device):
    room = importlib.import_module(name)
    picograd.manual_seed(0)
    if name == "gpt":
        return room.GPT(room.Sizes(11, 8, 1, 2, 8)).to(device)
    return room.Decoder(room.Sizes(11, 8, 8, 12, 1, 4, 2, 4)).to(device)


def alone(writing, model, prompt, count):
    return [tokens[0] for tokens in writing.write(model, [prompt], count, 0)]


@pytest.mark.parametrize("name", ["gpt", "decoder"])
def test_a_batch_of_prompts_is_written_as_each_alone(device, writing, name):
    """Shorter prompts stand to the right; what stands before them is not seen."""
    model, prompts = model_of(name, device), [[3, 1, 4], [5, 9, 2, 6, 5]]
    together = list(writing.write(model, prompts, 4, 0))
    for row, prompt in enumerate(prompts):
        assert [tokens[row] for tokens in together][:3] == alone(writing, model, prompt, 3)
    assert model.training


def test_a_full_context_is_halved_and_read_again(device, writing):
    """Of eight places: what is written beyond is what a prompt of the last four gives."""
    model = model_of("decoder", device)
    tokens = [3, 1, 4, *alone(writing, model, [3, 1, 4], 6)]
    assert len(tokens) == 9
    (beyond,) = list(writing.write(model, [tokens[-4:]], 1, 0))
    assert alone(writing, model, [3, 1, 4], 7)[-1] == beyond[0]


def test_tokens_cost_the_same_wherever_they_stand(device, writing, monkeypatch):
    """One trace for the prompt, and two for tokens: no other after the second token."""
    functions, jit = [], picograd.jit
    monkeypatch.setattr(
        writing.picograd, "jit", lambda f: functions.append(jit(f)) or functions[-1]
    )
    model = model_of("gpt", device)
    traces = [functions[0].traces for _ in writing.write(model, [[1, 2]], 6, 0)]
    assert traces[1:] == [traces[1]] * 5


def test_drawing_by_temperature(device, writing):
    """Sure of nothing, all letters come; at 0, and with scores far apart, the likeliest does."""
    model = model_of("gpt", device)
    drawn = {tokens[0] for tokens in writing.write(model, [[0]], 120, 100.0)}
    assert drawn == set(range(11))
    surest = alone(writing, model, [0], 7)
    assert surest == [tokens[0] for tokens in writing.write(model, [[0]], 7, 1e-6)]
    first, second = (list(writing.write(model, [[0]], 5, seed=1)) for _ in "ab")
    assert first == second


def test_only_the_likeliest_tokens_are_drawn(writing):
    scores, generator = np.log(np.array([0.5, 0.3, 0.15, 0.05])), np.random.default_rng(0)
    drawn = {writing.choose(scores, 1.0, generator, 0.7) for _ in range(100)}
    assert drawn == {0, 1}


def test_text_is_shown_as_it_comes(device, writing, capsys):
    codec = writing.Letters("abcdefghijk")
    model = model_of("gpt", device)
    (text,) = writing.show(model, codec, ["abba"], 5)
    assert capsys.readouterr().out.strip() == text and len(text) == 9
    both = writing.show(model, codec, ["abba", "cd"], 5)
    assert [len(each) for each in both] == [9, 7]
    assert codec.decode(codec.encode("bad!")) == "bad"
    assert writing.Numbers().decode(writing.Numbers().encode("3 1")) == " 3 1"


def test_the_text_is_shipped():
    text = importlib.import_module("common").shipped_text()
    assert len(text) > 1_300_000 and "It is a truth universally acknowledged" in text


def test_rows_before_a_prompt_are_not_seen(device, writing):
    numbers = writing.places(2, 3, Tensor([0, 4], device=device), device)
    assert numbers.tolist() == [[3, 4], [0, 0]]
