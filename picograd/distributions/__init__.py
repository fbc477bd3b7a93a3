"""Probability distributions under torch.distributions' names.

distribution: the base. constraints: what values may be. univariate, gamma_family, discrete,
continuous_bernoulli, von_mises, multivariate: formulas. transforms, composed,
transformed: distributions made of others. kl: divergences.
"""

from picograd.distributions import constraint_registry, constraints, transforms, utils
from picograd.late_names import gather

# What this package shows, by the module that has it. Type checkers read `__init__.pyi`.
_NAMES = {
    "composed": (
        "Independent", "MixtureSameFamily", "RelaxedBernoulli", "RelaxedOneHotCategorical",
        "TransformedDistribution",
    ),
    "constraint_registry": ("biject_to", "transform_to"),
    "continuous_bernoulli": ("ContinuousBernoulli",),
    "discrete": (
        "Bernoulli", "Binomial", "Categorical", "Geometric", "Multinomial", "OneHotCategorical",
        "OneHotCategoricalStraightThrough", "Poisson",
    ),
    "distribution": ("Distribution", "ExponentialFamily"),
    "gamma_family": (
        "Beta", "Chi2", "Dirichlet", "FisherSnedecor", "Gamma", "NegativeBinomial", "StudentT",
    ),
    "kl": ("kl_divergence", "register_kl"),
    "multivariate": (
        "LKJCholesky", "LowRankMultivariateNormal", "MultivariateNormal", "Wishart",
    ),
    "transformed": (
        "InverseGamma", "Kumaraswamy", "LogisticNormal", "LogNormal", "Pareto", "Weibull",
    ),
    "transforms": (
        "AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform",
        "CorrCholeskyTransform", "CumulativeDistributionTransform", "ExpTransform",
        "IndependentTransform", "LowerCholeskyTransform", "PositiveDefiniteTransform",
        "PowerTransform", "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform",
        "SoftplusTransform", "StackTransform", "StickBreakingTransform", "TanhTransform",
        "Transform", "identity_transform",
    ),
    "univariate": (
        "Cauchy", "Exponential", "GeneralizedPareto", "Gumbel", "HalfCauchy", "HalfNormal",
        "Laplace", "Normal", "Uniform",
    ),
    "von_mises": ("VonMises",),
}  # fmt: skip

globals().update(gather(__name__, _NAMES))
__all__ = ["constraint_registry", "constraints", "transforms", "utils"]
for _names in _NAMES.values():
    __all__ += _names
