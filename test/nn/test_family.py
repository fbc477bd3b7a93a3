"""Layers that differ in data alone."""

import pytest

from picograd import Tensor, nn
from picograd.nn.family import Family


def double(input: Tensor) -> Tensor:
    return input * 2.0


class Applied(Family):
    axes = 1

    def forward(self, input: Tensor) -> Tensor:
        return self.compute(input)  # type: ignore[attr-defined, no-any-return]


class Doubled(Applied, axes=3, compute=double):
    pass


def test_a_class_has_what_its_first_line_says() -> None:
    assert Applied.axes == 1 and Doubled.axes == 3
    assert Doubled()(Tensor([1.0])).tolist() == [2.0]


def test_classes_of_programs_keep_what_they_inherit() -> None:
    class Mine(nn.MaxPool2d):
        pass

    class Other(nn.ReLU):
        pass

    assert Mine(2)(Tensor([[[[1.0, 2.0], [3.0, 4.0]]]])).tolist() == [[[[4.0]]]]
    assert Other()(Tensor([-1.0, 2.0])).tolist() == [0.0, 2.0]


def test_functions_that_a_program_replaces_are_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nn.functional, "tanh", double)
    assert nn.Tanh()(Tensor([1.0])).tolist() == [2.0]
