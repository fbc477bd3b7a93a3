"""torch.utils.data.dataset: the names there are those of picograd.nn."""

from picograd import nn
from picograd.utils.data import dataset


def test_names_are_those_of_nn() -> None:
    assert dataset.Dataset is nn.Dataset
    assert dataset.TensorDataset is nn.TensorDataset
    assert dataset.random_split is nn.random_split
