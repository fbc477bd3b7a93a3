"""Written by docs/stubs.py: the names of picograd.distributions."""

from picograd.distributions import constraint_registry as constraint_registry
from picograd.distributions import constraints as constraints
from picograd.distributions import transforms as transforms
from picograd.distributions import utils as utils
from picograd.distributions.composed import Independent as Independent
from picograd.distributions.composed import MixtureSameFamily as MixtureSameFamily
from picograd.distributions.composed import RelaxedBernoulli as RelaxedBernoulli
from picograd.distributions.composed import RelaxedOneHotCategorical as RelaxedOneHotCategorical
from picograd.distributions.composed import TransformedDistribution as TransformedDistribution
from picograd.distributions.constraint_registry import biject_to as biject_to
from picograd.distributions.constraint_registry import transform_to as transform_to
from picograd.distributions.continuous_bernoulli import ContinuousBernoulli as ContinuousBernoulli
from picograd.distributions.discrete import Bernoulli as Bernoulli
from picograd.distributions.discrete import Binomial as Binomial
from picograd.distributions.discrete import Categorical as Categorical
from picograd.distributions.discrete import Geometric as Geometric
from picograd.distributions.discrete import Multinomial as Multinomial
from picograd.distributions.discrete import OneHotCategorical as OneHotCategorical
from picograd.distributions.discrete import (
    OneHotCategoricalStraightThrough as OneHotCategoricalStraightThrough,
)
from picograd.distributions.discrete import Poisson as Poisson
from picograd.distributions.distribution import Distribution as Distribution
from picograd.distributions.distribution import ExponentialFamily as ExponentialFamily
from picograd.distributions.gamma_family import Beta as Beta
from picograd.distributions.gamma_family import Chi2 as Chi2
from picograd.distributions.gamma_family import Dirichlet as Dirichlet
from picograd.distributions.gamma_family import FisherSnedecor as FisherSnedecor
from picograd.distributions.gamma_family import Gamma as Gamma
from picograd.distributions.gamma_family import NegativeBinomial as NegativeBinomial
from picograd.distributions.gamma_family import StudentT as StudentT
from picograd.distributions.kl import kl_divergence as kl_divergence
from picograd.distributions.kl import register_kl as register_kl
from picograd.distributions.multivariate import LKJCholesky as LKJCholesky
from picograd.distributions.multivariate import (
    LowRankMultivariateNormal as LowRankMultivariateNormal,
)
from picograd.distributions.multivariate import MultivariateNormal as MultivariateNormal
from picograd.distributions.multivariate import Wishart as Wishart
from picograd.distributions.transformed import InverseGamma as InverseGamma
from picograd.distributions.transformed import Kumaraswamy as Kumaraswamy
from picograd.distributions.transformed import LogisticNormal as LogisticNormal
from picograd.distributions.transformed import LogNormal as LogNormal
from picograd.distributions.transformed import Pareto as Pareto
from picograd.distributions.transformed import Weibull as Weibull
from picograd.distributions.transforms import AbsTransform as AbsTransform
from picograd.distributions.transforms import AffineTransform as AffineTransform
from picograd.distributions.transforms import CatTransform as CatTransform
from picograd.distributions.transforms import ComposeTransform as ComposeTransform
from picograd.distributions.transforms import CorrCholeskyTransform as CorrCholeskyTransform
from picograd.distributions.transforms import (
    CumulativeDistributionTransform as CumulativeDistributionTransform,
)
from picograd.distributions.transforms import ExpTransform as ExpTransform
from picograd.distributions.transforms import IndependentTransform as IndependentTransform
from picograd.distributions.transforms import LowerCholeskyTransform as LowerCholeskyTransform
from picograd.distributions.transforms import PositiveDefiniteTransform as PositiveDefiniteTransform
from picograd.distributions.transforms import PowerTransform as PowerTransform
from picograd.distributions.transforms import ReshapeTransform as ReshapeTransform
from picograd.distributions.transforms import SigmoidTransform as SigmoidTransform
from picograd.distributions.transforms import SoftmaxTransform as SoftmaxTransform
from picograd.distributions.transforms import SoftplusTransform as SoftplusTransform
from picograd.distributions.transforms import StackTransform as StackTransform
from picograd.distributions.transforms import StickBreakingTransform as StickBreakingTransform
from picograd.distributions.transforms import TanhTransform as TanhTransform
from picograd.distributions.transforms import Transform as Transform
from picograd.distributions.transforms import identity_transform as identity_transform
from picograd.distributions.univariate import Cauchy as Cauchy
from picograd.distributions.univariate import Exponential as Exponential
from picograd.distributions.univariate import GeneralizedPareto as GeneralizedPareto
from picograd.distributions.univariate import Gumbel as Gumbel
from picograd.distributions.univariate import HalfCauchy as HalfCauchy
from picograd.distributions.univariate import HalfNormal as HalfNormal
from picograd.distributions.univariate import Laplace as Laplace
from picograd.distributions.univariate import Normal as Normal
from picograd.distributions.univariate import Uniform as Uniform
from picograd.distributions.von_mises import VonMises as VonMises

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "Bernoulli",
    "Beta",
    "Binomial",
    "CatTransform",
    "Categorical",
    "Cauchy",
    "Chi2",
    "ComposeTransform",
    "ContinuousBernoulli",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "Dirichlet",
    "Distribution",
    "ExpTransform",
    "Exponential",
    "ExponentialFamily",
    "FisherSnedecor",
    "Gamma",
    "GeneralizedPareto",
    "Geometric",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "Independent",
    "IndependentTransform",
    "InverseGamma",
    "Kumaraswamy",
    "LKJCholesky",
    "Laplace",
    "LogNormal",
    "LogisticNormal",
    "LowRankMultivariateNormal",
    "LowerCholeskyTransform",
    "MixtureSameFamily",
    "Multinomial",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Pareto",
    "Poisson",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "StudentT",
    "TanhTransform",
    "Transform",
    "TransformedDistribution",
    "Uniform",
    "VonMises",
    "Weibull",
    "Wishart",
    "biject_to",
    "constraint_registry",
    "constraints",
    "identity_transform",
    "kl_divergence",
    "register_kl",
    "transform_to",
    "transforms",
    "utils",
]
