"""A device of OpenCL: memory, kernels, timing; whole programs. Skipped where there is no driver."""

import numpy as np
import pytest

import picograd
from picograd import Tensor, nn
from picograd.code import Code
from picograd.dtype import float32
from picograd.engine.backends import get_device, normalize_device
from picograd.errors import CompileError, DeviceError, ExportError
from picograd.nn import functional as F
from picograd.runtime.opencl import OpenclDevice, packed

CODE = Code("k", "opencl", "k", "__kernel void k(__global float* a) { a[0] = nothing; }", 1)


@pytest.fixture(scope="module")
def machine() -> OpenclDevice:
    try:
        device = get_device("opencl")
    except DeviceError as error:
        pytest.skip(str(error))
    assert isinstance(device, OpenclDevice)
    return device


def test_names() -> None:
    assert [normalize_device(name) for name in ("opencl", "opencl:1")] == ["opencl:0", "opencl:1"]
    assert picograd.device("opencl").type == "opencl"
    assert packed(1.5, float32) == np.float32(1.5).tobytes()


def test_memory(machine: OpenclDevice) -> None:
    a, b = machine.new_buffer(float32, 100), machine.new_buffer(float32, 100)
    values = np.arange(100, dtype=np.float32)
    machine.copy_in(a, values)
    machine.copy(b, a)
    assert (machine.copy_out(b).view(np.float32) == values).all()
    machine.fill(b, np.float32(2.5))
    assert (machine.copy_out(b).view(np.float32) == 2.5).all()
    machine.copy_common((b, (10, 10)), (a, (20, 5)))
    wanted = np.full((10, 10), np.float32(2.5))
    wanted[:, :5] = values.reshape(20, 5)[:10]
    assert (machine.copy_out(b).view(np.float32).reshape(10, 10) == wanted).all()


def test_what_does_not_compile_shows_the_line(machine: OpenclDevice) -> None:
    with pytest.raises(CompileError, match="nothing"):
        machine.compile(CODE)


def test_operations_as_on_the_cpu(machine: OpenclDevice) -> None:
    drawn = np.random.default_rng(0)
    x = drawn.standard_normal((33, 40)).astype(np.float32)

    def found(device: str) -> list[np.ndarray]:
        t = Tensor(x, device=device)
        half, double = t.half(), t.double()
        parts = [
            t.softmax(0), t.cumsum(1), t.sort(1)[0], t.argmax(1), t @ t.T, half @ half.T,
            double @ double.T, t.flatten().sort()[0], t.sum(), t.int() // 3, t.tanh(),
            t.bfloat16() * 2, t[t > 0],
            F.conv2d(t.reshape(1, 2, 33, 20), t[:4, :18].reshape(4, 2, 3, 3)),
            Tensor.zeros(5, device=device).index_add(0, t.argmax(1) % 5, t[:, 0]),
        ]  # fmt: skip
        return [part.float().cpu().numpy() for part in parts]

    for number, (ours, host) in enumerate(zip(found("opencl"), found("cpu"), strict=True)):
        np.testing.assert_allclose(ours, host, rtol=2e-2 if number == 5 else 1e-4, atol=1e-3)


def test_training_as_on_the_cpu(machine: OpenclDevice) -> None:
    def losses(device: str) -> list[float]:
        picograd.manual_seed(0)
        layers = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3)
        model = nn.Sequential(*layers).to(device)
        optimizer = nn.optim.Adam(model.parameters(), lr=0.01)
        drawn = np.random.default_rng(1)
        x = Tensor(drawn.standard_normal((16, 1, 8, 8)).astype(np.float32), device=device)
        y = Tensor(drawn.integers(0, 3, 16), device=device)
        found = []
        for _ in range(4):
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        return found

    ours = losses("opencl")
    assert ours[-1] < ours[0]
    np.testing.assert_allclose(ours, losses("cpu"), rtol=1e-3)


def test_memory_is_not_handed_to_others(machine: OpenclDevice) -> None:
    x = Tensor([1.0, 2.0], device="opencl")
    with pytest.raises(ExportError, match="the device opencl has no memory to share"):
        x.__dlpack__()
    assert np.asarray(x).tolist() == x.cpu().tolist() == [1.0, 2.0]
    assert "no assembly" in picograd.explain(x * 2, "opencl", assembly=True)


def test_attention_is_one_kernel(machine: OpenclDevice) -> None:
    drawn = np.random.default_rng(2).standard_normal((3, 1, 2, 20, 16)).astype(np.float32)
    q, k, v = (Tensor(each, device="opencl") for each in drawn)
    result = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    host = F.scaled_dot_product_attention(*map(Tensor, drawn), is_causal=True)
    np.testing.assert_allclose(result.numpy(), host.numpy(), rtol=1e-3, atol=1e-4)
