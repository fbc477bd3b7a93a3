"""picograd.fx: programs become graphs, which are run and rewritten."""

import copy
import operator
import pickle
from typing import Any

import pytest

import picograd
from picograd import Tensor, fx, nn
from picograd.errors import StateError


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
        self.scale = nn.Parameter(Tensor([1.0, 2.0, 3.0]))
        self.register_buffer("shift", Tensor([1.0, 0.0, 1.0]))

    def forward(self, x: Any, times: float = 2.0) -> Any:
        rows, columns = x.shape
        y = self.inner(x) + picograd.sigmoid(x) * self.scale
        y = picograd.cat([y, self.shift * y + Tensor([1.0, 2.0, 3.0])]).view(-1, columns) * times
        return {"all": y, "some": (nn.functional.relu(y)[:rows, 1:],)}


def test_a_traced_module_does_the_same_with_the_same_parameters() -> None:
    model, x = Block(), Tensor([[0.5, -1.0, 2.0]])
    traced = fx.symbolic_trace(model)
    names = [node.name for node in traced.graph.nodes]
    assert names[:2] == ["x", "times"] and {"inner_0", "inner_1", "sigmoid", "cat"} < set(names)
    for options in ({}, {"times": 3.0}):
        wanted, found = model(x, **options), traced(x, **options)
        assert found["all"].tolist() == wanted["all"].tolist()
        assert found["some"][0].tolist() == wanted["some"][0].tolist()
    assert traced.scale is model.scale and dict(traced.named_buffers()).keys() == {
        "shift",
        "_tensor_constant0",
    }
    assert copy.deepcopy(traced)(x)["all"].tolist() == model(x)["all"].tolist()
    assert pickle.loads(pickle.dumps(traced))(x)["all"].tolist() == model(x)["all"].tolist()
    assert "Block" in repr(traced) and "sigmoid" in repr(traced.graph)


def test_graphs_are_rewritten() -> None:
    traced = fx.symbolic_trace(lambda x: (x.exp() + 1).sum())
    graph = traced.graph
    (old,) = [node for node in graph.nodes if node.target == "exp"]
    with pytest.raises(StateError, match="exp is read by add"):
        graph.erase_node(old)
    with graph.inserting_after(old):
        new = graph.call_function(picograd.square, old.args)
        unread = graph.call_method("neg", (new,))
    assert [each.name for each in old.replace_all_uses_with(new)] == ["add"]
    graph.erase_node(old)
    assert graph.eliminate_dead_code() and unread not in graph.nodes
    graph.lint()
    traced.recompile()
    assert traced(Tensor([1.0, 2.0])).item() == 7.0
    graph.nodes.reverse()
    with pytest.raises(StateError, match="does not come before"):
        graph.lint()


def test_interpreters_change_what_is_called() -> None:
    class Swapped(fx.Transformer):
        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            target = operator.sub if target is operator.add else target
            return super().call_function(target, args, kwargs)

    model = nn.Sequential(nn.Identity())
    traced = fx.symbolic_trace(model)
    graph = traced.graph
    with graph.inserting_before(graph.nodes[-1]):
        end = graph.call_function(operator.add, (graph.nodes[1], 1))
    graph.nodes[-1].args = (end,)
    assert traced(Tensor([3.0])).tolist() == [4.0]
    assert Swapped(traced).transform()(Tensor([3.0])).tolist() == [2.0]
    with pytest.raises(StateError, match="'input' is missing"):
        fx.Interpreter(traced).run()


def test_what_cannot_be_traced_is_named() -> None:
    def chooses(x: Any) -> Any:
        return x if x.sum() > 0 else -x

    with pytest.raises(StateError, match="the truth of Proxy"):
        fx.symbolic_trace(chooses)
    assert fx.symbolic_trace(chooses, {"x": Tensor([1.0])})().tolist() == [1.0]
    with pytest.raises(StateError, match="the length of Proxy"):
        fx.symbolic_trace(lambda x: max(*x))

    class Squared(nn.Linear):
        def forward(self, x: Any) -> Any:
            return x * self.weight**2

    class Above(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.squared = Squared(1, 1)

        def forward(self, x: Any) -> Any:
            return self.squared(x)

    with pytest.raises(StateError, match="from parameters alone"):
        fx.symbolic_trace(Above())


def test_functions_that_are_wrapped_are_one_node() -> None:
    @fx.wrap
    def twice(x: Any) -> Any:
        return x * 2 if x.sum() > 0 else x

    traced = fx.symbolic_trace(lambda x: abs(twice(x)))
    assert [node.name for node in traced.graph.nodes] == ["x", "twice", "abs_1", "output"]
    assert traced(Tensor([1.0])).tolist() == [2.0] and twice(Tensor([1.0])).tolist() == [2.0]


def test_graphs_are_built_by_hand_with_checks_and_products() -> None:
    graph = fx.Graph()
    x = fx.Proxy(graph.placeholder("x", Tensor), fx.proxy.GraphAppendingTracer(graph))
    picograd._assert(x.shape[-1] == 2, "two columns")
    y = picograd.einsum("ij,kj->ik", [x, fx.Proxy(graph.get_attr("w"))])
    graph.output(y.node)
    module = fx.GraphModule({"w": picograd.eye(2)}, graph, "Product")
    assert module(Tensor([[1.0, 2.0]])).tolist() == [[1.0, 2.0]]
    with pytest.raises(AssertionError, match="two columns"):
        module(Tensor([[1.0]]))


TWO = Tensor([1.0, 2.0]), Tensor([2.0, -1.5])


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: picograd.div(x, y, rounding_mode="floor"),
        lambda x, y: picograd.add(x, y, alpha=2),
        lambda x, y: TWO[0].sub(y, alpha=2) * x,
        lambda x, y: picograd.ge(x, y),
        lambda x, y: picograd.eq(x, x),
        lambda x, y: (TWO[0] > y).int() * x,
        lambda x, y: picograd.remainder(TWO[0], y) + x,
        lambda x, y: picograd.einsum("i,i->", x, y),
        nn.Linear(2, 3),
    ],
)
def test_a_traced_function_gives_what_it_gives(function: Any) -> None:
    given = TWO[:1] if isinstance(function, nn.Module) else TWO
    found = fx.symbolic_trace(function)(*given)
    assert found.dtype is function(*given).dtype
    assert found.tolist() == function(*given).tolist()


def pattern(a: Any, b: Any) -> Any:
    return picograd.cat([a, b], dim=0)


def replacement(a: Any, b: Any) -> Any:
    return picograd.stack([b, a])


def test_a_pattern_is_replaced_wherever_it_is() -> None:
    def function(x: Any, y: Any) -> Any:
        one = picograd.cat([x, y], dim=0)
        two = picograd.cat([y, one], dim=0)
        return picograd.cat([x, y], dim=1).sum() + two.sum() + picograd.cat([x, y]).sum()

    traced = fx.symbolic_trace(function)
    matches = fx.replace_pattern(traced, pattern, replacement)
    traced.graph.lint()
    assert [match.anchor.name for match in matches] == ["cat", "cat_1"]
    names = [node.name for node in traced.graph.nodes]
    assert names[2:4] == ["stack", "stack_1"] and names.count("cat_2") == 1  # by another axis
    assert traced.graph.nodes[3].args[0] == [traced.graph.nodes[2], traced.graph.nodes[1]]


def test_what_is_read_from_outside_or_shared_is_kept() -> None:
    def reads(x: Any) -> Any:
        middle = x.exp()
        return middle.log() + middle

    def chained(x: Any) -> Any:
        return x.exp().exp().exp()

    def twice(x: Any) -> Any:
        return x.exp().exp()

    traced = fx.symbolic_trace(reads)
    assert fx.replace_pattern(traced, lambda x: x.exp().log(), lambda x: x) == []
    traced = fx.symbolic_trace(chained)
    (match,) = fx.replace_pattern(traced, twice, lambda x: x)
    assert match.anchor.name == "exp_1"
    assert [node.name for node in traced.graph.nodes] == ["x", "exp_2", "output"]
    assert fx.replace_pattern(traced, lambda x: x[:, 1], lambda x: x) == []


def test_a_replacement_brings_its_members() -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Linear(2, 2)

        def forward(self, x: Any) -> Any:
            return self.scale(x)

    scaled = Scaled()
    traced = fx.symbolic_trace(lambda x: picograd.relu(x)[:, 0:1])
    new = fx.symbolic_trace(scaled)
    assert len(fx.replace_pattern(traced, lambda x: picograd.relu(x), new)) == 1
    x = Tensor([[1.0, 2.0]])
    assert traced(x).tolist() == scaled(x)[:, 0:1].tolist()
    sliced = fx.replace_pattern(traced, lambda x: x[:, 0:1], lambda x: x)
    assert len(sliced) == 1 and traced(x).tolist() == scaled(x).tolist()
    with pytest.raises(StateError, match="1 arguments of the pattern, 2 of the replacement"):
        fx.replace_pattern(traced, lambda x: x.exp(), replacement)
    with pytest.raises(StateError, match="not the result of an operation"):
        fx.replace_pattern(traced, lambda x: x, lambda x: x)


def test_functions_of_proxies_are_nodes_of_those_functions() -> None:
    def both(a: Any, b: Any) -> Any:
        return picograd.flatten(picograd.mul(a, b), 0), a.mul(b), picograd.ones(2).add(b)

    traced = fx.symbolic_trace(both)
    targets = [node.target for node in traced.graph.nodes if node.op == "call_function"]
    assert targets == [picograd.mul, picograd.flatten, picograd.add]
    assert [node.target for node in traced.graph.nodes if node.op == "call_method"] == ["mul"]
    found = traced(Tensor([2.0, 3.0]), Tensor([4.0, 5.0]))
    assert [each.tolist() for each in found] == [[8.0, 15.0], [8.0, 15.0], [5.0, 6.0]]


def test_an_attribute_in_an_error_is_no_node() -> None:
    graph = fx.Graph()
    x = fx.Proxy(graph.placeholder("x"))
    with pytest.raises(StateError, match=r"length of Proxy\(x\).shape is not known"):
        len(x.shape)
    assert len(graph.nodes) == 1
