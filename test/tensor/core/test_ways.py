"""A way is learnt where all that counts can be told, and in no other case."""

from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.engine.followed import EVENTS
from picograd.tensor.core import following
from picograd.tensor.core.recording import apply
from picograd.tensor.core.ways import IS, MADE, MANY, MET, NAMED, NEW, Log, Unlike


@pytest.fixture
def log() -> Log:
    return Log(lambda way: None)


def test_values_are_told_by_kind_and_value(log: Log) -> None:
    x = Tensor([1.0, 2.0]).realize()
    told, names = log.told([1, (x, x), slice(1, None)]), log.told({"a": 2.0})
    assert told[0] == MANY
    kind, several = told[1]
    assert kind is list
    assert [each[0] for each in several] == [IS, MANY, MANY]
    assert [each[0] for each in several[1][1][1]] == [NEW, MET]
    assert names == (NAMED, [("a", (IS, 2.0))])


def own(x: Any) -> Any:
    return x


@pytest.mark.parametrize(
    "value", [object(), np.ones(3), own, lambda x: x, {1, 2}, [np.float32(1.0)], 2j]
)
def test_what_cannot_be_told_is_refused(value: Any, log: Log) -> None:
    with pytest.raises(Unlike):
        log.told(value)


def test_tensors_that_are_not_in_memory_are_refused(log: Log) -> None:
    x = Tensor([1.0, 2.0]).realize()
    for other in (x * 2.0, (x * 2.0)[:1], nn.Parameter(Tensor.ones(3) * 2.0)):
        with pytest.raises(Unlike):
            log.told(other)


@pytest.mark.parametrize("value", [0.0, -0.0, 1.0, 1, True])
def test_only_the_same_value_of_one_type_is_the_same(value: Any) -> None:
    for other in (0.0, -0.0, 1.0, 1, True):
        is_same = repr(other) == repr(value)
        assert following.is_same(value, other) == is_same
        assert following.is_same((1, (value,)), (1, (other,))) == is_same


def test_an_event_notes_what_it_gives(log: Log) -> None:
    x = Tensor([1.0, 2.0], requires_grad=True).realize()
    EVENTS.learning, EVENTS.take = log, log.take
    y = x * 2.0
    z = y.reshape(2, 1)
    assert [event.result for event in log.events] == [(MADE, 0), (MADE, 1)]
    made = [each[2] for each in log.made]
    assert [each.tracks for each in made] == [True, True]
    assert made[0].shown is None
    assert made[1].shown is not None and made[1].shown.base == (MADE, 0)
    assert log.names[id(z)][1] == (MADE, 1)


@pytest.mark.parametrize(
    "what",
    [
        lambda x: picograd.rand(2, generator=picograd.Generator()),
        lambda x: (x * 2.0).sum().item(), lambda x: x.unsqueeze_(0),
        lambda x: x[x > 0.0], lambda x: x.repeat_interleave(Tensor([1, 2]).realize()),
        lambda x: (x * 2.0, setattr(x, "requires_grad", True)),
        lambda x: x.register_hook(lambda g: g),
    ],
)  # fmt: skip
def test_what_hangs_on_values_or_changes_tensors_ends_it(what: Any, log: Log) -> None:
    x, other = Tensor([1.0, 2.0]).realize(), Tensor([1.0, 2.0], requires_grad=True)
    EVENTS.learning, EVENTS.take, EVENTS.after = log, log.take, lambda: None
    what(other if what.__code__.co_names == ("register_hook",) else x)
    assert EVENTS.learning is None and EVENTS.take is None


def test_a_leaf_that_nobody_read_may_ask_for_gradients_on_the_way(log: Log) -> None:
    x = Tensor([1.0, 2.0]).realize()
    EVENTS.learning, EVENTS.take, EVENTS.after = log, log.take, lambda: None
    x.requires_grad_()
    y = x * 2.0
    assert EVENTS.learning is log and y.requires_grad and log.events[0].result == (MADE, 0)


def test_a_view_that_no_event_named_moves_with_what_it_shows(log: Log) -> None:
    x = Tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]).realize()
    EVENTS.learning, EVENTS.take, EVENTS.after = log, log.take, lambda: None
    y = x.clone()
    y[0] = y[1]
    assert y.tolist() == [[3.0, 4.0], [3.0, 4.0], [5.0, 6.0]]


def test_an_error_ends_it(log: Log) -> None:
    x = Tensor([1.0, 2.0]).realize()
    EVENTS.learning, EVENTS.take = log, log.take
    with pytest.raises(Exception, match="inner sizes|axes|shape"):
        x @ Tensor([1.0, 2.0, 3.0]).realize()
    assert EVENTS.learning is None and EVENTS.take is None
    assert apply is not None


def test_another_round_of_a_loop_ends_it() -> None:
    """It would have as many reads as there may be: each round is told anew, and all before it."""
    x = Tensor([1.0, 2.0]).realize()
    log = Log(lambda way: None, may_read=True)
    EVENTS.learning, EVENTS.take, EVENTS.after = log, log.take, lambda: None
    seen = []
    for _ in range(4):
        kept = x * 2.0 + 1.0
        (kept.exp() * x.sin() + x.cos()).sum().item()  # what is kept is not there yet
        seen.append(EVENTS.learning is log)
    assert seen == [True, False, False, False] and len(log.reads_made) == 1
