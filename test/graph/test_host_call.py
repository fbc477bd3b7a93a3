"""The table of host functions: shapes, batches, gradients of first and second order, errors."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from graph_support import check_gradients, leaf, value

from picograd.errors import LinAlgError
from picograd.graph.expand import expand_composites
from picograd.graph.host_call import (
    FUNCTIONS,
    TRANSFORMS,
    HostCall,
    host_call,
    may_fail,
    packed,
    steps_of,
    unpacked,
)
from picograd.graph.host_draws import DRAWS
from picograd.graph.host_ldl import SYMMETRIC, ldl
from picograd.graph.host_lu import ELIMINATIONS
from picograd.graph.host_matrices import MATRICES
from picograd.graph.incomplete_gamma import INCOMPLETE
from picograd.graph.interpret import interpret
from picograd.graph.node import Node, toposort
from picograd.graph.recurrence import make_body, placeholder, recur
from picograd.graph.verify import problem_of
from picograd.target import cuda_target

CUDA = cuda_target("sm_90a")
POINTS = (1, 2, 3, 8, 31, 64, 65, 101, 128, 360, 4224)  # of one step, two, and three
RANDOM = np.random.default_rng(3)
SQUARE = RANDOM.normal(size=(2, 3, 3)) + 4 * np.eye(3)
SPD = SQUARE @ np.swapaxes(SQUARE, 1, 2)
TALL = RANDOM.normal(size=(2, 4, 3))
WIDE = RANDOM.normal(size=(2, 2, 3))
LINE = RANDOM.normal(size=(2, 3, 6))
PAIRS = RANDOM.normal(size=(2, 3, 6, 2))
SPECTRUM = PAIRS[..., 0] + 1j * PAIRS[..., 1]
SWAPS = np.array([[2.0, 3.0, 3.0], [1.0, 2.0, 3.0]])
POSITIVE = RANDOM.uniform(0.5, 3, (2, 4))
KEYS = RANDOM.integers(0, 1 << 32, (2, 4)).astype(float)
# name -> the options of a call, and its inputs: batches of 2
SAMPLES: dict[str, list[tuple[tuple[Any, ...], list[Any]]]] = {
    "inv": [((), [SQUARE])],
    "solve": [((), [SQUARE, TALL[:, :3]])],
    "inv_told": [((), [SQUARE])],
    "solve_told": [((), [SQUARE, TALL[:, :3]])],
    "solve_triangular": [
        ((upper, unit), [SQUARE, TALL[:, :3]]) for upper in (False, True) for unit in (False, True)
    ],
    "cholesky": [((), [SPD])],
    "pinv": [((1e-9, 0.0), [TALL]), ((1e-9, 0.0), [WIDE])],
    "lstsq": [((1e-9,), [TALL, TALL[..., ::-1] ** 2])],
    "svd": [((), [TALL]), ((), [WIDE])],
    "eigh": [((), [SPD])],
    "eigvalsh": [((), [SPD])],
    "svdvals": [((), [TALL]), ((), [WIDE])],
    "eig": [((), [SQUARE + 1j * TALL[:, :3]])],
    "eigvals": [((), [SQUARE + 1j * TALL[:, :3]])],
    "qr": [(("reduced",), [TALL]), (("reduced",), [WIDE]), (("complete",), [WIDE])],
    "lu": [((), [SQUARE])],
    "lu_factor": [((), [SQUARE])],
    "ldl": [((False,), [SQUARE])],
    "ldl_solve": [((False,), [*ldl(SQUARE, False), TALL[:, :3]])],
    "in_three": [((), [SQUARE]), ((), [TALL]), ((), [WIDE])],
    "geqrf": [((), [SQUARE]), ((), [TALL]), ((), [WIDE])],
    "det": [((), [SQUARE])],
    "slogdet": [((), [SQUARE])],
    "cofactors": [((), [SQUARE])],
    "permutation": [((3,), [SWAPS])],
    "swap_rows": [((False,), [SQUARE, SWAPS]), ((True,), [SQUARE, SWAPS])],
    "matrix_exp": [((), [SQUARE / 2])],
    "fft": [((-1, False, "ortho"), [SPECTRUM]), ((-2, True, "forward"), [SPECTRUM])],
    "rfft": [((-1, "backward"), [LINE]), ((-2, "forward"), [LINE])],
    "irfft": [((-1, 10, "backward"), [PAIRS]), ((-1, 11, "ortho"), [PAIRS])],
    "igamma": [((), [POSITIVE, POSITIVE[::-1]])],
    "igammac": [((), [POSITIVE, POSITIVE[::-1]])],
    "drawn": [
        (("poisson",), [POSITIVE, KEYS]),
        (("binomial",), [np.round(POSITIVE * 9), POSITIVE / 3, KEYS]),
    ],
}
CASES = [(name, *each) for name, samples in SAMPLES.items() for each in samples]


def test_every_row_has_a_sample() -> None:
    rows = MATRICES | ELIMINATIONS | SYMMETRIC | TRANSFORMS | INCOMPLETE | DRAWS
    assert set(SAMPLES) == set(FUNCTIONS) == set(rows)


@pytest.mark.parametrize(("name", "options", "arrays"), CASES)
def test_shape_dtype_and_batches(name: str, options: Any, arrays: list[Any]) -> None:
    """A function of a stack is the stack of the function: all that `vmap` needs."""
    node = host_call(name, *map(leaf, arrays), options=options)
    found = value(node)
    assert found.shape == node.shape and found.dtype == node.dtype.numpy
    rows = [host_call(name, *(leaf(x[n]) for x in arrays), options=options) for n in range(2)]
    np.testing.assert_allclose(found, np.stack([value(row) for row in rows]), 1e-12, 1e-12)
    deep = [x[None, :, None] for x in arrays]
    again = value(host_call(name, *map(leaf, deep), options=options))
    np.testing.assert_allclose(again[0, :, 0], found, 1e-12, 1e-12)


@pytest.mark.parametrize(("name", "options", "arrays"), CASES)
def test_no_batch_at_all(name: str, options: Any, arrays: list[Any]) -> None:
    node = host_call(name, *(leaf(x[:0]) for x in arrays), options=options)
    assert value(node).shape == node.shape


# Those of complex results are beside PyTorch in test/tensor/linalg.
COMPLEX = {"eig", "eigvals", "fft"}
PLACES = {
    "swap_rows",
    "lstsq",
    "ldl_solve",
}  # what they are given or give as numbers has no gradient
DIFFERENTIABLE = [
    case for case in CASES if FUNCTIONS[case[0]].vjp is not None and case[0] not in COMPLEX | PLACES
]
UNFIT = {"lu", "lu_factor"}  # the pivots are no smooth function of the matrix


def smooth(name: str, options: Any) -> Any:
    """The call; of its results those that a small change of the inputs changes little."""

    def call(*nodes: Node) -> Node:
        node = host_call(name, *nodes, options=options)
        return unpacked(node, (3, 3), (3,))[0] if name in UNFIT else node

    return call


def free(name: str, options: Any, arrays: list[Any]) -> Any:
    """The call as a function of matrices that need not be symmetric."""

    def call(*nodes: Node) -> Node:
        if name in ("cholesky", "eigh", "eigvalsh"):
            swapped = nodes[0].permute((0, 2, 1))
            nodes = ((nodes[0] + swapped) * 0.5,)
        return smooth(name, options)(*nodes)

    return call


@pytest.mark.parametrize(("name", "options", "arrays"), DIFFERENTIABLE)
def test_gradients(name: str, options: Any, arrays: list[Any]) -> None:
    call = free(name, options, arrays)
    check_gradients(call, *arrays)

    def first(*nodes: Node) -> Node:
        output = call(*nodes)
        vjp = FUNCTIONS[name].vjp
        assert vjp is not None
        node = host_call(name, *nodes, options=options)
        ramp = node.iota(node.rank - 1).cast(node.dtype) * 0.3 + node
        found: Node = vjp(ramp, node, *nodes)[0]
        assert output.dtype is found.dtype
        return found

    if name not in ("cholesky", "eigh", "eigvalsh", *UNFIT):
        check_gradients(first, *arrays)


def test_rows_swapped_back_are_the_gradient() -> None:
    for is_back in (False, True):
        check_gradients(
            lambda x: host_call("swap_rows", x, leaf(SWAPS), options=(is_back,)),  # noqa: B023
            SQUARE,
        )


def test_results_lie_one_behind_the_other() -> None:
    a, b = np.arange(12.0).reshape(2, 3, 2), np.arange(8.0).reshape(2, 2, 2)
    both = packed(1, a, b)
    first, second = unpacked(leaf(both), (3, 2), (2, 2))
    np.testing.assert_array_equal(value(first), a)
    np.testing.assert_array_equal(value(second), b)


def test_errors_name_the_function() -> None:
    with pytest.raises(LinAlgError, match=r"^linalg.inv: Singular matrix. Fix: check the matrix"):
        value(host_call("inv", leaf(np.zeros((2, 2)))))


def test_verify_knows_the_shape() -> None:
    x = leaf(SQUARE)
    wrong = Node("host_call", (x,), HostCall("det"), (3,), x.dtype, x.device)
    assert problem_of(wrong) == "the shape should be (2,)"
    assert problem_of(host_call("det", x)) == ""
    assert repr(host_call("qr", x, options=("reduced",)).arg) == "qr('reduced')"


def test_calls_are_found_in_loops() -> None:
    start = leaf(SQUARE[0])
    carry = placeholder("carry", (3, 3), start.dtype, "cpu")
    bodies = [make_body(([carry], [], []), [after], [])[0]
              for after in (carry * 2, host_call("inv", carry))]  # fmt: skip
    plain, calling = (recur(body, 2, False, [start]) for body in bodies)
    assert not may_fail([start, plain])
    assert may_fail([calling]) and not may_fail([host_call("det", start)])


def check_products(node: Node, dtype: Any = "f8") -> Any:
    """Compute a call by what it becomes on a GPU, and compare with the call."""
    (root,) = expand_composites([node], target=CUDA)
    assert "host_call" not in {each.op for each in toposort([root])}
    found, wanted = (interpret([each])[0] for each in (root, node))
    assert found.dtype == wanted.dtype == dtype and found.shape == wanted.shape
    error = np.linalg.norm(found - wanted) / np.linalg.norm(wanted)
    assert error < (1e-14 if dtype == "f8" else 4e-7)


@pytest.mark.parametrize("size", POINTS)
def test_a_gpu_transforms_in_steps(size: int) -> None:
    random = np.random.default_rng(size)
    pairs = leaf(random.normal(size=(2, size, 3, 2)))
    for is_inverse, norm in ((False, "ortho"), (True, "backward"), (False, "forward")):
        arg = HostCall("fft", (-2, is_inverse, norm), True)
        check_products(Node("host_call", (pairs,), arg, pairs.shape, pairs.dtype, pairs.device))
    check_products(host_call("rfft", leaf(random.normal(size=(2, size))), options=(-1, "backward")))
    half = leaf(random.normal(size=(size // 2 + 1, 2, 2)))
    check_products(host_call("irfft", half, options=(-2, size, "forward")))


def test_a_gpu_transforms_the_points_that_are_there() -> None:
    """Neither zeros that were added to few points nor frequencies that nobody asked for."""
    half = leaf(np.ones((6, 72, 50, 2), "f4"))
    back = host_call("irfft", half, options=(-2, 143, "backward"))
    forth = host_call("rfft", leaf(np.ones((6, 143, 50), "f4")), options=(-2, "backward"))
    for node, first, last in ((back, (6, 13), 13), (forth, (11, 13), 7)):
        (root,) = expand_composites([node], target=CUDA)
        one, two = (each for each in toposort([root]) if each.op == "contract")
        assert one.inputs[0].shape[1:3] == first and two.shape[1:3] == (1, last)
        assert "permute" not in {each.op for each in toposort([root])}


def test_float32_keeps_its_digits_beside_narrow_products() -> None:
    x = leaf(np.random.default_rng(0).normal(size=(4, 1001)).astype("f4"))
    node = host_call("rfft", x, options=(-1, "backward"))
    check_products(node, "f4")
    (root,) = expand_composites([node], target=replace(CUDA, tf32=True))
    kinds = {each.dtype.name for each in toposort([root]) if each.op == "contract"}
    assert root.dtype is node.dtype and kinds == {"float64"}


def test_points_without_steps_stay_with_the_host() -> None:
    sizes = 8, 509, 1018, 1024, 77, 521, 1042
    steps = (8,), (509,), (2, 509), (2, 8, 8, 8), (7, 11), (), ()
    assert tuple(map(steps_of, sizes)) == steps
    node = host_call("rfft", leaf(np.ones((2, 521))), options=(-1, "backward"))
    assert expand_composites([node], target=CUDA) == [node]
