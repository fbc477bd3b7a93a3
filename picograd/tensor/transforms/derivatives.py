"""Functions of functions: gradients, products with Jacobians, Jacobians, under `picograd.func`.

They look at a function from outside, never touch `.grad`, and compose with each other and with
`vmap`: what they return was recorded, so that it can be differentiated or vectorised again.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from weakref import ref

from picograd.dtype import int64
from picograd.errors import AxisError, DTypeError, GradientError, ShapeError
from picograd.graph import build
from picograd.graph.gradient import gradient
from picograd.graph.node import Node, constant, toposort
from picograd.tensor.core.annotations import Sizes
from picograd.tensor.core.autograd import enable_grad
from picograd.tensor.core.recording import Recorded, same_value, wrap
from picograd.tensor.transforms.pytree import leaves_of, rebuilt
from picograd.tensor.transforms.vmap import tracked, vmap

Function = Callable[..., Any]
GOLDEN = 0.6180339887498949  # its multiples never repeat modulo 1
BASIS_LIMIT = 1 << 24  # elements of a Jacobian's output, so that the basis can be made
RULES: ContextVar[bool] = ContextVar("rules", default=False)  # a Function's `jvp` is asked


@contextmanager
def rules_along(wanted: bool) -> Iterator[None]:
    """Let gradients inside lead along directions by a Function's own `jvp`, or by `backward`."""
    before = RULES.set(wanted)
    try:
        yield
    finally:
        RULES.reset(before)


@contextmanager
def opened(op: str, tree: Any) -> Iterator[tuple[Any, list[Node]]]:
    """Give tensors that stand for those of a tree, and the nodes where their gradients stop.

    The node is a leaf only inside the block: afterwards gradients pass it, so that what was found
    can be differentiated with respect to the originals. What a function writes to the tensors that
    stand for others, these are afterwards.
    """
    stops, inner, markers = [], [], []
    for leaf in leaves_of(tree):
        if not isinstance(leaf, Recorded):
            text = f"cannot differentiate with respect to a {type(leaf).__name__}"
            raise GradientError(op, text, "pass tensors, or choose argnums")
        if not leaf.dtype.is_differentiable:
            text = f"cannot differentiate with respect to a {leaf.dtype.name} tensor"
            raise GradientError(op, text, "use a float dtype")
        marker = wrap(same_value(leaf._node), True)
        marker._node.leaf = ref(marker)
        markers.append(marker)
        stops.append(marker._node)
        inner.append(wrap(same_value(marker._node), True))
    given = [each._node for each in inner]
    try:
        with enable_grad():
            yield rebuilt(tree, inner), stops
    finally:
        for stop in stops:
            stop.leaf = None
    for leaf, node, each in zip(leaves_of(tree), given, inner):
        if each._node is not node:
            leaf.copy_(tracked(each._node))


def float_leaves(op: str, tree: Any) -> list[Any]:
    """List the tensors of what a function returned; GradientError for anything else."""
    found = leaves_of(tree)
    for each in found:
        if not isinstance(each, Recorded):
            text = f"the function returned a {type(each).__name__}"
            raise GradientError(op, text, "return tensors, nested as you like")
    if not found:
        raise GradientError(op, "the function returned no tensor", "return one, or several")
    return found


def or_zeros(found: Sequence[Node | None], stops: Sequence[Node]) -> list[Node]:
    """Fill in zeros where no path leads."""
    pairs = zip(found, stops)
    return [stop.const_like(0) if each is None else each for each, stop in pairs]


def split_aux(op: str, result: Any, has_aux: bool) -> tuple[Any, Any]:
    """Split (output, extra) where the function returns both."""
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        raise DTypeError(op, "has_aux=True but the function did not return a pair", "return (y, a)")
    return result


def chosen(op: str, args: Sequence[Any], argnums: Any) -> tuple[list[int], Any]:
    """Read argnums: the positions, and the arguments there in the same form."""
    many = isinstance(argnums, (tuple, list))
    positions = []
    for number in argnums if many else (argnums,):
        if isinstance(number, bool) or not isinstance(number, int):
            raise DTypeError(op, f"argnums={argnums!r}", "use an int or a tuple of ints")
        if not -len(args) <= number < len(args):
            raise AxisError(op, f"argnums={number} of {len(args)} arguments", "name one of them")
        positions.append(number % len(args))
    if not positions or len({*positions}) < len(positions):
        fix = "name one argument or more, each once"
        raise AxisError(op, f"argnums={argnums!r} of {len(args)} arguments", fix)
    tree = tuple(args[at] for at in positions)
    return positions, tree if many else tree[0]


def placed(args: Sequence[Any], positions: Sequence[int], tree: Any) -> list[Any]:
    """Put arguments back in their places."""
    result = list(args)
    values = tree if len(positions) > 1 or isinstance(tree, tuple) else (tree,)
    for at, value in zip(positions, values):
        result[at] = value
    return result


def of_chosen(
    func: Function, args: Sequence[Any], positions: Sequence[int], options: dict[str, Any]
) -> Function:
    """Make a function of the chosen arguments alone; the others are fixed."""

    def inside(*inner: Any) -> Any:
        return func(*placed(args, positions, inner), **options)

    return inside


def grad_and_value(func: Function, argnums: Sizes = 0, has_aux: bool = False) -> Function:
    """Make a function that gives (gradient, value); the value is one number.

    `argnums` names the arguments differentiated: an int, or a tuple for a tuple of gradients. With
    `has_aux` the function returns (value, extra) and the result is (gradient, (value, extra)).

    >>> g, y = picograd.func.grad_and_value(lambda x: x * x)(picograd.Tensor(3.0))
    >>> g.item(), y.item()
    (6.0, 9.0)
    """

    def differentiated(*args: Any, **options: Any) -> Any:
        positions, tree = chosen("grad", args, argnums)
        many = isinstance(argnums, (tuple, list))
        with opened("grad", tree) as (inner, stops):
            inside = placed(args, positions, inner if many else (inner,))
            value, aux = split_aux("grad", func(*inside, **options), has_aux)
            if not isinstance(value, Recorded) or value.shape:
                shape = getattr(value, "shape", type(value).__name__)
                text = f"the function returned {shape}, not one number"
                raise GradientError("grad", text, "reduce it with .sum() or .mean()")
            node = value._node
            found = or_zeros(gradient([(node, start_of("grad", node))], stops), stops)
        slopes = rebuilt(tree, [tracked(each) for each in found])
        result = tracked(node)
        return slopes, (result, closed_aux(aux)) if has_aux else result

    return differentiated


def start_of(op: str, node: Node) -> Node:
    """Give the ones a gradient starts from."""
    if not node.dtype.is_differentiable:
        raise GradientError(op, f"a {node.dtype.name} result has no gradient", "compute in floats")
    return node.const_like(1.0)


def closed_aux(aux: Any) -> Any:
    """Close the tensors among extra results."""
    leaves = leaves_of(aux)
    return rebuilt(aux, [tracked(x._node) if isinstance(x, Recorded) else x for x in leaves])


def grad(func: Function, argnums: Sizes = 0, has_aux: bool = False) -> Function:
    """Make the function of the gradient of a function that gives one number.

    >>> slope = picograd.func.grad(picograd.func.grad(lambda x: x**3))
    >>> slope(picograd.Tensor(2.0)).item()
    12.0
    """
    both = grad_and_value(func, argnums, has_aux)

    def differentiated(*args: Any, **options: Any) -> Any:
        slopes, value = both(*args, **options)
        return (slopes, value[1]) if has_aux else slopes

    return differentiated


def vjp(func: Function, *primals: Any, has_aux: bool = False) -> Any:
    """Compute func(*primals), and a function: cotangents -> tuple of products with the Jacobian.

    >>> y, pull = picograd.func.vjp(lambda x: x * x, picograd.Tensor([1.0, 3.0]))
    >>> pull(picograd.Tensor([1.0, 1.0]))[0].tolist()
    [2.0, 6.0]
    """
    with opened("vjp", primals) as (inner, stops):
        result, aux = split_aux("vjp", func(*inner), has_aux)
        nodes = [each._node for each in float_leaves("vjp", result)]
    structure = rebuilt(result, [None] * len(nodes))

    def pull(*cotangents: Any) -> Any:
        given = leaves_of(list(cotangents))
        empty = [None] * len(given)
        is_other = len(cotangents) == 1 and rebuilt(cotangents[0], empty) != structure
        if len(given) != len(nodes) or is_other:
            text = f"{len(given)} cotangents for {len(nodes)} results"
            raise ShapeError("vjp", text, "give one per result, in its structure")
        pairs = [cotangent_of(node, each) for node, each in zip(nodes, given)]
        found = or_zeros(gradient([p for p in pairs if p[0].dtype.is_differentiable], stops), stops)
        return rebuilt(tuple(primals), [tracked(each) for each in found])

    output = rebuilt(result, [tracked(node) for node in nodes])
    return (output, pull, closed_aux(aux)) if has_aux else (output, pull)


def cotangent_of(node: Node, given: Any) -> tuple[Node, Node]:
    """Check what is multiplied with one result."""
    if not isinstance(given, Recorded) or given.shape != node.shape:
        shape = getattr(given, "shape", type(given).__name__)
        text = f"the cotangent {shape} does not fit the result {node.shape}"
        raise ShapeError("vjp", text, "give a tensor of the result's shape")
    return node, build.cast(given._node, node.dtype)


def jvp(
    func: Function, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False
) -> Any:
    """Compute func(*primals), and the product of its Jacobian with tangents, by two reverse passes.

    The product u J is linear in u, and its derivative with respect to u along t is J t. Raises
    GradientError with `strict` for a result that no primal leads to.

    >>> x, t = picograd.Tensor([1.0, 3.0]), picograd.Tensor([1.0, 0.0])
    >>> picograd.func.jvp(lambda x: x * x, (x,), (t,))[1].tolist()
    [2.0, 0.0]
    """
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise DTypeError("jvp", "primals and tangents must be tuples", "write jvp(f, (x,), (t,))")
    directions = leaves_of(tuple(tangents))
    points = leaves_of(tuple(primals))
    shapes = [(getattr(a, "shape", None), getattr(b, "shape", None)) for a, b in
              zip(points, directions)]  # fmt: skip
    if len(points) != len(directions) or any(a != b for a, b in shapes):
        raise ShapeError("jvp", f"tangents do not fit the primals: {shapes}", "use equal shapes")
    if not points:
        raise DTypeError("jvp", "there is no primal", "write jvp(f, (x,), (t,))")
    with opened("jvp", tuple(primals)) as (inner, stops):
        result, aux = split_aux("jvp", func(*inner), has_aux)
        nodes = [each._node for each in float_leaves("jvp", result)]
    for number, node in enumerate(nodes if strict else ()):
        if not any(stop in stops for stop in toposort([node])):
            text = f"result {number} does not follow from the primals"
            raise GradientError("jvp", text, "leave out strict=True: its tangent is a zero")
    pushed = push(nodes, stops, [each._node for each in directions])
    output = rebuilt(result, [tracked(node) for node in nodes])
    product = rebuilt(result, [tracked(node) for node in pushed])
    return (output, product, closed_aux(aux)) if has_aux else (output, product)


def linearize(func: Function, *primals: Any) -> Any:
    """Compute func(*primals), and make the function of tangents that gives their derivative.

    >>> x, t = picograd.Tensor([1.0, 3.0]), picograd.Tensor([1.0, 0.0])
    >>> picograd.func.linearize(lambda x: x * x, x)[1](t).tolist()
    [2.0, 0.0]
    """

    def along(*tangents: Any) -> Any:
        return jvp(func, primals, tangents)[1]

    return func(*primals), along


def push(nodes: Sequence[Node], stops: Sequence[Node], directions: Sequence[Node]) -> list[Node]:
    """Find the derivative of every node along directions of `stops`."""
    probes = [same_value(ramp(node)) for node in nodes]
    pairs = [(node, probe) for node, probe in zip(nodes, probes) if node.dtype.is_differentiable]
    with rules_along(True):
        back = gradient(pairs, stops)
    lead = [
        (slope, build.cast(along, slope.dtype))
        for slope, along in zip(back, directions)
        if slope is not None
    ]
    return or_zeros(gradient(lead, probes) if lead else [None] * len(probes), probes)


def ramp(node: Node) -> Node:
    """Make numbers that are neither zero nor each other's multiples, to probe a linear function.

    Some gradients are linear functions computed in other ways (logarithms), which have no
    derivative at zero.
    """
    flat = constant(0, (node.size,), int64, node.device).iota(0)
    if not node.dtype.is_differentiable:
        return node.const_like(0)
    return (flat.cast(node.dtype) * GOLDEN + 1.0).reshape(node.shape)


def jacrev(
    func: Function, argnums: Sizes = 0, *, has_aux: bool = False, chunk_size: int | None = None
) -> Function:
    """Make the function of the Jacobian, one vectorised reverse pass: output shape + input shape.

    >>> picograd.func.jacrev(lambda x: x * x)(picograd.Tensor([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """

    def differentiated(*args: Any, **options: Any) -> Any:
        positions, tree = chosen("jacrev", args, argnums)
        many = isinstance(argnums, (tuple, list))
        inside = of_chosen(func, args, positions, options)
        primals = tree if many else (tree,)
        result, pull, *aux = vjp(inside, *primals, has_aux=has_aux)
        outputs, rows = leaves_of(result), []
        for number, output in enumerate(outputs):

            def one(row: Any, number: int = number) -> Any:
                zeros = [wrap(each._node.const_like(0), False) for each in outputs]
                zeros[number] = row
                return pull(rebuilt(result, zeros))

            found = vmap(one, chunk_size=chunk_size)(basis(output))
            shaped = [
                each.reshape(output.shape + leaf.shape)
                for each, leaf in zip(leaves_of(found), leaves_of(primals))
            ]
            rows.append(rebuilt(tree, shaped))
        jacobian = rebuilt(result, rows)
        return (jacobian, aux[0]) if has_aux else jacobian

    return differentiated


def basis(tensor: Any) -> Any:
    """Make the unit tensors of a shape, stacked: (count, *shape)."""
    count, node = tensor.numel(), tensor._node
    if count * count > BASIS_LIMIT * 64:
        raise ShapeError("jacobian", f"a basis of {count} x {count} numbers", "use vjp or jvp")
    square = constant(0, (count, count), int64, node.device)
    unit = square.iota(0).binary("equal", square.iota(1)).cast(node.dtype)
    return wrap(unit.reshape((count, *tensor.shape)), False)


def jacfwd(
    func: Function, argnums: Sizes = 0, has_aux: bool = False, *, chunk_size: int | None = None,
    randomness: str = "error",
) -> Function:  # fmt: skip
    """Make the function of the Jacobian, from one vectorised product a column.

    Random numbers of `func` are the same in all columns, whatever `randomness` says.

    >>> picograd.func.jacfwd(lambda x: x.sum() * x)(picograd.Tensor([1.0, 2.0])).tolist()
    [[4.0, 1.0], [2.0, 5.0]]
    """

    def differentiated(*args: Any, **options: Any) -> Any:
        positions, tree = chosen("jacfwd", args, argnums)
        many = isinstance(argnums, (tuple, list))
        primals = tuple(tree) if many else (tree,)
        points, columns = leaves_of(primals), []
        inside = of_chosen(func, args, positions, options)
        with opened("jacfwd", primals) as (inner, stops):
            result, aux = split_aux("jacfwd", inside(*inner), has_aux)
            nodes = [each._node for each in float_leaves("jacfwd", result)]
        for number, point in enumerate(points):

            def one(column: Any, number: int = number) -> Any:
                directions = [stop.const_like(0) for stop in stops]
                directions[number] = column._node
                return [wrap(node, False) for node in push(nodes, stops, directions)]

            found = vmap(one, out_dims=-1, chunk_size=chunk_size)(basis(point))
            columns.append([e.reshape(n.shape + point.shape) for e, n in zip(found, nodes)])
        rows = [rebuilt(tree, list(row)) for row in zip(*columns)]
        jacobian = rebuilt(result, rows)
        return (jacobian, closed_aux(aux)) if has_aux else jacobian

    return differentiated


def hessian(func: Function, argnums: Any = 0) -> Function:
    """Make the function of the second derivatives: output shape + input shape twice.

    >>> picograd.func.hessian(lambda x: (x**3).sum())(picograd.Tensor([1.0, 2.0])).tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    """
    return jacrev(jacrev(func, argnums), argnums)
