"""torch.utils.data.dataloader: the names there are those of picograd.nn."""

from picograd import nn
from picograd.utils.data import dataloader


def test_names_are_those_of_nn() -> None:
    assert dataloader.DataLoader is nn.DataLoader
    assert dataloader.default_collate is nn.default_collate


def test_iterators_walk_what_has_the_attributes_of_a_loader() -> None:
    class Stand:
        dataset, _dataset_kind = (range(3), dataloader._DatasetKind.Iterable)

        def collate_fn(self, item: int) -> int:
            return 2 * item

    for kind in (
        dataloader._SingleProcessDataLoaderIter,
        dataloader._MultiProcessingDataLoaderIter,
    ):
        walk = kind(Stand())
        assert next(walk) == 0 and list(walk) == [2, 4]
        assert [len(batch) for batch in kind(nn.DataLoader(list(range(5)), 2))] == [2, 2, 1]


def test_what_pytorchs_file_imports_is_found_there() -> None:
    for name in ("Dataset", "IterableDataset", "BatchSampler", "Sampler", "get_worker_info"):
        assert getattr(dataloader, name) is getattr(nn, name)
