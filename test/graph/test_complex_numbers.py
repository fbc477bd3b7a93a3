"""Complex numbers and their parts: views that share memory, meaning."""

import numpy as np
import pytest
from complex_support import W, Z

import picograd
from picograd import Tensor
from picograd.graph.interpret import interpret
from picograd.graph.verify import verify

torch = pytest.importorskip("torch")


def test_views_share_memory() -> None:
    z = Tensor([1 + 2j, 3 + 4j])
    real, pairs = z.real, picograd.view_as_real(z)
    real[0] = 10
    z.imag = Tensor([0.0, 5.0])
    pairs[1, 0] = -1
    assert z.tolist() == [10, -1 + 5j] and real.tolist() == [10, -1]
    rows = Tensor(Z.copy())
    rows[1].imag.zero_()
    rows.T[0] *= 2j
    expected = Z.copy()
    expected[1].imag = 0
    expected.T[0] *= 2j
    np.testing.assert_allclose(rows.numpy(), expected)
    stacked = Tensor([[1.0, 2.0], [3.0, 4.0]])
    picograd.view_as_complex(stacked)[0] = 7j
    assert stacked.tolist() == [[0, 7], [3, 4]]


def test_the_graph_is_well_formed_and_interpreted() -> None:
    node = ((Tensor(Z) * Tensor(W)).T.exp() + 1j)[1:].node
    verify(node)
    (found,) = interpret([node])
    np.testing.assert_allclose(found, (np.exp((Z * W).T) + 1j)[1:])
