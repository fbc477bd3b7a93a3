"""Products of tensors on nodes: matmul, einsum and their relatives, all spelled as Contract."""

from collections.abc import Sequence
from typing import Any

from picograd.dtype import DType, bfloat16, float32, int64, promote
from picograd.errors import ChoiceError, DTypeError, ShapeError, ValueRangeError
from picograd.graph import build
from picograd.graph.build_composite import check_device
from picograd.graph.node import Node
from picograd.helpers import product
from picograd.tensor.core.function import recorded, within
from picograd.tensor.core.repeated import repeated
from picograd.tensor.math import elementwise
from picograd.tensor.shaping import movement

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def same_dtype(op: str, a: Node, b: Node) -> tuple[Node, Node]:
    """Check devices and cast both factors to their common dtype."""
    check_device(op, (a, b))
    dtype = promote(a.dtype, b.dtype)
    return build.cast(a, dtype), build.cast(b, dtype)


@repeated
def matmul(a: Node, b: Node) -> Node:
    """Matrix product (..., M, K) @ (..., K, N) -> (..., M, N); batch sizes broadcast.

    A 1-d factor is a row on the left, a column on the right; its axis is dropped from the result.
    float16 and bfloat16 accumulate in float32 and round once. Raises ShapeError when the inner
    sizes differ.
    """
    a, b = same_dtype("matmul", a, b)
    if not a.shape or not b.shape:
        text = f"zero-dim operand: {a.shape} @ {b.shape}"
        raise ShapeError("matmul", text, "use * for scalars")
    inner = b.shape[-2] if len(b.shape) > 1 else b.shape[0]
    if a.shape[-1] != inner:
        raise mismatch(a, b)
    try:
        return build.matmul(a, b)
    except ShapeError:
        text = f"batch sizes do not broadcast: {a.shape} @ {b.shape}"
        raise ShapeError("matmul", text, "make the leading sizes equal or 1") from None


def dot(a: Node, b: Node) -> Node:
    """Multiply vectors; recorded apart from `matmul`, which autocast treats differently."""
    return matmul(a, b)


def mismatch(a: Node, b: Node, op: str = "matmul") -> ShapeError:
    """Word the error of inner sizes that differ, with the transpose that would fit if one does."""
    fix = "the last size of the left operand must equal the second-last of the right one"
    if len(b.shape) > 1 and a.shape[-1] == b.shape[-1]:
        fix = "transpose the second operand with .T"
    elif len(a.shape) > 1 and len(b.shape) > 1 and a.shape[-2] == b.shape[-2]:
        fix = "transpose the first operand with .T"
    return ShapeError(op, f"inner sizes differ: {a.shape} @ {b.shape}", fix)


def need_axes(op: str, node: Node, rank: int) -> None:
    """Raise ShapeError unless the operand has exactly `rank` axes."""
    if len(node.shape) != rank:
        text = f"needs {rank}-d operands, got shape {node.shape}"
        raise ShapeError(op, text, "use matmul for other ranks")


def matmul_of_rank(op: str, a: Node, b: Node, rank: int) -> Node:
    """Multiply operands of exactly `rank` axes: `mm` (2) and `bmm` (3)."""
    need_axes(op, a, rank)
    need_axes(op, b, rank)
    if rank == 3 and a.shape[0] != b.shape[0]:
        text = f"batch sizes differ: {a.shape} @ {b.shape}"
        raise ShapeError(op, text, "use matmul, which broadcasts batches")
    return matmul(a, b)


@recorded("outer", "ger", also=(("vec2", "other"),))
@repeated
def outer(x: Node, other: Node) -> Node:
    """Multiply every element of one vector with every element of another.

    >>> Tensor([1.0, 2.0]).outer(Tensor([3.0, 4.0])).tolist()
    [[3.0, 4.0], [6.0, 8.0]]
    """
    need_axes("outer", x, 1)
    need_axes("outer", other, 1)
    rows = build.reshape(x, (x.shape[0], 1))
    return elementwise.arithmetic("mul", rows, build.reshape(other, (1, other.shape[0])))


@within("functional", is_recorded=True)
@recorded(function=False)
@repeated
def linear(x: Node, weight: Node, bias: Node | None = None) -> Node:
    """Compute x @ weight.T + bias: (..., K), (N, K), (N,) -> (..., N).

    >>> Tensor([[1.0, 2.0]]).linear(Tensor([[1.0, 1.0]]), Tensor([0.5])).tolist()
    [[3.5]]
    """
    x, weight = same_dtype("linear", x, weight)
    if not x.shape or len(weight.shape) not in (1, 2) or x.shape[-1] != weight.shape[-1]:
        text = f"input {x.shape} does not fit weight {weight.shape}"
        flat = [d for d in range(1, len(x.shape)) if product(x.shape[d:]) == weight.shape[-1]]
        fix = f"call .flatten({flat[0]}) first" if flat else "the last sizes must be equal"
        raise ShapeError("linear", text, fix)
    batch = tuple(range(len(x.shape) - 1))
    inner, column = len(batch), len(batch) + 1
    columns = (column,) if len(weight.shape) == 2 else ()
    labels = (*batch, inner), (*columns, inner), (*batch, *columns)
    result = x.contract(weight, labels)
    if bias is None:
        return result
    if bias.shape not in ((), result.shape[-1:]):
        text = f"bias {bias.shape} does not fit {result.shape[-1:]} outputs"
        raise ShapeError("linear", text, "give one bias per output")
    return elementwise.arithmetic("add", result, bias)


@repeated
def einsum(equation: str, nodes: Sequence[Node]) -> Node:
    """Sum of products by Einstein's convention: "ij,jk->ik"; "..." stands for batch axes."""
    terms, output = parse_einsum(equation, [len(node.shape) for node in nodes])
    result, labels = unique_labels(nodes[0], terms[0])
    rest = list(zip(nodes[1:], terms[1:]))
    for position, (node, term) in enumerate(rest):
        later = {label for _, other in rest[position + 1 :] for label in other}
        result, labels = einsum_pair((result, labels), unique_labels(node, term), later, output)
    result, labels = sum_labels(result, labels, set(output))
    return build.permute(result, tuple(labels.index(label) for label in output))


Labelled = tuple[Node, list[str]]


def einsum_pair(first: Labelled, second: Labelled, later: set[str], output: list[str]) -> Labelled:
    """Contract two labelled operands, keeping the labels still needed."""
    wanted = later | set(output)
    (a, labels_a), (b, labels_b) = first, second
    a, labels_a = sum_labels(a, labels_a, wanted | set(labels_b))
    b, labels_b = sum_labels(b, labels_b, wanted | set(labels_a))
    a, b = same_dtype("einsum", a, b)  # of integers what was summed is int64
    sizes = dict(zip(labels_b, b.shape))
    for label, size in zip(labels_a, a.shape):
        if sizes.get(label, size) not in (size, 1) and size != 1:
            text = f"label {label!r} has sizes {size} and {sizes[label]}"
            raise ShapeError("einsum", text, "make them equal")
    a, labels_a = drop_repeated(a, labels_a, labels_b, b.shape)
    b, labels_b = drop_repeated(b, labels_b, labels_a, a.shape)
    every = list(dict.fromkeys(labels_a + labels_b))
    kept = [label for label in every if label in wanted]
    number = {label: position for position, label in enumerate(every)}
    labels = [tuple(number[label] for label in each) for each in (labels_a, labels_b, kept)]
    return build.contract(a, b, (labels[0], labels[1], labels[2]), "einsum"), kept


def drop_repeated(
    node: Node, labels: list[str], others: list[str], shape: tuple[int, ...]
) -> Labelled:
    """Drop an axis of size 1 whose label is wider in the other operand."""
    sizes = dict(zip(others, shape))
    kept = [n for n, label in enumerate(labels) if node.shape[n] != 1 or sizes.get(label, 1) == 1]
    result = build.reshape(node, tuple(node.shape[n] for n in kept))
    return result, [labels[n] for n in kept]


def sum_labels(node: Node, labels: list[str], wanted: set[str]) -> Labelled:
    """Sum over the axes whose labels nothing needs."""
    axes = tuple(at for at, label in enumerate(labels) if label not in wanted)
    if axes:  # as `sum`, which does not overflow where numbers are small
        node = node if node.dtype.is_differentiable else node.cast(int64)
        node = node.reduce("sum", axes)
    return node, [label for label in labels if label in wanted]


def unique_labels(node: Node, labels: list[str]) -> Labelled:
    """Take the diagonal of axes that share a label."""
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            if node.shape[first] != node.shape[second]:
                text = f"label {label!r} has sizes {node.shape[first]} and {node.shape[second]}"
                raise ShapeError("einsum", text, "make them equal")
            node = movement.diagonal(node, 0, first, second)
            labels = [x for at, x in enumerate(labels) if at not in (first, second)] + [label]
    return node, labels


def parse_einsum(equation: str, ranks: Sequence[int]) -> tuple[list[list[str]], list[str]]:
    """Read the equation into one list of labels per operand, and that of the output."""
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        problem = f"{equation!r} has {len(terms)} terms for {len(ranks)} operands"
        raise ValueRangeError("einsum", problem, "write one term per operand")
    labelled = [read_term(term, rank, equation) for term, rank in zip(terms, ranks)]
    everything = [label for term in labelled for label in term]
    dots = sorted({x for x in everything if x[0] == "."}, key=lambda x: -int(x[1:]))
    if not arrow:
        single = sorted(x for x in set(everything) if everything.count(x) == 1 and x[0] != ".")
        return labelled, dots + single
    head, ellipsis, tail = right.partition("...")
    output = [*head, *(dots if ellipsis else []), *tail]
    unknown = [label for label in output if label not in everything]
    if unknown or len(set(output)) < len(output):
        problem = f"the output of {equation!r} has unknown or repeated labels"
        raise ValueRangeError("einsum", problem, "use each label of the operands at most once")
    return labelled, output


def read_term(term: str, rank: int, equation: str) -> list[str]:
    """Read one term; axes under "..." are labelled .n by their distance from its right end."""
    head, dots, tail = term.partition("...")
    if not all(label in LETTERS for label in head + tail):
        problem = f"term {term!r} of {equation!r} has labels that are no letters"
        raise ValueRangeError("einsum", problem, "use letters, and ... at most once")
    hidden = rank - len(head) - len(tail)
    if hidden < 0 or (hidden and not dots):
        problem = f"term {term!r} of {equation!r} does not fit {rank} axes"
        raise ShapeError("einsum", problem, "write one letter per axis")
    return [*head, *(f".{hidden - n}" for n in range(hidden)), *tail]


def sublist_equation(operands: Sequence[Any]) -> tuple[str, list[Any]]:
    """Turn einsum's other form, `a, [0, 1], b, [1, 2], [0, 2]`, into an equation and tensors."""
    count = len(operands) // 2
    tensors, lists = list(operands[: 2 * count : 2]), list(operands[1 : 2 * count : 2])
    terms = ",".join(read_sublist(each) for each in lists)
    if len(operands) % 2:
        return f"{terms}->{read_sublist(operands[-1])}", tensors
    return terms, tensors


def read_sublist(labels: Any) -> str:
    """Spell a list of labels 0..51 and Ellipsis as letters: capitals sort first, as in PyTorch."""
    if not isinstance(labels, (list, tuple)):
        text = f"{labels!r} is no list of labels"
        raise ChoiceError("einsum", text, "pass an equation first, or follow each tensor by a list")
    for each in labels:
        if each is not Ellipsis and not (isinstance(each, int) and 0 <= each < len(LETTERS)):
            raise ValueRangeError("einsum", f"label {each!r}", "use numbers from 0 to 51, or ...")
    return "".join("..." if each is Ellipsis else LETTERS[each] for each in labels)


@recorded()
@repeated
def mm(x: Node, other: Node) -> Node:
    """Multiply two matrices.

    >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).mm(Tensor([[1.0, 0.0], [1.0, 1.0]])).tolist()
    [[3.0, 2.0], [7.0, 4.0]]
    """
    return matmul_of_rank("mm", x, other, 2)


@recorded()
@repeated
def bmm(x: Node, other: Node) -> Node:
    """Multiply two stacks of matrices.

    >>> Tensor([[[1.0, 2.0], [3.0, 4.0]]]).bmm(Tensor([[[1.0], [1.0]]])).tolist()
    [[[3.0], [7.0]]]
    """
    return matmul_of_rank("bmm", x, other, 3)


@recorded(method=False)
def scaled_mm(
    a: Node, b: Node, scale_a: Node, scale_b: Node, bias: Node | None = None,
    out_dtype: DType = bfloat16, use_fast_accum: bool = False,
) -> Node:  # fmt: skip
    """Multiply matrices of 8-bit floats with scales: (a * scale_a) @ (b * scale_b) + bias.

    (M, K) @ (K, N) -> (M, N) in `out_dtype`; `bias` is (N,). A scale is one number, or one for each
    row of `a`, (M, 1), and each column of `b`, (1, N). Sums of float32 are scaled, not operands.
    Tensor cores multiply both along K: `b` is best the transpose of a matrix (N, K).
    `use_fast_accum` allows coarser sums; they are float32 all the same. Raises DTypeError for other
    dtypes, ShapeError for sizes that do not fit. As `torch._scaled_mm`; the formats are those of
    the OCP specification of 8-bit floating point.

    >>> a, b = (Tensor([[1.0, 2.0]]).to(picograd.float8_e4m3fn) for _ in range(2))
    >>> picograd.scaled_mm(a, b.T, Tensor(0.5), Tensor(4.0), out_dtype=picograd.float32).tolist()
    [[10.0]]
    """
    check_scaled(a, b)
    check_device("scaled_mm", (a, b, scale_a, scale_b))
    (m, _), (_, n) = a.shape, b.shape
    made = build.matmul(build.cast(a, float32), build.cast(b, float32))
    for name, scale, rows in (("scale_a", scale_a, (m, 1)), ("scale_b", scale_b, (1, n))):
        if scale.size != 1 and scale.shape != rows:
            text = f"{name} {scale.shape} does not fit {a.shape} @ {b.shape}"
            raise ShapeError("scaled_mm", text, f"give one number, or {rows}")
        scale = scale.reshape((1, 1)) if scale.size == 1 else scale
        made = made.binary("mul", scale.cast(float32).broadcast_to(made.shape))
    if bias is not None:
        if bias.shape != (n,):
            text = f"bias {bias.shape} does not fit {a.shape} @ {b.shape}"
            raise ShapeError("scaled_mm", text, f"give one of shape ({n},)")
        made = made.binary("add", bias.cast(float32).broadcast_to(made.shape))
    return build.cast(made, out_dtype)


def check_scaled(a: Node, b: Node) -> None:
    """Check that both operands are matrices of 8-bit floats whose inner sizes are equal."""
    for each in (a, b):
        if each.dtype.kind != "float8":
            fix = "scale it to 448 at most and convert it: (x / scale).to(picograd.float8_e4m3fn)"
            raise DTypeError("scaled_mm", f"takes 8-bit floats, not {each.dtype.name}", fix)
    if a.rank != 2 or b.rank != 2:
        text = f"takes two matrices, not {a.shape} and {b.shape}"
        raise ShapeError("scaled_mm", text, "reshape to (rows, columns), or loop over the stack")
    if a.shape[1] != b.shape[0]:
        raise mismatch(a, b, "scaled_mm")
