"""Decompositions and transforms on nodes, computed by NumPy on the host, with gradients as nodes.

Such a node is computed when it is recorded, not later: inside `jit` it is an error. Matrices are
the last two axes, the rest are batches. 16-bit floats compute in float32.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from picograd.dtype import int64
from picograd.engine import pending
from picograd.engine.plan_key import leaf_buffer
from picograd.engine.realize import buffer_to_numpy, node_from_numpy
from picograd.engine.tracing import check_not_tracing
from picograd.errors import LinAlgError, ShapeError, ValueRangeError
from picograd.graph import build
from picograd.graph.build_composite import custom
from picograd.graph.node import Node
from picograd.tensor import linalg, movement
from picograd.tensor.operands import floating, need_rank

Array = Any
Gradients = Callable[..., list[Node | None]]


def values_of(op: str, node: Node) -> Array:
    """Compute a node and copy its values to the host."""
    check_not_tracing(f"linalg.{op}()")
    if leaf_buffer(node) is None:
        pending.compute([node])
    buffer = leaf_buffer(node)
    if buffer is None:
        raise ValueRangeError(
            op,
            "the input was not computed",
            "call .realize() on it",
        )
    return buffer_to_numpy(buffer, node.shape)


def on_host(
    op: str, call: Callable[..., Any], *nodes: Node
) -> list[Node]:
    """Call a NumPy function on values; its arrays come back in the dtype of the first node."""
    try:
        found = call(*(values_of(op, node) for node in nodes))
    except np.linalg.LinAlgError as error:
        raise LinAlgError(f"linalg.{op}", str(error), "check the matrix") from None
    arrays = found if isinstance(found, tuple) else (found,)
    like = nodes[0]
    return [
        node_from_numpy(
            np.asarray(each, like.dtype.numpy),
            like.dtype,
            like.device,
        )
        for each in arrays
    ]


def outputs_of(
    values: Sequence[Node], inputs: Sequence[Node], vjp: Gradients
) -> list[Node]:
    """Record several outputs of one decomposition; `vjp(gradients, *inputs)` serves them all."""

    def one(number: int) -> Callable[..., list[Node | None]]:
        def only(
            flowing: Node, output: Node, *nodes: Node
        ) -> list[Node | None]:
            given = [each.const_like(0.0) for each in values]
            given[number] = flowing
            return vjp(given, *nodes)

        return only

    return [
        custom(value, inputs, one(number))
        for number, value in enumerate(values)
    ]


def wide(op: str, node: Node, is_square: bool = True) -> Node:
    """Check a stack of matrices, in float32 or float64."""
    need_rank(f"linalg.{op}", node, 2)
    if is_square and node.shape[-1] != node.shape[-2]:
        raise ShapeError(
            f"linalg.{op}",
            f"{node.shape} is not square",
            "pass square matrices",
        )
    return floating(op, node).accumulated()


def turned(node: Node) -> Node:
    """Transpose the last two axes."""
    return movement.transpose(node, -1, -2)


def product(*factors: Node) -> Node:
    """Multiply matrices from left to right."""
    result = factors[0]
    for each in factors[1:]:
        result = linalg.matmul(result, each)
    return result


def identity(node: Node) -> Node:
    """Make identity matrices of a stack's shape."""
    rank = len(node.shape)
    return (
        node.iota(rank - 1)
        .binary("equal", node.iota(rank - 2))
        .cast(node.dtype)
    )


def diagonal_matrix(vector: Node, like: Node) -> Node:
    """Put vectors on the diagonals of matrices."""
    columns = build.expand(
        vector.reshape((*vector.shape, 1)), like.shape
    )
    return identity(like) * columns


def inverse(node: Node) -> Node:
    """Invert square matrices."""
    x = wide("inv", node)
    (value,) = on_host("inv", np.linalg.inv, x)

    def vjp(g: Node, y: Node, x: Node) -> list[Node | None]:
        return [-product(turned(y), g, turned(y))]

    return custom(value, (x,), vjp).cast(
        floating("inv", node).dtype
    )


def solve(a: Node, b: Node) -> Node:
    """Solve a x = b for square a: (..., N, N) and (..., N, K), or b (..., N)."""
    x, right = linalg.same_dtype(
        "solve",
        wide("solve", a),
        floating("solve", b).accumulated(),
    )
    is_vector = len(right.shape) == 1 or right.shape == x.shape[:-1]
    columns = (
        right.reshape((*right.shape, 1)) if is_vector else right
    )
    if columns.shape[-2] != x.shape[-1]:
        text = f"{a.shape} and {b.shape} do not fit"
        raise ShapeError(
            "linalg.solve", text, "b needs one row per row of a"
        )
    lead = np.broadcast_shapes(x.shape[:-2], columns.shape[:-2])
    x = build.expand(
        movement.reshape(x, padded(x, lead)), (*lead, *x.shape[-2:])
    )
    columns = build.expand(
        movement.reshape(columns, padded(columns, lead)),
        (*lead, *columns.shape[-2:]),
    )
    (value,) = on_host(
        "solve", lambda a, b: np.linalg.solve(a, b), x, columns
    )

    def vjp(
        g: Node, y: Node, a: Node, b: Node
    ) -> list[Node | None]:
        back = solve(turned(a), g)
        return [-product(back, turned(y)), back]

    result = custom(value, (x, columns), vjp)
    return (
        result.reshape(result.shape[:-1]) if is_vector else result
    )


def padded(node: Node, lead: Sequence[int]) -> tuple[int, ...]:
    """Shape of matrices with as many batch axes as `lead`."""
    return (1,) * (len(lead) + 2 - len(node.shape)) + node.shape


def determinant(node: Node) -> Node:
    """Compute determinants."""
    x = wide("det", node)
    (value,) = on_host("det", np.linalg.det, x)

    def vjp(g: Node, y: Node, x: Node) -> list[Node | None]:
        scale = (g * y).reshape((*y.shape, 1, 1))
        return [build.expand(scale, x.shape) * turned(inverse(x))]

    return custom(value, (x,), vjp)


def log_determinant(node: Node) -> list[Node]:
    """Compute the sign of determinants and the logarithm of their size."""
    x = wide("slogdet", node)
    sign, value = on_host(
        "slogdet", lambda a: tuple(np.linalg.slogdet(a)), x
    )

    def vjp(g: Node, y: Node, x: Node) -> list[Node | None]:
        scale = build.expand(g.reshape((*y.shape, 1, 1)), x.shape)
        return [scale * turned(inverse(x))]

    return [sign, custom(value, (x,), vjp)]


def cholesky(node: Node) -> Node:
    """Write positive definite matrices as L L^T; L is lower triangular."""
    x = wide("cholesky", node)
    (value,) = on_host("cholesky", np.linalg.cholesky, x)

    def vjp(g: Node, y: Node, x: Node) -> list[Node | None]:
        inner = movement.triangle(product(turned(y), g), 0, True)
        inner = inner - identity(inner) * inner * 0.5
        back = inverse(y)
        whole = product(turned(back), inner, back)
        return [(whole + turned(whole)) * 0.5]

    return custom(value, (x,), vjp)


def qr(node: Node) -> list[Node]:
    """Write (..., M, N), M >= N, as Q R with orthonormal columns and an upper triangle."""
    x = wide("qr", node, False)
    if x.shape[-2] < x.shape[-1]:
        text = f"{x.shape} has more columns than rows"
        raise ShapeError("linalg.qr", text, "pass tall matrices")
    q, r = on_host("qr", lambda a: tuple(np.linalg.qr(a)), x)

    def vjp(given: list[Node], x: Node) -> list[Node | None]:
        for_q, for_r = given
        m = product(r, turned(for_r)) - product(turned(for_q), q)
        low = movement.triangle(m, -1, True)
        mirrored = low + turned(low) + identity(m) * m
        return [
            product(
                for_q + product(q, mirrored), turned(inverse(r))
            )
        ]

    return outputs_of([q, r], (x,), vjp)


def gaps(values: Node) -> Node:
    """Compute 1 / (v_j - v_i), and 0 on the diagonal."""
    shape = (*values.shape, values.shape[-1])
    rows = build.expand(values.reshape((*values.shape, 1)), shape)
    columns = build.expand(
        values.reshape((*values.shape[:-1], 1, values.shape[-1])),
        shape,
    )
    is_same = rows.iota(len(shape) - 1).binary(
        "equal", rows.iota(len(shape) - 2)
    )
    gap = is_same.where(rows.const_like(1.0), columns - rows)
    return is_same.where(
        rows.const_like(0.0), gap.unary("reciprocal")
    )


def svd(node: Node) -> list[Node]:
    """Write matrices as U diag(S) Vh with min(M, N) singular values."""
    x = wide("svd", node, False)
    u, s, vh = on_host(
        "svd",
        lambda a: tuple(np.linalg.svd(a, full_matrices=False)),
        x,
    )

    def vjp(given: list[Node], x: Node) -> list[Node | None]:
        for_u, for_s, for_v = given[0], given[1], turned(given[2])
        v, f = turned(vh), gaps(s * s)
        scale = diagonal_matrix(s, f)
        j, k = (
            f * product(turned(u), for_u),
            f * product(turned(v), for_v),
        )
        core = product(j + turned(j), scale) + product(
            scale, k + turned(k)
        )
        core = core + diagonal_matrix(for_s, f)
        total = product(u, core, vh)
        shrink = diagonal_matrix(s.unary("reciprocal"), f)
        rest_u = for_u - product(u, turned(u), for_u)
        rest_v = for_v - product(v, turned(v), for_v)
        total = total + product(rest_u, shrink, vh)
        return [total + product(u, shrink, turned(rest_v))]

    return outputs_of([u, s, vh], (x,), vjp)


def eigh(node: Node) -> list[Node]:
    """Find eigenvalues, ascending, and eigenvectors of symmetric matrices (lower triangle)."""
    x = wide("eigh", node)
    w, v = on_host("eigh", lambda a: tuple(np.linalg.eigh(a)), x)

    def vjp(given: list[Node], x: Node) -> list[Node | None]:
        inner = gaps(w) * product(
            turned(v), given[1]
        ) + diagonal_matrix(given[0], x)
        total = product(v, inner, turned(v))
        return [(total + turned(total)) * 0.5]

    return outputs_of([w, v], (x,), vjp)


def pinv(node: Node, rcond: float | None) -> Node:
    """Compute the Moore-Penrose inverse."""
    x = wide("pinv", node, False)
    eps = float(np.finfo(x.dtype.numpy).eps) * max(x.shape[-2:])
    (value,) = on_host(
        "pinv",
        lambda a: np.linalg.pinv(
            a, eps if rcond is None else rcond
        ),
        x,
    )

    def vjp(g: Node, y: Node, x: Node) -> list[Node | None]:
        across = turned(g)
        left = across - product(x, y, across)
        right = across - product(across, y, x)
        total = product(left, y, turned(y)) + product(
            turned(y), y, right
        )
        return [total - product(turned(y), g, turned(y))]

    return custom(value, (x,), vjp)


def matrix_rank(node: Node, tolerance: float | None) -> Node:
    """Count the singular values that are not negligible, in int64."""
    x = wide("matrix_rank", node, False)
    found = np.linalg.matrix_rank(
        values_of("matrix_rank", x), tolerance
    )
    return linalg_index(np.asarray(found), node)


def linalg_index(array: Array, like: Node) -> Node:
    """Bring whole numbers to the device of a node."""
    return node_from_numpy(
        array.astype(np.int64), int64, like.device
    )


# Fourier transforms


FLIPPED = {
    "backward": "forward",
    "forward": "backward",
    "ortho": "ortho",
}


def fourier(
    node: Node, axis: int, is_inverse: bool, norm: str
) -> Node:
    """Transform along one axis of complex numbers given as a last axis of (real, imaginary)."""

    def call(pairs: Array) -> Array:
        numbers = pairs[..., 0] + 1j * pairs[..., 1]
        turn: Any = np.fft.ifft if is_inverse else np.fft.fft
        found = turn(numbers, axis=axis, norm=norm)
        return np.stack([found.real, found.imag], -1)

    (value,) = on_host("fft", call, node)

    def vjp(g: Node, y: Node, x: Node) -> list[Node | None]:
        return [fourier(g, axis, not is_inverse, FLIPPED[norm])]

    return custom(value, (node,), vjp)
