"""Gradients of the caller's own: functions with a backward, checkpoints, hooks, products.

A custom function records one node: its value is what `forward` computed with recording off, and
its gradient is what `backward` answers (graph/composites.py, "custom").
"""

from collections.abc import Callable, Sequence
from typing import Any

from picograd.errors import GradientError
from picograd.graph import build
from picograd.graph.build_composite import custom
from picograd.graph.gradient import gradient as node_gradient
from picograd.graph.node import Node, toposort
from picograd.tensor import autograd
from picograd.tensor.autograd import MODE, no_grad
from picograd.tensor.recording import Recorded, grad, wrap
from picograd.tensor.tensor import Tensor


class Context:
    """This class carries values from `forward` to `backward`; attributes may be set freely."""

    def __init__(self, needs_input_grad: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs_input_grad
        self.saved_tensors: tuple[Any, ...] = ()

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors that `backward` reads as `saved_tensors`."""
        self.saved_tensors = tensors

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Accept PyTorch's spelling; integer outputs have no gradient anyway."""


class Function:
    """This class is the base of operations with a gradient of their own.

    Subclasses define static `forward(ctx, *args)` and `backward(ctx, *gradients)`, one gradient per
    output; backward returns one gradient (or None) per argument. Call it with `apply`.

    >>> import picograd
    >>> class Double(picograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 2
    ...     @staticmethod
    ...     def backward(ctx, gradient):
    ...         return gradient * 2
    >>> x = picograd.Tensor([1.0], requires_grad=True)
    >>> Double.apply(x).backward()
    >>> x.grad.tolist()
    [2.0]
    """

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        """Compute the outputs: a tensor, or a tuple of tensors."""
        raise NotImplementedError

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """Compute the gradients of the arguments from those of the outputs."""
        raise NotImplementedError

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Run `forward`, and record `backward` as its gradient."""
        ctx = Context(
            tuple(isinstance(a, Recorded) and a.requires_grad for a in args)
        )
        with no_grad():
            result = cls.forward(ctx, *args)
        outputs = result if isinstance(result, tuple) else (result,)
        tracks = MODE.enabled and any(ctx.needs_input_grad)
        if not MODE.enabled:
            return result
        places = [at for at, a in enumerate(args) if is_differentiable(a)]
        inputs = [args[at]._node for at in places]
        recorded = tuple(
            recorded_output(cls, ctx, outputs, number, places, inputs, tracks)
            for number in range(len(outputs))
        )
        return recorded if isinstance(result, tuple) else recorded[0]


def is_differentiable(value: Any) -> bool:
    """Tell whether a value is a float tensor."""
    return isinstance(value, Recorded) and value.dtype.is_float


def recorded_output(
    kind: type[Function], ctx: Any, outputs: Sequence[Any], number: int, places: Sequence[int],
    inputs: Sequence[Node], tracks: bool,
) -> Any:  # fmt: skip
    """Record one output of a custom function; the gradients of the others are zero for it."""
    output = outputs[number]
    if not is_differentiable(output):
        return output

    def vjp(flowing: Node, node: Node, *nodes: Node) -> list[Node | None]:
        given = [
            wrap(build.detach(each._node).const_like(0), False) for each in outputs
        ]
        given[number] = wrap(flowing, False)
        answer = kind.backward(ctx, *given)
        listed = answer if isinstance(answer, tuple) else (answer,)
        return [
            checked_gradient(kind, listed, at, x) for at, x in zip(places, nodes)
        ]

    return wrap(custom(output._node, inputs, vjp), tracks)


def checked_gradient(
    kind: type[Function], answer: Sequence[Any], at: int, x: Node
) -> Node | None:
    """Read the gradient of one argument; GradientError if it is missing or has another shape."""
    if at >= len(answer):
        text = f"backward returned {len(answer)} gradients, argument {at} has none"
        raise GradientError(
            kind.__name__, text, "return one per argument of forward"
        )
    found = answer[at]
    if found is None:
        return None
    node: Node = found._node
    if node.shape != x.shape:
        text = f"the gradient of argument {at} has shape {node.shape}, the argument {x.shape}"
        raise GradientError(
            kind.__name__, text, "return a gradient of the argument's shape"
        )
    return node.cast(x.dtype)


def checkpoint(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call a function so that its gradient computes the inside again instead of keeping it.

    `function` returns one tensor; what it reads from outside gets gradients too. PyTorch's
    `use_reentrant` and `preserve_rng_state` are accepted: random numbers are the same both times.
    """
    for name in ("use_reentrant", "preserve_rng_state"):
        options.pop(name, None)
    result = function(*args, **options)
    if not (isinstance(result, Tensor) and MODE.enabled and result.dtype.is_float):
        return result
    root = result._node
    given = [a._node for a in args if is_differentiable(a)]
    inputs = given + [
        leaf for leaf in autograd.leaf_nodes([root]) if leaf not in given
    ]

    def vjp(flowing: Node, node: Node, *nodes: Node) -> list[Node | None]:
        return node_gradient([(again(root, inputs), flowing)], list(inputs))

    return wrap(custom(root, inputs, vjp), result.requires_grad)


def again(root: Node, inputs: Sequence[Node]) -> Node:
    """Copy the graph between inputs and root, so that it is computed a second time."""
    ends = {id(node) for node in inputs}
    done: dict[int, Node] = {}
    for node in toposort(
        [root], lambda node: id(node) in ends or node.realized is not None
    ):
        is_kept = id(node) in ends or node.realized is not None or not node.inputs
        if is_kept:
            done[id(node)] = node
            continue
        children = tuple(done[id(child)] for child in node.inputs)
        done[id(node)] = Node(
            node.op, children, node.arg, node.shape, node.dtype, node.device
        )
    return done[id(root)]


# products with derivatives


def as_list(values: Any) -> list[Any]:
    """Read one tensor or several."""
    return list(values) if isinstance(values, (list, tuple)) else [values]


def fresh_inputs(inputs: Any) -> list[Any]:
    """Make leaves of the same values that ask for gradients."""
    made = [Tensor(each) for each in as_list(inputs)]
    for each in made:
        each.requires_grad = True
    return made


def like_given(results: list[Any], given: Any) -> Any:
    """Answer one tensor where one was given, else a tuple."""
    return tuple(results) if isinstance(given, (list, tuple)) else results[0]


def vjp(
    function: Callable[..., Any], inputs: Any, v: Any = None
) -> tuple[Any, Any]:
    """Compute function(inputs) and the product of `v` (ones) with its Jacobian.

    >>> import picograd
    >>> y, g = picograd.vjp(lambda x: x * x, picograd.Tensor([3.0]))
    >>> g.tolist()
    [6.0]
    """
    leaves = fresh_inputs(inputs)
    output = function(*leaves)
    found = grad(output, leaves, v, allow_unused=True)
    filled = [x * 0 if g is None else g for x, g in zip(leaves, found)]
    return output.detach(), like_given(filled, inputs)


def jvp(function: Callable[..., Any], inputs: Any, v: Any) -> tuple[Any, Any]:
    """Compute function(inputs) and the product of its Jacobian with `v`, by two reverse passes.

    >>> import picograd
    >>> y, t = picograd.jvp(lambda x: x * x, picograd.Tensor([3.0]), picograd.Tensor([2.0]))
    >>> t.tolist()
    [12.0]
    """
    leaves = fresh_inputs(inputs)
    output = function(*leaves)
    probe = Tensor.zeros(output.shape, dtype=output.dtype, device=output.device)
    probe.requires_grad = True
    back = grad(output, leaves, probe, create_graph=True, allow_unused=True)
    pairs = [(g, t) for g, t in zip(back, as_list(v)) if g is not None]
    if not pairs:
        return output.detach(), probe.detach()
    found = grad(
        [g for g, _ in pairs], probe, [t for _, t in pairs], allow_unused=True
    )[0]
    return output.detach(), probe.detach() if found is None else found


def jacobian(function: Callable[..., Any], inputs: Any) -> Any:
    """Compute the derivative of every output element: output shape + input shape."""
    leaves = fresh_inputs(inputs)
    output = function(*leaves)
    rows: list[list[Any]] = []
    for at in range(output.numel()):
        start = (Tensor.arange(output.numel(), device=output.device) == at).cast(
            output.dtype
        )
        found = grad(output, leaves, start.reshape(output.shape), allow_unused=True)
        rows.append([x * 0 if g is None else g for x, g in zip(leaves, found)])
    columns = [
        Tensor.stack([row[n].detach() for row in rows]) for n in range(len(leaves))
    ]
    shaped = [c.reshape(output.shape + x.shape) for c, x in zip(columns, leaves)]
    return like_given(shaped, inputs)


def hessian(function: Callable[..., Any], x: Any) -> Any:
    """Compute the second derivatives of a function of one tensor that gives one number."""

    def slope(leaf: Any) -> Any:
        return grad(function(leaf), leaf, create_graph=True)[0]

    return jacobian(slope, x)
