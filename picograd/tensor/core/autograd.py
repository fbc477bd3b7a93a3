"""Gradients of tensors: what is recorded (no_grad), which tensors are leaves, and the walk.

A leaf is a tensor the user made; its node is where gradients stop. Every node that a leaf has had
refers to it, weakly (`Node.leaf`). A tensor that asked for gradients *tracks*, and so does what is
computed from it. If nothing in a graph asked, `backward` serves every floating leaf that was not
told `requires_grad=False`: what a user froze stays as it is.
"""

import functools
import inspect
import threading
import warnings
import weakref
from collections.abc import Callable, Sequence
from contextlib import ContextDecorator
from dataclasses import field
from operator import attrgetter
from typing import Any, TypeVar, overload
from weakref import WeakValueDictionary

from picograd.buffer import Storage
from picograd.engine import pending
from picograd.engine.carried import become_leaf, entries
from picograd.engine.followed import EVENTS, stand_no_more
from picograd.engine.tracing import RUNNING
from picograd.errors import DTypeError, GradientError, ShapeError
from picograd.graph import build, gradient_formula
from picograd.graph.build_composite import custom
from picograd.graph.composites import CustomGradient
from picograd.graph.gradient import HOOKS, WATCHERS
from picograd.graph.gradient import gradient as node_gradient
from picograd.graph.node import Node, is_renaming, toposort
from picograd.graph.ops import OPS
from picograd.graph.row import Role
from picograd.helpers import on_demand, reached
from picograd.late_methods import dataclass
from picograd.number import noting
from picograd.tensor.core.alone import change_gradient

add_step_hook = on_demand("picograd.tensor.core.gradient_hooks", "add_step_hook")
add_step_prehook = on_demand("picograd.tensor.core.gradient_hooks", "add_step_prehook")
leave_behind = on_demand("picograd.tensor.core.gradient_hooks", "leave_behind")

TRACKED = ("float", "complex")  # kinds of dtypes of results that track gradients
HOOKS_OF = attrgetter("_hooks")
UNNOTED = "UnnotedWrite"  # what was written behind the back of gradients, through `.data` say
F = TypeVar("F", bound=Callable[..., Any])
Switch = TypeVar("Switch", bound="GradMode")


class Mode(threading.local):
    """Whether operations on tensors that ask for gradients are recorded; one per thread."""

    def __init__(self) -> None:
        self.enabled = True
        self.is_inference = False  # inside `inference_mode`, which programs ask about


MODE = Mode()


class Walks(threading.local):
    """How many times gradients were taken: hooks of several tensors tell one walk from another.

    Of gradients that are `final` none are asked.
    """

    def __init__(self) -> None:
        self.count, self.is_final = 0, False


WALKS = Walks()


class _DecoratorContextManager(ContextDecorator):
    """This class is PyTorch's base of blocks that decorate, too: each call has a block of its own.

    A class whose blocks are made with arguments says by `clone` how another is made.
    """

    def clone(self) -> Any:
        """Make another block."""
        return type(self)()

    def _recreate_cm(self) -> Any:
        return self.clone()

    def __call__(self, function: F) -> F:
        """Decorate a function; a generator runs each of its steps inside the block."""
        if not inspect.isgeneratorfunction(function):
            return super().__call__(function)

        @functools.wraps(function)
        def steps(*args: Any, **options: Any) -> Any:
            generator = function(*args, **options)
            resume = functools.partial(next, generator)
            try:
                while True:
                    with self._recreate_cm():
                        item = resume()
                    try:
                        resume = functools.partial(generator.send, (yield item))
                    except GeneratorExit:
                        with self._recreate_cm():
                            generator.close()
                        raise
                    except BaseException as error:
                        resume = functools.partial(generator.throw, error)
            except StopIteration as end:
                return end.value

        return steps  # type: ignore[return-value]


class GradMode(_DecoratorContextManager):
    """This class switches recording on or off inside a block or a function."""

    wanted = True

    def __init__(self, function: Callable[..., Any] | None = None) -> None:
        self.previous: list[bool] = []

    @overload
    def __new__(cls: type[Switch], function: None = None) -> Switch: ...

    @overload
    def __new__(cls, function: F) -> F: ...  # type: ignore[misc]

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        """Serve `@no_grad` as well as `@no_grad()`."""
        made = super().__new__(cls)
        if function is None:
            return made
        made.previous = []
        return made(function)

    def clone(self) -> Any:
        """Give this block: it may be entered again."""
        return self

    def __enter__(self) -> None:
        self.previous.append(MODE.enabled)
        MODE.enabled = self.wanted

    def __exit__(self, *error: Any) -> None:
        MODE.enabled = self.previous.pop()


class no_grad(GradMode):
    """This class stops the recording of gradients: `with no_grad():` or `@no_grad()`.

    >>> x = Tensor([1.0], requires_grad=True)
    >>> with picograd.no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    wanted = False


class enable_grad(GradMode):
    """This class resumes the recording of gradients inside `no_grad`.

    >>> x = Tensor([1.0], requires_grad=True)
    >>> with picograd.no_grad():
    ...     with picograd.enable_grad():
    ...         y = x * 2
    >>> y.requires_grad
    True
    """

    wanted = True


class inference_mode(GradMode):
    """This class stops the recording of gradients, as `no_grad`; `inference_mode(False)` does not.

    PyTorch's forbids later use of the results in recorded operations; here they are plain tensors.

    >>> x = Tensor([1.0], requires_grad=True)
    >>> with picograd.inference_mode():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    wanted = False

    @overload
    def __new__(cls: type[Switch], mode: bool = True) -> Switch: ...

    @overload
    def __new__(cls, mode: F) -> F: ...  # type: ignore[misc]

    def __new__(cls, mode: Any = True) -> Any:
        """Serve `@inference_mode` as well as `inference_mode(False)`."""
        return super().__new__(cls, mode) if callable(mode) else object.__new__(cls)

    def __init__(self, mode: Any = True) -> None:
        self.previous, self.wanted = [], not mode

    def __enter__(self) -> None:
        super().__enter__()
        self.previous.append(MODE.is_inference)
        MODE.is_inference = not self.wanted

    def __exit__(self, *error: Any) -> None:
        MODE.is_inference = self.previous.pop()
        super().__exit__(*error)


class set_grad_enabled(GradMode):
    """This class switches recording by a flag: at once, and in a `with` until its end.

    >>> with picograd.set_grad_enabled(False):
    ...     picograd.is_grad_enabled()
    False
    """

    wanted: bool

    def __new__(cls: type[Switch], mode: bool = True) -> Switch:
        """Make the switch; unlike `no_grad` it takes a flag."""
        return object.__new__(cls)

    def __init__(self, mode: bool) -> None:
        self.before: bool = MODE.enabled
        self.is_new: bool = True
        self.previous, self.wanted = [], bool(mode)
        MODE.enabled = self.wanted

    def __call__(self, function: F) -> F:
        """Decorate a function: nothing is switched before it is called."""
        MODE.enabled, self.is_new = self.before, False
        return super().__call__(function)

    def __enter__(self) -> None:
        super().__enter__()
        if self.is_new:  # the mode before the switch was made
            self.previous[-1], self.is_new = self.before, False


def is_grad_enabled() -> bool:
    """Tell whether operations are recorded for gradients.

    >>> picograd.is_grad_enabled()
    True
    """
    return MODE.enabled


def warn_if_computed(tensor: Any) -> None:
    """Say that a computed tensor keeps no gradient, where somebody reads it."""
    if tensor._hooks is None and not tensor.is_leaf:
        text = "the grad of a computed tensor stays None: read a leaf's, or call retain_grad()"
        warnings.warn(text, stacklevel=3)


def check_gradient(owner: Any, gradient: Any, kind: type) -> None:
    """Raise unless a value is another tensor, which may be the gradient of one."""
    if not isinstance(gradient, kind):
        text = f"it must be a tensor or None, not {type(gradient).__name__}"
        raise DTypeError("grad", text, "wrap it in picograd.Tensor(...)")
    if gradient is owner:
        raise GradientError("grad", "a tensor cannot be its own gradient", "assign a .clone()")


def leaf_of(node: Node) -> Any:
    """Find the live leaf tensor of a node, or None."""
    found = node.leaf
    return None if found is None else found()


def is_still_leaf(tensor: Any) -> bool:
    """Tell whether what was a leaf is one: a write makes it a result of what was written."""
    return tensor is not None and leaf_of(tensor._node) is tensor


def asks(leaf: Any) -> bool:
    """Tell whether a leaf wants a gradient."""
    return is_still_leaf(leaf) and bool(leaf._tracks)


def is_trained(node: Node) -> bool:
    """Tell whether a leaf asks for gradients at a node: none flows on to what made it."""
    return asks(leaf_of(node))


def is_barrier(node: Node) -> bool:
    """Tell whether a node passes a value on, and no gradient back: a `detach`."""
    row = node.row
    return row.role is Role.PASS and not row.is_differentiable


def passing(roots: Sequence[Node]) -> list[Node]:
    """List the nodes between `roots` and leaves that gradients pass through."""

    def is_end(node: Node) -> bool:
        is_cut = is_barrier(node) or not node.dtype.is_differentiable
        return is_cut or node.leaf is not None or not node.inputs

    return [node for node in toposort(roots, is_end) if not is_end(node)]


def leaf_nodes(roots: Sequence[Node]) -> list[Node]:
    """List the floating leaf nodes that gradients of `roots` can reach; iterative."""
    found: list[Node] = []
    stack = list(roots)
    for node in reached(stack):
        if not node.dtype.is_differentiable:
            continue
        if node.leaf is not None:
            found.append(node)
        elif not is_barrier(node):
            stack += node.inputs
    return found


def is_tracked(root: Node) -> bool:
    """Tell whether gradients of a node reach a leaf that asks, or one that is gone; iterative."""
    stack = [root]
    for node in reached(stack):
        if not node.dtype.is_differentiable:
            continue
        if node.leaf is None:
            stack += () if is_barrier(node) else node.inputs
        elif (leaf := node.leaf()) is None or asks(leaf):
            return True
    return False


def as_recorded(gradient: Node, create_graph: bool) -> tuple[Node, bool]:
    """Give the node that a gradient is recorded as, and whether it has gradients itself.

    Those with respect to what only decides on which side of a corner a value is are zeros.
    """
    if not create_graph:
        return build.detach(gradient), False
    known = {id(leaf_of(each)) for each in leaf_nodes([gradient])}
    leaves = [(each, leaf_of(each)) for each in leaf_nodes(corners(gradient))]
    asking = [(each, leaf) for each, leaf in leaves if leaf is not None and asks(leaf)]
    others = [each for each, leaf in asking if id(leaf) not in known]
    if others:
        return custom(gradient, [gradient, *others], zeros_beside), True
    tracks = is_tracked(gradient)
    return gradient if tracks else build.detach(gradient), tracks


def zeros_beside(flowing: Node, output: Node, first: Node, *others: Node) -> list[Node]:
    """Pass a gradient on to the first input; those of others are zeros."""
    return [flowing, *[each.const_like(0) for each in others]]


def corners(root: Node) -> list[Node]:
    """List what a node is made of, as a value or a side, that has corners and no curves."""
    found: list[Node] = []
    stack = [root]
    for node in reached(stack):
        if node.row.is_bent:
            found += node.inputs if node.leaf is None else (node,)
        if node.leaf is None and not is_barrier(node):
            stack += node.inputs
    return found


def targets_of(root: Node, is_tracked: bool = False) -> list[Node]:
    """List the leaf nodes `backward` serves: those that asked, or else all that did not refuse."""
    leaves = leaf_nodes([root])
    if not leaves:
        text = "no tensor in the graph can take a gradient"
        fix = "make a floating tensor with requires_grad=True and compute outside no_grad"
        raise GradientError("backward", text, fix)
    live = [node for node in leaves if leaf_of(node) is not None]
    asked = [node for node in live if asks(leaf_of(node))]
    if asked or is_tracked:  # what asked may be gone by now
        return asked
    willing = [node for node in live if not leaf_of(node)._is_frozen]
    if live and not willing:
        text = "every tensor in the graph was told requires_grad=False"
        raise GradientError("backward", text, "call .requires_grad_() on what is to be trained")
    check_not_cut(root)
    if willing == [root]:
        text = "nothing computed this tensor, so no gradient leads anywhere"
        fix = "call backward of the loss itself: Tensor(loss.item()) has lost what it came from"
        raise GradientError("backward", text, fix)
    return willing


def check_not_cut(root: Node) -> None:
    """Raise GradientError if what asks for gradients lies only behind what passes none back."""
    if any(is_trained(node) for node in toposort([root])):
        text = "no gradient reaches the tensors that require one"
        fix = "compute the output without no_grad, detach(), argmax or a cast to integers"
        raise GradientError("backward", text, fix)


def start_gradient(op: str, output: Node, given: Node | None) -> Node:
    """Choose what the walk starts from: the given gradient, or ones."""
    if not output.dtype.is_differentiable:
        text = f"a {output.dtype.name} tensor has no gradient"
        raise GradientError(op, text, "compute the output in floats")
    if given is None:
        return output.const_like(1.0)
    if given.shape != output.shape:
        text = f"gradient {given.shape} does not fit the output {output.shape}"
        raise ShapeError(op, text, "give them the same shape")
    return given.cast(output.dtype)


def asked_of(node: Node) -> int:
    """Tell what the tensor of a leaf asks for: gradients, none, or it is gone."""
    leaf = None if node.leaf is None else node.leaf()
    if leaf is None:
        return 3
    own = leaf._node.leaf if leaf._tracks else None
    return gradient_formula.ASKS if own is not None and own() is leaf else 2


def known_backward(root: Node, is_final: bool) -> list[tuple[Any, Node]] | None:
    """Find the gradients of a graph that tracks them, as an earlier one of its kind had them.

    One that is new is recorded and kept; None for what is not of this kind. No gradient is asked
    of gradients that are `final`: they may be one node.
    """
    if not root.dtype.is_differentiable or RUNNING.active or RUNNING.traces or WATCHERS:
        return None
    walked = gradient_formula.walk(root, asked_of)
    if walked is None or (entries(HOOKS) and any(node in HOOKS for node in walked.order)):
        return None
    known = gradient_formula.find(walked)
    if known is None:
        targets = targets_of(root, True)
        with noting({}) as table:
            made = told(
                is_final, node_gradient, [(root, root.const_like(1.0))], targets, is_trained
            )
        known = gradient_formula.keep(walked, targets, made, table)
        if known is None or known.formula is None:
            pairs = zip(map(leaf_of, targets), made)
            return [(leaf, each) for leaf, each in pairs if each is not None]
    if known.formula is None:
        return None
    leaves = [leaf_of(walked.order[at]) for at in known.targets]
    is_folded = is_final and not any(map(HOOKS_OF, leaves))
    return list(zip(leaves, gradient_formula.again(walked, known, is_folded)))


def backward(
    root: Node,
    given: Node | None,
    inputs: Any = None,
    is_tracked: bool = False,
    is_final: bool = False,
) -> list[tuple[Any, Node]]:
    """Find the gradient node of every leaf tensor that `backward` serves, or of `inputs`."""
    WALKS.count += 1
    if is_tracked and given is None and inputs is None:
        known = known_backward(root, is_final)
        if known is not None:
            return known
    start = start_gradient("backward", root, given)
    if inputs is not None:
        tensors = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
        if not tensors:
            raise GradientError("backward", "inputs is empty", "name a tensor, or pass None")
        found = list(zip(tensors, gradients_of([(root, start)], tensors, is_final)))
    else:
        targets = targets_of(root, is_tracked)
        # a hook sees its gradient though the leaf behind it is gone
        watched = [each for each in passing([root]) if each in HOOKS] if entries(HOOKS) else []
        wanted = [*targets, *watched]
        gradients = told(is_final, node_gradient, [(root, start)], wanted, is_trained)
        found = [(leaf_of(node), each) for node, each in zip(targets, gradients)]
    # a hook may have let go the last one who had a leaf
    return [(leaf, each) for leaf, each in found if each is not None and leaf is not None]


def hooked(leaf: Any, gradient: Any, is_final: bool) -> Any:
    """Let hooks of a leaf replace its gradient; the walk has run those of computed tensors."""
    if gradient is None or leaf._hooks is None or not leaf.is_leaf:
        return gradient
    return told(is_final, leaf._hooks.run, gradient)


def told(is_final: bool, function: Callable[..., Any], *given: Any) -> Any:
    """Call what calls functions of users: they are told whether gradients of theirs are asked."""
    before, WALKS.is_final = WALKS.is_final, is_final
    try:
        return function(*given)
    finally:
        WALKS.is_final = before


def accumulate(leaf: Any, found: Any, create_graph: bool = False) -> None:
    """Add a gradient to a tensor's `grad`: in place if somebody holds it, who sees the sum.

    With `create_graph` the sum is a new tensor, as it is where dtypes differ.
    """
    is_first = (leaf.grad if RUNNING.traces else leaf._grad) is None
    learning = EVENTS.learning
    before = None if learning is None else learning.told_gradient(leaf)
    if is_first:
        of, node = leaf._node, found._node
        if RUNNING.traces or of.shape != node.shape or of.dtype is not node.dtype:
            leaf.grad = found
        else:
            leaf._grad = found
    elif create_graph or leaf._grad.dtype is not found.dtype:
        leaf.grad = leaf._grad + found
    elif leaf._grad._tracks:
        with no_grad():  # gradients of what it was stay
            leaf._grad.add_(found)
    else:
        change_gradient(leaf, lambda kept: kept + found)
    if before is not None and learning is EVENTS.learning:
        learning.note_gradient(leaf, before)


@dataclass(frozen=True, slots=True)
class GradientFunction:
    """This class says what computed a tensor: the op, and what computed its inputs."""

    node: Node = field(repr=False)

    def name(self) -> str:
        """Name the operation whose gradient is taken."""
        if isinstance(self.node.arg, CustomGradient):
            return f"{self.node.arg.name}Backward"
        return "".join(word.capitalize() for word in self.node.op.split("_")) + "Backward0"

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """The functions of the inputs; None for inputs that carry no gradient."""
        return tuple((function_of(child), 0) for child in self.node.inputs)

    def register_hook(self, hook: Callable[..., Any]) -> Any:
        """Call hook(gradients of the inputs, (gradient,)); what it returns replaces the former."""
        return add_step_hook(self.node, hook)

    def register_prehook(self, hook: Callable[..., Any]) -> Any:
        """Call hook((gradient,)) before the step; the tuple it returns replaces the gradient."""
        return add_step_prehook(self.node, hook)

    def __repr__(self) -> str:
        return f"<{self.name()}>"


@dataclass(frozen=True, slots=True)
class AccumulateGradient(GradientFunction):
    """This class stands where a gradient is added to a leaf."""

    def name(self) -> str:
        """Name the end of the walk."""
        return "AccumulateGrad"

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """Nothing follows."""
        return ()

    @property
    def variable(self) -> Any:
        """The leaf."""
        return leaf_of(self.node)

    def register_hook(self, hook: Callable[..., Any]) -> Any:
        """Call hook((), (gradient,)) once the gradient is added."""
        return self.variable.register_post_accumulate_grad_hook(lambda x: hook((), (x.grad,)))

    def register_prehook(self, hook: Callable[..., Any]) -> Any:
        """Call hook((gradient,)) before the gradient is added."""
        return self.variable.register_hook(lambda gradient: first(hook((gradient,))))


def first(answer: Any) -> Any:
    """Take the gradient out of what a hook returned."""
    return answer[0] if isinstance(answer, tuple) else answer


FUNCTIONS: WeakValueDictionary[Node, GradientFunction] = WeakValueDictionary()


@functools.cache
def named(kind: type[GradientFunction], name: str) -> type[GradientFunction]:
    """Make the class of one operation, as programs ask for `type(y.grad_fn).__name__`."""
    return type(name, (kind,), {"__slots__": ("__weakref__",)})


def function_of(node: Node) -> GradientFunction | None:
    """Say what computed a node; identities that only tell tensors apart are left out."""
    node = recorded_as(node)
    while is_renaming(node) and node.leaf is None:
        node = node.inputs[0]
    leaf = leaf_of(node)
    if leaf is not None:
        return known(node, AccumulateGradient, "AccumulateGrad") if asks(leaf) else None
    is_step = node.dtype.is_differentiable and node.inputs and OPS[node.op].is_differentiable
    return known(node, GradientFunction, GradientFunction(node).name()) if is_step else None


def known(node: Node, kind: Any, name: str) -> GradientFunction:
    """Give the one object of a node as long as it lives: programs draw graphs by its `id`."""
    found, wanted = FUNCTIONS.get(node), named(kind, name)
    if type(found) is not wanted:
        found = FUNCTIONS[node] = wanted(node)
    return found


def gradients_of(
    outputs: Sequence[tuple[Node, Node]], inputs: Sequence[Any], is_final: bool
) -> list[Node | None]:
    """Find the gradient of each input tensor; a leaf may have had several nodes."""
    WALKS.count += 1
    former: dict[int, list[Node]] = {id(tensor): [recorded_as(tensor.node)] for tensor in inputs}
    for node in leaf_nodes([output for output, _ in outputs]):
        leaf = leaf_of(node)
        nodes = former.get(id(leaf)) if is_still_leaf(leaf) else None
        if nodes is not None and all(each is not node for each in nodes):
            nodes.append(node)
    targets = [node for nodes in former.values() for node in nodes]
    gradients = told(is_final, node_gradient, outputs, targets, is_trained)
    found = dict(zip(map(id, targets), gradients))
    return [total([found[id(node)] for node in former[id(tensor)]]) for tensor in inputs]


def recorded_as(node: Node) -> Node:
    """Find what a tensor was before writes that nobody noted: their gradients all flow there."""
    while type(node.arg) is CustomGradient and node.arg.name == UNNOTED:
        node = node.inputs[0]
    return node


def known_gradients(root: Node, inputs: Sequence[Any], is_final: bool) -> list[Node | None] | None:
    """Find the gradient of each input tensor as `known_backward` does; None if it cannot.

    All inputs must be leaves that asked, which `backward` would serve.
    """
    if not all(each._tracks and leaf_of(each._node) is each for each in inputs):
        return None
    try:
        known = known_backward(root, is_final)
    except GradientError:  # perhaps of a leaf that nobody asked for
        return None
    if known is None:
        return None
    parts: dict[int, list[Node | None]] = {}
    for leaf, node in known:
        parts.setdefault(id(leaf), []).append(node)
    return [total(parts.get(id(each), ())) for each in inputs]


def total(parts: Sequence[Node | None]) -> Node | None:
    """Add the gradients that exist."""
    result: Node | None = None
    for part in parts:
        if part is not None:
            result = part if result is None else result + part
    return result


def severed(before: Node, after: Node, tracks: bool) -> Node:
    """Let a value that was overwritten ask for gradients still, as in PyTorch: they are zeros.

    Inside no_grad nobody notes the write, so they are what they would have been. What was written
    takes its own.
    """

    def vjp(flowing: Node, output: Node, old: Node, *new: Node) -> list[Node]:
        return [old.const_like(0) if is_noted else flowing, *[flowing for _ in new]]

    is_noted = MODE.enabled
    name = "Custom" if is_noted else UNNOTED
    return custom(build.detach(after), [before, *([after] if tracks else [])], vjp, name)


def led(value: Node, before: Node) -> Node:
    """Give a value the way that the gradient of another went."""
    return custom(value, [before], lambda flowing, output, old: [flowing], UNNOTED)


def give_value(reference: Any, node: Node, buffer: Any) -> bool:
    """Give a tensor its value; tells whether its node is still one of a graph.

    What tracks gradients keeps its graph. Others get a leaf: the node, where no graph is kept.
    """
    tensor, data = reference(), pending.LIVE.data
    leaf = node
    is_graph = node.leaf is None and tensor._tracks
    if is_graph:
        node.realized = buffer
    elif node.leaf is None and MODE.enabled and node.dtype.kind in TRACKED:
        node.realized = buffer
        storage = Storage(buffer)
        storage.source = weakref.ref(node)
        tensor._node = leaf = Node("buffer", (), storage, node.shape, node.dtype, node.device)
        leaf.leaf, tensor._history, is_graph = reference, node, True
    else:
        become_leaf(node, Storage(buffer))
        stand_no_more(node)
        node.leaf = reference
    data.pop(id(leaf), None)  # of a node that is gone
    pending.LIVE.waiting.pop(id(leaf), None)
    data[id(leaf)] = reference
    return is_graph
