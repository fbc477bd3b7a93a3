"""torch.utils.data.dataloader: the names there are those of picograd.nn."""

from picograd import nn
from picograd.utils.data import dataloader


def test_names_are_those_of_nn() -> None:
    assert dataloader.DataLoader is nn.DataLoader
    assert dataloader.default_collate is nn.default_collate


def test_what_pytorchs_file_imports_is_found_there() -> None:
    for name in ("Dataset", "IterableDataset", "BatchSampler", "Sampler", "get_worker_info"):
        assert getattr(dataloader, name) is getattr(nn, name)
