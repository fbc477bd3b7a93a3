"""vmap at the level of tensors: axes, pytrees, nesting, random numbers, gradients, refusals."""

from collections import OrderedDict, namedtuple
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor, func, nn
from picograd.errors import (
    AxisError,
    ChoiceError,
    DTypeError,
    GradientError,
    ShapeError,
    TraceError,
    ValueRangeError,
)
from picograd.tensor.core import running_vmaps

torch = pytest.importorskip("torch")
Pair = namedtuple("Pair", "first second")
A = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
B = np.random.default_rng(1).normal(size=(3, 4)).astype(np.float32)


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found.numpy(), np.asarray(expected), 2e-5, 2e-5)


def test_axes(device: str) -> None:
    a, b = Tensor(A, device=device), Tensor(B, device=device)
    dot = (A * B.T).sum(1)
    close(picograd.vmap(picograd.dot, (0, 1))(a, b), dot)
    close(picograd.vmap(picograd.dot, (-2, -1))(a, b), dot)
    close(picograd.vmap(lambda x, y: x + y, (0, None), out_dims=1)(a, b[:, 0]), (A + B[:, 0]).T)
    close(picograd.vmap(lambda x: x * 2, out_dims=-1)(a), A.T * 2)
    close(picograd.vmap(lambda x: b)(a), np.tile(B, (4, 1, 1)))
    assert picograd.vmap(lambda x: b, out_dims=None)(a).shape == B.shape
    close(picograd.vmap(lambda x, y, k: x - k * y)(a, y=a[0], k=2), A - 2 * A[0])


def test_pytrees() -> None:
    a = Tensor(A)

    def both(tree: Any, scale: float) -> Any:
        return OrderedDict(sum=tree["x"][0] + tree["x"][1], pair=Pair(tree["y"] * scale, tree["y"]))

    tree = {"x": [a, a], "y": a.T}
    result = picograd.vmap(both, in_dims=({"x": [0, 0], "y": 1}, None))(tree, 2.0)
    assert isinstance(result, OrderedDict) and isinstance(result["pair"], Pair)
    close(result["sum"], A * 2)
    close(result["pair"].first, A * 2)
    turned = picograd.vmap(lambda x: (x, x), out_dims=(0, 1))(a)
    close(turned[1], A.T)


def test_nesting() -> None:
    a, b = Tensor(A), Tensor(B)
    inner = picograd.vmap(picograd.dot, (None, 1))
    close(picograd.vmap(inner, (0, None))(a, b), A @ B)
    assert not running_vmaps.LEVELS


def test_chunks() -> None:
    found = picograd.vmap(lambda x: (x * 2, x.sum()), out_dims=(1, 0), chunk_size=3)(Tensor(A))
    close(found[0], A.T * 2)
    close(found[1], A.sum(1))


def test_random_numbers() -> None:
    a = Tensor(A)

    def noisy(x: Tensor) -> Tensor:
        return x * 0 + picograd.rand(3)

    with pytest.raises(GradientError, match="random numbers inside vmap"):
        picograd.vmap(noisy)(a)
    same = picograd.vmap(noisy, randomness="same")(a).numpy()
    different = picograd.vmap(noisy, randomness="different")(a).numpy()
    assert (same == same[0]).all() and len(np.unique(different)) == 12
    inner = picograd.vmap(noisy, randomness="different")
    nested = picograd.vmap(inner, in_dims=None, randomness="different")
    with pytest.raises(ValueRangeError, match="no argument is mapped"):
        nested(a)
    both = picograd.vmap(lambda _: inner(a), randomness="different")(Tensor.zeros(2)).numpy()
    assert both.shape == (2, 4, 3) and len(np.unique(both)) == 24
    drop = picograd.vmap(lambda x: nn.functional.dropout(x, 0.5), randomness="different")
    assert drop(Tensor.ones(4, 50)).shape == (4, 50)
    weight = Tensor.rand(3)  # drawn outside, computed later: no random number of the function's
    close(picograd.vmap(lambda x: x + weight)(a), A + weight.numpy())


def test_gradients_pass_from_outside() -> None:
    a, w = Tensor(A, requires_grad=True), Tensor(B[:, 0], requires_grad=True)
    out = picograd.vmap(lambda x: (x * w).sum() ** 2)(a)
    assert out.requires_grad
    out.sum().backward()
    dots = A @ B[:, 0]
    assert a.grad is not None and w.grad is not None
    close(a.grad, 2 * dots[:, None] * B[:, 0])
    close(w.grad, (2 * dots[:, None] * A).sum(0))
    with picograd.no_grad():
        assert not picograd.vmap(lambda x: x * w)(a).requires_grad


def test_custom_functions_and_checkpoints() -> None:
    class Cube(picograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> Tensor:
            (x,) = ctx.saved_tensors
            return gradient * x * x * 3

    def total(x: Tensor) -> Tensor:
        return Cube.apply(x).sum() + picograd.checkpoint(lambda t: t.sin(), x).sum()

    a = Tensor(A, requires_grad=True)
    picograd.vmap(total)(a).sum().backward()
    assert a.grad is not None
    close(a.grad, 3 * A**2 + np.cos(A))
    close(picograd.vmap(func.grad(total))(Tensor(A)), 3 * A**2 + np.cos(A))


def test_argument_changed_in_place() -> None:
    a = Tensor(A)

    def add_one(x: Tensor) -> Tensor:
        x += 1
        return x * 2

    close(picograd.vmap(add_one)(a), (A + 1) * 2)
    close(a, A + 1)


def test_inside_jit() -> None:
    @picograd.jit
    def gram(x: Tensor) -> Tensor:
        return picograd.vmap(lambda row: x @ row)(x)

    for scale in (1, 2, 3):
        close(gram(Tensor(A * scale)), (A @ A.T) * scale**2)


def test_samples_that_escape_do_no_harm() -> None:
    kept = []
    picograd.vmap(lambda x: kept.append(x * 2) or x)(Tensor(A))
    (Tensor.ones(2) + 1).realize()
    from picograd.engine import pending

    pending.realize_all()
    with pytest.raises(TraceError, match="the value of one sample is not known"):
        kept[0].numpy()


def per_sample(
    model: nn.Module, x: np.ndarray, t: np.ndarray
) -> tuple[dict[str, Tensor], list[Any]]:
    """Per-sample gradients by vmap(grad), and by a loop of backward."""

    def loss(state: Any, x: Tensor, t: Tensor) -> Tensor:
        out = func.functional_call(model, state, (x.unsqueeze(0),))
        return nn.functional.cross_entropy(out, t.unsqueeze(0))

    state = dict(model.named_parameters())
    found = picograd.vmap(func.grad(loss), (None, 0, 0))(state, Tensor(x), Tensor(t))
    rows = []
    for at in range(len(x)):
        model.zero_grad()
        nn.functional.cross_entropy(
            model(Tensor(x[at : at + 1])), Tensor(t[at : at + 1])
        ).backward()
        named: Any = model.named_parameters()
        rows.append({name: each.grad.numpy() for name, each in named})
    return found, rows


def test_per_sample_gradients_of_a_perceptron() -> None:
    picograd.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.LayerNorm(4), nn.Linear(4, 2))
    targets = np.array([0, 1, 1, 0])
    found, rows = per_sample(model, A, targets)
    for name, each in found.items():
        close(each, np.stack([row[name] for row in rows]))

    state = {name: torch.tensor(each.numpy()) for name, each in model.named_parameters()}

    def loss(state: Any, x: Any, t: Any) -> Any:
        hidden = torch.tanh(x @ state["0.weight"].T + state["0.bias"])
        hidden = torch.nn.functional.layer_norm(hidden, (4,), state["2.weight"], state["2.bias"])
        return torch.nn.functional.cross_entropy(hidden @ state["3.weight"].T + state["3.bias"], t)

    wanted = torch.func.vmap(torch.func.grad(loss), (None, 0, 0))(
        state, torch.tensor(A), torch.tensor(targets)
    )
    for name, each in found.items():
        close(each, wanted[name])


def test_per_sample_gradients_of_a_convolution() -> None:
    picograd.manual_seed(1)
    model = nn.Sequential(
        nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8, 2)
    )
    x = np.random.default_rng(2).normal(size=(3, 1, 6, 6)).astype(np.float32)
    found, rows = per_sample(model, x, np.array([1, 0, 1]))
    for name, each in found.items():
        close(each, np.stack([row[name] for row in rows]))


def test_wrong_use() -> None:
    a = Tensor(A)
    with pytest.raises(ShapeError, match=r"mapped axes have sizes \[4, 3\]"):
        picograd.vmap(picograd.add)(a, Tensor(B))
    with pytest.raises(ValueRangeError, match="in_dims=5"):
        picograd.vmap(picograd.exp, 5)(a)
    with pytest.raises(AxisError, match="out_dims=3"):
        picograd.vmap(picograd.exp, out_dims=3)(a)
    with pytest.raises(ChoiceError, match="in_dims holds a str"):
        picograd.vmap(picograd.exp, "a")(a)
    with pytest.raises(ChoiceError, match="does not have the structure"):
        picograd.vmap(picograd.exp, (0, 0))(a)
    with pytest.raises(ValueRangeError, match="for an argument of type float"):
        picograd.vmap(picograd.mul)(a, 2.0)
    with pytest.raises(ValueRangeError, match="the function returned a float"):
        picograd.vmap(lambda x: 1.0)(a)
    with pytest.raises(ValueRangeError, match="out_dims=None for a result that differs"):
        picograd.vmap(lambda x: x, out_dims=None)(a)
    assert picograd.vmap(picograd.exp, out_dims=(1,))(a).shape == a.T.shape  # one result
    with pytest.raises(ValueRangeError, match="randomness='maybe'"):
        picograd.vmap(picograd.exp, randomness="maybe")
    with pytest.raises(ValueRangeError, match="chunk_size=0"):
        picograd.vmap(picograd.exp, chunk_size=0)
    with pytest.raises(DTypeError, match="int is no function"):
        picograd.vmap(3)  # type: ignore[arg-type]
    with pytest.raises(TraceError, match="while vmap traces"):
        picograd.vmap(lambda x: x if x.sum() > 0 else -x)(a)
    held = Tensor([1.0, 2.0, 3.0]).realize()
    with pytest.raises(GradientError, match="vmap"):
        picograd.vmap(lambda x: held.add_(x))(a)
    assert held.tolist() == [1, 2, 3]
    with pytest.raises(GradientError, match="backward"):
        picograd.vmap(lambda x: (x * held).sum().backward())(a)
