"""The front door: raw errors are named, others pass."""

import pickle
from typing import Any

import pytest

import picograd
from picograd import Tensor, nn
from picograd.errors import (
    AxisError,
    DTypeError,
    InternalError,
    PicogradError,
    ShapeError,
    ValueRangeError,
)
from picograd.tensor.core.guard import described, guarded, is_guarded, translated

X = Tensor([[1.0, 2.0], [3.0, 4.0]])


@pytest.mark.parametrize("name", ["mul", "div", "eq", "gt", "remainder"])
@pytest.mark.parametrize("other", [None, "2", object()])
def test_named_forms_of_operators_leave_nothing_to_python(name: str, other: Any) -> None:
    for call in (getattr(picograd, name), getattr(Tensor, name)):
        with pytest.raises(DTypeError, match=f"^{name}: operand must be a Tensor or a number"):
            call(X, other)
    assert X.__mul__(other) is NotImplemented


def test_raw_errors_become_ours() -> None:
    with pytest.raises(DTypeError, match="must be a Tensor, not int") as caught:
        nn.functional.relu(3)
    assert isinstance(caught.value.__cause__, AttributeError) or caught.value.op == "relu"
    with pytest.raises(
        DTypeError, match=r"roll: shifts must be an int or a tuple of ints, not 'a'"
    ):
        picograd.roll(X, "a")
    with pytest.raises(TypeError, match="op: the arguments"):
        raise translated("op", TypeError("no"), (1,))
    assert type(translated("op", IndexError("far"), ())) is AxisError
    assert type(translated("op", KeyError("k"), ())) is ValueRangeError


class Halved(picograd.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x / 2

    @staticmethod
    def backward(ctx):
        return None


@pytest.mark.parametrize(
    "call",
    [
        lambda: Halved.apply((x := Tensor([1.0], requires_grad=True)) * 1).backward(inputs=[x]),
        lambda: picograd.grad(Halved.apply(x := Tensor([1.0], requires_grad=True)), [x]),
        lambda: X.clone().apply_(lambda: 1),
        lambda: X.clone().map_(X, lambda: 1),
        lambda: picograd.utils.checkpoint.checkpoint(lambda: 1, X),
    ],
)
def test_functions_of_the_users_that_do_not_take_their_arguments(call) -> None:
    with pytest.raises(TypeError, match=r"\(\) takes \d positional argument") as caught:
        call()
    assert not isinstance(caught.value, PicogradError)


@pytest.mark.parametrize("name", ["register_hook", "register_post_accumulate_grad_hook"])
def test_hooks_that_do_not_take_their_arguments(name: str) -> None:
    x = Tensor([1.0], requires_grad=True)
    getattr(x, name)(lambda: None)
    with pytest.raises(TypeError, match="takes 0 positional arguments but 1 was given"):
        (x * 2).backward()


BUGS = [TypeError("no"), KeyError("k"), AttributeError("a"), ValueError("v"), IndexError("i"),
        ZeroDivisionError("z")]  # fmt: skip


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: type(bug).__name__)
@pytest.mark.parametrize(
    ("where", "call"),
    [
        ("picograd.graph.build.contiguous", lambda: X.clone()),
        ("picograd.graph.build_composite.softmax", lambda: X.softmax(1)),
        ("picograd.graph.build_composite.var", lambda: X.var(1)),
        ("picograd.engine.pending.compute", lambda: (X * 5.25 + 3.0).tolist()),
        ("picograd.tensor.shaping.movement.cat", lambda: picograd.cat([X, X], 0)),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_bugs_of_ours_are_internal(where: str, call: Any, bug: Exception, monkeypatch: Any) -> None:
    """An error that no argument explains is no mistake of the user's."""

    def broken(*args: Any, **options: Any) -> Any:
        raise bug

    monkeypatch.setattr(where, broken)
    with pytest.raises(InternalError, match="This is a bug in picograd: please report it") as found:
        call()
    assert found.value.__cause__ is bug


WRONG = """
X.roll("a") | functional.relu(3) | X.sum("a") | X.reshape("a") | X.reshape([1, "b"])
X.permute("a") | X.flip([1, "a"]) | X.topk("a") | picograd.cat([X, 3]) | picograd.cat(5)
picograd.stack([X, "a"]) | picograd.linalg.inv(5) | functional.conv2d(X, "a")
functional.conv2d(X, X, stride="a") | functional.pad(X, "a") | functional.pad(X, 5)
functional.interpolate(X, size="a") | functional.max_pool2d(X, "a") | functional.one_hot(5)
functional.embedding(X, 5) | functional.cross_entropy(X, 5) | functional.cross_entropy(X, "a")
functional.dropout(X, "a") | functional.layer_norm(X, "a") | functional.batch_norm(X, 5, 5)
functional.softmax(X, "a") | functional.gelu(X, 5) | functional.mse_loss(X, "a")
picograd.einsum(5) | picograd.where(5, 5, 5) | picograd.clamp(X, "a", "b") | picograd.arange("a")
picograd.linspace("a", 1, 2) | picograd.zeros("a") | picograd.full("a", 1) | picograd.rand("a")
picograd.randperm("a") | picograd.fft.rfft(X, "a") | X.expand("a") | X.repeat("a") | X.split("a")
X.chunk("a") | X.gather("a", X) | X.gather(0, 5) | X.scatter(0, 5, 5) | X.index_select(0, 5)
X.masked_fill(5, 5) | X.quantile("a") | X.tril("a") | X.std(correction="a") | X.norm("a")
X.movedim("a", 0) | X.squeeze("a") | X.cumsum("a") | X.to(5) | X.cast("nope")
picograd.tensordot(X, X, "a") | picograd.cdist(X, 5) | picograd.histc(X, "a")
picograd.meshgrid(5) | X.round(decimals="a") | X.diag("a") | X.unflatten(0, "a")
picograd.stft(X, "a") | picograd.multinomial(X, "a") | picograd.normal("a", "b")
picograd.logspace("a", 1, 2) | X.allclose("a") | picograd.hann_window("a") | functional.glu(X, 10)
functional.normalize(X, "a") | X.backward("a") | nn.utils.clip_grad_norm_(5, 1.0)
nn.utils.clip_grad_norm_([X], "a") | nn.utils.clip_grad_value_(5, 1)
nn.utils.clip_grad_norm_([X], 1.0, "x") | nn.utils.clip_grad_value_([X], "a")
nn.utils.parameters_to_vector(5)
"""
CALLS = [each.strip() for line in WRONG.strip().splitlines() for each in line.split(" | ")]


@pytest.mark.parametrize("call", CALLS)
def test_wrong_arguments_are_the_users(call: str) -> None:
    with pytest.raises(PicogradError) as found:
        eval(call, {"X": X, "picograd": picograd, "functional": nn.functional, "nn": nn})
    assert found.value.op and found.value.problem


def test_errors_of_the_caller_pass() -> None:
    def fails(x: Tensor) -> Tensor:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        picograd.checkpoint(fails, X)
    with pytest.raises(KeyError, match="mine"):
        picograd.jvp(fails, X, X)
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        X.sum(nothing=3)
    with pytest.raises(TypeError, match="missing 2 required .*x.* and .*shifts"):
        picograd.roll()


def test_guarded_functions_are_themselves() -> None:
    assert is_guarded(nn.functional.pad) and not is_guarded(described)  # type: ignore[arg-type]
    assert nn.functional.relu.__doc__ and nn.functional.relu.__name__ == "relu"
    for function in (nn.functional.relu, picograd.zeros_like, picograd.linalg.inv):
        assert pickle.loads(pickle.dumps(function)) is function
    assert not is_guarded(Tensor.__add__)  # operators are called often

    @guarded
    def double(x: Any, *, times: int = 2) -> Any:
        """Multiply."""
        return x * times

    assert double(3, times=3) == 9 and double.__doc__ == "Multiply."


def test_arguments_are_described() -> None:
    found = [described(each) for each in (X, 3, "a", None, [1], "b" * 50)]
    assert found == ["float32(2, 2)", "3", "'a'", "None", "list", "str"]


def test_an_error_names_what_was_called_and_not_what_is_inside() -> None:
    x = Tensor([1.0, 2.0])
    with pytest.raises(ShapeError, match=r"^dot: inner sizes differ.* \(in matmul\)\. Fix"):
        picograd.dot(x, Tensor([1.0]))
    with pytest.raises(DTypeError, match="^bitwise_left_shift: the input must be a Tensor"):
        picograd.bitwise_left_shift(2, 3)
    with pytest.raises(AxisError, match="^fft: axis -1 is out of range for 0 axes"):
        picograd.fft.fft(Tensor(1.0))
    with pytest.raises(DTypeError, match="^mean: "):  # what reads dtypes is no op
        x.mean(dtype=[1])
    with pytest.raises(ShapeError, match="^matmul: "):  # the user's own code
        picograd.vmap(lambda row: row @ Tensor([1.0]))(Tensor([[1.0, 2.0]]))
    with pytest.raises(AxisError, match="^gather: "):  # recorded before
        x.gather(0, Tensor([5])).numpy()


def test_wrong_numbers_and_names_are_no_bugs() -> None:
    functional = nn.functional
    for call in (
        lambda: functional.pixel_shuffle(Tensor.ones(1, 4, 2, 2), 0),
        lambda: picograd.fft.fftfreq(0),
        lambda: functional.local_response_norm(Tensor.ones(1, 2, 4, 4), 0),
        lambda: X.expand(-7, 2, 2),
    ):
        with pytest.raises((ValueRangeError, ShapeError)):
            call()
    with pytest.raises(TypeError, match="nonsense"):
        picograd.zeros_like(X, nonsense=1)
