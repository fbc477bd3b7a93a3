"""Graph IR: what to compute, as a directed acyclic graph of named tensor operations.

    Node = op, inputs, arg, shape, dtype, device

Meaning: the row of `op` in `graph/ops.py`. Nodes are immutable and pure, except that `realized`
remembers the buffer once a plan has computed the node (row-major), so that later plans start there,
and `leaf` the tensor of a user's whose value it is.

Invariants (`verify` in graph/verify.py): broadcasting and casts are explicit: inputs of an
elementwise operation have equal shapes, and equal dtypes where the row says so; shapes are tuples
of non-negative ints; every input is on the node's device, except that of `copy`.

The methods here are smart constructors: they trust their arguments and fold trivial cases, so that
VJP rows and composites can be written as arithmetic. What a user wrote goes through
`graph/build.py`, which checks first. Folding never looks through a node that is `realized`.
"""

import math
import weakref
from collections.abc import Callable, Sequence
from functools import cache, reduce
from typing import Any, Union

import numpy as np

from picograd.buffer import Buffer
from picograd.conversion import convert
from picograd.dtype import DType, accumulate_dtype, int64
from picograd.errors import DTypeError
from picograd.graph.row import KEEPING, MOVES, NUMBERS, OPS, PAIRS, POSITIONS, SHOWING, Op
from picograd.graph.shape import (
    ConvSpec,
    Shape,
    Window,
    contract_shape,
    conv_shape,
    fold_shape,
    gather_shape,
    is_shape,
    is_surely,
    pad_shape,
    permute_shape,
    reduce_shape,
    slice_shape,
    window_shape,
)
from picograd.helpers import product
from picograd.number import converted, for_graph, is_given, like, note
from picograd.traced_number import TracedNumber, derived, plain

Number = Union[bool, int, float]
# copies of what was pending on another device
CROSSING: "weakref.WeakKeyDictionary[Node, None]" = weakref.WeakKeyDictionary()
Operand = Union["Node", Number]
Nodes = Sequence["Node"]
Gradients = tuple[Union["Node", None], ...]  # of the inputs of a node
RESULT = "formula_result"  # see graph/formula.py


class Node:
    """One operation; see the module docstring. Recording must stay cheap: slots, no interning."""

    __slots__ = (
        "__weakref__", "arg", "device", "dtype", "inputs", "is_asked", "leaf", "op", "realized",
        "record", "shape",
    )  # fmt: skip
    record: Any  # of a `Standing` one

    def __init__(
        self, op: str, inputs: tuple["Node", ...], arg: Any, shape: Shape, dtype: DType, device: str
    ) -> None:
        self.op: str = op
        self.inputs: tuple[Node, ...] = inputs
        self.arg: Any = arg
        self.shape: Shape = shape
        self.dtype: DType = dtype
        self.device: str = device
        self.realized: Buffer | None = None
        self.leaf: Any = None  # a weak reference
        self.is_asked: bool = False  # whether a program may ask for the gradient of this very node

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def row(self) -> Op:
        """The row of the op."""
        return OPS[self.op]

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def __repr__(self) -> str:
        return f"Node({self.op}, {self.shape}, {self.dtype.name}, {self.device})"

    def with_inputs(self, inputs: tuple["Node", ...]) -> "Node":
        """Apply the same operation to other inputs; the same node if none is another."""
        if inputs == self.inputs:  # nodes are compared by identity
            return self
        return Node(self.op, inputs, self.arg, self.shape, self.dtype, self.device)

    def again(self) -> "Node":
        """Compute the same value anew, for a gradient that compares it with what it came from.

        A stored one may be of another plan, which added sums in another order.
        """
        return Node(self.op, self.inputs, self.arg, self.shape, self.dtype, self.device)

    def stored(self) -> "Node":
        """Ask for the values in memory of their own."""
        return Node("contiguous", (self,), None, self.shape, self.dtype, self.device)

    def after(self, other: "Node", is_stored: bool = False) -> "Node":
        """Let no kernel that makes something of the values run before it could read others.

        Values that are dear are stored for it, or all.
        """
        first = other.slice(((0, 1, 1),) * other.rank).reshape((1,) * self.rank)
        pair = self, first.expand(self.shape)
        return Node("after", pair, is_stored, self.shape, self.dtype, self.device)

    # elementwise

    def __add__(self, other: Operand) -> "Node":
        return self.binary("add", other)

    def __sub__(self, other: Operand) -> "Node":
        return self.binary("sub", other)

    def __mul__(self, other: Operand) -> "Node":
        return self.binary("mul", other)

    def __truediv__(self, other: Operand) -> "Node":
        return self.binary("div", other)

    def __radd__(self, other: Number) -> "Node":
        return self.const_like(other).binary("add", self)

    def __rsub__(self, other: Number) -> "Node":
        return self.const_like(other).binary("sub", self)

    def __rmul__(self, other: Number) -> "Node":
        return self.const_like(other).binary("mul", self)

    def __rtruediv__(self, other: Number) -> "Node":
        return self.const_like(other).binary("div", self)

    def __neg__(self) -> "Node":
        return self.unary("neg")

    def of_complex(self, op: str, *others: "Node") -> "Node":
        """Apply an op to complex nodes: it is recorded in real arithmetic."""
        row = OPS[op]
        if row.of_complex is None:
            text = f"is not defined for {self.dtype.name}"
            raise DTypeError(op, text, "take .real, .imag or .abs() of it")
        made: Node = row.of_complex(self, *others)
        if row.slopes is None:
            return made
        inputs = (self, *others, made.composite("detach"))
        return Node("analytic", inputs, op, made.shape, made.dtype, made.device)

    def paired(self, imag: "Node") -> "Node":
        """Make complex numbers of these real parts and imaginary ones."""
        dtype = self.dtype.complex
        return Node("complex", (self, imag), dtype, self.shape, dtype, self.device)

    def whole(self) -> "Node":
        """Name complex numbers of two parts: they are asked for these, and may have a gradient."""
        return Node("cast", (self,), self.dtype, self.shape, self.dtype, self.device)

    def parts(self) -> tuple["Node", "Node"]:
        """Take the real and imaginary parts of complex numbers."""
        if self.op in PAIRS and self.realized is None:
            real, imag = self.inputs
            return real, imag
        dtype = self.dtype.real
        real, imag = (
            Node(op, (self,), dtype, self.shape, dtype, self.device) for op in ("real", "imag")
        )
        return real, imag

    def in_parts(self, method: str, *args: Any) -> "Node":
        """Apply a linear method to the real and imaginary parts."""
        real, imag = (getattr(part, method)(*args) for part in self.parts())
        return real.paired(imag)

    def unary(self, op: str) -> "Node":
        """Apply an elementwise op with one input."""
        if self.dtype.kind == "complex":
            return self.of_complex(op)
        dtype = OPS[op].dtype_rule.result(self.dtype)
        node = Node(op, (self,), None, self.shape, dtype, self.device)
        return fold_constant(node) if self.op in NUMBERS else node

    def binary(self, op: str, other: Operand) -> "Node":
        """Apply an elementwise op to two nodes of one shape and dtype, or a node and a number."""
        if not isinstance(other, Node):
            other = self.const_like(other)
        if self.dtype.kind == "complex":
            return self.of_complex(op, other)
        row = OPS[op]
        dtype, (left, right) = row.dtype_rule.result(self.dtype), row.identities
        is_number = self.op in NUMBERS
        if other.op in NUMBERS:
            if is_number:
                return fold_constant(Node(op, (self, other), None, self.shape, dtype, self.device))
            if row.simpler is not None:
                made: Node | None = row.simpler(self, other)
                if made is not None:
                    return made
            elif right is not None and not is_given(other.arg) and other.arg == right:
                return self
        elif is_number and left is not None and not is_given(self.arg) and self.arg == left:
            return other
        return Node(op, (self, other), None, self.shape, dtype, self.device)

    def where(self, a: Operand, b: Operand) -> "Node":
        """Choose `a` where this bool node holds, `b` elsewhere; one of them must be a node."""
        if not isinstance(a, Node):
            a = b.const_like(a)  # type: ignore[union-attr]
        if not isinstance(b, Node):
            b = a.const_like(b)
        if self.op in NUMBERS:
            return a if self.arg else b
        return Node("where", (self, a, b), None, a.shape, a.dtype, self.device)

    def multiply_add(self, factor: "Node", addend: Operand) -> "Node":
        """Compute self * factor + addend, rounded once."""
        other = addend if isinstance(addend, Node) else self.const_like(addend)
        inputs = self, factor, other
        return Node("multiply_add", inputs, None, self.shape, self.dtype, self.device)

    def cast(self, dtype: DType) -> "Node":
        """Convert the elements."""
        if dtype is self.dtype:
            return self
        if dtype.kind == "complex":
            real, imag = (each.cast(dtype.real) for each in as_parts(self))
            return real.paired(imag)
        if self.dtype.kind == "complex":
            if dtype.kind == "bool":
                return self.binary("not_equal", 0)
            text = f"{self.dtype.name} does not become {dtype.name}: its imaginary part is lost"
            raise DTypeError("cast", text, "take .real first, or .abs()")
        node = Node("cast", (self,), dtype, self.shape, dtype, self.device)
        can_fold = self.op in NUMBERS and (
            dtype.is_float or plain(derived(math.isfinite, self.arg))
        )
        return fold_constant(node) if can_fold else node

    def accumulated(self) -> "Node":
        """Cast to the dtype sums accumulate in: float32 for 8- and 16-bit floats."""
        return self.cast(accumulate_dtype(self.dtype))

    def const_like(self, value: Number) -> "Node":
        """Make a constant of this node's shape, dtype and device."""
        return constant(value, self.shape, self.dtype, self.device)

    def iota(self, axis: int, dtype: DType = int64) -> "Node":
        """Number the positions along an axis, in this node's shape."""
        return Node("iota", (), axis, self.shape, dtype, self.device)

    # views

    def view(self, op: str, arg: Any, shape: Shape) -> "Node":
        """Apply a view op; a constant only changes its shape."""
        if self.op in NUMBERS:
            return Node("const", (), self.arg, shape, self.dtype, self.device)
        return Node(op, (self,), arg, shape, self.dtype, self.device)

    def below(self, op: str) -> "Node":
        """Look behind a view of the op that is about to be applied once more: one will do."""
        can_skip = self.op == op and self.realized is None and not self.is_asked
        return self.inputs[0] if can_skip else self

    def reshape(self, shape: Shape) -> "Node":
        """Read the elements in row-major order as another shape."""
        source = self.below("reshape")
        return source if is_shape(shape, source.shape) else source.view("reshape", shape, shape)

    def permute(self, axes: Shape) -> "Node":
        """Reorder the axes: axis k of the result is axis `axes[k]` of this node."""
        source = self.below("permute")
        if source is not self:
            axes = tuple(self.arg[axis] for axis in axes)
        if axes == tuple(range(len(axes))):
            return source
        return source.view("permute", axes, permute_shape(axes, source.shape))

    def expand(self, shape: Shape) -> "Node":
        """Repeat axes of size 1."""
        return self if is_surely(shape, self.shape) else self.view("expand", shape, shape)

    def broadcast_to(self, shape: Shape) -> "Node":
        """Add axes of size 1 on the left, then repeat axes of size 1."""
        if is_shape(shape, self.shape):
            return self
        ones = (1,) * (len(shape) - len(self.shape))
        return self.reshape(ones + self.shape).expand(shape)

    def slice(self, ranges: tuple[tuple[int, int, int], ...]) -> "Node":
        """Take `range(start, stop, step)` of each axis; step >= 1."""
        shape = slice_shape(ranges)
        return self if is_surely(shape, self.shape) else self.view("slice", ranges, shape)

    def flip(self, axes: Shape) -> "Node":
        """Reverse the order along some axes."""
        return self.view("flip", axes, self.shape) if axes else self

    def pad(self, pads: tuple[tuple[int, int], ...], fill: Number = 0) -> "Node":
        """Add `lo` and `hi` elements of value `fill` before and after each axis."""
        if not any(lo or hi for lo, hi in pads):
            return self
        if self.dtype.kind == "complex":
            real, imag = (part.pad(pads, end) for part, end in zip(self.parts(), ends_of(fill)))
            return real.paired(imag)
        shape = pad_shape(self.shape, pads)
        return Node("pad", (self,), (pads, fill), shape, self.dtype, self.device)

    def window(self, windows: Window) -> "Node":
        """Gather sliding windows; each listed axis becomes its count, kernel axes go last."""
        shape = window_shape(self.shape, windows)
        return self.view("window", windows, shape) if windows else self

    def fold(self, windows: Window, sizes: Shape) -> "Node":
        """Sum windows back to where `window` read them; `sizes` are those of the listed axes."""
        if all(kernel <= stride and 1 in (gap, kernel) for _, kernel, stride, gap in windows):
            return unfold_disjoint(self, windows, sizes)
        shape = fold_shape(self.shape, windows, sizes)
        return Node("fold", (self,), (windows, sizes), shape, self.dtype, self.device)

    # reductions, contractions, indexing

    def reduce(self, monoid: str, axes: Shape, keepdim: bool = False) -> "Node":
        """Reduce axes with "sum", "prod", "max" or "min"."""
        if self.dtype.kind == "complex":
            return reduced_complex(self, monoid, axes, keepdim)
        shape = reduce_shape(self.shape, axes)
        if is_shape(tuple([self.shape[axis] for axis in axes]), (1,) * len(axes)):
            node = self.reshape(shape)
        else:
            node = Node("reduce", (self,), (monoid, axes), shape, self.dtype, self.device)
        return node.reshape(reduce_shape(self.shape, axes, True)) if keepdim else node

    def contract(self, other: "Node", labels: tuple[Shape, Shape, Shape]) -> "Node":
        """Multiply and sum out the labels that are not in `labels[2]` (einsum)."""
        if self.dtype.kind == "complex":
            whole = OPS["contract"].of_complex(self, other, labels)  # type: ignore[misc]
            return product_of_parts(self, other, "contract", labels) if whole is None else whole
        shape = contract_shape(self.shape, other.shape, labels)
        return Node("contract", (self, other), labels, shape, self.dtype, self.device)

    def conv(self, weight: "Node", spec: ConvSpec) -> "Node":
        """Correlate x (N, G, C, *S) with weight (G, O, C, *K) -> (N, G, O, *S')."""
        if self.dtype.kind == "complex":
            return product_of_parts(self, weight, "conv", spec)
        shape = conv_shape(self.shape, weight.shape, spec)
        return Node("conv", (self, weight), spec, shape, self.dtype, self.device)

    def gather(self, indices: Sequence["Node"], axes: Shape) -> "Node":
        """Read x[index0, index1, ...] along `axes`; the index shape leads the result."""
        shape = gather_shape(self.shape, indices[0].shape, axes)
        return Node("gather", (self, *indices), axes, shape, self.dtype, self.device)

    def scatter(
        self,
        values: "Node",
        indices: Sequence["Node"],
        axes: Shape,
        monoid: str | None,
        inside: "Node | None" = None,
    ) -> "Node":
        """Copy this node with out[index] monoid= values; None overwrites, the last one wins.

        What overwrites is written only where `inside` is true, a bool of the shape of an index.
        """
        inputs = (self, values, *indices, *(() if inside is None else (inside,)))
        return Node("scatter", inputs, (axes, monoid), self.shape, self.dtype, self.device)

    def copy(self, device: str) -> "Node":
        """Move to another device."""
        if device == self.device:
            return self
        made = Node("copy", (self,), device, self.shape, self.dtype, device)
        # a computed value may be let go, and be computed again for a gradient
        if self.inputs and (self.op not in SHOWING or self.inputs[0].inputs):
            CROSSING[made] = None
        return made

    def composite(self, op: str, arg: Any = None, *others: "Node") -> "Node":
        """Apply a composite op that keeps this node's shape and dtype."""
        return Node(op, (self, *others), arg, self.shape, self.dtype, self.device)


class Standing(Node):
    """A node that stands in for one, but for what it reads; it becomes one as soon as that is read.

    See engine/followed.py. A class of its own, as Python finds attributes of others faster.
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        """Find what the node reads."""
        if name != "inputs":
            raise AttributeError(f"a Node has no {name}", name=name, obj=self)
        record, at = self.record
        record.look(self, at)
        return self.inputs


def as_parts(node: Node) -> tuple[Node, Node]:
    """Take real and imaginary parts; those of real numbers are 0."""
    return node.parts() if node.dtype.is_complex else (node, node.const_like(0))


def ends_of(value: Any) -> tuple[Any, Any]:
    """Take the real and imaginary part of a number."""
    return (value.real, value.imag) if isinstance(value, complex) else (value, 0)


def product_of_parts(a: Node, b: Node, method: str, arg: Any) -> Node:
    """Multiply complex operands by a method that is linear in both."""
    (x, y), (u, v) = a.parts(), b.parts()
    multiply = lambda left, right: getattr(left, method)(right, arg)  # noqa: E731
    real: Node = multiply(x, u) - multiply(y, v)
    return real.paired(multiply(x, v) + multiply(y, u))


def reduced_complex(node: Node, monoid: str, axes: Shape, keepdim: bool) -> Node:
    """Add complex numbers up by parts, or multiply them, half with half until one is left."""
    if monoid == "sum":
        return node.in_parts("reduce", monoid, axes, keepdim)
    if monoid != "prod":
        text = f"is not defined for {node.dtype.name}: complex numbers have no order"
        raise DTypeError(monoid, text, "take .abs() or .real first")
    kept = tuple(axis for axis in range(node.rank) if axis not in axes)
    lead = tuple(node.shape[axis] for axis in kept)
    size = product(tuple(node.shape[axis] for axis in axes))
    rest = node.permute((*kept, *axes)).reshape((*lead, size))
    whole, before = tuple((0, n, 1) for n in lead), ((0, 0),) * len(lead)
    if not size:
        rest, size = node.const_like(1).reshape((*lead, 0)).pad((*before, (0, 1)), 1), 1
    while size > 1:
        half = (size + 1) // 2
        rest = rest.pad((*before, (0, 2 * half - size)), 1)
        rest = rest.slice((*whole, (0, half, 1))) * rest.slice((*whole, (half, 2 * half, 1)))
        size = half
    return rest.reshape(reduce_shape(node.shape, axes, keepdim))


def is_move(node: Node) -> bool:
    """Tell whether a node has all elements of its input, in another order or shape."""
    return node.op in MOVES


def is_renaming(node: Node) -> bool:
    """Tell whether a node is a conversion to the dtype that its input has."""
    return node.op in KEEPING and node.dtype is node.inputs[0].dtype


def is_cut(node: Node) -> bool:
    """Tell whether a node shows a part of its input."""
    view = node.row.view
    return view is not None and view.offset is not None


def is_plain_leaf(node: Node) -> bool:
    """Tell whether a node is one number everywhere, or the position along an axis."""
    return node.realized is None and (node.op in NUMBERS or node.op in POSITIONS)


def constant(value: Number, shape: Shape, dtype: DType, device: str) -> Node:
    """Make a constant node; the value takes the Python type of the dtype's kind."""
    if dtype.kind == "complex":
        real, imag = (constant(part, shape, dtype.real, device) for part in ends_of(value))
        return real.paired(imag)
    python = {"bool": bool, "float": float, "float8": float}.get(dtype.kind, int)
    return Node("const", (), for_graph(converted(python, value)), shape, dtype, device)


@cache
def folding(op: str, dtypes: tuple[DType, ...], dtype: DType) -> Callable[..., Any]:
    """Give the function that computes an elementwise node of numbers as `fold_constant` does."""

    def folded(*values: Any) -> Any:
        inputs = [Node("const", (), value, (), kind, "cpu") for value, kind in zip(values, dtypes)]
        return fold_constant(Node(op, tuple(inputs), None, (), dtype, "cpu")).arg

    folded.folded = op, dtypes, dtype  # type: ignore[attr-defined]
    return folded


def fold_constant(node: Node) -> Node:
    """Compute an elementwise node whose inputs are all constants.

    A question about a number that a user gave stays one: with the next number the answer may be
    another, and gradients are recorded once for all of them.
    """
    numbers = [source.arg for source in node.inputs]
    dtypes = tuple([source.dtype for source in node.inputs])
    is_traced = TracedNumber in map(type, numbers)
    if node.dtype.kind == "bool" and not is_traced and any(map(is_given, numbers)):
        return node
    if is_traced:
        made = derived(folding(node.op, dtypes, node.dtype), *numbers)
        return constant(made, node.shape, node.dtype, node.device)
    arrays = [*map(convert, numbers, dtypes)]
    with np.errstate(all="ignore"):
        value = OPS[node.op].numpy(*arrays)  # type: ignore[misc]
        if node.dtype.kind in ("int", "uint"):  # wrap as the dtype does
            value = np.asarray(value).astype(node.dtype.numpy)
    number = np.asarray(value).item()
    number = reduce(like, numbers, number)
    folded = constant(number, node.shape, node.dtype, node.device)
    note(folded.arg, folding(node.op, dtypes, node.dtype), *numbers)
    return folded


def unfold_disjoint(node: Node, windows: Window, sizes: Shape) -> Node:
    """Fold windows that do not overlap: pad each kernel axis to the stride and merge it.

    count, kernel -> count, stride -> count * stride -> size
    """
    rank = node.rank - len(windows)
    kernel_axis = {window[0]: rank + number for number, window in enumerate(windows)}
    gaps = [(0, 0)] * rank + [(0, stride - kernel) for _, kernel, stride, _ in windows]
    order: list[int] = []
    for axis in range(rank):
        order.append(axis)
        if axis in kernel_axis:
            order.append(kernel_axis[axis])
    shape, ends = list(node.shape[:rank]), list(node.shape[:rank])
    for (axis, _, stride, _), size in zip(windows, sizes):
        shape[axis] *= stride
        ends[axis] = size
    merged = node.pad(tuple(gaps)).permute(tuple(order)).reshape(tuple(shape))
    cut = merged.slice(tuple((0, min(n, end), 1) for n, end in zip(shape, ends)))
    return cut.pad(tuple((0, max(end - n, 0)) for n, end in zip(shape, ends)))


def toposort(roots: Sequence[Node], is_leaf: Callable[[Node], Any] | None = None) -> list[Node]:
    """List every node under `roots` once, inputs before users; iterative, so depth is no limit.

    The walk does not look below nodes for which `is_leaf` holds. It expands folded formulas.
    """
    order: list[Node] = []
    seen: set[Node] = set()
    stack: list[Node | None] = [*reversed(roots)]
    pop, push, are_seen = stack.pop, stack.append, seen.issuperset
    while stack:
        node = pop()
        if node is None:  # what is below it has all that it reads in the list
            done: Any = pop()
            order.append(done)
        elif node not in seen:
            seen.add(node)
            if node.op == RESULT and node.realized is None:
                node.inputs[0].arg.expand(node)
            inputs = node.inputs
            if are_seen(inputs) or (is_leaf and is_leaf(node)):
                order.append(node)
            else:
                push(node)
                push(None)
                stack += inputs[::-1]
    return order


def substituted(roots: Sequence[Node], values: dict[int, Node]) -> list[Node]:
    """Copy a graph over other nodes in the place of some, which are known by `id`."""
    return copied_on(roots, dict(values))


def copied_on(roots: Sequence[Node], done: dict[int, Node]) -> list[Node]:
    """Copy what of a graph was not copied before, and add it to `done`: the copies, by `id`."""
    for node in toposort(roots, lambda node: id(node) in done):
        if id(node) not in done:
            done[id(node)] = node.with_inputs(tuple([done[id(child)] for child in node.inputs]))
    return [done[id(root)] for root in roots]
