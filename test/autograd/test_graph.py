"""Hooks of the graph under the names of torch.autograd.graph."""

from typing import Any

import numpy as np
import pytest

import picograd


def test_graph_of_hooks() -> None:
    graph = picograd.autograd.graph
    x = picograd.Tensor([1.0, 2.0], requires_grad=True)
    with graph.save_on_cpu(pin_memory=True), graph.allow_mutation_on_saved_tensors():
        middle = x * 1
        y = middle.exp()
        middle.sin_()
    y.sum().backward()
    assert x.grad is not None and np.allclose(x.grad.numpy(), np.exp([1.0, 2.0]))
    with graph.disable_saved_tensors_hooks("not here"):
        assert (x * x).requires_grad
        with pytest.raises(RuntimeError, match="not here"), graph.save_on_cpu():
            pass
    refused = pytest.raises(RuntimeError, match="close the block")
    with graph.save_on_cpu(), refused, graph.disable_saved_tensors_hooks("not here"):
        pass


def test_hooks_of_several_gradients() -> None:
    graph = picograd.autograd.graph
    a, b = (picograd.ones(1, requires_grad=True) for _ in range(2))
    both: list[Any] = []
    one: list[Any] = []
    handle = graph.register_multi_grad_hook([a, b], both.append)
    graph.register_multi_grad_hook([a, b], one.append, mode="any")
    (a * 2).sum().backward()
    (a * 3 + b * 5).sum().backward()
    assert [each.tolist() for each in both[0]] == [[3.0], [5.0]] and len(both) == 1
    assert len(one) == 2
    handle.remove()
    (a * b).sum().backward()
    assert len(both) == 1 and isinstance((a * b).grad_fn, graph.Node)
    with pytest.raises(ValueError, match="register_multi_grad_hook: mode='none'"):
        graph.register_multi_grad_hook([a], both.append, mode="none")


def test_edges_stand_for_tensors() -> None:
    """Gradients go by an edge where the tensor is gone; an edge is known again."""
    edge_of = picograd.autograd.graph.get_gradient_edge
    x = picograd.Tensor([1.0, 2.0], requires_grad=True)
    y = x * 3
    total = (y * y).sum()
    edge, root = edge_of(y), edge_of(total)
    assert edge == edge_of(y) and edge.node is y.grad_fn is edge_of(y).node
    del y
    found = picograd.autograd.grad(root, [edge, edge_of(x)])
    assert [each.tolist() for each in found] == [[6.0, 12.0], [18.0, 36.0]]
    picograd.autograd.backward(root, inputs=[edge_of(x)])
    assert x.grad is not None and x.grad.tolist() == [18.0, 36.0]
    with pytest.raises(RuntimeError, match="does not ask for gradients"):
        edge_of(picograd.ones(2))
