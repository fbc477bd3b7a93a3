"""Tensors that machine code makes are those that Python makes."""

import contextlib
import sys
import weakref

import numpy as np
import pytest

import picograd
from picograd import Tensor
from picograd.buffer import Buffer, Storage
from picograd.engine import carried, native_calls, pending
from picograd.engine.native_calls import CALLS, NATIVE_AFTER
from picograd.graph.formula import reader
from picograd.graph.node import Node, toposort
from picograd.runtime.memory import Allocation
from picograd.runtime.python_layout import is_possible
from picograd.tensor.core.aliasing import View
from picograd.tensor.core.native_tensors import NODE, TENSOR, VIEW
from picograd.tensor.core.recording import Recorded, begun, wrap_own

pytestmark = [
    pytest.mark.usefixtures("cpu_by_default"),
    pytest.mark.skipif(not is_possible(), reason="another interpreter"),
]

UNSET = {"__weakref__", "record"}  # the latter is of nodes that stand in for others


@pytest.fixture(autouse=True)
def _each_size_has_a_plan():
    with picograd.config.override(dynamic=0):
        yield


def made_both_ways():
    """Make a tensor by machine code, and one by Python."""
    a = Tensor(np.arange(4, dtype=np.float32).reshape(2, 2))
    step = picograd.jit(lambda a: (a + a).atan())
    for _ in range(3 * NATIVE_AFTER):
        step(a)
    return step.closure.native(a), step.closure.run((a,))


def test_all_slots_are_filled():
    assert set(TENSOR) == set(Recorded.__slots__) - {"__weakref__"}
    for kind in Node, Storage, Buffer, Allocation, View:
        assert set(native_calls.SLOTS[kind]) == set(kind.__slots__) - UNSET


def test_it_is_the_tensor_of_python():
    one, other = made_both_ways()
    for name in TENSOR:
        if name != "_node":
            assert getattr(one, name) == getattr(other, name), name
    for name in NODE:
        if name not in ("arg", "leaf"):
            assert getattr(one._node, name) == getattr(other._node, name), name
    assert (one._node.leaf is None) is (other._node.leaf is None)
    assert one._node.arg.version == other._node.arg.version == 0
    assert pending.owner(one._node) is one
    assert one.tolist() == other.tolist()


def test_it_ends_as_others_do():
    tensor, _ = made_both_ways()
    buffer = tensor._node.arg.buffer
    node, gone = weakref.ref(tensor._node), weakref.ref(tensor)
    del tensor
    assert node() is gone() is None
    alone = [object()]
    held = alone[0]
    assert sys.getrefcount(buffer) == sys.getrefcount(held) - 1


def test_what_waits_is_entered_as_python_enters_it():
    a = Tensor(np.arange(4, dtype=np.float32), requires_grad=True).realize()
    for _ in range(3 * NATIVE_AFTER):
        (a.detach() + a.detach()).realize()
    made = []
    for wrap in native_calls.CODED.wrap, begun:
        count, tracks = pending.RECORDED[0], wrap is begun
        tensor = wrap((a if tracks else a.detach()).sin().node.again(), tracks)
        assert pending.RECORDED[0] == count + 2 + (not tracks) and id(tensor._node) in carried.NEW
        assert pending.owner(tensor._node) is tensor and tensor._node in pending.LIVE.pending()
        assert tensor._tracks is tracks
        made.append(tensor)
    for name in set(TENSOR) - {"_node", "_tracks"}:
        assert getattr(made[0], name) == getattr(made[1], name), name
    for node in made[0]._node, a._node:  # another tensor has it, or it is in memory
        assert native_calls.CODED.wrap(node, False) is None
    with pytest.raises(TypeError, match="wrap takes"):
        native_calls.CODED.wrap(a._node)


@pytest.mark.parametrize("enabled", [True, False])
def test_views_are_noted_as_python_notes_them(monkeypatch, enabled):
    made_both_ways()
    seen = []
    for show in native_calls.CODED.show, None:
        monkeypatch.setattr(native_calls.CODED, "show", show)
        base = Tensor(np.ones((2, 3), np.float32), requires_grad=True).realize()
        with contextlib.nullcontext() if enabled else picograd.no_grad():
            views = [base.T, base[1], base.reshape(3, 2), base.detach(), base[:, 1:]]
        for each in views:
            assert each._view.base is base and pending.owner(each._node) is each
        facts = [name for name in VIEW if name not in ("base", "operands")]
        rows = [[getattr(each._view, name) for name in facts] for each in views]
        rows += [[each._tracks, each._node.is_asked, each._node.leaf is None] for each in views]
        assert [each() for each in base._views] == views
        seen.append(rows)
        views = [base.T for _ in range(40)]  # who is gone is let go
        del views[1:]
        assert base.T._view.base is base and len(base._views) < 64
    assert seen[0] == seen[1]
    with pytest.raises(TypeError, match="show takes"):
        CALLS.find("picograd_show")(base)


@pytest.mark.parametrize("given", [(), (1, (), True), (None,) * 3, ("a", "b"), (object(), (1,), 0)])
def test_wrong_arguments_are_a_type_error(given):
    with pytest.raises(TypeError, match="computed takes"):
        CALLS.find("picograd_computed")(*given)


def test_steps_are_stamped_as_python_stamps_them(monkeypatch):
    made_both_ways()
    stamp, outcomes = native_calls.CODED.stamp, []

    def first_ones(nodes, steps):  # no memory for the others
        return stamp(nodes, steps[:2]) and None

    for each in stamp, None, first_ones:
        monkeypatch.setattr(native_calls.CODED, "stamp", each)
        for _ in range(3):  # kept from the second call on
            x = Tensor(np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3))
            y = picograd.nn.functional.layer_norm(x, (3,)) + picograd.nn.functional.mish(x)
        rows = [
            [getattr(node, name) for name in NODE if name not in ("arg", "inputs", "leaf")]
            + [str(node.arg) if node.op != "buffer" else "", len(node.inputs), type(node.inputs)]
            for node in toposort([y._node])
        ]
        outcomes.append((rows, y.tolist()))
    assert len(outcomes[0][0]) > 20
    assert outcomes[0] == outcomes[1] == outcomes[2]


def test_stamping_holds_nothing():
    made_both_ways()
    x = Tensor(np.ones(3, dtype=np.float32))
    shape, nodes = (3, 1234567), [x._node]
    held = sys.getrefcount(shape), sys.getrefcount(x._node)
    step = reader("neg", (0,), None, shape, x.dtype, x._node.device)
    pair = reader("add", (0, 1), None, shape, x.dtype, x._node.device)
    assert native_calls.CODED.stamp(nodes, [step, pair]) is True
    assert nodes[2].inputs == (nodes[0], nodes[1])
    gone = weakref.ref(nodes[2])
    del step, pair, nodes
    assert gone() is None
    assert (sys.getrefcount(shape), sys.getrefcount(x._node) + 1) == held
    for wrong in [(), ([],), ([], ()), ((), [])]:
        with pytest.raises(TypeError, match="stamp takes"):
            native_calls.CODED.stamp(*wrong)


@pytest.mark.parametrize("is_coded", [True, False])
def test_a_node_in_the_place_of_one_that_is_gone_is_the_last(monkeypatch, is_coded):
    made_both_ways()
    if not is_coded:
        monkeypatch.setattr(native_calls.CODED, "wrap", None)
    a = Tensor(np.ones(3, np.float32)).realize()
    carried.NEW.clear()
    first, node = a.sin(), a._node.unary("cos")
    carried.NEW.clear()
    carried.NEW.update({id(node): None, id(first._node): None})  # as one before had its address
    tensor = wrap_own(node, False)
    assert [*carried.NEW] == [id(first._node), id(tensor._node)]
