"""Rows of the ancestors' lists about running: programs, memory, files, devices, errors."""

import gc
import importlib.metadata
import random
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.engine.backends import get_device
from picograd.errors import InternalError
from picograd.nn import functional as F

ROOT = Path(__file__).parents[2]
MICROGRAD = """
import picograd
from picograd import Tensor, nn
picograd.manual_seed(0)
sizes = [300, 300, 300, 1]
layers = [m for i, o in zip(sizes, sizes[1:]) for m in (nn.Linear(i, o), nn.Tanh())]
model = nn.Sequential(*layers).to(device)
optimizer = nn.optim.SGD(model.parameters(), lr=1e-3)
x = Tensor.uniform(100, 300, low=-1, high=1, device=device)
y = Tensor.uniform(100, 1, low=-1, high=1, device=device)
losses = []
for _ in range(8):
    loss = ((model(x) - y) ** 2).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    losses.append(loss.item())
"""


def test_the_first_program_is_short(device):
    """M1, M2: micrograd-cuda's program in at most 25 lines."""
    lines = MICROGRAD.strip().splitlines()
    assert len(lines) <= 25
    names = {"device": device}
    exec(MICROGRAD, names)
    assert names["losses"][-1] < 0.9 * names["losses"][0]


def test_an_update_by_hand_is_one_line(device):
    """M2: no optimizer needed."""
    p = Tensor([1.0, 2.0], device=device, requires_grad=True)
    (p * p).sum().backward()
    with picograd.no_grad():
        p.assign(p - 0.1 * p.grad)
    np.testing.assert_allclose(p.numpy(), [0.8, 1.6], rtol=1e-6)


ARGUMENTS = (
    None, -1, 0, 3, 99, 2.5, float("nan"), "float99", "", (), (0,), (-1,), (2, 2), [1, [2]], {},
    object(), slice(0, 1), b"x", True, np.zeros((2, 2)), lambda x: x,
)  # fmt: skip


def test_a_thousand_bad_calls():
    """M3: a wrong call raises; it ends no process, and our own errors stay our own."""
    draw = random.Random(0)
    tensors = (
        Tensor.ones(2, 3),
        Tensor.ones(4),
        Tensor([[1, 2]]),
        Tensor.of(True),
        Tensor.zeros(0, 3),
    )
    skipped = ("backward", "register", "share", "dlpack", "fit", "realize", "to_", "cuda")
    names = [n for n in dir(Tensor) if not n.startswith("_") and not any(s in n for s in skipped)]
    methods = [n for n in names if callable(getattr(Tensor, n))]
    raised = 0
    for _ in range(1000):
        name = draw.choice(methods)
        values = [draw.choice((*ARGUMENTS, *tensors)) for _ in range(draw.randint(0, 3))]
        try:
            getattr(draw.choice(tensors).clone(), name)(*values)
        except InternalError as error:
            pytest.fail(f"Tensor.{name}{tuple(map(repr, values))}: {error}")
        except Exception:
            raised += 1
    assert raised > 300
    assert (Tensor.ones(2) + 1).tolist() == [2, 2]


def test_kernels_of_a_step():
    """M23: an MLP step in at most 12 kernels, a convolutional one in at most 40."""
    model = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = nn.optim.Adam(model.parameters())
    loss = F.cross_entropy(model(Tensor.zeros(16, 784)), picograd.zeros(16, dtype="int64"))
    loss.backward()
    gradients = [parameter.grad for parameter in model.parameters()]
    plan = picograd.plan(loss, *gradients)
    optimizer.step()
    assert len(plan.kernels) <= 10


def test_recording_allocates_nothing(device):
    """M24: a graph of a thousand operations takes memory when it is computed, not before."""
    x = Tensor.ones(64, 64, device=device).realize()
    gc.collect()  # of other tests
    before = get_device(device).memory_stats()["in_use"]
    y = x
    for _ in range(500):
        y = (y * 0.5 + x).relu()
    assert get_device(device).memory_stats()["in_use"] == before
    assert y.sum().item() > 0


def test_memory_stays_the_same(device):
    """M41: temporaries are freed; buffers of a step come from the pool again."""
    model = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4)).to(device)
    optimizer = nn.optim.AdamW(model.parameters())
    x, y = Tensor.ones(8, 16, device=device), picograd.zeros(8, dtype="int64", device=device)
    used = []
    gc.collect()  # what other tests left goes now
    for _ in range(60):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.item()
        used.append(get_device(device).memory_stats()["in_use"])
    assert len(set(used[10:])) == 1


def test_a_view_outlives_its_parent(device):
    """M40: views own what they read."""
    parent = Tensor.arange(12, device=device).reshape(3, 4).realize()
    view = parent.T[1:, ::2]
    del parent
    for _ in range(50):
        Tensor.full((3, 4), 7.0, device=device).realize()
    assert view.tolist() == [[1, 9], [2, 10], [3, 11]]


def test_zeros_are_zero(device):
    """M56: also where the pool gives back memory that held NaN."""
    for _ in range(200):
        Tensor.full((33,), float("nan"), device=device).realize()
        assert picograd.zeros(33, device=device).sum().item() == 0
        assert (Tensor.ones(33, device=device) * 0.0).sum().item() == 0


DTYPES = (
    "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16",
    "float32", "float64",
)  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_come_back(dtype, device):
    """M38, M39: NumPy in and out, `tolist`; nothing is lost on the way to a device and back."""
    values = np.array([0, 1, 1, 0, 1], dtype=dtype)
    tensor = Tensor(values, device=device)
    assert tensor.dtype is getattr(picograd, dtype)
    assert tensor.numpy().dtype == values.dtype
    np.testing.assert_array_equal(tensor.numpy(), values)
    assert tensor.tolist() == values.tolist()


def test_generators_on_the_device(device):
    """M38: numbers are made where they are wanted, and are the same everywhere."""
    for make in (picograd.rand, picograd.randn):
        picograd.manual_seed(7)
        there = make(257, device=device)
        picograd.manual_seed(7)
        here = make(257, device="cpu")
        assert there.device.startswith(device)
        np.testing.assert_array_equal(there.numpy(), here.numpy())
    assert picograd.arange(3, device=device).tolist() == [0, 1, 2]
    assert picograd.eye(2, device=device).tolist() == [[1, 0], [0, 1]]
    assert picograd.full((2,), 3, device=device).tolist() == [3, 3]


def test_a_network_comes_back_from_a_file(device, tmp_path):
    """M32: names, shapes and bytes survive; nothing is pickled; devices may differ."""
    model = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4)).to(device)
    picograd.nn.save(model.state_dict(), tmp_path / "model.safetensors")
    state = picograd.nn.load(tmp_path / "model.safetensors")
    assert set(state) == set(model.state_dict())
    other = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4))
    other.load_state_dict(state)
    for mine, theirs in zip(model.state_dict().values(), other.state_dict().values(), strict=True):
        assert mine.numpy().tobytes() == theirs.numpy().tobytes()


def test_nothing_is_written_by_hand():
    """M53: every kernel is generated: the package holds Python, its types, data, and a page."""
    others = ("data/", "view/assets/")
    files = [p for p in (ROOT / "picograd").rglob("*") if p.is_file()]
    files = [path for path in files if not any(other in path.as_posix() for other in others)]
    kinds = {p.suffix for p in files if "__pycache__" not in p.parts}
    assert kinds == {".py", ".pyi", ".typed"}


def builds_wheels():
    """Tell whether the setuptools here is as new as pyproject.toml asks for."""
    try:
        return int(importlib.metadata.version("setuptools").split(".")[0]) >= 77
    except importlib.metadata.PackageNotFoundError:
        return False


@pytest.mark.skipif(not builds_wheels(), reason="needs setuptools of version 77 or later")
def test_the_wheel_is_whole(tmp_path):
    """M15: a wheel has every file of the package and needs no compiler to build."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    done = subprocess.run([*command, "-w", tmp_path, ROOT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.endswith("py3-none-any.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    kinds = (".py", ".pyi", ".gz", ".typed", ".html", ".css", ".js", ".mjs", ".LICENSE")
    wanted = [p for p in (ROOT / "picograd").rglob("*") if p.suffix in kinds]
    missing = {p.relative_to(ROOT).as_posix() for p in wanted} - names
    assert not missing


def cuda_only(device):
    if device != "cuda":
        pytest.skip("holds between the CPU and a GPU")


def test_losses_fall_alike_on_both_devices(device):
    """M43: 200 steps of an MLP, at most 1e-3 apart."""
    cuda_only(device)
    curves = []
    for place in ("cpu", "cuda"):
        picograd.manual_seed(0)
        model = nn.Sequential(nn.Linear(20, 32), nn.Tanh(), nn.Linear(32, 3)).to(place)
        optimizer = nn.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        values = np.random.default_rng(0).standard_normal((64, 20)).astype(np.float32)
        x, y = Tensor(values, device=place), Tensor(values[:, :3].argmax(1), device=place)

        @picograd.jit
        def step(x, y, model=model, optimizer=optimizer):
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss

        curves.append([step(x, y).item() for _ in range(200)])
    assert np.abs(np.subtract(*curves)).max() < 1e-3
    assert curves[0][-1] < 0.3 * curves[0][0]


def test_more_elements_than_an_int32_counts(device):
    """M58: elementwise on 2^31 + 1 elements."""
    cuda_only(device)
    count = 2**31 + 1
    x = picograd.zeros(count, dtype="uint8", device=device).realize()
    x[-1] = 41
    y = (x + 1).realize()
    assert y[-1].item() == 42 and y[-2].item() == 1 and y[0].item() == 1
    assert (y.cast("int64").sum().item()) == count + 41
