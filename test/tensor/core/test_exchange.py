"""Memory shared with other libraries: NumPy, PyTorch, and a class that only speaks the protocol."""

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor
from picograd.errors import DTypeError, ExportError
from picograd.runtime import dlpack

torch = pytest.importorskip("torch")


class Foreign:
    """An array of a library that is not installed: it has nothing but the protocol."""

    def __init__(self, held: Any) -> None:
        self.held = held
        self.asked: dict[str, Any] = {}

    def __dlpack__(self, **options: Any) -> Any:
        self.asked = options
        return self.held.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.held.__dlpack_device__()


class Old(Foreign):
    """An exporter older than version 1: it does not know max_version."""

    def __dlpack__(self, stream: Any = None) -> Any:
        return self.held.__dlpack__() if stream is None else self.held.__dlpack__(stream=stream)


@pytest.fixture
def place(device: str) -> Any:
    return torch.device("cuda" if device.startswith("cuda") else "cpu")


def address(tensor: Tensor) -> int:
    node = tensor.realize().node
    buffer = node.realized if node.realized is not None else node.arg.buffer
    return int(buffer.address)


VIEWS: dict[str, Callable[[Any], Any]] = {
    "detach": lambda x: x.detach(),
    "rows": lambda x: x[1:],
    "columns": lambda x: x[:, 1:3],
    "every other": lambda x: x[::2, 1],
    "turned": lambda x: x.T,
    "reshaped": lambda x: x.reshape(2, 2, 3).detach()[1],
    "expanded": lambda x: x[:, :1].expand(4, 5),
}


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("dtype", ["float32", "int64", "complex128", "uint8"])
def test_views_share_the_memory_that_they_show(name: str, dtype: str, device: str) -> None:
    values = np.arange(12).reshape(4, 3).astype(dtype)
    x, t = Tensor(values, device=device), torch.tensor(values)
    ours, theirs = torch.from_dlpack(VIEWS[name](x)), VIEWS[name](t)
    assert ours.shape == theirs.shape and ours.cpu().equal(theirs)
    ours[(0,) * ours.ndim] = 77
    theirs[(0,) * theirs.ndim] = 77
    assert np.array_equal(x.numpy(), t.numpy())
    x += 1
    t += 1
    assert np.array_equal(x.numpy(), t.numpy()) and ours.cpu().equal(theirs)


def test_what_is_computed_is_shown_through_its_views_too() -> None:
    x = Tensor([[1.0, 2.0], [3.0, 4.0]], device="cpu")
    assert np.from_dlpack((x * 2).T).tolist() == [[2.0, 6.0], [4.0, 8.0]]
    assert np.from_dlpack(x.flip(0)).tolist() == [[3.0, 4.0], [1.0, 2.0]]
    assert np.from_dlpack(picograd.ones(2, device="cpu").expand(3, 2)).tolist() == [[1.0, 1.0]] * 3
    assert np.from_dlpack(x[2:]).shape == (0, 2)


def test_export_shares_memory(device: str, place: Any) -> None:
    x = Tensor([[1.0, 2.0], [3.0, 4.0]], device=device)
    t = torch.from_dlpack(x)
    assert t.device.type == place.type and t.data_ptr() == address(x)
    t += 1
    if place.type == "cuda":
        torch.cuda.synchronize()
    assert x.tolist() == [[2, 3], [4, 5]]
    x += 1
    assert x.tolist() == t.tolist() == [[3, 4], [5, 6]]


def test_exported_memory_outlives_its_tensor(device: str) -> None:
    x = Tensor([1.0, 2.0, 3.0], device=device) * 2
    t = torch.from_dlpack(x)
    del x
    gc.collect()
    others = [(Tensor.ones(3, device=device) * k).realize() for k in range(8)]
    assert t.tolist() == [2, 4, 6]
    before = len(dlpack.EXPORTED)
    del t, others
    gc.collect()
    assert len(dlpack.EXPORTED) == before - 1


def test_import_shares_memory_and_keeps_it_alive(device: str, place: Any) -> None:
    t = torch.arange(12.0, device=place).reshape(3, 4)
    x = Tensor.from_dlpack(t)
    assert x.device.startswith(place.type) and address(x) == t.data_ptr()
    x += 1
    x.realize()
    picograd.synchronize(device)
    assert t[0].tolist() == [1, 2, 3, 4]
    del t
    gc.collect()
    junk = torch.zeros(3, 4, device=place)
    assert x.sum().item() == 78 and junk.sum().item() == 0


def test_every_layout_and_type(place: Any) -> None:
    z = torch.arange(12.0, device=place).reshape(3, 4)
    cases = [z.T, z[1:, ::2], z[:, 1:], z[1:2], z[0, 1:], z[1, 2], z[:0], z[1].expand(2, 4)]
    cases += [z > 3, z.bfloat16(), z.half(), z.double(), z.to(torch.uint8), z.int(), z.long().T]
    for each in cases:
        wanted = each.double().cpu().numpy()
        for x in (Tensor.from_dlpack(each), Tensor(each), picograd.asarray(Foreign(each))):
            assert x.shape == tuple(each.shape)
            np.testing.assert_array_equal(x.double().numpy(), wanted)
            back = torch.from_dlpack(x)
            assert back.dtype == each.dtype and torch.equal(back, each)


def test_work_on_both_sides_is_ordered(place: Any) -> None:
    a = torch.rand(300, 300, device=place)
    for _ in range(10):
        b = a @ a  # still running when we read it
        c = Tensor.from_dlpack(b) * 2
        d = torch.from_dlpack(c) + 0  # and ours when PyTorch reads it
        assert torch.equal(d, b * 2)
        del b, c  # memory that one side still reads is not handed out again


def test_numpy(device: str) -> None:
    array = np.arange(6.0)
    x = picograd.from_dlpack(array)
    array[0] = 9
    assert x[0].item() == 9
    locked = np.arange(3.0)
    locked.flags.writeable = False
    y = picograd.from_dlpack(locked)
    y += 1
    assert y.tolist() == [1, 2, 3] and locked[0] == 0
    with pytest.raises(ExportError, match="read-only, strided or misaligned"):
        picograd.from_dlpack(locked, copy=False)
    assert picograd.from_dlpack(array[::-2]).tolist() == [5, 3, 1]
    held = Tensor([1.0, 2.0], device=device)
    assert np.from_dlpack(held.cpu()).tolist() == [1, 2]
    assert picograd.from_dlpack(held).tolist() == [1, 2]
    assert picograd.from_dlpack(held.__dlpack__()).tolist() == [1, 2]


def test_options_of_export(device: str) -> None:
    x = Tensor([1.0, 2.0], device=device).realize()
    copied = dlpack.take(x.__dlpack__(copy=True, max_version=(1, 0)))
    assert copied.address != address(x) and copied.owner.managed.flags & dlpack.IS_COPIED
    on_host = dlpack.take(x.__dlpack__(dl_device=(1, 0), max_version=(1, 2)))
    assert (on_host.kind, on_host.number) == (1, 0)
    own = dlpack.take(x.__dlpack__(dl_device=x.__dlpack_device__(), copy=False))
    assert own.address == address(x)
    x.__dlpack__(stream=-1)
    with pytest.raises(BufferError, match="asks for gradients cannot be shared"):
        (x * Tensor([1.0, 1.0], device=device, requires_grad=True)).__dlpack__()
    with pytest.raises(DTypeError, match="stream is a str"):
        x.__dlpack__(stream="1")
    with pytest.raises(ExportError, match="device \\(9, 0\\) was asked for"):
        x.__dlpack__(dl_device=(9, 0))
    if device.startswith("cuda"):
        x.__dlpack__(stream=2)
        x.__dlpack__(stream=torch.cuda.Stream().cuda_stream)
        with pytest.raises(ExportError, match="stream=0"):
            x.__dlpack__(stream=0)


def test_foreign_exporters(place: Any) -> None:
    t = torch.tensor([1.0, 2.0], device=place)
    for kind in (Foreign, Old):
        source = kind(t)
        x = picograd.from_dlpack(source)
        assert x.tolist() == [1, 2] and address(x) == t.data_ptr()
    asked = Foreign(t)
    picograd.from_dlpack(asked)
    assert asked.asked["max_version"] == (1, 0) and ("stream" in asked.asked) == t.is_cuda
    copy = Tensor(Foreign(t), dtype="float64")
    t += 1
    assert copy.tolist() == [1, 2]
    with pytest.raises(ExportError, match="the other library refused"):
        Tensor(torch.ones(2, requires_grad=True))
    with pytest.raises(DTypeError, match="an int does not speak DLPack"):
        picograd.from_dlpack(3)
    assert picograd.from_dlpack(torch.ones(2, dtype=torch.complex64)).tolist() == [1, 1]
    with pytest.raises(ExportError, match="element type 5"):
        picograd.from_dlpack(torch.ones(2, dtype=torch.complex32))


@pytest.mark.parametrize("device", ["meta", "null"])
def test_what_has_no_memory_is_not_shared(device: str) -> None:
    x = picograd.empty(3, device=device)
    for share in (x.__dlpack_device__, x.__dlpack__, lambda: np.from_dlpack(x)):
        with pytest.raises(ExportError, match=f"the device {device} has no memory to share"):
            share()


@pytest.mark.parametrize("kind", ["f4", "i8", "c8"])
def test_arrays_of_swapped_bytes_are_copied(kind: str) -> None:
    array = np.arange(6).astype(f">{kind}").reshape(2, 3)
    for each in (array, array.T, array[:, ::2]):
        shown = Tensor.from_numpy(each)
        np.testing.assert_array_equal(shown.numpy(), each)
        shown.zero_()
    assert array.sum() == 15
