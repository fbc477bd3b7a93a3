"""Custom functions, checkpoints, hooks and derivative products against PyTorch."""

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor
from picograd.autograd import Function, forward_ad
from picograd.errors import GradientError

torch = pytest.importorskip("torch")

X = np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]])


class Cube(picograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, scale: Any) -> Any:
        ctx.save_for_backward(x)
        ctx.scale = scale
        return x * x * x * scale

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        (x,) = ctx.saved_tensors
        return gradient * 3 * x * x * ctx.scale, None


class Parts(picograd.Function):
    @staticmethod
    def forward(ctx: Any, a: Any, b: Any) -> Any:
        ctx.save_for_backward(a, b)
        return a * b, a + b

    @staticmethod
    def backward(ctx: Any, first: Any, second: Any) -> Any:
        a, b = ctx.saved_tensors
        return first * b + second, first * a + second


def leaf(values: Any = X) -> Tensor:
    return Tensor(values, requires_grad=True)


def test_function_has_its_own_gradient() -> None:
    x = leaf()
    y = Cube.apply(x, 2.0)
    assert np.allclose(y.numpy(), 2 * X**3)
    y.sum().backward()
    assert np.allclose(x.grad.numpy(), 6 * X**2)


def test_function_can_be_differentiated_twice() -> None:
    x = leaf()
    first = picograd.grad(Cube.apply(x, 1.0).sum(), x, create_graph=True)[0]
    second = picograd.grad(first.sum(), x)[0]
    assert np.allclose(second.numpy(), 6 * X)


def test_function_with_two_outputs() -> None:
    a, b = leaf(), leaf(X + 1)
    product, total = Parts.apply(a, b)
    (product * 2 + total * 3).sum().backward()
    assert np.allclose(a.grad.numpy(), 2 * (X + 1) + 3)
    assert np.allclose(b.grad.numpy(), 2 * X + 3)


def test_function_without_gradients() -> None:
    with picograd.no_grad():
        assert not Cube.apply(leaf(), 1.0).requires_grad


def test_wrong_gradient_shape_is_an_error() -> None:
    class Wrong(picograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            return gradient.sum()

    x = leaf()
    with pytest.raises(RuntimeError, match="the gradient of argument 0 has shape"):
        Wrong.apply(x).sum().backward()


def test_a_gradient_of_more_places_is_summed() -> None:
    """As PyTorch does where the argument would be repeated to the gradient's shape."""

    class Scale(picograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, scale: Tensor) -> Tensor:
            ctx.save_for_backward(x, scale)
            return x * scale

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
            x, scale = ctx.saved_tensors
            return gradient * scale, gradient * x * scale / scale

    x = Tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    for shape, want in (((), 10.0), ((1, 2), [[4.0, 6.0]]), ((2, 1), [[3.0], [7.0]])):
        scale = Tensor.full(shape, 3.0).requires_grad_()
        (slope,) = picograd.grad(Scale.apply(x, scale).sum(), scale, create_graph=True)
        assert slope.tolist() == want
        assert picograd.grad(slope.sum(), x)[0].tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_checkpoint_gives_the_same_gradients() -> None:
    x, w = leaf(), leaf(X.T.copy())

    def block(t: Any) -> Any:
        return (t @ w).tanh().exp()

    y = picograd.checkpoint(block, x, use_reentrant=False)
    y.sum().backward()
    tx, tw = torch.tensor(X, requires_grad=True), torch.tensor(X.T.copy(), requires_grad=True)
    (tx @ tw).tanh().exp().sum().backward()
    assert np.allclose(x.grad.numpy(), tx.grad.numpy())
    assert np.allclose(w.grad.numpy(), tw.grad.numpy())


def test_hooks_inside_a_checkpoint_see_gradients() -> None:
    seen: list[Any] = []

    def block(t: Any) -> Any:
        inner = t * 3.0
        inner.retain_grad()
        inner.register_hook(lambda gradient: seen.append(gradient.tolist()) or gradient * 2.0)
        seen.append(inner)
        outer = inner.tanh()
        outer.grad_fn.register_hook(lambda parts, _: tuple(each * 10.0 for each in parts))
        return outer

    x, plain = leaf(), leaf()
    for _ in range(2):
        picograd.checkpoint(block, x).sum().backward()
        block(plain).sum().backward()
    assert np.allclose(x.grad.numpy(), plain.grad.numpy())
    values, gradients = seen[0::2], seen[1::2]
    assert len(values) == len(gradients) == 4
    assert all(np.allclose(each, gradients[0]) for each in gradients)
    assert all(np.allclose(each.grad.numpy(), values[1].grad.numpy()) for each in values)


def test_products_with_derivatives() -> None:
    def ours(t: Any) -> Any:
        return (t * t).sum(1).sin()

    x, v, t = X, np.array([1.0, 2.0]), X + 1
    functional = torch.autograd.functional
    args = (ours, torch.tensor(x))
    y, g = picograd.vjp(ours, Tensor(x), Tensor(v))
    want_y, want_g = functional.vjp(*args, torch.tensor(v))
    assert np.allclose(y.numpy(), want_y) and np.allclose(g.numpy(), want_g)
    y, g = picograd.jvp(ours, Tensor(x), Tensor(t))
    assert np.allclose(g.numpy(), functional.jvp(*args, torch.tensor(t))[1])
    found = picograd.jacobian(ours, Tensor(x)).numpy()
    assert np.allclose(found, functional.jacobian(*args))

    def scalar(t: Any) -> Any:
        return (t * t * t).sum() + t.prod()

    found = picograd.hessian(scalar, Tensor(x)).numpy()
    assert np.allclose(found, functional.hessian(scalar, torch.tensor(x)))


@pytest.mark.usefixtures("on_host")
def test_numpy_and_dlpack_share_memory() -> None:
    array = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    shared = picograd.from_numpy(array)
    array[0, 0] = 9
    assert shared[0, 0].item() == 9
    tensor = (shared + 1).realize()
    view = torch.from_dlpack(tensor)
    assert view.tolist() == (array + 1).tolist()
    with picograd.no_grad():
        view[0, 0] = -5
    assert tensor[0, 0].item() == -5
    back = picograd.from_dlpack(torch.arange(4.0))
    assert back.tolist() == [0, 1, 2, 3]
    strided = picograd.from_numpy(array.T)
    assert strided.tolist() == array.T.tolist()


def test_checkpoint_of_a_computed_tensor_counts_its_path_once() -> None:
    w = leaf()
    y = w * 2
    (picograd.checkpoint(lambda t: t.sin() * w, y).sum()).backward()
    assert np.allclose(w.grad.numpy(), np.sin(2 * X) + 2 * X * np.cos(2 * X))
    first = picograd.grad(picograd.checkpoint(lambda t: t**3, w * 1).sum(), w, create_graph=True)
    assert np.allclose(picograd.grad(first[0].sum(), w)[0].numpy(), 6 * X)


def test_saved_output_is_differentiable() -> None:
    class Exp(picograd.Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return x.exp()

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(output)

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            return gradient * ctx.saved_tensors[0]

    x = leaf()
    (first,) = picograd.grad(Exp.apply(x).sum(), x, create_graph=True)
    assert np.allclose(picograd.grad(first.sum(), x)[0].numpy(), np.exp(X))
    assert picograd.autograd.gradgradcheck(Exp.apply, x)


class Powers(picograd.Function):
    """This class has three outputs, all saved, of which one has no gradient of its own."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        square = x * x
        cube, slope = square * x, square * 3
        ctx.save_for_backward(x, square, slope)
        ctx.mark_non_differentiable(cube)
        return square, slope, cube

    @staticmethod
    def backward(ctx: Any, to_square: Any, to_slope: Any, _: Any) -> Any:
        x, square, slope = ctx.saved_tensors
        return to_square * x * 2 + to_slope * (slope + square * 3) / x


@pytest.mark.parametrize("is_checkpointed", [False, True])
@pytest.mark.parametrize("used", [(0,), (1,), (0, 1)])
def test_saved_outputs_that_nobody_used_are_differentiable(
    used: Any, is_checkpointed: bool
) -> None:
    """Their derivatives were 0, without a word."""

    def total(x: Any) -> Any:
        found = Powers.apply(x)
        return sum((found[number] * (number + 1)).sin().sum() for number in used)

    x = leaf(np.array([0.4, 0.9, -1.3]))
    function = (lambda x: picograd.checkpoint(total, x)) if is_checkpointed else total
    assert picograd.autograd.gradgradcheck(function, x)
    twice = picograd.func.grad(lambda x: picograd.func.grad(total)(x).sum())
    (first,) = picograd.grad(total(x), x, create_graph=True)
    assert np.allclose(twice(x.detach()).numpy(), picograd.grad(first.sum(), x)[0].numpy())


class MaskedGradient(picograd.Function):
    """This class writes over its gradient, and keeps its output as an attribute."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        ctx.cube = x**3 * (x > 0)
        return ctx.cube

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        (x,) = ctx.saved_tensors
        slope = gradient.clone()
        slope[x < 0] = 0.0
        slope *= 3 * ctx.cube
        return slope / x


def test_gradients_that_are_written_over_are_differentiable() -> None:
    """As in PyTorch; the second derivative was None, or 0, without a word."""
    x = leaf(np.array([0.4, -0.9, 1.3]))
    for _ in range(2):  # the second time the graph is known
        MaskedGradient.apply(x).sum().backward()
    positive = x.detach().numpy().clip(0.0)
    assert np.allclose(x.grad.numpy(), 2 * 3 * positive**2)
    (slope,) = picograd.grad((MaskedGradient.apply(x) ** 2).sum(), x, create_graph=True)
    assert np.allclose(slope.detach().numpy(), 6 * positive**5)
    assert np.allclose(picograd.grad(slope.sum(), x)[0].numpy(), 30 * positive**4)
    twice = picograd.func.grad(lambda x: picograd.func.grad(cubed)(x).sum())
    assert np.allclose(twice(x.detach()).numpy(), 30 * positive**4)


def cubed(x: Any) -> Any:
    return (MaskedGradient.apply(x) ** 2).sum()


def test_whether_gradients_of_gradients_are_asked_is_told() -> None:
    asked: list[bool] = []
    modes: list[bool] = []

    class Double(picograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            asked.append(gradient.requires_grad)
            modes.append(picograd.is_grad_enabled())
            return gradient * 2

    x = leaf()
    (Double.apply(x) ** 2).sum().backward()
    picograd.grad((Double.apply(x) ** 2).sum(), x)
    picograd.grad((Double.apply(x) ** 2).sum(), x, create_graph=True)
    assert asked == modes == [False, False, True]


class Scale(picograd.Function):
    """Changes its first argument in place."""

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.save_for_backward(x, y)
        ctx.mark_dirty(x)
        return x.mul_(y)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        product, y = ctx.saved_tensors
        return gradient * y, gradient * product / y


def test_arguments_changed_in_place_are_marked() -> None:
    x, y = leaf(), leaf(X + 3)
    middle = x * 2
    alias = middle[0]
    product = Scale.apply(middle, y)
    assert product is middle and np.allclose(alias.numpy(), (2 * X * (X + 3))[0])
    (product + alias).sum().backward()
    assert np.allclose(x.grad.numpy()[1], 2 * (X + 3)[1])
    assert np.allclose(x.grad.numpy()[0], 6 * (X + 3)[0])
    assert np.allclose(y.grad.numpy()[1], 2 * X[1])
    plain = Tensor(X)
    Scale.apply(plain, y)
    assert plain.requires_grad and plain.grad_fn.name() == "ScaleBackward"
    with pytest.raises(RuntimeError, match="Scale: a leaf that requires gradients cannot be"):
        Scale.apply(leaf(), y)


def test_dirty_tensors_are_returned() -> None:
    class Forgets(Scale):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.mark_dirty(x)
            return x.mul_(y) * 2

    with pytest.raises(RuntimeError, match="a tensor that was marked dirty is not returned"):
        Forgets.apply(Tensor(X), Tensor(X))


def test_saved_tensors_are_what_they_were() -> None:
    x = leaf()
    middle = x * 1
    y = Cube.apply(middle, 1.0)
    middle.add_(5)
    y.sum().backward()
    assert np.allclose(x.grad.numpy(), 3 * X**2)


def test_backward_is_called_once() -> None:
    class Twice(picograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, *, scale: int) -> Any:
            ctx.scale = scale
            return x * scale, x.exp()

        @staticmethod
        def backward(ctx: Any, first: Any, second: Any) -> Any:
            return first * second * ctx.scale

    def loss(x: Any) -> Any:
        first, second = Twice.apply(x, scale=3)
        return (first * 2 + second * 5).sum()

    x = leaf()
    loss(x).backward()
    assert np.allclose(x.grad.numpy(), 30)
    each = picograd.vmap(picograd.func.grad(loss))(Tensor(X))
    assert np.allclose(each.numpy(), 30)


def test_context_options() -> None:
    given = []

    class Split(picograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, flag: bool) -> Any:
            assert ctx.needs_input_grad == (True, False)
            ctx.set_materialize_grads(False)
            places = x.argmax(1)
            constant = x * 0
            ctx.mark_non_differentiable(constant)
            return x * 2, x * 3, places, constant

        @staticmethod
        @picograd.autograd.once_differentiable
        def backward(ctx: Any, *gradients: Any) -> Any:
            given.append([each is None for each in gradients])
            parts = [g * k for g, k in zip(gradients[:2], (2, 3)) if g is not None]
            return sum(parts), None, None

    x = leaf()
    a, b, places, constant = Split.apply(x, True)
    assert not constant.requires_grad and places.dtype is picograd.int64
    (a + b).sum().backward()
    assert np.allclose(x.grad.numpy(), 5)
    assert given == [[False, False, True, True]]
    (first,) = picograd.grad((Split.apply(x, True)[0] ** 2).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="marked once_differentiable was differentiated twice"):
        picograd.grad(first.sum(), x)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (lambda g: (g, g), "backward returned 2 gradients for 1 arguments"),
        (lambda g: (), "backward returned 0 gradients for 1 arguments"),
        (lambda g: 3.0, "the gradient of argument 0 is a float"),
    ],
)
def test_wrong_answers_of_backward(answer: Any, text: str) -> None:
    class Wrong(picograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            return answer(gradient)

    x = leaf()
    with pytest.raises(RuntimeError, match=text):
        Wrong.apply(x).sum().backward()
    with pytest.raises(TypeError, match="an int is no tensor"):
        picograd.tensor.transforms.custom.Context().save_for_backward(3)


def test_products_of_several_inputs() -> None:
    a, b = Tensor(X), Tensor(X + 1)
    _, (left, right) = picograd.vjp(lambda a, b: (a * b).sum(), (a, b))
    assert np.allclose(left.numpy(), X + 1) and np.allclose(right.numpy(), X)
    left, right = picograd.jacobian(lambda a, b: (a * b).sum(1), (a, b))
    assert left.shape == (2, 2, 3) and np.allclose(right.numpy()[0, 0], X[0])
    x = Tensor(X[0])
    found = picograd.jvp(lambda x: x.logcumsumexp(0), x, Tensor([1.0, 0.0, 0.0]).double())[1]
    wanted = np.exp(X[0, 0]) / np.exp(X[0]).cumsum()
    assert np.allclose(found.numpy(), wanted) and not found.requires_grad


def with_own_rule(lib):
    """What vmaps of a function with its own rule give, and the batches that the rule saw."""
    seen = []

    class Scale(lib.autograd.Function):
        @staticmethod
        def forward(x, y, factor):
            return x * y * factor, x + 1

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs[:2])
            ctx.factor = inputs[2]

        @staticmethod
        def backward(ctx, g, h):
            x, y = ctx.saved_tensors
            return g * y * ctx.factor + h, g * x * ctx.factor, None

        @staticmethod
        def vmap(info, in_dims, x, y, factor):
            seen.append((info.batch_size, in_dims[1:]))
            x = x.movedim(in_dims[0], 0)
            y = y if in_dims[1] is None else y.movedim(in_dims[1], 0)
            first, second = Scale.apply(x, y, factor)
            return (first, second.movedim(0, -1)), (0, -1)

    x, y = lib.arange(6.0).reshape(3, 2), lib.tensor([1.0, 2.0])
    vmap, grad = lib.func.vmap, lib.func.grad

    def total(a):
        return sum(each.sum() for each in Scale.apply(a, y, 3.0))

    leaf = x.clone().requires_grad_()
    sum(each.sum() for each in vmap(lambda a: Scale.apply(a, y, 2.0))(leaf)).backward()
    twice = vmap(vmap(lambda a, b: Scale.apply(a, b, 2.0)[0]), in_dims=(0, None))
    found = [*vmap(Scale.apply, in_dims=(0, None, None))(x, y, 3.0), leaf.grad, twice(x, y)]
    return [*found, vmap(grad(total))(x), *Scale.apply(x, y, 1.0)], seen


def test_a_rule_of_ones_own_for_vmap():
    (ours, seen), (theirs, wanted) = with_own_rule(picograd), with_own_rule(torch)
    assert seen == wanted
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy())


class Twice(picograd.Function):
    """Saves what it doubles."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient * 2


def test_what_a_rule_saved_ends_with_its_graph():
    for length in (2, 3):  # a plan each, whose key is kept
        x = leaf(np.ones(length))
        middle = x * 3
        product = Twice.apply(middle)
        product.sum().backward()
        assert x.grad.numpy()[0] == 6 and product.numpy()[0] == 6
        ended = weakref.ref(middle)
        del x, middle, product
        gc.collect()
        assert ended() is None


def test_classes_may_name_the_rule_of_the_base() -> None:
    """Programs write `jvp = Function.jvp` in classes that have none."""

    class Halved(picograd.autograd.Function):
        jvp = picograd.autograd.Function.jvp

        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x / 2

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> Tensor:
            return gradient / 2

    value, along = picograd.func.jvp(Halved.apply, (Tensor([4.0]),), (Tensor([1.0]),))
    assert (value.item(), along.item()) == (2, 0.5)
    with pytest.raises(NotImplementedError, match="jvp"):
        Halved.jvp(None, value)


class Scaled(picograd.autograd.Function):
    """A product whose `jvp` tells that it was asked: it is twice as large, and no `backward`."""

    @staticmethod
    def forward(x: Tensor, y: Tensor, scale: float) -> tuple[Tensor, Tensor]:
        return x * y * scale, x + y

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_forward(*inputs[:2])
        ctx.scale = inputs[2]

    @staticmethod
    def jvp(ctx: Any, along: Tensor, across: Tensor, scale: None) -> tuple[Tensor, Tensor]:
        x, y = ctx.saved_tensors
        assert scale is None
        return 2 * ctx.scale * (along * y + across * x), along + across


def test_forward_mode_asks_for_jvp() -> None:
    a, b, t, u = np.random.default_rng(3).standard_normal((4, 3)).astype("float32")
    x, y, along, across = map(Tensor, (a, b, t, u))
    product, total = picograd.func.jvp(
        lambda x, y: Scaled.apply(x, y, 3.0), (x, y), (along, across)
    )[1]
    assert np.allclose(product.numpy(), 6 * (t * b + u * a), atol=1e-5)
    assert np.allclose(total.numpy(), t + u)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, along)
        found = forward_ad.unpack_dual(Scaled.apply(dual, y, 3.0)[0].sin()).tangent
    assert found is not None and np.allclose(
        found.numpy(), np.cos(3 * a * b) * 6 * t * b, atol=1e-4
    )


def test_the_derivative_by_jvp_can_be_differentiated() -> None:
    x = Tensor([1.0, 2.0])
    second = picograd.func.jacrev(picograd.func.jacfwd(lambda x: Scaled.apply(x, x, 1.0)[0]))
    assert second(x).tolist() == [[[4.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 4.0]]]


def test_a_tangent_has_the_shape_of_its_output() -> None:
    class Wide(Scaled):
        @staticmethod
        def jvp(ctx: Any, along: Tensor, across: Tensor, scale: None) -> Any:
            return along.expand(2, 3), along

    x = Tensor.ones(3)
    with pytest.raises(GradientError, match="tangent of output 0 has shape"):
        picograd.func.jvp(lambda x: Wide.apply(x, x, 1.0), (x,), (x,))
    Wide.jvp = staticmethod(lambda ctx, *tangents: tangents[0])
    with pytest.raises(GradientError, match="1 tangents for 2 outputs"):
        picograd.func.jvp(lambda x: Wide.apply(x, x, 1.0), (x,), (x,))


def test_what_is_returned_twice_is_one_tensor() -> None:
    for framework in (picograd, torch):

        class Twice(framework.autograd.Function):  # type: ignore[name-defined, misc]
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                y = x * 2
                return y, y

            @staticmethod
            def backward(ctx: Any, first: Any, second: Any) -> Any:
                return first * 2 + second * 3

        x = framework.ones(2, requires_grad=True)
        a, b = Twice.apply(x)
        (a + b * 10).sum().backward()
        assert a is b and x.grad.tolist() == [33.0, 33.0]


@pytest.mark.parametrize("kind", ["checkpoint", "input", "output"])
@pytest.mark.parametrize("skipped", [0, 2])
def test_second_derivatives_of_a_jitted_function(kind: str, skipped: int) -> None:
    """They go through what a checkpoint computes again, and what was saved, of the call itself."""

    class Cube(picograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            value = x * x * x if kind == "input" else x.exp()
            ctx.save_for_backward(x if kind == "input" else value)
            return value

        @staticmethod
        def backward(ctx: Any, flowing: Tensor) -> Tensor:
            (saved,) = ctx.saved_tensors
            return flowing * saved * (saved * 3.0 if kind == "input" else 1.0)

    def plain(x: Tensor, mask: Tensor) -> Tensor:
        if kind == "checkpoint":
            return picograd.checkpoint(lambda y: (y * mask).sin() * y, x * 2.0)
        return Cube.apply(x * 2.0) * mask

    jitted = picograd.jit(plain)
    for call in range(skipped):
        jitted(Tensor([3.0 + call, 4.0], requires_grad=True), Tensor([0.5, 1.0 + call]))
    found = []
    for function in (jitted, plain):
        x = Tensor([0.5, -0.7], requires_grad=True)
        value = function(x, Tensor([2.0, 0.25])).sum()
        (slope,) = picograd.autograd.grad(value, x, create_graph=True)
        (curve,) = picograd.autograd.grad(slope.sum(), x)
        found.append([*slope.tolist(), *curve.tolist()])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5)


def test_outputs_are_asked_for_one_after_the_other() -> None:
    """Gradients of an output that was asked for before are not counted again."""

    class Both(picograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> tuple[Tensor, Tensor]:
            ctx.save_for_backward(x)
            return x * x, x * 5.0

        @staticmethod
        def backward(ctx: Any, first: Tensor, second: Tensor) -> Tensor:
            (x,) = ctx.saved_tensors
            return first * x * 2.0 + second * 5.0

    x = Tensor([1.0, 3.0], requires_grad=True)
    square, multiple = Both.apply(x)
    for total, wanted in (
        (square + multiple, [7.0, 11.0]),
        (square, [2.0, 6.0]),
        (multiple, [5.0, 5.0]),
    ):
        (found,) = picograd.autograd.grad(total.sum(), x, retain_graph=True)
        assert found.tolist() == wanted


@pytest.mark.parametrize("is_attribute", [False, True])
def test_a_kept_output_that_was_marked_has_no_derivative(is_attribute: bool) -> None:
    class Scaled(picograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> tuple[Tensor, Tensor]:
            scale = x * 2.0
            ctx.mark_non_differentiable(scale)
            ctx.save_for_backward(*([] if is_attribute else [scale]))
            ctx.scale = scale if is_attribute else None
            return x * scale, scale

        @staticmethod
        def backward(ctx: Any, flowing: Tensor, unused: Tensor) -> Tensor:
            scale = ctx.scale if is_attribute else ctx.saved_tensors[0]
            return flowing * scale * x + unused * 100.0

    x = Tensor([1.0, 3.0], requires_grad=True)
    value, _ = Scaled.apply(x)
    (slope,) = picograd.autograd.grad(value.sum(), x, create_graph=True)
    (curve,) = picograd.autograd.grad(slope.sum(), x)
    assert slope.tolist() == [2.0, 18.0] and curve.tolist() == [2.0, 6.0]


def test_setup_context_is_given_the_defaults_of_forward() -> None:
    class Power(Function):
        @staticmethod
        def forward(x: Any, y: Any = 3, z: Any = 1.0) -> Any:
            return x**y * z

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            x, ctx.y, ctx.z = inputs
            ctx.save_for_backward(x)

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            (x,) = ctx.saved_tensors
            return ctx.y * x ** (ctx.y - 1) * ctx.z * gradient, None, None

    for args, options, want in (((), {}, 12.0), ((2,), {}, 4.0), ((), {"z": 0.5}, 6.0)):
        x = Tensor(2.0, requires_grad=True)
        Power.apply(x, *args, **options).backward()
        assert x.grad is not None and x.grad.item() == want
