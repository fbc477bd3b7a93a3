"""All learning-rate schedules under the name PyTorch's users look for."""

from picograd.nn.optim.lr import EPOCH_DEPRECATION_WARNING as EPOCH_DEPRECATION_WARNING
from picograd.nn.optim.lr import (
    ConstantLR,
    CosineAnnealingLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    LRScheduler,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
    TriangleLR,
)
from picograd.nn.optim.lr_cyclic import (
    ChainedScheduler,
    CosineAnnealingWarmRestarts,
    CyclicLR,
    OneCycleLR,
    ReduceLROnPlateau,
    SequentialLR,
)

__all__ = [
    "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts",
    "CyclicLR", "ExponentialLR", "LRScheduler", "LambdaLR",
    "LinearLR", "MultiStepLR", "MultiplicativeLR", "OneCycleLR", "PolynomialLR",
    "ReduceLROnPlateau", "SequentialLR", "StepLR",
    "TriangleLR",
]  # fmt: skip

_LRScheduler = LRScheduler  # the name that older programs derive from
