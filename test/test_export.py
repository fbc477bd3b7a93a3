"""`picograd.export`: programs for PyTorch export a module, call it, and keep it in a file."""

import io

import pytest

import picograd
from picograd import nn
from picograd.errors import DTypeError, ShapeError, StateError
from picograd.export import Dim, ExportedProgram, dims, export, load, save


def model() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU()).eval()


def test_what_was_exported_is_called_at_other_sizes() -> None:
    net, batch = model(), Dim("batch", min=1)
    program = export(net, (picograd.ones(2, 3),), dynamic_shapes={"input": {0: batch}})
    x = picograd.ones(5, 3)
    assert program.module()(x).tolist() == net(x).tolist() == program.graph_module(x).tolist()
    assert list(program.state_dict) == list(net.state_dict())
    assert [name for name, _ in program.named_parameters()] == [
        n for n, _ in net.named_parameters()
    ]
    assert list(program.parameters()) and len(list(program.buffers())) == 3
    assert next(program.named_buffers())[0] == "1.running_mean"
    assert program.run_decompositions({}) is program
    assert next(node.op for node in program.graph.nodes) == "placeholder"
    assert repr(dims("a", "b", max=4)[1]) == "Dim('b', min=None, max=4)" and Dim.AUTO is None


def test_a_file_has_the_module() -> None:
    program, file = export(model(), (), {"input": picograd.ones(2, 3)}), io.BytesIO()
    save(program, file)
    file.seek(0)
    found = load(file)
    assert isinstance(found, ExportedProgram)
    args, named = found.example_inputs
    assert found.module()(*args, **named).tolist() == program.module()(**named).tolist()


def test_wrong_use_is_named() -> None:
    with pytest.raises(DTypeError, match="is no module"):
        export(abs, (1,))  # type: ignore[arg-type]
    with pytest.raises(ShapeError):  # it is tried
        export(model(), (picograd.ones(2, 7),))
    with pytest.raises(DTypeError, match="pass a tuple"):
        export(model(), picograd.ones(2, 3))  # type: ignore[arg-type]
    with pytest.raises(StateError, match="call its .module"):
        export(model(), (picograd.ones(2, 3),))(picograd.ones(2, 3))
