"""Host calls on little memory are computed where they stand: the same values, and no plan."""

import weakref

import numpy as np
import pytest

import picograd
from picograd import Tensor, linalg
from picograd.engine import carried, host_calls
from picograd.engine.plan_cache import PLANS

MATRIX = np.random.default_rng(5).standard_normal((3, 4, 4)).astype(np.float32)
SYMMETRIC = MATRIX + np.swapaxes(MATRIX, -1, -2)
CASES = {
    "inv": lambda x: [linalg.inv(x)],
    "of a view": lambda x: [linalg.inv(x.mT[1:])],
    "qr": lambda x: list(linalg.qr(x)),
    "eigh": lambda x: list(linalg.eigh(x + x.mT)),
    "solve_triangular": lambda x: [linalg.solve_triangular(x, x, upper=True)],
    "fft2": lambda x: [picograd.fft.fft2(x)],
    "irfft": lambda x: [picograd.fft.irfft(picograd.fft.rfft(x))],
    "bfloat16": lambda x: [picograd.fft.rfft(x.bfloat16().float())],
    "eigvals": lambda x: [linalg.eigvals(x)],
}


@pytest.mark.parametrize("case", CASES)
def test_the_bits_are_those_of_a_plan(case):
    x = Tensor(MATRIX)
    found = [each.numpy() for each in CASES[case](x)]
    with picograd.profile():  # what is watched has a plan
        want = [each.numpy() for each in CASES[case](x)]
    for one, other in zip(found, want, strict=True):
        assert one.tobytes() == other.tobytes()


def test_no_plan_is_made(on_host):
    x = Tensor(MATRIX[:, :3, :3] + 7)
    before = len(PLANS.plans)
    for each in (linalg.inv(x), linalg.eigh(Tensor(SYMMETRIC[:, 1:, 1:]))[1], linalg.qr(x)[0]):
        each.realize()
    assert len(PLANS.plans) == before


def test_gradients_that_are_there_hold_up_nothing(on_host):
    x = Tensor(MATRIX[0] + 9, requires_grad=True)
    x.exp().sum().backward()
    formula = x * 1
    carried.GRADIENTS[formula._node] = [weakref.ref(x)]  # as of a rule of the user's
    assert not host_calls.may_compute()
    x.grad.realize()
    assert host_calls.may_compute() and not carried.GRADIENTS


def test_a_result_that_is_written_is_none_of_the_others():
    x = Tensor(MATRIX[0], requires_grad=True)
    q, r = linalg.qr(x)
    q.detach().realize()
    changed = q.detach()
    changed *= 0
    want = Tensor(MATRIX[0], requires_grad=True)
    linalg.qr(want)[1].sum().backward()
    r.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), want.grad.numpy())


def test_what_is_written_before_is_read():
    x = Tensor(MATRIX[0])
    x += 1
    np.testing.assert_allclose(linalg.inv(x).numpy(), np.linalg.inv(MATRIX[0] + 1), rtol=1e-3)
