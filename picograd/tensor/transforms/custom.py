"""Gradients of the caller's own: functions with a backward, checkpoints, hooks, products.

A custom function records one node: its value is what `forward` computed with recording off, and
its gradient is what `backward` answers (graph/composites.py, "custom").
"""

import functools
import inspect
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from typing import Any, NamedTuple, TypeVar

from picograd.engine.tracing import noting_writes
from picograd.errors import DTypeError, GradientError
from picograd.graph import build
from picograd.graph.build_composite import custom
from picograd.graph.gradient import HOOKS, with_hooks
from picograd.graph.gradient import gradient as node_gradient
from picograd.graph.node import Node, copied_on, toposort
from picograd.tensor.core import autograd, saved_hooks
from picograd.tensor.core.autograd import MODE, no_grad
from picograd.tensor.core.guard import guard_functions
from picograd.tensor.core.recording import Recorded, same_value, wrap, write
from picograd.tensor.core.running_vmaps import LEVELS
from picograd.tensor.core.subclasses import Watched
from picograd.tensor.tensor import Tensor
from picograd.tensor.transforms import derivatives
from picograd.tensor.transforms.checkpoint_writes import Writes
from picograd.tensor.transforms.pytree import mapped
from picograd.tensor.transforms.vmap import sample_of

R = TypeVar("R")
Parts = list[Node | None]  # gradients of inputs
Arrived = dict[int, tuple[Node, Node]]  # by output: its gradient, and its node


class Context:
    """This class carries values from `forward` to `backward`; attributes may be set freely."""

    def __init__(self, needs_input_grad: tuple[bool, ...] = ()) -> None:
        self.needs_input_grad = needs_input_grad
        self.inputs: Sequence[Node] = ()  # the float arguments
        self.saved: tuple[Any, ...] = ()
        self.saved_for_forward: tuple[Any, ...] | None = None  # for `jvp`, if not the same
        self.kept_for_forward: list[Any] = []
        self.kept: list[Any] | None = None  # node and tracking of the saved, as `forward` left them
        self.packing: saved_hooks.Packing | None = None
        self.packed: list[Any] = []
        self.constant: set[int] = set()  # ids of outputs without a gradient
        self.dirty: tuple[Any, ...] = ()
        self.materializes = True

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors that `backward` reads as `saved_tensors`: arguments, outputs or others."""
        for each in tensors:
            if each is not None and not isinstance(each, Recorded):
                text = f"a {type(each).__name__} is no tensor"
                raise DTypeError("save_for_backward", text, "set it as an attribute of ctx")
        self.saved = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Keep tensors that `jvp` reads as `saved_tensors`; without it those of `backward`."""
        self.saved_for_forward = tensors

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What `save_for_backward` kept; a tensor that was changed since has its value of then."""
        if self.kept is None:
            return self.saved
        return tuple(self.saved_at(number) for number in range(len(self.saved)))

    def saved_at(self, number: int) -> Any:
        """Give one saved tensor as it was, as hooks unpack it."""
        tensor = self.saved[number]
        if tensor is None or self.kept is None:
            return None
        node, tracks = self.kept[number]
        if self.packing is not None:
            node = saved_hooks.unpacked(self.packing, self.packed[number], node)
        return tensor if tensor._node is node else wrap(node, tracks)

    def keep(self) -> None:
        """Note the values of the saved tensors; hooks pack them."""
        self.kept = nodes_of(self.saved)
        self.kept_for_forward = nodes_of(self.saved_for_forward)
        if any(self.needs_input_grad):
            self.packing = saved_hooks.current()
        if self.packing is not None:
            with no_grad():
                for each in self.saved:
                    packed = None if each is None else self.packing.pack(each.detach())
                    self.packed.append(packed)

    def mark_dirty(self, *tensors: Any) -> None:
        """Say which arguments `forward` changed in place: it returns them as outputs."""
        self.dirty = tensors

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Give outputs no gradient."""
        self.constant |= {id(each) for each in tensors}

    def set_materialize_grads(self, value: bool) -> None:
        """Choose whether `backward` gets zeros (True) or None for outputs nobody used."""
        self.materializes = value


def nodes_of(tensors: Sequence[Any] | None) -> list[Any]:
    """List node and tracking of tensors."""
    return [(None, False) if each is None else (each._node, each._tracks) for each in tensors or ()]


class Function:
    """This class is the base of operations with a gradient of their own.

    Subclasses define static `forward(ctx, *args)` and `backward(ctx, *gradients)`, one gradient per
    output; backward returns one gradient (or None) per argument. Call it with `apply`. Instead,
    `forward(*args)` and `setup_context(ctx, inputs, output)` may be separate. `backward` is called
    once, with zeros for outputs that nobody used. Derivatives along directions come from `jvp`,
    or else from `backward` too.

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
        raise NotImplementedError("a Function defines forward(ctx, ...)")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Save what backward needs, where `forward` takes no ctx."""

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """Compute the gradients of the arguments from those of the outputs."""
        raise NotImplementedError("a Function defines backward(ctx, ...)")

    vjp = backward  # another name of it: a class defines one of them

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        """Compute the change of the outputs from those of the arguments; None for no tensor.

        A class that has none gets it from `backward`.
        """
        raise NotImplementedError("a Function may define jvp(ctx, ...)")

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> Any:
        """Compute the outputs for a batch, and their axes of it: (outputs, out_dims).

        A class that has none is vectorised from `forward` itself.
        """
        raise NotImplementedError("a Function may define vmap(info, in_dims, ...)")

    @classmethod
    def apply(cls, *args: Any, **options: Any) -> Any:
        """Run `forward`, and record `backward` as its gradient; options take no gradient.

        A class with `setup_context` takes defaults of `forward` as arguments that were given.
        """
        has_setup = cls.setup_context is not Function.setup_context
        if has_setup and getattr(cls.forward, "__defaults__", None):
            bound = inspect.signature(cls.forward).bind(*args, **options)
            bound.apply_defaults()
            args, options = bound.args, bound.kwargs
        ctx = Context(tuple(isinstance(a, Recorded) and a.requires_grad for a in args))
        call = Call(cls, ctx, args)
        with no_grad():
            has_rule = cls.vmap is not Function.vmap and not options and bool(LEVELS)
            if has_rule:
                result = by_own_rule(cls, args)
                cls.setup_context(ctx, args, result)
            elif has_setup:
                result = cls.forward(*args, **options)
                cls.setup_context(ctx, args, result)
            else:
                result = cls.forward(ctx, *args, **options)
        call.outputs = result if isinstance(result, tuple) else (result,)
        call.check_dirty()
        if not MODE.enabled:
            return result
        recorded = call.record()
        return recorded if isinstance(result, tuple) else recorded[0]


class VmapInfo(NamedTuple):
    """This class says of which vmap a function's own rule computes."""

    batch_size: int
    randomness: str


def by_own_rule(kind: type[Function], args: Sequence[Any]) -> Any:
    """Ask a function's own `vmap` for the outputs of the innermost one's whole batch.

    They are given as samples, for what is recorded next.
    """
    level = LEVELS.pop()
    try:
        nodes = [each._node if isinstance(each, Recorded) else None for each in args]
        convert = level.batch.convert
        full = [None if node is None else convert([node])[0] for node in nodes]
        given = [each if node is None else wrap(node, False) for each, node in zip(args, full)]
        in_dims = tuple(None if node is None else 0 for node in full)
        info = VmapInfo(level.batch.size, level.randomness)
        result, out_dims = kind.vmap(info, in_dims, *given)
    finally:
        LEVELS.append(level)
    several = isinstance(result, tuple)
    outputs = result if several else (result,)
    dims = out_dims if isinstance(out_dims, (tuple, list)) else (out_dims,) * len(outputs)
    samples = tuple(
        each if dim is None else sample_of(level.batch, each, dim % each.ndim)
        for each, dim in zip(outputs, dims, strict=True)
    )
    return samples if several else samples[0]


def is_differentiable(value: Any) -> bool:
    """Tell whether a value is a float tensor."""
    return isinstance(value, Recorded) and value.dtype.is_differentiable


class Call:
    """This class is one call of a custom function: what its outputs' gradients need.

    Its inputs are those before `forward`, which may change them.
    """

    outputs: Sequence[Any]
    places: list[int]  # of the arguments that take gradients
    inputs: list[Node]  # those

    arrived: Arrived

    def __init__(self, kind: type[Function], ctx: Context, args: Sequence[Any]) -> None:
        self.kind, self.ctx, self.outputs = kind, ctx, ()
        self.count = len(args)
        self.places = [at for at, each in enumerate(args) if is_differentiable(each)]
        self.inputs = [args[at]._node for at in self.places]
        self.given = set(map(id, args))
        self.leaves = {id(each) for each in args if isinstance(each, Recorded) and each.is_leaf}
        self.arrived = {}
        ctx.inputs = self.inputs

    def check_dirty(self) -> None:
        """Raise unless all that was marked dirty is returned, and is no leaf that asked."""
        outputs = {id(each) for each in self.outputs}
        for each in self.ctx.dirty:
            if id(each) not in outputs:
                text = "a tensor that was marked dirty is not returned"
                raise GradientError(self.kind.__name__, text, "return it from forward")
            if MODE.enabled and each.requires_grad and id(each) in self.leaves:
                text = "a leaf that requires gradients cannot be changed in place"
                raise GradientError(self.kind.__name__, text, "call it on x.clone()")

    def record(self) -> tuple[Any, ...]:
        """Record the outputs; one without a gradient is given as it is.

        All of several outputs reach the arguments by one node without a value of interest, where
        a walk comes when it has their gradients. What is returned twice has the last one's.
        """
        self.ctx.keep()
        last = {id(each): number for number, each in enumerate(self.outputs)}  # of its returns
        taking = [
            self.takes_gradient(each) and last[id(each)] == number
            for number, each in enumerate(self.outputs)
        ]
        inputs = self.inputs
        if sum(taking) > 1 and inputs:
            first = build.detach(inputs[0])
            inputs = [custom(first, inputs, self.join, self.kind.__name__)]
        results = list(self.outputs)
        for number, output in enumerate(results):
            if taking[number]:
                results[number] = self.recorded(number, output, inputs)
        return tuple(results[last[id(output)]] for output in self.outputs)

    def takes_gradient(self, output: Any) -> bool:
        """Tell whether an output is a float tensor that was not marked otherwise."""
        return is_differentiable(output) and id(output) not in self.ctx.constant

    def recorded(self, number: int, output: Any, inputs: list[Node]) -> Any:
        """Record one output; a dirty one takes the node itself."""

        def vjp(flowing: Node, node: Node, *nodes: Node) -> Parts:
            if inputs is self.inputs:
                return self.gradients(nodes, {number: (flowing, node)})
            self.arrived[number] = flowing, node
            return [nodes[0].const_like(0)]

        tracks = any(self.ctx.needs_input_grad)
        made = custom(output._node, inputs, vjp, self.kind.__name__)
        is_dirty = any(each is output for each in self.ctx.dirty)
        if not is_dirty:
            return self.as_returned(output, wrap(made, tracks))
        if tracks:
            write(output, made, True)
        return output

    def as_returned(self, output: Any, made: Any) -> Any:
        """Give a recorded output the class and attributes of what `forward` made."""
        if id(output) in self.given:
            return made
        if isinstance(output, Watched):
            made = made.as_subclass(type(output))
        vars(made).update(vars(output))
        return made

    def join(self, flowing: Node, node: Node, *nodes: Node) -> Parts:
        """Ask for the gradients of the arguments through all outputs."""
        arrived, self.arrived = self.arrived, {}
        return self.gradients(nodes, arrived)

    def gradients(self, nodes: Sequence[Node], arrived: Arrived) -> Parts:
        """Ask `backward` for the gradients of the arguments, from those of outputs that came."""
        if derivatives.RULES.get() and self.kind.jvp is not Function.jvp:
            return self.probes(nodes, arrived)
        given: list[Any] = [None] * len(self.outputs)
        if self.ctx.materializes:
            given = [zeros_of(each) for each in self.outputs]
        for number, (flowing, _) in arrived.items():
            # else what a function writes over it would be cut off
            given[number] = wrap(flowing, not autograd.WALKS.is_final)
        own = vars(self.ctx)
        kept = self.kept_beside(nodes)
        shown: dict[str, Any] = {}
        if not autograd.WALKS.is_final:
            shown = self.attributes(nodes, arrived)
        shown["kept"] = self.kept_with(nodes, arrived, self.ctx.saved, kept)
        before = {name: own[name] for name in shown}
        own.update(shown)
        is_recorded = MODE.enabled and not autograd.WALKS.is_final
        try:
            with derivatives.rules_along(False), autograd.set_grad_enabled(is_recorded):
                rule = self.kind.backward
                if self.kind.vjp is not Function.vjp:
                    rule = self.kind.vjp
                answer = rule(self.ctx, *given)
        finally:
            own.update(before)
        listed = answer if isinstance(answer, tuple) else (answer,)
        self.check_count(listed)
        parts: Parts = []
        for at, x in zip(self.places, nodes):
            what = f"gradient of argument {at}"
            parts.append(checked(self.kind.__name__, listed[at], what, x))
        return parts

    def probes(self, nodes: Sequence[Node], arrived: Arrived) -> Parts:
        """Stand for the gradients of the arguments where their derivative alone is wanted.

        That leads back to the gradients of the outputs, by `jvp`, through one node, where a walk
        comes when it has all directions.
        """
        directions: dict[int, Node] = {}
        flowing = [each for each, _ in arrived.values()]
        name = self.kind.__name__

        def along(_: Node, node: Node, *outputs: Node) -> Parts:
            return self.along(nodes, directions, arrived)

        gate = custom(build.detach(flowing[0]), flowing, along, name)

        def probe(at: int, x: Node) -> Node:
            def vjp(direction: Node, node: Node, gate: Node) -> list[Node]:
                directions[at] = direction
                return [gate.const_like(0)]

            return custom(derivatives.ramp(x), [gate], vjp, name)

        return [probe(at, x) for at, x in zip(self.places, nodes)]

    def along(self, nodes: Sequence[Node], directions: dict[int, Node], arrived: Arrived) -> Parts:
        """Ask `jvp` for the changes of outputs, from the directions of arguments that came."""
        given: list[Any] = [None] * self.count
        for at, node in zip(self.places, self.inputs):
            direction = directions.get(at)
            if direction is None and self.ctx.materializes:
                direction = build.detach(node).const_like(0)
            if direction is not None:
                given[at] = wrap(direction, False)
        ctx = copy(self.ctx)
        if ctx.saved_for_forward is not None:
            ctx.saved = ctx.saved_for_forward
            ctx.kept = ctx.kept_for_forward
            ctx.packing = None
        ctx.kept = self.kept_with(nodes, arrived, ctx.saved, ctx.kept or ())
        answer = self.kind.jvp(ctx, *given)
        listed = answer if isinstance(answer, tuple) else (answer,)
        name = self.kind.__name__
        if len(listed) != len(self.outputs):
            text = f"jvp returned {len(listed)} tangents for {len(self.outputs)} outputs"
            raise GradientError(name, text, "return one per output of forward")
        return [
            checked(name, listed[number], f"tangent of output {number}", node, False)
            for number, (_, node) in arrived.items()
        ]

    def kept_beside(self, nodes: Sequence[Node]) -> list[Any]:
        """List what was kept, with these inputs: a copy of the graph has others."""
        others = dict(zip(map(id, self.inputs), nodes))
        kept = []
        for node, tracks in self.ctx.kept or ():
            here = others.get(id(node), node)
            kept.append((here, tracks))
        return kept

    def kept_with(
        self, nodes: Sequence[Node], arrived: Arrived, saved: Sequence[Any], kept: Sequence[Any]
    ) -> list[Any]:
        """List what was kept; an output is a recorded one, for more derivatives."""
        kept = list(kept)
        for number, output in enumerate(self.outputs):
            for at, tensor in enumerate(saved):
                if tensor is output and self.takes_gradient(output):
                    value, _ = kept[at]
                    kept[at] = self.recorded_again(number, value, nodes, arrived), True
        return kept

    def attributes(self, nodes: Sequence[Node], arrived: Arrived) -> dict[str, Any]:
        """Find attributes of the context that are outputs; they are recorded ones, too."""
        found = {}
        for number, output in enumerate(self.outputs):
            for name, value in vars(self.ctx).items():
                if value is not output or not self.takes_gradient(output):
                    continue
                made = self.recorded_again(number, output._node, nodes, arrived)
                found[name] = wrap(made, True)
        return found

    def recorded_again(
        self, number: int, value: Node, nodes: Sequence[Node], arrived: Arrived
    ) -> Node:
        """Find the node of an output; one without a gradient is recorded for those to come."""

        def vjp(flowing: Node, node: Node, *nodes: Node) -> Parts:
            return self.gradients(nodes, {number: (flowing, node)})

        if number in arrived:
            return arrived[number][1]
        return custom(value, nodes, vjp, self.kind.__name__)

    def check_count(self, answer: Sequence[Any]) -> None:
        """Raise unless there is one gradient per argument; more may follow if they are None."""
        is_more = any(each is not None for each in answer[self.count :])
        if len(answer) < self.count or is_more:
            text = f"backward returned {len(answer)} gradients for {self.count} arguments"
            raise GradientError(self.kind.__name__, text, "return one per argument of forward")


def zeros_of(output: Any) -> Any:
    """Make the gradient of an output nobody used."""
    if not isinstance(output, Recorded):
        return None
    return wrap(build.detach(output._node).const_like(0), False)


def checked(op: str, found: Any, what: str, x: Node, is_summed: bool = True) -> Node | None:
    """Read what a function answered for a tensor; GradientError if the shape is another."""
    if found is None:
        return None
    if not isinstance(found, Recorded):
        raise GradientError(
            op, f"the {what} is a {type(found).__name__}", "return a Tensor or None"
        )
    node: Node = summed_to(found._node, x.shape) if is_summed else found._node
    if node.shape != x.shape:
        kind = what.split()[-2]
        text = f"the {what} has shape {node.shape}, the {kind} {x.shape}"
        raise GradientError(op, text, f"return one of the {kind}'s shape")
    return node.cast(x.dtype)


def summed_to(gradient: Node, shape: tuple[int, ...]) -> Node:
    """Sum a gradient over the axes that its argument was repeated along, where it fits."""
    extra = len(gradient.shape) - len(shape)
    pairs = list(zip(gradient.shape[max(extra, 0) :], shape))
    fits = extra >= 0 and all(own in (1, size) for size, own in pairs)
    if not fits or gradient.shape == shape:
        return gradient
    repeated = [extra + axis for axis, (size, own) in enumerate(pairs) if size != own]
    axes = (*range(extra), *repeated)
    total = gradient.reduce("sum", axes)
    return total.reshape(shape)


def once_differentiable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a `backward` whose results cannot be differentiated again: GradientError if they are.

    >>> picograd.autograd.once_differentiable(lambda x: x)(3)
    3
    """

    def refuse(*nodes: Node) -> Parts:
        text = "a function marked once_differentiable was differentiated twice"
        raise GradientError("backward", text, "leave out create_graph=True")

    @functools.wraps(function)
    def once(ctx: Any, *gradients: Any) -> Any:
        with no_grad():
            answer = function(ctx, *gradients)
        flowing = [each._node for each in gradients if is_differentiable(each)]

        def closed(value: Any) -> Any:
            if not is_differentiable(value):
                return value
            return wrap(custom(value._node, [*ctx.inputs, *flowing], refuse), False)

        return tuple(map(closed, answer)) if isinstance(answer, tuple) else closed(answer)

    return once


def no_contexts() -> tuple[AbstractContextManager[Any], AbstractContextManager[Any]]:
    """Give the contexts of both times that a checkpointed function runs: none."""
    return nullcontext(), nullcontext()


CHECKPOINTED = (
    "use_reentrant", "preserve_rng_state", "context_fn", "determinism_check", "debug",
    "early_stop",
)  # fmt: skip


def checkpoint(function: Callable[..., R], *args: Any, **options: Any) -> R:
    """Call a function so that its gradient computes the inside again instead of keeping it.

    `function` returns one tensor; what it reads from outside gets gradients too. PyTorch's own
    options are accepted: random numbers are the same both times. The first context that
    `context_fn` makes is entered around the call; nothing runs in the second, as what is computed
    again is a copy of the graph.

    >>> x = Tensor([1.0, 2.0], requires_grad=True)
    >>> picograd.checkpoint(lambda x: (x * x).exp(), x).sum().backward()
    >>> x.grad.tolist()
    [5.4365..., 218.3926...]
    """
    make_contexts = options.get("context_fn") or no_contexts
    for name in CHECKPOINTED:
        options.pop(name, None)
    first, _ = make_contexts()
    with noting_writes() as notes, first:
        result = function(*args, **options)
    if not (isinstance(result, Tensor) and MODE.enabled and result.dtype.is_differentiable):
        return result
    root = result._node
    given = [a._node for a in args if is_differentiable(a)]
    inputs = given + [leaf for leaf in autograd.leaf_nodes([root]) if leaf not in given]
    writes = Writes(notes, result)

    def vjp(flowing: Node, node: Node, *nodes: Node) -> Parts:
        ends = [same_value(each) for each in nodes]  # no path leads from one to another
        others = {id(each): end for each, end in zip(inputs, ends)}
        return node_gradient([(hooked_again(root, others, writes), flowing)], ends)

    made = custom(root, inputs, vjp, "checkpoint")
    made.arg.is_fixed = True
    return wrap(made, result.requires_grad)


def hooked_again(root: Node, values: dict[int, Node], writes: Writes) -> Node:
    """Copy a graph over other nodes in the place of some; hooks see gradients of the copy, too.

    What the function of the graph wrote is written again.
    """
    inside = toposort([root], lambda node: id(node) in values)
    own = [node for node in inside if node in HOOKS and id(node) not in values]
    done = dict(values)
    copied, *copies = copied_on([root, *own], done)
    with_hooks(own, copies)
    writes.repeat(values, done)
    return copied


# products with derivatives, in the form of torch.autograd.functional


def several(inputs: Tensor | Sequence[Tensor]) -> tuple[Any, ...]:
    """Read one tensor or several."""
    return tuple(inputs) if isinstance(inputs, (list, tuple)) else (inputs,)


def finished(tree: Any, create_graph: bool) -> Any:
    """Cut results off from gradients unless they are wanted."""
    return tree if create_graph else mapped(lambda leaf: leaf.detach(), tree)


def vjp(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Tensor],
    v: Any = None,
    create_graph: bool = False,
) -> tuple[Any, Any]:
    """Compute func(inputs) and the product of `v` (ones) with its Jacobian.

    >>> y, g = picograd.vjp(lambda x: x * x, picograd.Tensor([3.0]))
    >>> g.tolist()
    [6.0]
    """
    output, pull = derivatives.vjp(func, *several(inputs))
    if v is None:
        v = mapped(lambda leaf: wrap(leaf._node.const_like(1), False), output)
    found = pull(v)
    slopes = found if isinstance(inputs, (list, tuple)) else found[0]
    return finished(output, create_graph), finished(slopes, create_graph)


def jvp(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Tensor],
    v: Any = None,
    create_graph: bool = False,
) -> tuple[Any, Any]:
    """Compute func(inputs) and the product of its Jacobian with `v`, by two reverse passes.

    >>> y, t = picograd.jvp(lambda x: x * x, picograd.Tensor([3.0]), picograd.Tensor([2.0]))
    >>> t.tolist()
    [12.0]
    """
    points = several(inputs)
    ones = tuple(wrap(point._node.const_like(1), False) for point in points)
    output, along = derivatives.jvp(func, points, ones if v is None else several(v))
    return finished(output, create_graph), finished(along, create_graph)


def jacobian(
    func: Callable[..., Any], inputs: Tensor | Sequence[Tensor], create_graph: bool = False
) -> Any:
    """Compute the derivative of every output element: output shape + input shape.

    >>> picograd.jacobian(lambda x: x * x, picograd.Tensor([1.0, 3.0])).tolist()
    [[2.0, 0.0], [0.0, 6.0]]
    """
    points = several(inputs)
    is_one = not isinstance(inputs, (list, tuple))
    found = derivatives.jacrev(func, 0 if is_one else tuple(range(len(points))))(*points)
    return finished(found, create_graph)


def hessian(
    func: Callable[..., Any], inputs: Tensor | Sequence[Tensor], create_graph: bool = False
) -> Any:
    """Compute the second derivatives of a function that gives one number.

    >>> picograd.hessian(lambda x: x[0] ** 2 * x[1], picograd.Tensor([1.0, 3.0])).tolist()
    [[6.0, 2.0], [2.0, 0.0]]
    """
    points = several(inputs)
    is_one = not isinstance(inputs, (list, tuple))
    found = derivatives.hessian(func, 0 if is_one else tuple(range(len(points))))(*points)
    return finished(found, create_graph)


guard_functions(globals(), ("vjp", "jvp", "jacobian", "hessian", "checkpoint"))
