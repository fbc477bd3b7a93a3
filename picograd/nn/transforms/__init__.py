"""Transforms of image batches (N, C, H, W), with torchvision's names, as lazy ops on the device.

base: the interface, Compose. values: scaling, normalising, colours. geometry: crops, flips, sizes,
rotations. mixing: parts erased, images mixed. What is random is drawn per image from a picograd
generator: the same seed gives the same batches on every device, inside `picograd.jit` too.
"""

from picograd.nn.transforms.base import Compose, Transform
from picograd.nn.transforms.geometry import (
    CenterCrop,
    Pad,
    RandomAffine,
    RandomCrop,
    RandomHorizontalFlip,
    RandomRotation,
    RandomVerticalFlip,
    Resize,
)
from picograd.nn.transforms.mixing import CutMix, Cutout, MixUp, RandomErasing
from picograd.nn.transforms.values import ColorJitter, Grayscale, Normalize, ToFloat, ToTensor

__all__ = [
    "CenterCrop", "ColorJitter", "Compose", "CutMix", "Cutout", "Grayscale", "MixUp", "Normalize",
    "Pad", "RandomAffine", "RandomCrop", "RandomErasing", "RandomHorizontalFlip", "RandomRotation",
    "RandomVerticalFlip", "Resize", "ToFloat", "ToTensor", "Transform",
]  # fmt: skip
