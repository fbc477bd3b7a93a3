"""`compile` and `jit.script` of programs for PyTorch give back what they are given."""

import importlib

import pytest

import picograd
from picograd import Tensor, nn


def test_scripting_changes_nothing() -> None:
    model = nn.Linear(2, 2)
    assert picograd.compile(model)._orig_mod is model and picograd.jit.script(model) is model
    assert picograd.jit.trace(model, picograd.ones(1, 2)) is model

    @picograd.compile(mode="max-autotune")
    @picograd.jit.ignore
    @picograd.jit.unused
    def double(x: Tensor) -> Tensor:
        picograd._assert(x.ndim == 1, "a vector")
        return x if picograd.jit.is_scripting() else x * 2

    assert double(Tensor([1.0])).tolist() == [2.0]
    with pytest.raises(AssertionError, match="a vector"):
        double(picograd.ones(1, 1))
    with pytest.raises(RuntimeError, match="no file"):
        picograd.jit.load("a.pt")
    with pytest.raises(AttributeError, match=r"no file here. Fix: picograd.save\("):
        picograd.jit.trace(model).save("a.pt")  # type: ignore[operator]


def test_checks_and_numbers_of_compilers() -> None:
    picograd._check_is_size(3), picograd._check_tensor_all(Tensor([True])), picograd._check_with(1)
    for failing in (lambda: picograd._check_is_size(-1), lambda: picograd._check_with(0, "no")):
        with pytest.raises(RuntimeError):
            failing()
    with pytest.raises(RuntimeError, match="all of them"):
        picograd._check_tensor_all(Tensor([True, False]), lambda: "all of them")
    assert picograd.cond(Tensor(1.0) > 2, lambda: 1, lambda: 2) == 2 == picograd.sym_max(1, 2)
    assert picograd.sym_ite(True, 1, 2) == picograd.sym_int(1.5) == 1
    x = Tensor([1.0, 2.0])  # adding its elements would be another function
    assert picograd.sym_sum(x, x).tolist() == picograd.sym_sum((x, x)).tolist() == [2.0, 4.0]
    assert picograd.sym_sum(x).tolist() == [1.0, 2.0]


def test_modules_derived_from_scripts_are_modules() -> None:
    class Gate(picograd.jit.ScriptModule):
        def __init__(self) -> None:
            super().__init__()
            self.inner = picograd.nn.Linear(2, 3)

        @picograd.jit.script_method
        def forward(self, x: Tensor) -> Tensor:
            return self.inner(x)

    class Closed(Gate):
        """This class has nothing of its own."""

    assert issubclass(Closed, picograd.nn.Module)
    gate = Closed()
    assert gate(picograd.ones(1, 2)).shape == (1, 3) and len(list(gate.parameters())) == 2
    assert not isinstance(picograd.nn.Linear(2, 2), picograd.jit.ScriptModule)
    assert "inductor" in importlib.import_module("picograd._dynamo").list_backends()


def test_settings_of_pytorchs_compiler_change_nothing() -> None:
    @picograd.compiler.set_stance("force_eager")
    def twice(x: picograd.Tensor) -> picograd.Tensor:
        return picograd.compile(lambda x: x * 2)(x)

    picograd.compiler.set_stance("default")
    with picograd.compiler.set_stance("fail_on_recompile"):
        assert twice(picograd.ones(2)).tolist() == [2.0, 2.0]
    assert picograd._logging.set_logs(output_code=True) is None
