"""Gradients at the level of tensors: leaves, modes, accumulation, second derivatives."""

import copy
import pickle
import time
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.errors import GradientError
from picograd.tensor.core import autograd


def test_leaves_that_asked_get_gradients() -> None:
    w, x = Tensor([2.0, 3.0], requires_grad=True), Tensor([4.0, 5.0])
    loss = (w * x).sum()
    assert loss.requires_grad and not loss.is_leaf and w.is_leaf
    loss.backward()
    assert w.grad is not None and w.grad.tolist() == [4, 5] and x.grad is None
    (w * x).sum().backward()
    assert w.grad.tolist() == [8, 10] and not w.grad.requires_grad
    w.grad = None
    (w * 1).backward()  # starts from ones
    assert w.grad.tolist() == [1, 1]


def test_gradients_are_added_in_place() -> None:
    x, y = Tensor([1.0, 2.0], requires_grad=True), Tensor([1.0, 2.0], requires_grad=True)
    (x + y).sum().backward()
    held, other = x.grad, y.grad
    assert held is not None and other is not None
    row = held[1:]
    (x * 2).sum().backward()
    assert held is x.grad and held.tolist() == [3, 3] and row.tolist() == [3]
    assert other.tolist() == [1, 1]
    (x * x).sum().backward(create_graph=True)  # this one can be differentiated again
    assert held.tolist() == [3, 3] and x.grad is not None and x.grad.tolist() == [5, 7]


def test_a_gradient_that_has_a_graph_is_added_to_in_place() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    (x**3).sum().backward(create_graph=True)
    held = x.grad
    (x * 2).sum().backward()
    assert held is x.grad and held.tolist() == [5, 14]
    held.sum().backward(create_graph=True)  # of what it was, as the write was not recorded
    assert held.tolist() == [5, 14] and x.grad.tolist() == [11, 26]


def test_a_sum_of_gradients_that_keeps_its_graph_is_new() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    x.sum().backward()
    held = x.grad
    x.sum().backward(create_graph=True)
    assert held.tolist() == [1, 1] and x.grad.tolist() == [2, 2]


def test_small_scripts_get_gradients_without_asking() -> None:
    x, c = Tensor([1.0, 2.0]), Tensor.ones(2)
    loss = (x * x * c).sum()
    assert loss.item() == 5  # reading the value first keeps the way back
    loss.backward()
    assert x.grad is not None and x.grad.tolist() == [2, 4]
    assert c.grad is not None and c.grad.tolist() == [1, 4]


def frozen_ones() -> list[Tensor]:
    """Tensors that were told not to ask, in every spelling."""
    linear = nn.Linear(1, 1)
    linear.requires_grad_(False)
    return [
        Tensor([2.0]).requires_grad_(False),
        Tensor([2.0], requires_grad=False),
        Tensor([2.0], requires_grad=True).requires_grad_(False),
        picograd.tensor([2.0], requires_grad=False),
        picograd.ones(1, requires_grad=False),
        nn.Parameter(Tensor([2.0]), requires_grad=False),
        linear.weight,
        copy.deepcopy(linear).bias,
        pickle.loads(pickle.dumps(Tensor([2.0], requires_grad=False))),
        nn.Embedding.from_pretrained(Tensor([[2.0]])).weight,
    ]


@pytest.mark.parametrize("which", range(10))
def test_what_was_frozen_gets_no_gradient(which: int) -> None:
    frozen, other = frozen_ones()[which], Tensor([3.0])
    with pytest.raises(GradientError, match="requires_grad=False"):
        (frozen * 2.0).sum().backward()
    (frozen * other).sum().backward()  # the courtesy of small scripts is for the other one
    assert frozen.grad is None and other.grad is not None
    asked = Tensor([3.0], requires_grad=True)
    (frozen * asked).sum().backward()
    assert frozen.grad is None and asked.grad is not None
    (frozen * Tensor([3.0], requires_grad=True)).sum().backward()  # a leaf that is gone
    frozen.requires_grad_()
    (frozen * 2.0).sum().backward()
    assert frozen.grad is not None


def test_a_frozen_model_does_not_train() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 1))
    model[0].requires_grad_(False)
    before = [each.tolist() for each in model.parameters()]
    optimizer = nn.optim.SGD(model.parameters(), lr=1.0)
    model(Tensor([[1.0, 2.0]])).sum().backward()
    optimizer.step()
    after = [each.tolist() for each in model.parameters()]
    assert after[:2] == before[:2] and after[3] != before[3]


def test_created_tensors_are_leaves() -> None:
    for leaf in (Tensor.ones(2), Tensor.rand(2), Tensor.zeros(2), Tensor.linspace(0, 1, 2)):
        leaf.requires_grad = True
        (leaf * 3).sum().backward()
        assert leaf.grad is not None and leaf.grad.tolist() == [3, 3]


def test_realizing_does_not_cut_the_graph() -> None:
    w = Tensor.rand(3, requires_grad=True)
    loss = (w.exp() * 2).sum()
    loss.realize()
    w.realize()
    loss.backward()
    assert w.grad is not None
    assert w.grad.numpy() == pytest.approx(2 * w.detach().exp().numpy())


def test_no_grad_and_detach() -> None:
    w = Tensor([1.0, 2.0], requires_grad=True)
    with picograd.no_grad():
        y = w * 2
        with picograd.enable_grad():
            assert (w * 2).requires_grad
    assert not y.requires_grad and not w.detach().requires_grad and picograd.is_grad_enabled()
    (y * w).sum().backward()
    assert w.grad is not None and w.grad.tolist() == [2, 4]

    @picograd.no_grad()
    def inside() -> bool:
        return (w * 2).requires_grad

    @picograd.no_grad
    def bare() -> bool:
        return (w * 2).requires_grad

    assert not inside() and not bare()
    with pytest.raises(GradientError, match="no tensor in the graph can take a gradient"):
        y.backward()
    with pytest.raises(GradientError, match="an int64 tensor has no gradient"):
        Tensor([1]).backward()


def test_second_derivatives() -> None:
    x = Tensor([1.0, 2.0, 3.0], requires_grad=True)
    (first,) = picograd.grad((x**3).sum(), x, create_graph=True)
    (second,) = picograd.grad(first.sum(), x)
    assert first.tolist() == [3, 12, 27] and second.tolist() == [6, 12, 18]
    y = (x.sin() * x).sum()
    y.backward(create_graph=True)
    assert x.grad is not None and x.grad.requires_grad


def test_grad_of_intermediate_and_unused() -> None:
    x, z = Tensor([2.0], requires_grad=True), Tensor([1.0], requires_grad=True)
    y = x * 3
    loss = (y * y).sum()
    assert picograd.grad(loss, [y, x])[0].tolist() == [12]
    with pytest.raises(GradientError, match="input 0 was not used"):
        picograd.grad(loss, z)
    assert picograd.grad(loss, [z], allow_unused=True) == [None]
    assert picograd.grad(loss, x, grad_outputs=Tensor(2.0))[0].tolist() == [72]


def test_in_place_on_a_leaf_needs_no_grad() -> None:
    w = Tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(GradientError, match="cannot be changed in place"):
        w += 1
    for _ in range(3):
        loss = (w * w).sum()
        w.grad = None
        loss.backward()
        with picograd.no_grad():
            w -= w.grad * 0.5
        assert w.requires_grad and w.is_leaf
    assert w.tolist() == [0, 0] and loss.item() == 0


def test_in_place_on_the_way() -> None:
    w = Tensor([1.0, 2.0], requires_grad=True)
    y = w * 2
    y += 1
    y[0] = 5.0
    y *= y
    y.sum().backward()
    assert w.grad is not None and w.grad.tolist() == [0, 20]


def test_long_chains() -> None:
    x = Tensor([1.0], requires_grad=True)
    y = x
    for _ in range(3000):
        y = y * 1.0001
    gradient = picograd.grad(y, x)[0]
    assert gradient.node.dtype is picograd.float32


def test_integers_cannot_ask() -> None:
    with pytest.raises(GradientError, match="int64 tensor cannot have a gradient"):
        Tensor([1], requires_grad=True)


def test_inputs_limit_backward() -> None:
    a, b = Tensor([1.0], requires_grad=True), Tensor([2.0], requires_grad=True)
    y = a * b
    loss = (y * y).sum()
    loss.backward(inputs=[a])
    assert a.grad is not None and a.grad.item() == 8 and b.grad is None
    loss.backward(inputs=y)
    assert y.grad is not None and y.grad.item() == 4
    loss.backward()  # the graph is always kept: calling it twice is no error
    assert a.grad.item() == 16
    with pytest.raises(GradientError, match="inputs is empty"):
        loss.backward(inputs=[])


def test_batched_and_materialized_gradients() -> None:
    x, z = Tensor([1.0, 2.0, 3.0], requires_grad=True), Tensor([1.0], requires_grad=True)
    y = x * x
    (rows,) = picograd.grad(y, x, Tensor.eye(3), is_grads_batched=True)
    assert rows.tolist() == [[2, 0, 0], [0, 4, 0], [0, 0, 6]]
    found = picograd.grad(y.sum(), [x, z], materialize_grads=True)
    assert found[1].tolist() == [0]
    with pytest.raises(ValueError, match="materialize_grads=True contradicts"):
        picograd.grad(y.sum(), z, materialize_grads=True, allow_unused=False)
    with pytest.raises(ValueError, match="2 grad_outputs for 1 outputs"):
        picograd.grad(y, x, [x, x])
    with pytest.raises(ValueError, match="one leading size"):
        picograd.grad(y.sum(), x, Tensor(1.0), is_grads_batched=True)


def test_modes_as_functions_and_decorators() -> None:
    w = Tensor([1.0], requires_grad=True)
    picograd.set_grad_enabled(False)
    assert not (w * 1).requires_grad
    picograd.set_grad_enabled(True)
    with picograd.set_grad_enabled(False):
        assert not picograd.is_grad_enabled()
    assert picograd.is_grad_enabled()

    @picograd.set_grad_enabled(False)
    def off() -> bool:
        return picograd.is_grad_enabled()

    @picograd.inference_mode()
    def inference() -> bool:
        return picograd.is_grad_enabled()

    @picograd.no_grad()
    def steps():  # type: ignore[no-untyped-def]
        yield picograd.is_grad_enabled()
        yield picograd.is_grad_enabled()

    assert picograd.is_grad_enabled() and not off() and not inference()
    for enabled in steps():
        assert not enabled and picograd.is_grad_enabled()
    with picograd.inference_mode(False):
        assert picograd.is_grad_enabled()


def test_what_computed_a_tensor() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    y = (x * 2).exp()
    assert x.grad_fn is None and Tensor([1.0]).grad_fn is None and y.detach().grad_fn is None
    assert y.grad_fn.name() == "ExpBackward0" and repr(y.grad_fn) == "<ExpBackward0>"
    product = y.grad_fn.next_functions[0][0]
    assert product.name() == "MulBackward0"
    end = product.next_functions[0][0]
    assert end.name() == "AccumulateGrad" and end.variable is x and end.next_functions == ()


def test_detach_in_place_and_retained_gradients() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    y.retain_grad()
    y.retain_grad()  # once is enough
    assert y.retains_grad
    (y * 3).sum().backward()
    assert y.grad is not None and y.grad.tolist() == [3, 3]
    z = x * 2
    assert z.detach_() is z and z.is_leaf and not z.requires_grad
    z.requires_grad_()
    (z * x).sum().backward()
    assert z.grad is not None and z.grad.tolist() == [1, 2] and x.grad is not None
    assert x.grad.tolist() == [8, 10]


def test_deep_wide_and_shared_graphs_are_linear() -> None:
    x = Tensor([1.0], requires_grad=True)
    start = time.perf_counter()
    y = x
    for _ in range(60):
        y = y * 0.5 + y * 0.5  # 2 ** 60 paths
    assert picograd.grad(y, x)[0].item() == pytest.approx(1)
    total = x * 1.0
    for _ in range(3000):
        total = total + x
    assert picograd.grad(total, x)[0].item() == 3001
    assert time.perf_counter() - start < 30


@pytest.mark.usefixtures("on_host")
def test_a_hundred_thousand_operations() -> None:
    x = Tensor([1.0], requires_grad=True)
    start = time.perf_counter()
    node = x.node
    for _ in range(100_000):
        node = node.unary("sin")
    gradient = picograd.grad(Tensor.from_node(node, True), x)[0]
    assert gradient.shape == (1,) and time.perf_counter() - start < 30


VIEWS_OF_VIEWS = [
    lambda a: a.reshape(-1),
    lambda a: a.reshape(4, 6).reshape(24, 1),
    lambda a: a.transpose(0, 1).transpose(0, 1),
    lambda a: a.permute(2, 0, 1).permute(1, 2, 0),
    lambda a: a.unsqueeze(0).unsqueeze(0),
    lambda a: a @ picograd.ones(3, 2),
    lambda a: a.flatten(1).flatten(),
]


@pytest.mark.parametrize("again", VIEWS_OF_VIEWS)
@pytest.mark.parametrize("first", [lambda w: w.reshape(4, 2, 3), lambda w: w.reshape(2, 3, 4).mT])
def test_views_that_are_viewed_again_have_gradients(first, again) -> None:
    """A view that the next one reads past is still asked for its gradient."""
    values = np.arange(24, dtype=np.float32).reshape(4, 6)
    w = picograd.tensor(values).requires_grad_()
    shown = first(w * 2)
    loss = (again(shown) ** 2).sum()
    (found,) = picograd.autograd.grad(loss, shown, retain_graph=True)
    shown.retain_grad()
    loss.backward()
    apart = shown.detach().clone().requires_grad_()
    (again(apart) ** 2).sum().backward()
    np.testing.assert_allclose(found.numpy(), apart.grad.numpy())
    np.testing.assert_allclose(shown.grad.numpy(), apart.grad.numpy())
    np.testing.assert_allclose(w.grad.numpy(), 2 * back(first, apart.grad))


def back(first, gradient):
    """Put a gradient back to where `first` showed it from."""
    w = picograd.zeros(4, 6).requires_grad_()
    return picograd.autograd.grad(first(w), w, gradient)[0].numpy()


def test_grad_finds_what_it_recorded_before(monkeypatch: pytest.MonkeyPatch) -> None:
    w, b, unused = (Tensor([1.0, float(n)], requires_grad=True) for n in range(3))
    x = Tensor([2.0, 5.0])

    def found() -> list[Tensor]:
        return picograd.grad(((w * x + b).tanh() * w).sum(), [b, w, b])

    wanted = [each.tolist() for each in found()]
    monkeypatch.setattr(autograd, "node_gradient", None)  # no gradient by the rules
    assert [each.tolist() for each in found()] == wanted
    loss = ((w * x + b).tanh() * w).sum()
    assert picograd.grad(loss, [unused, w], allow_unused=True)[0] is None
    with pytest.raises(GradientError, match="not used"):
        picograd.grad(loss, [unused])


@pytest.mark.parametrize("cut", ["detach", "argmax", "long"])
def test_a_gradient_that_is_cut_is_an_error(cut: str) -> None:
    w = Tensor([1.0, 3.0], requires_grad=True)
    passed = getattr(w * 2, cut)().float()
    with pytest.raises(GradientError, match="no gradient reaches the tensors"):
        ((passed - Tensor([2.0])) ** 2).sum().backward()
    assert w.grad is None


@pytest.mark.parametrize("is_early", [False, True])
def test_grad_of_what_was_written_behind_its_back(is_early: bool) -> None:
    """A write through `.data` is not noted: gradients reach what was recorded before it, too."""
    found = []
    for library in (pytest.importorskip("torch"), picograd):
        x = library.ones(3, requires_grad=True).clone()
        early = x * 3
        x.data.mul_(2)
        y = early if is_early else x.view(3, 1)
        found.append([each.tolist() for each in library.autograd.grad((y**2).sum(), x)])
    assert found[0] == found[1]


@pytest.mark.parametrize("is_computed", [False, True])
def test_what_was_computed_before_a_leaf_asked_is_a_constant(is_computed: bool) -> None:
    x = Tensor([1.0, 2.0, 3.0])
    square, part = x * x, x[:2]
    if is_computed:
        square.realize()
    x.requires_grad_()
    (square * x + part.sum() * x).sum().backward()
    assert x.grad.tolist() == [4.0, 7.0, 12.0]
    x.grad = None
    x.requires_grad_(False)
    frozen = x * x
    x.requires_grad_()
    (frozen * x).sum().backward()
    assert x.grad.tolist() == [1.0, 4.0, 9.0]
    assert not square.requires_grad and not part.requires_grad and not frozen.requires_grad


def test_a_leaf_that_asks_again_and_again_stays_as_deep() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    for _ in range(9):
        x.requires_grad_(False)
        kept = x * x
        x.requires_grad_()
    assert not x._node.inputs[0].inputs and not kept.requires_grad


def test_what_is_shown_in_a_shape_has_a_gradient_of_its_own() -> None:
    """A view of a view was recorded past it: neither gradients nor hooks came to the first."""
    x = Tensor([1.0, 2.0, 3.0], requires_grad=True)
    for shown in (x[0], (x * 2)[1], x.sum().softmax(0), x.sum(0, keepdim=True), x[None].exp()[0]):
        first, whole = picograd.grad(shown.reshape(-1).sum() * 3, [shown, x])
        assert first.shape == shown.shape and first.flatten().tolist() == [3.0] * shown.numel()
        shown.register_hook(lambda gradient: gradient * 5)
        shown.retain_grad()
        x.grad = None
        (shown.view(1, -1) * 3).sum().backward()
        assert shown.grad.flatten().tolist() == [15.0] * shown.numel()
        np.testing.assert_allclose(x.grad.numpy(), whole.numpy() * 5, 1e-5)


def test_what_asks_since_a_write_is_a_leaf_no_more() -> None:
    x, rows = Tensor([1.0, 2.0], requires_grad=True), picograd.zeros(3, 2)
    early = rows * 2
    for number in range(3):
        rows[number] = x
    (rows + early).sum().backward()
    assert not rows.is_leaf and rows._grad is None and x.grad.tolist() == [3.0, 3.0]
    factor = Tensor([2.0, 3.0])
    product = factor * x
    factor.mul_(x)
    assert picograd.grad((product * factor).sum(), factor)[0].tolist() == product.tolist()


def test_the_gradient_of_what_is_linear_asks_for_none() -> None:
    x, factor = Tensor([1.0, 2.0], requires_grad=True), Tensor([3.0, 4.0])
    first, second = (
        picograd.grad(f(x).sum(), x, create_graph=True)[0]
        for f in (lambda x: x * factor, lambda x: x * x)
    )
    assert not first.requires_grad and second.requires_grad
    x.sum().backward(create_graph=True)
    assert not x.grad.requires_grad


@pytest.mark.parametrize("power", [1, 2])
def test_gradients_that_could_be_differentiated_add_up_in_jit(power: int) -> None:
    """A constant gradient was read by the trace as if it never changed: 1, 2, 2, 3, 2."""
    x = Tensor([1.0, 2.0], requires_grad=True)

    @picograd.jit
    def step() -> None:
        (x**power).sum().backward(create_graph=True)

    for call in range(1, 6):
        step()
        assert x.grad.tolist() == [call * power * each ** (power - 1) for each in (1.0, 2.0)]


def test_a_generator_in_no_grad_takes_what_is_sent_and_thrown() -> None:
    @picograd.no_grad()
    def echo() -> Any:
        got: Any = None
        while True:
            try:
                got = yield (got, picograd.is_grad_enabled())
            except ValueError:
                got = "thrown"
            except GeneratorExit:
                closed.append(picograd.is_grad_enabled())
                raise

    closed: list[bool] = []
    steps = echo()
    assert next(steps) == (None, False) and steps.send(5) == (5, False)
    assert picograd.is_grad_enabled() and steps.throw(ValueError()) == ("thrown", False)
    steps.close()
    assert closed == [False] and picograd.is_grad_enabled()


def test_a_hook_may_let_go_a_leaf() -> None:
    """Nobody sees the gradient of a leaf that went while backward ran."""
    weight = Tensor([2.0]).requires_grad_()
    held = [Tensor([3.0]).requires_grad_()]
    product = weight * held[0]
    product.register_hook(lambda gradient: held.clear())
    product.sum().backward()
    assert weight.grad is not None and weight.grad.tolist() == [3.0]


def test_blocks_that_decorate_have_one_of_their_own_for_each_call() -> None:
    from picograd.utils._contextlib import _DecoratorContextManager

    entered = []

    class Told(_DecoratorContextManager):
        def __init__(self, name: str) -> None:
            self.name = name

        def clone(self) -> "Told":
            return Told(self.name + "'")

        def __enter__(self) -> None:
            entered.append(self.name)

        def __exit__(self, *error: object) -> None:
            entered.append("end")

    @Told("a")
    def plain() -> int:
        return 1

    @Told("b")
    def steps():
        yield 2

    assert plain() == 1 and list(steps()) == [2]
    assert entered == ["a'", "end", "b'", "end", "b'", "end"]


BENT = {  # name -> settings
    "relu": {}, "leaky_relu": {}, "hardtanh": {}, "relu6": {}, "hardshrink": {}, "softshrink": {},
    "threshold": {"threshold": 0.1, "value": 20.0},
    "rrelu": {"training": False},
}  # fmt: skip


@pytest.mark.parametrize("name", [*BENT, "prelu"])
def test_second_derivatives_of_what_is_linear_in_pieces_are_zeros(name: str) -> None:
    """What decides on a side alone has zeros, as in PyTorch; what takes no part has None."""
    found = []
    settings = BENT.get(name, {})
    for library in (pytest.importorskip("torch"), picograd):
        x = library.tensor([[1.0, -2.0, 3.0]], requires_grad=True)
        weight = library.tensor([[0.5, 1.5, -1.0], [1.0, 0.3, 0.2]], requires_grad=True)
        bias, beside = (library.tensor([0.1, each], requires_grad=True) for each in (0.2, 0.3))
        given = (library.tensor([0.2]),) if name == "prelu" else ()
        bend = getattr(library.nn.functional, name)
        hidden = bend(x @ weight.T + bias, *given, **settings)
        cut = library.nn.functional.relu(beside * 2.0).detach()
        pooled = library.nn.functional.max_pool1d((hidden * cut)[None], 2)
        y = pooled.sum() + beside.sum()
        leaves = [x, weight, bias, beside]
        first = library.autograd.grad(y, leaves, create_graph=True)
        size = first[0].square().sum()
        second = library.autograd.grad(size, leaves, allow_unused=True, retain_graph=True)
        assert [each.requires_grad for each in first] == [True, True, True, False]
        found.append([None if each is None else each.tolist() for each in second])
        size.backward()
        found[-1] += [None if each.grad is None else each.grad.tolist() for each in leaves]
    assert found[0][0] == [[0.0, 0.0, 0.0]] and found[0][2] == [0.0, 0.0] and found[0][3] is None
    for mine, theirs in zip(*found, strict=True):
        assert mine == theirs or np.allclose(mine, theirs)


def test_what_a_constant_condition_never_chooses_has_zeros():
    """Not None, which steps over parameters would meet."""
    for mask in (picograd.ones(2, 1, dtype=picograd.bool), picograd.tensor(True)):
        chosen, other = picograd.ones(2, 3), picograd.ones(1, 3)
        chosen.requires_grad = other.requires_grad = True
        picograd.where(mask, chosen, other).sum().backward()
        assert chosen.grad.tolist() == [[1.0] * 3] * 2 and other.grad.tolist() == [[0.0] * 3]
        filled = other.masked_fill(mask[:1] if mask.ndim else mask, 2.0)
        assert picograd.autograd.grad(filled.sum(), other)[0].tolist() == [[0.0] * 3]


def test_what_a_constant_condition_never_chooses_is_not_computed():
    x = picograd.rand(4, 4).realize()
    mask = picograd.ones(4, 4, dtype=picograd.bool)
    dropped = (x @ x).exp() @ x
    for chosen in (picograd.where(mask, x * 2, dropped), picograd.where(~mask, dropped, x * 2)):
        assert len(picograd.plan(chosen).kernels) == 1
    kept = picograd.where(mask, x, dropped)
    assert np.array_equal(kept.numpy(), x.numpy())
    kept += 1  # other memory than that of what was chosen
    assert np.array_equal(kept.numpy(), x.numpy() + 1)


def test_gradients_of_what_a_constant_condition_never_chooses_are_not_computed():
    w, u = (picograd.rand(4, 4).realize().requires_grad_() for _ in range(2))
    mask = picograd.ones(4, 1, dtype=picograd.bool)
    plain, other = picograd.autograd.grad(((w @ w) * 2).sum(), w)[0], picograd.zeros(4, 4)
    y = picograd.where(mask, (w @ w) * 2, ((w @ w).exp() @ u).softmax(-1))
    found = picograd.autograd.grad(y.sum(), (w, u))
    assert len(picograd.plan(found[0]).kernels) == len(picograd.plan(plain).kernels)
    assert np.array_equal(found[1].numpy(), other.numpy())


@pytest.mark.parametrize("flowing", [0.0, 1.0])
def test_what_is_never_chosen_changes_with_no_gradient_that_is_given(flowing):
    """Derivatives by it are those of what is chosen, also where it is zeros."""
    found = []
    for library in (picograd, pytest.importorskip("torch")):
        x = library.linspace(-1, 1, 6).requires_grad_()
        given = library.full((6,), flowing).requires_grad_()
        y = library.where(library.tensor([True] * 6), (x * x).tanh(), x.exp() * x)
        made = library.autograd.grad(y, x, grad_outputs=given, create_graph=True)
        found.append(library.autograd.grad(made[0].sum(), given)[0].tolist())
    assert np.allclose(*found)


def test_inference_mode_is_told_from_no_grad_also_without_brackets():
    for library in (picograd, pytest.importorskip("torch")):
        x = library.ones(1).requires_grad_()

        def state(library: Any = library, x: Any = x) -> tuple[bool, bool]:
            return library.is_inference_mode_enabled(), (x * 2).requires_grad

        assert library.inference_mode(state)() == (True, False)
        assert library.inference_mode()(state)() == (True, False)
        assert library.inference_mode(False)(state)() == (False, True)
        assert library.no_grad()(state)() == (False, False)
        with library.inference_mode():
            with library.inference_mode(False):
                assert state() == (False, True)
            assert state() == (True, False)
        assert state() == (False, True)
