"""The driver: plans are found again by structure, settings outdate them, values are right."""

import gc
import weakref

import numpy as np
import pytest
from debug_tools import fresh_engine

from picograd import Tensor, bfloat16
from picograd.config import config
from picograd.engine import realize
from picograd.engine.backends import get_device
from picograd.engine.plan_key import leaf_buffer
from picograd.engine.tracing import tracing
from picograd.errors import DeviceError


def expression():
    x = Tensor(np.arange(4, dtype=np.float32), device="cpu")
    return x * 2 + 1


def test_equal_structure_makes_one_plan():
    with fresh_engine(cache=""):
        for _ in range(3):
            assert expression().tolist() == [1.0, 3.0, 5.0, 7.0]
        assert len(realize.PLANS) == 1


def test_settings_outdate_plans():
    with fresh_engine(cache=""):
        expression().realize()
        with config.override(threads=config.threads + 1):
            expression().realize()
        assert len(realize.PLANS) == 2


def test_debug_does_not_outdate_plans(capsys):
    with fresh_engine(cache=""):
        expression().realize()
        with config.override(debug=4):
            expression().realize()
        assert len(realize.PLANS) == 1
    assert "--- source" not in capsys.readouterr().err  # nothing was generated


def test_nothing_is_computed_twice():
    y = expression().node
    realize.realize([y])
    buffer = y.realized
    realize.realize([y, y])
    assert y.realized is buffer and realize.pending_roots([y, y]) == []


def test_each_node_once():
    y = expression().node
    assert realize.pending_roots([y, y]) == [y]


def test_tracing_realizes_nothing():
    y = expression().node
    with tracing():
        realize.realize([y])
    assert y.realized is None


def test_several_roots_share_a_plan():
    with fresh_engine(cache=""):
        x = Tensor(np.arange(4, dtype=np.float32), device="cpu")
        a, b = (x + 1).node, (x * 3).node
        realize.realize([a, b])
        assert len(realize.PLANS) == 1
    assert realize.buffer_to_numpy(a.realized, (4,)).tolist() == [1, 2, 3, 4]
    assert realize.buffer_to_numpy(b.realized, (4,)).tolist() == [0, 3, 6, 9]


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (2, 3)])
def test_numpy_round_trip(shape):
    array = np.asarray(np.random.random_sample(shape), np.float32)
    node = realize.node_from_numpy(array, Tensor([1.0]).dtype, "cpu")
    np.testing.assert_array_equal(realize.buffer_to_numpy(leaf_buffer(node), shape), array)


def test_strided_arrays_are_packed():
    array = np.arange(12, dtype=np.float32).reshape(3, 4).T
    node = realize.node_from_numpy(array, Tensor([1.0]).dtype, "cpu")
    np.testing.assert_array_equal(realize.buffer_to_numpy(leaf_buffer(node), (4, 3)), array)


def test_an_element_that_is_everywhere_is_copied_once(monkeypatch):
    filled = []
    cpu = type(get_device("cpu"))
    fill = cpu.fill
    monkeypatch.setattr(cpu, "fill", lambda *a: (filled.append(a[2].size), fill(*a)))
    for array in (np.broadcast_to(np.float32(3), (4, 5)), np.broadcast_to(np.arange(5.0), (4, 5))):
        node = realize.node_from_numpy(array, Tensor([1.0]).dtype, "cpu")
        found = realize.buffer_to_numpy(leaf_buffer(node), (4, 5))
        np.testing.assert_array_equal(found, array)
    assert filled == [1]


def test_bfloat16_widens():
    values = Tensor([1.0, -2.5], device="cpu").cast(bfloat16).numpy()
    assert values.dtype == np.float32 and values.tolist() == [1.0, -2.5]


def test_an_assignment_is_a_new_version():
    x = Tensor([1.0, 2.0], device="cpu").realize()
    storage = x.node.arg
    before = storage.version
    x += 1
    x.realize()
    assert x.tolist() == [2.0, 3.0]
    assert storage.version == before + 1


def test_wait():
    realize.synchronize("cpu")
    realize.synchronize("null")
    with pytest.raises(DeviceError):
        realize.synchronize("nowhere")


def test_waiting_is_logged(capsys):
    with config.override(debug=2):
        realize.synchronize("cpu")
    assert "       wait      cpu" in capsys.readouterr().err


def test_kept_plan_keeps_no_memory_alive() -> None:
    x = Tensor([1.0, 2.0, 3.0, 4.0, 5.0])
    held = weakref.ref(x.node.arg.buffer)
    y = (x * 1.25).realize()
    del x, y
    gc.collect()
    assert held() is None
