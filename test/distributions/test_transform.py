"""The base of transforms: inverses, memories, chains, what programs derive from it."""

import copy
import pickle

import numpy as np
import pytest
from distribution_support import check_same, torch

import picograd
from picograd import Tensor, distributions
from picograd.distributions import constraints
from picograd.distributions.transforms import _InverseTransform

X = np.array([0.3, 0.8, 1.4], np.float32)


def test_memory_of_the_last_pair() -> None:
    calls = []

    class Counted(distributions.Transform):
        domain = codomain = constraints.real
        bijective = True

        def _call(self, x: Tensor) -> Tensor:
            calls.append("call")
            return x * 2.0

        def _inverse(self, y: Tensor) -> Tensor:
            calls.append("inverse")
            return y / 2.0

    once, x = Counted(cache_size=1), Tensor(X)
    y = once(x)
    assert once(x) is y and once.inv(y) is x and calls == ["call"]
    plain = once.with_cache(0)
    assert plain(x) is not plain(x) and once.with_cache(1) is once
    with pytest.raises(ValueError, match="cache_size"):
        Counted(cache_size=2)
    with pytest.raises(NotImplementedError, match="Counted has no sign"):
        print(once.sign)


def test_inverses() -> None:
    exp = distributions.ExpTransform()
    assert exp.inv.inv is exp and exp.inv is exp.inv and isinstance(exp.inv, _InverseTransform)
    assert exp.inv.domain is constraints.positive and exp.inv.sign == 1 and exp.inv.bijective
    check_same(exp.inv(Tensor(X)), torch.from_numpy(X).log())
    check_same(exp.inv.log_abs_det_jacobian(Tensor(X), Tensor(X).log()), -torch.from_numpy(X).log())
    stick = distributions.StickBreakingTransform().inv
    assert stick.forward_shape((4, 3)) == (4, 2) and stick.inverse_shape((4, 2)) == (4, 3)
    assert exp.inv == distributions.ExpTransform().inv and exp.inv.with_cache().inv._cache_size == 1
    with pytest.raises(ValueError, match="domain or codomain"):
        print(distributions.ReshapeTransform((4,), (2, 2)).event_dim)


def chains(library) -> list:
    d = library.distributions
    affine, stick = d.AffineTransform(1.0, -2.0), d.StickBreakingTransform()
    grid = d.ReshapeTransform((4,), (2, 2))
    return [
        d.ComposeTransform([affine, d.SigmoidTransform()]),
        d.ComposeTransform([affine, stick]),
        d.ComposeTransform([stick, d.ReshapeTransform((4,), (2, 2)), d.ExpTransform()]),
        d.ComposeTransform([d.IndependentTransform(affine, 1), stick.inv.inv]),
        d.ComposeTransform([stick, grid, d.IndependentTransform(d.ExpTransform(), 2)], 1),
        d.ComposeTransform([]),
    ]


def test_chains() -> None:
    x = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)
    for ours, theirs in zip(chains(picograd), chains(torch)):
        y, want = ours(Tensor(x)), theirs(torch.from_numpy(x))
        check_same(y, want)
        check_same(ours.inv(y), torch.from_numpy(x))
        check_same(ours.log_abs_det_jacobian(Tensor(x), y),
                   theirs.log_abs_det_jacobian(torch.from_numpy(x), want))  # fmt: skip
        for name in ("domain", "codomain"):
            assert getattr(ours, name).event_dim == getattr(theirs, name).event_dim
        assert ours.forward_shape((5, 3)) == tuple(want.shape)
        assert ours.inverse_shape(y.shape) == (5, 3) and ours.bijective
    with pytest.raises(ValueError, match="fewer than 1 axes"):
        distributions.IndependentTransform(distributions.ExpTransform(), 1)(Tensor(1.0))


def test_equal_and_copied() -> None:
    for at in (0, 1, 5):
        one, other = chains(picograd)[at], chains(picograd)[at]
        assert one == other and copy.deepcopy(one) == one
        assert pickle.loads(pickle.dumps(one)) == one
    assert chains(picograd)[0] != chains(picograd)[1]


def test_a_transform_of_a_program() -> None:
    """Its domain says how many axes it reads together: here two numbers, which are turned."""

    class Turn(distributions.Transform):
        domain = codomain = constraints.real_vector
        bijective = True

        def _call(self, x: Tensor) -> Tensor:
            return x.flip(-1) * 2.0

        def _inverse(self, y: Tensor) -> Tensor:
            return y.flip(-1) / 2.0

        def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
            return x.sum(-1) * 0.0 + 2 * np.log(2.0)

    turn = Turn()
    assert turn.event_dim == 1
    unit = distributions.Normal(Tensor.zeros(3, 2), Tensor.ones(3, 2))
    flow = distributions.TransformedDistribution(unit, [turn])
    assert flow.batch_shape == (3,) and flow.event_shape == (2,)
    wide = torch.distributions.Normal(torch.zeros(2), 2 * torch.ones(2))
    value = np.array([[0.1, 2.0]], np.float32)
    check_same(
        flow.log_prob(Tensor(value)), wide.log_prob(torch.from_numpy(value)).sum(-1).expand(3)
    )


def test_the_inverse_of_a_chain_is_a_chain() -> None:
    """The inverses of the parts in turn: nothing's is itself, and what is remembered is found."""
    nothing = distributions.ComposeTransform([])
    assert nothing == nothing.inv
    exp, shift = distributions.ExpTransform(), distributions.AffineTransform(1.0, 2.0)
    chain = distributions.ComposeTransform([exp, shift], cache_size=1)
    assert isinstance(chain.inv, distributions.ComposeTransform) and chain.inv.inv is chain
    x = Tensor(X)
    y = chain(x)
    assert chain.inv(y) is x
    picograd.testing.assert_close(
        chain.inv.log_abs_det_jacobian(y, x), -chain.log_abs_det_jacobian(x, y)
    )
    copied = pickle.loads(pickle.dumps(chain))
    picograd.testing.assert_close(copied.inv(y.detach()), x)
