import importlib

import pytest

import picograd


def refused(capsys, name, *arguments):
    """Give what is printed by an example that ends before it starts."""
    with pytest.raises(SystemExit) as ended:
        importlib.import_module(name).main(list(arguments))
    told = capsys.readouterr().err + str(ended.value.code)
    return told


@pytest.mark.parametrize("name", ["mnist_mlp", "onnx_run", "llm"])
def test_a_wrong_device_is_a_line_about_options(name, capsys):
    assert "--device gpu: device: there is no device 'gpu'" in refused(
        capsys, name, "--device", "gpu"
    )


@pytest.mark.parametrize("name", ["mnist_mlp", "mnist_cnn"])
def test_a_batch_larger_than_the_data_is_a_line(name, capsys):
    told = refused(capsys, name, "--batch-size", "60001", "--device", "null")
    assert told.endswith("--batch-size is larger than the number of training images")


def test_a_missing_package_is_a_line(monkeypatch, capsys):
    monkeypatch.setitem(importlib.import_module("sys").modules, "PIL", None)
    told = refused(capsys, "images")
    assert told == "this example needs PIL: python -m pip install pillow"


def test_no_network_is_a_line(monkeypatch, capsys):
    def fail(*_):
        raise picograd.errors.DataError("cifar10", "cannot fetch it", "connect")

    monkeypatch.setattr(picograd.nn.datasets, "cifar10", fail)
    assert refused(capsys, "cifar10").endswith("cifar10: cannot fetch it. Fix: connect.")


def test_nothing_to_resume_is_a_line(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(importlib.import_module("gpt"), "SAVED", tmp_path / "none.safetensors")
    told = refused(capsys, "gpt", "--resume")
    assert "none.safetensors, which is written every 250 steps" in told


@pytest.mark.parametrize(
    ("name", "option", "value", "problem"),
    [
        ("mnist_mlp", "--epochs", "0", "0 is less than 1"),
        ("mnist_speedrun", "--seeds", "0", "0 is less than 1"),
        ("gpt", "--steps", "-3", "-3 is less than 0"),
        ("decoder", "--steps", "-3", "-3 is less than 0"),
        ("finetune", "--rank", "0", "0 is less than 1"),
        ("llm", "--length", "ten", "'ten' is no integer"),
        ("images", "--pixels", "0", "0 is less than 1"),
    ],
)
def test_a_wrong_count_is_a_line_about_options(name, option, value, problem, capsys):
    assert f"argument {option}: {problem}" in refused(capsys, name, f"{option}={value}")


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("gpt", "--text"),
        ("gpt", "--weights"),
        ("finetune", "--text"),
        ("images", "folder"),
        ("onnx_run", "model"),
        ("onnx_run", "--picture"),
    ],
)
def test_a_missing_file_is_a_line_about_options(name, option, capsys):
    told = refused(capsys, name, *[option] * option.startswith("--"), "/no/such")
    assert f"argument {option}: there is no /no/such" in told


def test_too_short_a_text_is_a_line(capsys, tmp_path):
    text = tmp_path / "short.txt"
    text.write_text("hello" * 20)
    told = refused(capsys, "gpt", "--text", str(text), "--steps", "1", "--device", "cpu")
    assert "--text has 100 tokens: more than 1280 are needed" in told


def test_an_example_without_its_folder_says_its_own_name(capsys):
    told = refused(capsys, "finetune")
    assert told.startswith("finetune.py: no folder") and "examples/finetune.py smollm" in told


def test_a_file_that_is_no_model_is_a_line(capsys, tmp_path):
    pytest.importorskip("onnx")
    path = tmp_path / "model.onnx"
    path.write_text("hello")
    assert "onnx: this is no ONNX model" in refused(capsys, "onnx_run", str(path))
