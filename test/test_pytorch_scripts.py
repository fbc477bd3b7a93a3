"""Idioms of programs written for PyTorch, whose imports alone were changed."""

import importlib
import math

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn, optim

torch = pytest.importorskip("torch")


def test_front_door() -> None:
    """Names that programs reach for before they compute anything."""
    where = picograd.device("cuda" if picograd.cuda.is_available() else "cpu")
    picograd.backends.cudnn.benchmark = True
    picograd.backends.cuda.matmul.allow_tf32 = True
    assert not picograd.backends.mps.is_available() and not picograd.mps.is_available()
    assert picograd.cuda.device_count() >= 0 and picograd.cuda.memory_allocated() >= 0
    assert picograd.accelerator.is_available() == picograd.cuda.is_available()
    assert not picograd.distributed.is_available() and picograd.distributed.get_world_size() == 1
    assert picograd.__version__.count(".") == 2 and picograd.backends.cpu.get_cpu_capability()
    assert where.type in ("cpu", "cuda")
    for name in ("hub", "multiprocessing", "sparse"):
        with pytest.raises(AttributeError, match=f"no attribute '{name}': "):
            getattr(picograd, name)
    if not picograd.cuda.is_available():
        with pytest.raises(RuntimeError, match="CPU"):
            nn.Linear(1, 1).cuda()
        assert not picograd.cuda.amp.GradScaler().is_enabled()


def test_settings() -> None:
    picograd.set_default_dtype(picograd.float64)
    try:
        assert Tensor([1.0]).dtype is picograd.float64 and picograd.rand(1).dtype is picograd.double
        assert nn.Linear(1, 1).weight.dtype is picograd.get_default_dtype()
        assert (picograd.arange(3) * 0.5).dtype is picograd.float64
    finally:
        picograd.set_default_tensor_type("torch.FloatTensor")
    assert Tensor([1.0]).dtype is picograd.float32
    with pytest.raises(TypeError, match="no float"):
        picograd.set_default_dtype(picograd.int32)
    threads = picograd.get_num_threads()
    picograd.set_num_threads(threads)
    picograd.use_deterministic_algorithms(True, warn_only=True)
    assert picograd.are_deterministic_algorithms_enabled()
    assert picograd.get_deterministic_debug_mode() == 1
    picograd.set_deterministic_debug_mode("default")
    with pytest.raises(ValueError, match="unknown"):
        picograd.set_float32_matmul_precision("low")


def test_types() -> None:
    x = picograd.LongTensor([1, 2])
    assert isinstance(x, picograd.LongTensor) and not isinstance(x, picograd.FloatTensor)
    assert picograd.FloatTensor(2, 3).shape == picograd.Size([2, 3]) and x.type() == (
        torch.LongTensor([1]).type()
    )
    assert x.type(picograd.FloatTensor).dtype is x.type("torch.FloatTensor").dtype
    assert isinstance(x.shape, picograd.Size) and isinstance(x.dtype, picograd.dtype)
    assert picograd.Size([2, 3]).numel() == 6 and isinstance(x, picograd.autograd.Variable)
    assert x.to("cpu", picograd.float16, non_blocking=True).dtype is picograd.half


def test_scripting_changes_nothing() -> None:
    model = nn.Linear(2, 2)
    assert picograd.compile(model) is model and picograd.jit.script(model) is model
    assert picograd.jit.trace(model, picograd.ones(1, 2)) is model

    @picograd.compile(mode="max-autotune")
    @picograd.jit.ignore
    @picograd.jit.unused
    def double(x: Tensor) -> Tensor:
        picograd._assert(x.ndim == 1, "a vector")
        return x if picograd.jit.is_scripting() else x * 2

    assert double(Tensor([1.0])).tolist() == [2.0]
    with pytest.raises(AssertionError, match="a vector"):
        double(picograd.ones(1, 1))
    with pytest.raises(RuntimeError, match="no file"):
        picograd.jit.load("a.pt")
    assert importlib.import_module("picograd.fx").wrap(len) is len


def test_places_of_names() -> None:
    """Modules that PyTorch's programs import from give the one definition there is."""
    for path, name in (
        ("optim", "Adam"),
        ("optim.lr_scheduler", "StepLR"),
        ("optim.optimizer", "Optimizer"),
        ("utils.data", "DataLoader"),
        ("utils.data.dataset", "TensorDataset"),
        ("utils.data.dataloader", "default_collate"),
        ("utils.data.sampler", "RandomSampler"),
    ):
        found = getattr(importlib.import_module(f"picograd.{path}"), name)
        homes = (nn, nn.optim, nn.optim.lr_scheduler)
        assert any(getattr(home, name, None) is found for home in homes)


class Halving(optim.lr_scheduler.LRScheduler):
    """A schedule as programs for PyTorch define one."""

    def __init__(self, optimizer, every, last_epoch=-1):
        self.every = every
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        return [base * 0.5 ** (self.last_epoch // self.every) for base in self.base_lrs]


def test_schedules_of_the_users_own() -> None:
    optimizer = optim.SGD(nn.Linear(1, 1).parameters(), lr=1.0)
    schedule = Halving(optimizer, 2)
    rates = []
    for _ in range(4):
        rates.append(schedule.get_last_lr()[0])
        schedule.step()
    assert rates == [1.0, 1.0, 0.5, 0.5] and schedule._step_count == 5


def trained(library, linear: np.ndarray) -> list[float]:
    """Average a model's weights while it trains, by a library; gives rates and averages."""
    swa = library.optim.swa_utils
    model = library.nn.Linear(3, 1, bias=False)
    with library.no_grad():
        model.weight.copy_(library.tensor(linear))
    average, ema = (
        swa.AveragedModel(model),
        swa.AveragedModel(model, avg_fn=swa.get_ema_avg_fn(0.9)),
    )
    optimizer = library.optim.SGD(model.parameters(), lr=0.1)
    schedule = swa.SWALR(optimizer, swa_lr=0.02, anneal_epochs=4)
    x, found = library.tensor([[1.0, 2.0, 3.0]]), []
    for _ in range(6):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
        average.update_parameters(model)
        ema.update_parameters(model)
        schedule.step()
        found += schedule.get_last_lr()
    swa.update_bn([x], average)
    return found + average(x).tolist()[0] + ema.module.weight.tolist()[0]


def test_averages_of_weights() -> None:
    start = np.array([[0.5, -0.25, 0.125]], np.float32)
    np.testing.assert_allclose(trained(picograd, start), trained(torch, start), rtol=1e-4)


def test_statistics_after_averaging() -> None:
    norm = nn.BatchNorm1d(2)
    batches = [picograd.rand(8, 2), picograd.rand(8, 2) + 1]
    optim.swa_utils.update_bn([(x, None) for x in batches], norm)
    wanted = sum(np.mean(x.numpy(), 0) for x in batches) / 2
    np.testing.assert_allclose(norm.running_mean.numpy(), wanted, rtol=1e-5)
    assert norm.momentum == 0.1


def test_checkpoints() -> None:
    from picograd.utils.checkpoint import checkpoint_sequential

    layers = nn.Sequential(*[nn.Linear(2, 2) for _ in range(4)])
    x = picograd.rand(1, 2, requires_grad=True)
    checkpoint_sequential(layers, 2, x).sum().backward()
    first, x.grad = x.grad, None
    layers(x).sum().backward()
    np.testing.assert_allclose(first.numpy(), x.grad.numpy(), rtol=1e-6)


def test_initial_values() -> None:
    for shape in ((3, 5), (5, 3), (4, 2, 2)):
        w = nn.init.orthogonal_(Tensor.zeros(shape), gain=2.0).flatten(1)
        gram = w @ w.T if w.shape[0] <= w.shape[1] else w.T @ w
        np.testing.assert_allclose(gram.numpy(), 4 * np.eye(len(gram)), atol=1e-4)
    sparse = nn.init.sparse_(Tensor.ones(10, 4), 0.3, std=1.0).numpy()
    assert ((sparse == 0).sum(0) == 3).all()
    for name in ("linear", "conv_transpose2d", "relu", "tanh", "selu", "leaky_relu"):
        assert nn.init.calculate_gain(name) == torch.nn.init.calculate_gain(name)
    assert math.isclose(nn.init.calculate_gain("leaky_relu", 0.2), math.sqrt(2 / 1.04))
    seeded = [nn.init.uniform_(Tensor.zeros(3), a=1, b=2, generator=g) for g in generators(2)]
    assert seeded[0].tolist() == seeded[1].tolist() and bool((seeded[0] >= 1).all())


def generators(count: int) -> list[picograd.Generator]:
    return [picograd.Generator().manual_seed(5) for _ in range(count)]


def test_layers_draw_again() -> None:
    made = [nn.Linear(3, 2), nn.Conv2d(2, 2, 2), nn.Embedding(4, 2, padding_idx=1), nn.LSTM(2, 2)]
    for layer in made:
        first = next(layer.parameters())
        before = first.tolist()
        layer.reset_parameters()
        assert first.tolist() != before and first is next(layer.parameters())
    assert made[2].weight[1].tolist() == [0.0, 0.0]
    norm = nn.BatchNorm1d(2)
    norm(picograd.rand(4, 2))
    norm.reset_parameters()
    assert norm.running_var.tolist() == [1.0, 1.0] and norm.num_batches_tracked.item() == 0

    class Ones(nn.Linear):
        def reset_parameters(self) -> None:
            nn.init.ones_(self.weight)

    assert Ones(2, 1).weight.tolist() == [[1.0, 1.0]]
