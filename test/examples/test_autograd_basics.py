import importlib


def test_prints_the_numbers_of_cudagrad(device, capsys):
    importlib.import_module("autograd_basics").main(["--device", device])
    expected = ["2794", "[143, 187, 143, 187]", "[66, 66, 88, 88]"]
    assert capsys.readouterr().out.splitlines() == expected
