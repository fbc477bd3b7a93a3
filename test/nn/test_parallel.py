"""Modules on several devices run on the one they are on."""

import picograd
from picograd import nn


def test_one_device() -> None:
    model, x = nn.Linear(2, 1), picograd.rand(3, 2)
    for made in (nn.DataParallel(model), nn.parallel.DistributedDataParallel(model)):
        assert made(x).tolist() == model(x).tolist() and made.module is model
        assert list(made.state_dict()) == ["module.weight", "module.bias"]
    assert nn.parallel.data_parallel(model, x, range(2)).tolist() == model(x).tolist()
    parallel = nn.parallel.DistributedDataParallel(model)
    with parallel.no_sync(), parallel.join():
        parallel(x).sum().backward()
    assert model.weight.grad is not None
