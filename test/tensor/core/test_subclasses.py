"""Classes that derive from Tensor, and objects that define `__torch_function__`: as in PyTorch."""

import copy
import inspect
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.errors import ShapeError
from picograd.nn import functional as F

torch = pytest.importorskip("torch")


@pytest.fixture
def saved(monkeypatch):
    """A class that pickle finds in this file; functions change where the first one is defined."""

    class Saved(Tensor):
        pass

    Saved.__qualname__ = "Saved"
    monkeypatch.setitem(globals(), "Saved", Saved)
    return Saved


def name(x):
    return type(x).__name__


def alike(program):
    """Run a program on both sides: what it returns is equal."""
    ours, theirs = program(picograd), program(torch)
    assert ours == theirs


def test_results_keep_the_class():
    def program(torch):
        class Named(torch.Tensor):
            pass

        functional, layers, ones = torch.nn.functional, torch.nn, torch.ones(2)
        x = torch.tensor([1.0, 2.0]).as_subclass(Named)
        weight = layers.Parameter(torch.ones(2))
        made = [
            x + 1, 1 + x, 1 - x, ones + x, ones @ x, weight * x, x * weight, weight @ x, -x,
            ~(x > 1), x == x, x.sum(), x[0], x[None], x.T, ones.mul(x), ones.matmul(x),
            x.data, x.detach(), x.clone(), x.to(torch.float64),
            x.double(), x.view(1, 2), x.expand(2, 2), x.new_zeros(2), *x.max(0), *x.split(1), *x,
            torch.sin(x), torch.stack([x, x]), torch.cat([ones, x]), torch.where(x > 1, x, 0),
            torch.einsum("i,i->", x, x), torch.linalg.norm(x), torch.fft.fft(x), torch.add(ones, x),
            torch.special.expm1(x), torch.zeros_like(x), functional.relu(x),
            functional.linear(x, torch.ones(3, 2)), functional.mse_loss(x, ones),
            layers.Linear(2, 3)(x), layers.Sequential(layers.LayerNorm(2), layers.Tanh())(x),
        ]  # fmt: skip
        plain = [weight + 1, ones + 1, torch.sin(ones), torch.zeros(2), x.as_subclass(torch.Tensor)]
        return [name(each) for each in (*made, *plain)]

    alike(program)


def test_writes_and_gradients():
    def program(torch):
        class Named(torch.Tensor):
            pass

        x = torch.ones(3)
        shown = x.as_subclass(Named)
        shown[0] = 7.0
        before = shown
        shown += 1
        other = torch.ones(3)
        written = other.add_(shown)
        leaf = torch.ones(2, requires_grad=True)
        square = leaf.as_subclass(Named) ** 2
        square.sum().backward()
        assert shown is before and type(other) is torch.Tensor
        values = [x.tolist(), other.tolist(), leaf.grad.tolist()]
        return values, name(shown), name(written), name(leaf.grad), square.requires_grad

    alike(program)


def test_classes_make_their_own():
    def program(torch):
        class Marked(torch.Tensor):
            @staticmethod
            def __new__(cls, data, mark, *more, **options):
                return super().__new__(cls, data, *more, **options)

            def __init__(self, data, mark):
                self.mark = mark

        class Shifted(torch.Tensor):
            def sin(self):
                return super().sin() + 1

            def twice(self):
                return self.sum() * 2

        marked, shifted = Marked([1.0, 2.0], "here"), Shifted([0.0, 0.0])
        made = [marked, marked + 1, shifted, shifted.twice(), shifted.sin()]
        values = shifted.sin().tolist(), torch.sin(shifted).tolist(), marked.tolist()
        return [name(each) for each in made], values, marked.mark, hasattr(marked + 1, "mark")

    alike(program)


def test_derived_classes_come_first_and_strangers_do_not_mix():
    def program(torch):
        class First(torch.Tensor):
            pass

        class Second(First):
            pass

        class Stranger(torch.Tensor):
            pass

        class Silent(torch.Tensor):
            __torch_function__ = torch._C._disabled_torch_function_impl

        class Trained(torch.nn.Parameter):
            pass

        kinds = First, Second, Stranger, Silent
        first, second, stranger, silent = (torch.ones(2).as_subclass(kind) for kind in kinds)
        trained = Trained(torch.ones(2))
        with pytest.raises(TypeError):
            first + stranger
        with torch._C.DisableTorchFunctionSubclass():
            inside = first + 1
        made = [first + second, second + first, torch.add(first, second), silent, silent + 1]
        return [name(each) for each in (*made, trained, trained + 1, inside)]

    alike(program)


def test_a_class_is_asked_about_each_function():
    def program(torch):
        seen = []

        class Watching(torch.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                options = sorted({*(kwargs or {})} & {"dim", "keepdim"})
                seen.append((func.__name__, [each.__name__ for each in types], len(args), options))
                if func in (torch.mean, torch.Tensor.mean, torch.Tensor.shape.__get__):
                    return func.__name__
                return super().__torch_function__(func, types, args, kwargs)

        x = torch.ones(2, 2).as_subclass(Watching)
        seen.clear()
        found = torch.mean(x), x.mean(), x.shape
        x + x, x * 2, 2 * x, x / 2, x - 1, 1 - x, x @ x, -x, abs(x), x > 0, x == 1, x[0], x.T
        x.sum(dim=0), torch.sum(x, dim=0, keepdim=True), torch.matmul(x, torch.ones(2, 2))
        x.add_(1), torch.cat([x, x], dim=0), torch.nn.functional.softmax(x, dim=-1), x.tolist()
        return found, seen

    alike(program)


def test_objects_are_asked():
    def program(torch):
        class Diagonal:
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return NotImplemented if func.__name__ == "cos" else (func.__name__, len(args))

        x, ones, told = Diagonal(), torch.ones(1), torch.overrides
        with pytest.raises(TypeError, match="__torch_function__"):
            torch.cos(x)
        calls = [
            torch.sin(x), torch.add(ones, x), ones + x, ones.add(x), torch.stack([ones, x]),
            torch.nn.functional.relu(x)[0], torch.einsum("i->", x), torch.where(ones > 0, x, x),
            told.handle_torch_function(torch.sin, [x], x),
        ]  # fmt: skip
        asked = told.has_torch_function([x]), told.has_torch_function([ones])
        return calls, asked, told.is_tensor_like(x), told.is_tensor_like(3)

    alike(program)


def test_functions_are_no_methods() -> None:
    """Functions of modules take no `self`, are the same however they are reached, and ask."""
    listed = (picograd.tanh, picograd.linalg.norm, picograd.fft.fft, F.relu, F.relu_, picograd.exp_)

    class Marked(Tensor):
        pass

    for function in listed:
        x = Tensor([0.5]).as_subclass(Marked)
        made: Any = type("Net", (), {"act": function})().act(x)
        assert type(made) is Marked and made.tolist() == function(Tensor([0.5])).tolist()
        assert pickle.loads(pickle.dumps(function)) is copy.deepcopy(function) is function
        assert inspect.isroutine(function) and inspect.signature(function).parameters
        assert repr(function).startswith("<function ")


def test_whether_something_is_a_tensor_is_not_asked() -> None:
    class Asked:
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            return "asked"

    assert picograd.is_tensor(Asked()) is False and picograd.numel(Asked()) == "asked"


def test_copies_and_training(device, saved):
    x = picograd.ones(2, device=device).as_subclass(saved)
    for each in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert type(each) is saved and each.tolist() == [1.0, 1.0]
    layer = nn.Linear(2, 1).to(device)
    optimizer = nn.optim.SGD(layer.parameters(), lr=0.1)
    for _ in range(3):
        loss = layer(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert type(loss) is saved and type(layer.weight.grad) is Tensor
    assert np.isfinite(loss.item())


def test_nothing_is_watched_before_a_class_is_defined():
    program = (
        "import picograd; before = picograd.sin; picograd.nn.Parameter(picograd.ones(1)) * 2\n"
        "from picograd.tensor.core.subclasses import Watched\n"
        "assert 'sin' not in vars(Watched) and picograd.sin is before\n"
        "class Named(picograd.Tensor): ...\n"
        "assert 'sin' in vars(Watched) and type(picograd.sin(Named([0.0]))) is Named\n"
        "assert 'Watched' not in [kind.__name__ for kind in picograd.Tensor.__mro__]\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)


def test_functions_of_another_library_refuse_tensors(saved):
    for x in (picograd.ones(2), picograd.ones(2).as_subclass(saved)):
        for call in (torch.sin, torch.nn.functional.relu):
            with pytest.raises(TypeError):
                call(x)
        assert (x + np.ones(2)).tolist() == [2.0, 2.0]


LAYERS = [
    ("cross_entropy", lambda nn: nn.CrossEntropyLoss(), [(2, 3), (2, 3)]),
    ("binary_cross_entropy", lambda nn: nn.BCELoss(), [(2, 3), (2, 3)]),
    ("conv1d", lambda nn: nn.Conv1d(2, 2, 1), [(1, 2, 3)]),
    ("conv_transpose2d", lambda nn: nn.ConvTranspose2d(2, 2, 1), [(1, 2, 3, 3)]),
    ("max_pool1d", lambda nn: nn.MaxPool1d(2), [(1, 2, 4)]),
    ("avg_pool1d", lambda nn: nn.AvgPool1d(2), [(1, 2, 4)]),
    ("adaptive_avg_pool2d", lambda nn: nn.AdaptiveAvgPool2d(1), [(1, 2, 4, 4)]),
    ("group_norm", lambda nn: nn.GroupNorm(1, 2), [(1, 2, 4)]),
    ("instance_norm", lambda nn: nn.InstanceNorm1d(2), [(1, 2, 4)]),
]


@pytest.mark.parametrize(("name", "layer", "shapes"), LAYERS)
def test_layers_ask_under_the_names_of_functions(name, layer, shapes):
    def program(torch):
        asked = []

        class Watching(torch.Tensor):
            @classmethod
            def __torch_function__(cls, function, types, args=(), kwargs=None):
                asked.append(getattr(function, "__name__", ""))
                return super().__torch_function__(function, types, args, kwargs or {})

        made = layer(torch.nn)
        tensors = [torch.ones(*shape) / 2 for shape in shapes]
        result = made(tensors[0].as_subclass(Watching), *tensors[1:])
        return type(result).__name__, asked

    kind, asked = program(picograd)
    assert kind == program(torch)[0] == "Watching"
    assert name in asked


def test_a_class_is_asked_about_what_is_set():
    def program(torch):
        class Holder(torch.nn.Parameter):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                if func.__class__.__name__ != "method-wrapper":
                    return super().__torch_function__(func, types, args, kwargs or {})
                first, *rest = args
                return func(getattr(first, "inner", first), *rest)

        holder = Holder(torch.ones(2))
        holder.inner = torch.ones(2, requires_grad=True)
        optimizer = torch.optim.SGD([holder], lr=0.1)
        (holder.inner * 3).sum().backward()
        found = [holder.grad.tolist()]
        optimizer.zero_grad()
        (holder.inner * 3).sum().backward()
        found.append(holder.inner.grad.tolist())
        holder.grad = None
        return [*found, holder.inner.grad]

    alike(program)


def test_a_custom_function_gives_what_forward_made_and_leaving_a_class_leaves_all_of_it() -> None:
    class Named(Tensor):
        pass

    class Exp(picograd.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            made = x.exp()
            made.unit = "m"
            return made

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            return gradient * 2

    x = Tensor([1.0, 2.0]).as_subclass(Named).requires_grad_()
    found = Exp.apply(x)
    found.sum().backward()
    assert type(found) is Named and found.unit == "m" and x.grad.tolist() == [2.0, 2.0]

    class Wrapping(Tensor):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            made = super().__torch_function__(func, types, args, kwargs or {})
            made = made.as_subclass(cls)
            made.told = "wrapped"
            return made

    plain = Tensor([1.0]).as_subclass(Wrapping).as_subclass(Tensor)
    assert type(plain) is Tensor and not hasattr(plain, "told")


class Log(picograd.overrides.TorchFunctionMode):
    """This mode notes what is called, and gives it an answer of its own if it has one."""

    def __init__(self, answers: Any = ()) -> None:
        self.seen: list[Any] = []
        self.answers = dict(answers)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(func)
        return self.answers[func] if func in self.answers else func(*args, **(kwargs or {}))


def test_modes_are_asked_about_functions_methods_and_operators() -> None:
    with Log():  # from the first on, classes are asked too
        x = Tensor([1.0, 2.0])
    before = (Tensor.__add__, Tensor.add, vars(Tensor).get("exp"))
    outer, inner = Log({Tensor.exp: "mine", picograd.ones: "made"}), Log()
    with outer, inner:
        assert (x + 1).tolist() == [2.0, 3.0] and x.exp() == "mine"
        assert picograd.ones(2) == "made" and picograd.tensor([1.0]).tolist() == [1.0]
        picograd.sub(x, 1)
        assert inner.seen[0] is Tensor.add and inner.seen[-1] is picograd.sub
    assert outer.seen == inner.seen and picograd.tensor in inner.seen
    assert (Tensor.__add__, Tensor.add, vars(Tensor).get("exp")) == before
    count = len(inner.seen)
    assert (x + 1).exp().shape == (2,) and len(inner.seen) == count


def test_modes_that_leave_it_to_classes() -> None:
    class Named(Tensor):
        pass

    class Picky(Log):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            self.seen.append(func)
            return NotImplemented if types else func(*args, **(kwargs or {}))

    x = Tensor([1.0]).as_subclass(Named)
    with Picky() as mode:
        assert type(picograd.neg(x)) is Named and mode.seen == [picograd.neg] * 2
    with Log({picograd.neg: NotImplemented}), pytest.raises(TypeError, match="no class is left"):
        picograd.neg(Tensor([1.0]))

    class Wrong(Log):
        @classmethod
        def __torch_function__(cls, *given: Any) -> Any:  # type: ignore[override]
            raise AssertionError

    with pytest.raises(RuntimeError, match="not a method of its object"), Wrong():
        pass


def test_a_class_may_answer_by_a_function_that_is_no_classmethod() -> None:
    class Off(Tensor):
        __torch_function__ = picograd._C._disabled_torch_function_impl

        def __new__(cls, data: Any) -> Any:
            return Tensor._make_subclass(cls, data, False)

    x = Off(picograd.ones(2))
    x.requires_grad = True
    assert type(x) is Off and type(x + 1) is Tensor and x.grad is None


def test_errors_of_functions_that_ask_nobody_are_theirs() -> None:
    class Calling(Tensor):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            with picograd._C.DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {}))

    x = picograd.ones(2, 3).as_subclass(Calling)
    for wrong in (lambda: x.reshape(4), lambda: picograd.cat([x, picograd.ones(5)]), lambda: x @ x):
        with pytest.raises(ShapeError):
            wrong()


def test_layers_ask_what_stands_for_a_tensor():
    class Asked:
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            return function.__name__

    layers = [nn.Linear(2, 2), nn.Dropout(0.5), nn.Upsample(2), nn.Fold(2, 2), nn.Unfold(2)]
    names = [layer(Asked()) for layer in layers]
    assert names == ["linear", "dropout", "interpolate", "fold", "unfold"]
