"""Test what graphs are as text, and how their nodes lie."""

import operator

import pytest

from picograd import Tensor, fx, nn


def traced() -> fx.GraphModule:
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())

    def function(x: Tensor, factor: float = 2.0) -> Tensor:
        return (x.exp() + factor)[..., 0:1].mT @ x.clamp(min=0.5)

    graph = fx.symbolic_trace(function).graph
    middle = graph.find_nodes(op="call_method", target="exp")[0]
    with graph.inserting_after(middle):
        called = graph.call_module("0", (middle,))
    for each in middle.users:
        if each is not called:
            each.replace_input_with(middle, called)
    return fx.GraphModule(model, graph)


def test_a_graph_is_written_in_python_that_does_the_same() -> None:
    module = traced()
    x = Tensor([[1.0, 2.0]])
    space = {"slice": slice, "Ellipsis": ...}
    exec(module.code, space)  # what is printed is Python
    assert space["forward"](module, x).tolist() == module(x).tolist()  # type: ignore[operator]
    assert "def forward(self, x, factor = 2.0):\n    exp = x.exp()\n" in module.code
    assert "clamp = x.clamp(min = 0.5)" in module.code


def test_a_graph_is_printed_as_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    traced().graph.print_tabular()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["opcode", "name", "target", "args", "kwargs"]
    assert lines[4].split()[:3] == ["call_module", "_0", "0"]


def test_nodes_are_moved_and_graphs_copied() -> None:
    graph = fx.Graph()
    x = graph.placeholder("x")
    first = graph.call_method("exp", (x,))
    second = graph.call_function(operator.neg, (x,))
    assert (x.prev, x.next, second.next) == (None, first, None)
    second.append(first)
    assert graph.nodes == [x, second, first]
    second.prepend(first)
    first.prepend(first)
    graph.output((first, second))
    made = fx.Graph()
    made.output(made.graph_copy(graph, {}))
    assert [node.name for node in made.nodes] == [node.name for node in graph.nodes]
    given = fx.GraphModule(nn.Module(), made)(Tensor([0.0]))
    assert [each.tolist() for each in given] == [[1.0], [0.0]]


def test_shapes_are_noted() -> None:
    module = fx.symbolic_trace(lambda x: x.max(1).values)
    fx.ShapeProp(module).propagate(Tensor([[1.0, 2.0]]))
    facts = [node.meta.get("tensor_meta") for node in module.graph.nodes]
    assert [getattr(each, "shape", None) for each in facts] == [(1, 2), None, (1,), (1,)]
    assert [each.shape for each in facts[1]] == [(1,), (1,)]
