"""What no plan can be made of harms nobody else: it is told of once, and to whoever asks for it."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from picograd import Tensor
from picograd.engine import pending, realize, refused
from picograd.errors import GradientError, InternalError, OutOfMemoryError, ValueRangeError
from picograd.graph.node import Node


@pytest.fixture
def problems(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Exception]]:
    """The error of plans that an error function is part of; none, and they are made."""
    found: list[Exception] = [InternalError("a bug")]
    plain = realize.find_plan

    def find(graph: Any, roots: Sequence[Node], *more: Any) -> Any:
        if found and any(node.op == "erf" for node in graph.order):
            raise found[0]
        return plain(graph, roots, *more)

    for module in (realize, refused):
        monkeypatch.setattr(module, "find_plan", find)
    yield found
    found.clear()


def tensors() -> tuple[Tensor, Tensor]:
    return Tensor([0.0, 0.0]).realize(), Tensor([3.0]).realize()


@pytest.mark.parametrize("problem", [InternalError("a bug"), RecursionError()])
def test_a_write_that_is_refused(problem: Exception, problems: list[Exception]) -> None:
    problems[:] = [problem]
    (x, other), (y, _) = tensors(), tensors()
    x.add_(x.erf())
    x.add_(1.0)
    y.add_(2.0)
    with pytest.raises(type(problem)):
        (other * 2.0).tolist()
    assert (other * 3.0).tolist() == [9.0] and y.tolist() == [2.0, 2.0]
    assert not pending.pending_writes()
    for _ in range(2):
        with pytest.raises(type(problem)):
            x.tolist()
    assert (other * 4.0).tolist() == [12.0]
    problems.clear()
    assert x.tolist() == [1.0, 1.0]


def test_a_value_that_was_changed_and_is_refused(problems: list[Exception]) -> None:
    x, other = tensors()
    value = x * 2.0
    value.add_(x.erf())
    with pytest.raises(InternalError):
        (other * 2.0).tolist()
    assert (other * 3.0).tolist() == [9.0]
    problems.clear()
    assert value.tolist() == [0.0, 0.0]


def test_a_reader_of_what_is_written_is_refused(problems: list[Exception]) -> None:
    x, other = tensors()
    reader = x.erf()
    x.add_(1.0)
    with pytest.raises(InternalError):
        (other * 2.0).tolist()
    assert (other * 3.0).tolist() == [9.0] and x.tolist() == [1.0, 1.0]
    with pytest.raises(GradientError, match="in place"):
        reader.tolist()


def test_a_check_that_is_refused(problems: list[Exception]) -> None:
    x, other = tensors()
    pending.check_beside((x.erf() > 1.0).any()._node, ValueRangeError("op", "text", "fix"))
    with pytest.raises(InternalError):
        (other * 2.0).tolist()
    assert (other * 3.0).tolist() == [9.0] and not pending.WAITING


def test_nothing_is_refused_where_memory_ran_out(problems: list[Exception]) -> None:
    problems[:] = [OutOfMemoryError("plan", "there is none left", "free some")]
    x, other = tensors()
    x.add_(x.erf())
    for _ in range(2):
        with pytest.raises(OutOfMemoryError):
            (other * 2.0).tolist()
    problems.clear()
    assert (other * 3.0).tolist() == [9.0] and not pending.pending_writes()
    assert x.tolist() == [0.0, 0.0]


def test_what_is_asked_for_and_refused_is_told_each_time(problems: list[Exception]) -> None:
    x, other = tensors()
    wanted = x.erf() + 1.0
    for _ in range(2):
        with pytest.raises(InternalError):
            wanted.tolist()
    other.add_(1.0)
    with pytest.raises(InternalError):
        wanted.tolist()
    assert other.tolist() == [4.0]
    problems.clear()
    assert wanted.tolist() == [1.0, 1.0]
