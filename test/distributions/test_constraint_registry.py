"""From constraints to transforms: what PyTorch's registries make, ours make."""

import numpy as np
import pytest
from distribution_support import check_same, torch

import picograd
from picograd import Tensor, distributions
from picograd.distributions import constraints


def some(c) -> list:
    return [
        c.real, c.positive, c.greater_than(1.0), c.less_than(1.0), c.interval(-1.0, 2.0),
        c.half_open_interval(0, 3), c.unit_interval, c.simplex, c.real_vector, c.corr_cholesky,
        c.independent(c.positive, 1), c.stack([c.positive, c.real, c.unit_interval], -1),
        c.cat([c.positive, c.real], -1, [1, 2]),
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["biject_to", "transform_to"])
def test_as_in_pytorch(name: str) -> None:
    x = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
    registries = [getattr(library.distributions, name) for library in (picograd, torch)]
    for ours, theirs in zip(some(constraints), some(torch.distributions.constraints)):
        one, other = registries[0](ours), registries[1](theirs)
        y, want = one(Tensor(x)), other(torch.from_numpy(x))
        check_same(y, want)
        assert np.all(ours.check(y).numpy())
        if one.bijective:
            check_same(one.inv(y), torch.from_numpy(x))
            slope = one.log_abs_det_jacobian(Tensor(x), y)
            check_same(slope, other.log_abs_det_jacobian(torch.from_numpy(x), want))


@pytest.mark.parametrize("name", ["lower_cholesky", "positive_definite", "positive_semidefinite"])
def test_matrices(name: str) -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 3)).astype(np.float32)
    one = distributions.transform_to(getattr(constraints, name))
    other = torch.distributions.transform_to(getattr(torch.distributions.constraints, name))
    check_same(one(Tensor(x)), other(torch.from_numpy(x)))
    with pytest.raises(NotImplementedError, match="no transform is registered for LowerCholesky"):
        distributions.biject_to(constraints.lower_cholesky)


def test_supports_and_parameters() -> None:
    """The way from a distribution to unconstrained numbers, with gradients."""
    scale = distributions.Normal.arg_constraints["scale"]
    raw = Tensor([0.0, 1.0], requires_grad=True)
    distributions.Normal(0.0, distributions.transform_to(scale)(raw)).entropy().sum().backward()
    assert raw.grad.tolist() == [1.0, 1.0]
    uniform = distributions.Uniform(Tensor([1.0]), Tensor([3.0]))
    assert distributions.biject_to(uniform.support)(Tensor([0.0])).tolist() == [2.0]


def test_classes_of_a_program() -> None:
    class Mine(constraints.Constraint):
        pass

    registry = distributions.constraint_registry.ConstraintRegistry()

    @registry.register(Mine)
    def made(constraint: Mine) -> distributions.Transform:
        return distributions.ExpTransform()

    assert registry(Mine()) == made(Mine())
    registry.register(constraints.real, made)
    assert registry(constraints.real) == distributions.ExpTransform()
    with pytest.raises(TypeError, match="register"):
        registry.register(3, made)
