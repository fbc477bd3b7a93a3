"""Tapes as CUDA graphs, on the double of the driver."""

import ctypes
import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from picograd.code import Code, TensorMap, Workspace
from picograd.dtype import float32, int32
from picograd.errors import DeviceError
from picograd.runtime import parameters
from picograd.runtime.cuda import FEWEST_NODES, PLAIN_RUNS, RACES, CudaDevice
from picograd.runtime.device import TapeLaunch
from picograd.runtime.driver import Driver, ForkedModule
from picograd.runtime.replay import Replay, node_waits

COUNT = 10
CODE = Code("scale", "cuda", "scale", "", 4, 256, 0, (Workspace(4, is_zeroed=True),),
            (float32, int32))  # fmt: skip


def scale_on_host(blocks, threads, params):
    """Multiply an array by a number."""
    y, x, _ = (ctypes.c_uint64.from_address(params[n]).value for n in range(3))
    a = ctypes.c_float.from_address(params[3]).value
    n = ctypes.c_int32.from_address(params[4]).value
    source = np.ctypeslib.as_array((ctypes.c_float * n).from_address(x))
    np.ctypeslib.as_array((ctypes.c_float * n).from_address(y))[:] = np.float32(a) * source


@pytest.fixture
def module(fake_driver):
    module = fake_driver()
    module.kernels["scale"] = scale_on_host
    return module


@pytest.fixture
def device(module):
    return CudaDevice(Driver(module), 0)


def chain(device, kernels=3):
    """A tape of kernels, each of which doubles what the last wrote, and its buffers.

    Scalar 0 counts the elements, scalar 1 is the factor of the first, scalar 2 of all others.
    """
    executable = device.load(CODE, b"scale")
    buffers = [device.new_buffer(float32, COUNT) for _ in range(kernels + 1)]
    device.copy_in(buffers[0], np.ones(COUNT, np.float32))
    steps = [TapeLaunch(executable, (n + 1, n), (1 if n == 0 else 2, 0)) for n in range(kernels)]
    return device.make_tape(steps, kernels + 1, (int32, float32, float32)), buffers


def run(device, tape, buffers, *factors):
    """Run the tape and read its last buffer, which is poisoned before."""
    device.copy_in(buffers[-1], np.full(COUNT, np.nan, np.float32))
    device.run_tape(tape, [each.address for each in buffers], (COUNT, *factors))
    (value,) = {*device.copy_out(buffers[-1]).view(np.float32).tolist()}
    return value


def warm(device, tape, buffers):
    """Run a tape until it is a graph, which has not run yet."""
    for _ in range(PLAIN_RUNS - 1):
        assert run(device, tape, buffers, 1.0, 2.0) == 2.0 ** (len(tape.launches) - 1)
    assert not tape.state.replays


def events(module, kind):
    return [each for each in module.log if each[0] == kind]


def test_a_tape_that_runs_repeatedly_is_launched_at_once(device, module):
    tape, buffers = chain(device)
    warm(device, tape, buffers)
    module.log.clear()
    for _ in range(3):
        assert run(device, tape, buffers, 1.0, 2.0) == 4.0
    assert module.log == [("graph", 3)] * 3


def test_short_tapes_are_launched_kernel_by_kernel(device, module):
    tape, buffers = chain(device, FEWEST_NODES - 1)
    for _ in range(PLAIN_RUNS + 2):
        assert run(device, tape, buffers, 1.0, 2.0) == 1.0
    assert not module.graphs and not tape.state.replays


def test_branches(device, module):
    """Kernels wait for those they are told to, and for those that share their workspace."""
    own, other = (device.load(CODE, b"scale") for _ in range(2))
    none = device.load(replace(CODE, tasks=0), b"scale")
    steps = [
        TapeLaunch(own, (1, 0), (1, 0), ()),
        TapeLaunch(other, (2, 0), (1, 0), ()),
        TapeLaunch(none, (2, 2), (1, 0), (1,)),
        TapeLaunch(own, (3, 2), (1, 0), (2,)),
        TapeLaunch(other, (4, 1), (1, 0), (0,)),
        TapeLaunch(own, (5, 4), (1, 0)),
    ]
    blocks = [
        [each.executable.workspaces[0].address] for each in steps if each.executable is not none
    ]
    assert node_waits(steps, blocks) == [(), (), (0, 1), (0, 1), (2, 3)]
    buffers = [device.new_buffer(float32, COUNT) for _ in range(6)]
    device.copy_in(buffers[0], np.ones(COUNT, np.float32))
    tape = device.make_tape(steps, 6, (int32, float32))
    for _ in range(PLAIN_RUNS + 1):
        assert run(device, tape, buffers, 2.0) == 8.0
    assert len(tape.state.replays) == 2
    assert (device.copy_out(buffers[3]).view(np.float32) == 4.0).all()


@pytest.mark.parametrize("times", [(1.0, 0.9), (1.0, 0.99), (1.0, 2.0)])
def test_the_faster_of_a_chain_and_branches_stays(device, module, times):
    """Both are run and timed a few times; what differs by little is a chain."""
    executable = device.load(CODE, b"scale")
    other = device.load(CODE, b"scale")
    steps = [TapeLaunch(executable, (1, 0), (1, 0), ()), TapeLaunch(other, (2, 0), (1, 0), ())]
    buffers = [device.new_buffer(float32, COUNT) for _ in range(3)]
    device.copy_in(buffers[0], np.ones(COUNT, np.float32))
    tape = device.make_tape(steps, 3, (int32, float32))
    taken = iter([*times] * RACES)
    module.cuEventElapsedTime = lambda start, end: (0, next(taken))
    for number in range(PLAIN_RUNS + RACES + 1):
        factor = 2.0 + number  # both follow what changes
        assert run(device, tape, buffers, factor) == factor
    (left,) = tape.state.replays
    waits = [before for before, _ in module.graphs[left.graph]]
    assert waits == ([[], []] if times[1] == 0.9 else [[], [0]])
    device.unload()
    assert len(module.graphs) == 2


def test_nodes_follow_addresses_and_numbers(device, module):
    """Those that read a word that changed are given their parameters again, and no others."""
    tape, buffers = chain(device)
    warm(device, tape, buffers)
    run(device, tape, buffers, 1.0, 2.0)
    module.log.clear()
    old = buffers[1]
    buffers[1] = device.new_buffer(float32, COUNT)
    device.copy_in(old, np.full(COUNT, np.nan, np.float32))
    assert run(device, tape, buffers, 1.0, 2.0) == 4.0
    assert sorted(events(module, "set")) == [("set", 0), ("set", 1)]
    assert np.isnan(device.copy_out(old).view(np.float32)).all()
    module.log.clear()
    assert run(device, tape, buffers, 3.0, 2.0) == 12.0 and events(module, "set") == [("set", 0)]
    module.log.clear()
    assert run(device, tape, buffers, 3.0, 5.0) == 75.0 and len(events(module, "set")) == 2
    module.log.clear()
    assert run(device, tape, buffers, 3.0, 5.0) == 75.0 and not events(module, "set")


def test_memory_that_was_freed_is_not_read(device, module):
    """A node may hold an address that is no longer there, until its tape runs again."""
    tape, buffers = chain(device)
    warm(device, tape, buffers)
    run(device, tape, buffers, 1.0, 2.0)
    first = buffers[0].address
    del buffers[:]
    gc.collect()
    device.empty_cache()
    assert first not in module.blocks
    fresh = [device.new_buffer(float32, COUNT) for _ in range(4)]
    device.copy_in(fresh[0], np.full(COUNT, 3.0, np.float32))
    assert run(device, tape, fresh, 1.0, 2.0) == 12.0


def test_sizes_and_timed_runs(device, module):
    """A size is a number like others; a run that is timed goes kernel by kernel."""
    tape, buffers = chain(device)
    warm(device, tape, buffers)
    run(device, tape, buffers, 1.0, 2.0)
    addresses = [each.address for each in buffers]
    device.run_tape(tape, addresses, (4, 1.0, 3.0))
    assert device.copy_out(buffers[-1]).view(np.float32).tolist() == [9.0] * 4 + [4.0] * 6
    module.log.clear()
    assert len(device.time_tape(tape, addresses, (COUNT, 1.0, 5.0))) == 3
    assert not events(module, "graph")
    assert run(device, tape, buffers, 1.0, 2.0) == 4.0


def test_steps_of_a_loop(device, module):
    """A loop replays the graph of its body, on the addresses of each step."""
    module.parameters, seen = 2, []
    module.kernels["plain"] = lambda blocks, threads, params: seen.append(
        [ctypes.c_uint64.from_address(params[n]).value for n in range(2)]
    )
    code = Code("plain", "cuda", "plain", "", 4)
    executable = device.load(code, b"plain")
    tape = device.make_tape([TapeLaunch(executable, pair) for pair in ((0, 1), (1, 2))], 3)
    steps = PLAIN_RUNS + 3
    calls = PLAIN_RUNS + 2
    for _ in range(calls):
        device.run_loop(tape, [64, 0, 0], [(1, 128, 8, -1, 0), (2, 512, -8, 1, 1)], steps)
    wanted = []
    for t in range(steps):
        x, y = 128 + 8 * t, 512 - 8 * ((t + 1) & 1)
        wanted += [[64, x], [x, y]]
    assert seen == wanted * calls
    first = steps - PLAIN_RUNS + 1  # a graph a step, then one of all steps
    assert len(events(module, "graph")) == first + calls - PLAIN_RUNS
    assert events(module, "graph")[-1] == ("graph", 2 * steps)


def test_tensor_maps_are_encoded_again(device, module, monkeypatch):
    """A node has a copy of its maps too."""
    tensor = TensorMap(0, float32, 0, (32,), (), (32,))

    def encode(driver, tensor, address):
        content = (ctypes.c_uint64 * 16)(*[address + 1] * 16)
        return SimpleNamespace(getPtr=lambda: ctypes.addressof(content), keep=content)

    monkeypatch.setattr(parameters, "encode", encode)
    module.parameters, seen = 2, []
    module.kernels["boxes"] = lambda blocks, threads, params: seen.append(
        [ctypes.c_uint64.from_address(params[n]).value for n in range(2)]
    )
    code = Code("boxes", "cuda", "boxes", "", 4, tensors=(tensor,))
    steps = [TapeLaunch(device.load(code, b"boxes"), (n,)) for n in range(3)]
    tape = device.make_tape(steps, 3)
    for _ in range(PLAIN_RUNS):
        device.run_tape(tape, (64, 128, 192))
    del seen[:]
    device.run_tape(tape, (64, 1024, 192))
    assert seen == [[64, 65], [1024, 1025], [192, 193]]


def test_an_interrupt_leaves_no_node_behind(device, module, monkeypatch):
    """Ctrl-C while nodes are updated: the next run updates all that may be left."""
    tape, buffers = chain(device)
    warm(device, tape, buffers)
    run(device, tape, buffers, 1.0, 2.0)
    update = module.cuGraphExecKernelNodeSetParams

    def interrupted(graph, node, params):
        if node == 1:
            raise KeyboardInterrupt
        return update(graph, node, params)

    def at_once(replay, changed):
        raise KeyboardInterrupt

    places = (module, "cuGraphExecKernelNodeSetParams", interrupted), (Replay, "note", at_once)
    for owner, name, double in places:
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, double)
            with pytest.raises(KeyboardInterrupt):
                run(device, tape, buffers, 3.0, 7.0)
        assert run(device, tape, buffers, 3.0, 7.0) == 147.0
        assert run(device, tape, buffers, 1.0, 2.0) == 4.0


def test_errors_of_the_driver(device, module, monkeypatch):
    """Where it makes no graph the tape stays as it is; what fails in a replay is an error."""
    tape, buffers = chain(device)
    warm(device, tape, buffers)
    with monkeypatch.context() as patch:
        patch.setattr(module, "cuGraphInstantiate", lambda graph, flags: (2, None))
        for _ in range(3):
            assert run(device, tape, buffers, 1.0, 2.0) == 4.0
    assert not tape.state.replays
    device.unload()
    assert not module.graphs  # nothing of the attempt is left
    other, buffers = chain(device)
    warm(device, other, buffers)
    run(device, other, buffers, 1.0, 2.0)
    for name in ("cuGraphLaunch", "cuGraphExecKernelNodeSetParams"):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, lambda *args: (719,))
            with pytest.raises(DeviceError, match=f"{name} failed with 719"):
                run(device, other, buffers, 2.0, 3.0)
        assert run(device, other, buffers, 2.0, 3.0) == 18.0
        run(device, other, buffers, 1.0, 2.0)


def test_a_graph_goes_with_its_tape(device, module):
    """The thread that drops it calls no driver; the device frees it before the kernels it runs."""
    tape, buffers = chain(device)
    warm(device, tape, buffers)
    run(device, tape, buffers, 1.0, 2.0)
    assert len(module.graphs) == 2
    module.log.clear()
    thread = threading.Thread(target=lambda held: held.clear(), args=([tape],))
    del tape
    thread.start()
    thread.join()
    gc.collect()
    assert not module.log and len(module.graphs) == 2
    module.cuModuleUnload = lambda handle: module.log.append(("unload", handle)) or (0,)
    device.empty_cache()
    assert not module.graphs and [each[0] for each in module.log] == ["destroy"] * 2 + ["unload"]


def test_threads_replay_one_tape(device, module):
    tape, buffers = chain(device)
    warm(device, tape, buffers)
    results = [device.new_buffer(float32, COUNT) for _ in range(8)]

    def work(number):
        mine = [*buffers[:-1], results[number]]
        for _ in range(20):
            device.run_tape(tape, [each.address for each in mine], (COUNT, 1.0 + number, 2.0))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    found = [device.copy_out(each).view(np.float32)[0] for each in results]
    assert found == [4.0 * (1 + number) for number in range(8)]


def test_a_child_process_is_told(device, module):
    """After a fork the driver is unusable: a graph says so, like a launch."""
    tape, buffers = chain(device)
    warm(device, tape, buffers)
    run(device, tape, buffers, 1.0, 2.0)
    device.driver.module = ForkedModule()
    with pytest.raises(DeviceError, match="before this process was forked"):
        device.run_tape(tape, [each.address for each in buffers], (COUNT, 1.0, 2.0))
