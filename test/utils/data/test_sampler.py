"""torch.utils.data.sampler: the names there are those of picograd.nn."""

from picograd import nn
from picograd.utils.data import sampler


def test_names_are_those_of_nn() -> None:
    assert sampler.RandomSampler is nn.RandomSampler
    assert sampler.WeightedRandomSampler is nn.WeightedRandomSampler
