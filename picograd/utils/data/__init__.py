"""Data sets, samplers and loaders under torch.utils.data's names: those of `picograd.nn`."""

from picograd.nn.collate import default_collate, default_convert
from picograd.nn.dataset_types import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from picograd.nn.loader import DataLoader
from picograd.nn.loader_workers import get_worker_info
from picograd.nn.samplers import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from picograd.utils.data import dataloader as dataloader
from picograd.utils.data import dataset as dataset
from picograd.utils.data import sampler as sampler
from picograd.utils.data.distributed import DistributedSampler

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "default_collate",
    "default_convert",
    "get_worker_info",
    "random_split",
]
