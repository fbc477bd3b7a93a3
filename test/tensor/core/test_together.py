"""What many operations make is recorded once, and is the same as what they record."""

import numpy as np
import pytest

import picograd
from picograd import Tensor
from picograd.tensor.core.together import together

pytestmark = pytest.mark.usefixtures("cpu_by_default")
VALUES = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def step():
    """A function of two results, and the list of its calls."""
    calls = []

    def both(x, y, factor):
        calls.append(factor)
        low, high = (x + y if y is not None else x).chunk(2, 0)
        return low.tanh() * factor, high.exp()

    return together(both), both, calls


def test_the_third_call_is_stamped_out(step):
    one, plain, calls = step
    with picograd.config.override(verify=0):  # else each call records to compare
        for _ in range(2):
            one(Tensor(VALUES), Tensor(VALUES), 3)
        del calls[:]
        x, y = Tensor(VALUES * 2), Tensor(VALUES * 3)
        found = [each.numpy() for each in one(x, y, 3)]
    assert calls == []
    for a, b in zip(found, plain(x, y, 3), strict=True):
        np.testing.assert_array_equal(a, b.numpy())


def test_gradients_pass_and_stop_as_they_do_in_the_operations(step):
    one, plain, _ = step
    for _ in range(4):
        gradients = []
        for function in (one, plain):
            x = Tensor(VALUES, requires_grad=True)
            first, second = function(x, None, 2)
            assert first.requires_grad and not first.is_leaf
            (first.sum() + second.sum()).backward()
            gradients.append(x.grad.numpy())
            with picograd.no_grad():
                assert not function(x, None, 2)[0].requires_grad
        np.testing.assert_array_equal(*gradients)


def test_autocast_and_traces_record_each_operation(step):
    one, plain, _ = step
    for _ in range(3):
        with picograd.autocast("cpu", dtype=picograd.bfloat16):
            assert [x.dtype for x in one(Tensor(VALUES), None, 2)] == [picograd.float32] * 2
        found = picograd.jit(lambda x: one(x, None, 2)[0])(Tensor(VALUES))
        np.testing.assert_array_equal(found.numpy(), plain(Tensor(VALUES), None, 2)[0].numpy())


def test_arguments_go_by_name_and_one_tensor_is_enough():
    @together
    def scaled(x, factor=2.0, *, shift=0.0):
        return x * factor + shift

    x = Tensor(VALUES)
    for _ in range(3):
        np.testing.assert_array_equal(scaled(x, factor=3.0).numpy(), VALUES * 3)
        np.testing.assert_array_equal(scaled(x).numpy(), VALUES * 2)
        np.testing.assert_array_equal(scaled(x, shift=1.0).numpy(), VALUES * 2 + 1)
    with pytest.raises(TypeError, match="other"):
        scaled(x, other=1)


X, Y = np.ones((4, 6), np.float32), np.zeros((4, 6), np.float32)
LABELS = np.array([0, 5, 2, 2])
MANY = {
    "mse_loss": (X, Y),
    "kl_div": (X, Y),
    "nll_loss": (X, LABELS),
    "triplet_margin_loss": (X, Y, X),
    "cosine_similarity": (X, Y),
    "pairwise_distance": (X, Y),
    "group_norm": (X, 2),
    "normalize": (X,),
    "softshrink": (X,),
}


@pytest.mark.parametrize("name", MANY)
def test_functions_of_many_operations_are_stamped_out(name, monkeypatch):
    function = getattr(picograd.nn.functional, name)
    operands = [Tensor(x) if isinstance(x, np.ndarray) else x for x in MANY[name]]
    with picograd.config.override(verify=0):
        found = [function(*operands).numpy() for _ in range(2)]
        monkeypatch.setattr("picograd.tensor.core.together.shown_as", None)
        np.testing.assert_array_equal(function(*operands).numpy(), found[0])


def test_lists_are_searched_as_one(monkeypatch):
    x, others = Tensor([3, 1, 9]), Tensor([9, 3])
    with picograd.config.override(verify=0):
        for function in (picograd.isin, picograd.bucketize):
            found = [function(x, others).tolist() for _ in range(2)]
            with monkeypatch.context() as patch:
                patch.setattr("picograd.tensor.core.together.shown_as", None)
                assert function(x, others).tolist() == found[0]


def test_a_loop_over_time_is_stamped_out(monkeypatch):
    scores = Tensor(np.random.default_rng(0).standard_normal((9, 2, 5)).astype(np.float32))
    for labels in ([[1, 2, 3], [4, 4, 1]], [[2, 2, 1], [3, 1, 0]]):
        operands = scores.log_softmax(-1), Tensor(labels), [9, 7], [3, 2]
        with picograd.config.override(verify=0):
            found = [picograd.nn.functional.ctc_loss(*operands).numpy() for _ in range(3)]
            with monkeypatch.context() as patch:
                patch.setattr("picograd.tensor.core.together.shown_as", None)
                found.append(picograd.nn.functional.ctc_loss(*operands).numpy())
        assert len(set(map(float, found))) == 1
