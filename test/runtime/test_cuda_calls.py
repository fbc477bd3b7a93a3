"""Machine code that launches tapes on a GPU, on a double of the driver that has addresses."""

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest

import picograd
from picograd import Tensor
from picograd.code import Code, TensorMap, Windows
from picograd.dtype import float16, float32, float64, int32
from picograd.engine import backends, compile
from picograd.engine.native_calls import CALLS, NATIVE_AFTER
from picograd.engine.plan_cache import PLANS
from picograd.errors import DeviceError
from picograd.runtime import cuda, driver
from picograd.runtime.cuda import PLAIN_RUNS, CudaDevice
from picograd.runtime.cuda_calls import FUNCTIONS
from picograd.runtime.device import TapeLaunch
from picograd.runtime.python_layout import is_possible

pytestmark = pytest.mark.skipif(not is_possible(), reason="another interpreter")
COUNT = 10
CODE = Code("scale", "cuda", "scale", "", 4, 256, 0, (), (float32, int32))
WORD = ctypes.c_uint64


class Described(ctypes.Structure):
    """CUDA_KERNEL_NODE_PARAMS of cuda.h."""

    shape = [(f"{name}Dim{axis}", ctypes.c_uint) for name in ("grid", "block") for axis in "XYZ"]
    tail = [("kernelParams", WORD), ("extra", WORD), ("kern", WORD), ("ctx", WORD)]
    _fields_ = [("func", WORD), *shape, ("sharedMemBytes", ctypes.c_uint), *tail]

    def getPtr(self):
        return ctypes.addressof(self)


class Numbers:
    """The driver's enumerations: a name is a number."""

    def __getattr__(self, name):
        return len(name)


def numbers_at(kind, count):
    """Make what reads so many numbers at an address."""
    return lambda place: [*(kind * count).from_address(place)]


def with_addresses(fake):
    """Make a double whose handles are numbers, and whose functions machine code can call."""

    class Double(fake):
        CUDA_KERNEL_NODE_PARAMS = Described

        def __init__(self):
            super().__init__()
            self.status, self.missing, self.kept = {}, (), []
            self.kernels, self.named, self.parameters, self.maps = {}, [], 4, []

        def cuDevicePrimaryCtxRetain(self, number):
            return 0, 70 + number

        def cuStreamCreate(self, flags):
            return 0, 77

        def cuModuleGetFunction(self, module, name):
            self.named.append(name.decode())
            self.kernels[len(self.named)] = KERNELS[name.decode()]
            return 0, len(self.named)

        def cuGraphInstantiate(self, graph, flags):
            handle = len(self.graphs) + 1
            self.graphs[handle] = [*self.graphs.get(graph, ())]
            return 0, handle

        CUtensorMapDataType = CUtensorMapInterleave = CUtensorMapSwizzle = Numbers()
        CUtensorMapL2promotion = CUtensorMapFloatOOBfill = Numbers()
        cuuint64_t = cuuint32_t = int

        def cuTensorMapEncodeTiled(self, dtype, rank, address, *given):
            self.maps.append((dtype, rank, address, *given))
            made = (WORD * 16)(address)
            return 0, SimpleNamespace(getPtr=lambda: ctypes.addressof(made))

        cuTensorMapEncodeIm2col = cuTensorMapEncodeTiled

        def convert_tiled(self, place, dtype, rank, address, sizes, strides, box, steps, *tail):
            """Note what machine code asks for as if Python had asked."""
            long, short = (numbers_at(WORD, count) for count in (rank, rank - 1))
            short_words = numbers_at(ctypes.c_uint32, rank)
            lists = long(sizes), short(strides), short_words(box), short_words(steps)
            WORD.from_address(place).value = address
            return dtype, rank, address, *lists, *tail[:4]

        def convert_windowed(self, place, dtype, rank, address, sizes, strides, *given):
            low, high, channels, count, steps, *tail = given
            long, short = (numbers_at(WORD, count) for count in (rank, rank - 1))
            corner = numbers_at(ctypes.c_int32, rank - 2)
            lists = long(sizes), short(strides), corner(low), corner(high)
            WORD.from_address(place).value = address
            tail = numbers_at(ctypes.c_uint32, rank)(steps), *tail
            return dtype, rank, address, *lists, channels, count, *tail

        def cuGetProcAddress(self, name, version, flags):
            method = getattr(self, name.decode())
            converters = {
                "update": self.convert,
                "tiled": self.convert_tiled,
                "windowed": self.convert_windowed,
            }
            convert = {FUNCTIONS[key]: value for key, value in converters.items()}.get(name)

            def called(*given):
                status = self.status.pop(name, 0)
                self.log.append((name.decode(), *given))
                return status or method(*(given if convert is None else convert(*given)))[0]

            counts = {"activate": 1, "replay": 2, "update": 3, "tiled": 15, "windowed": 15}
            (count,) = (counts[key] for key, value in FUNCTIONS.items() if value == name)
            function = ctypes.CFUNCTYPE(ctypes.c_int, *[WORD] * count)(called)
            self.kept.append(function)
            address = ctypes.cast(function, ctypes.c_void_p).value
            return (500, None, 0) if name in self.missing else (0, address, 0)

        def convert(self, graph, node, address):
            return graph, node, Described.from_address(address)

    return Double()


def word(params, number, kind=WORD):
    return kind.from_address(params[number]).value


def array(address, count):
    return np.ctypeslib.as_array((ctypes.c_float * count).from_address(address))


def scale_on_host(blocks, threads, params):
    """Multiply an array by a number."""
    y, x = word(params, 0), word(params, 1)
    factor, count = word(params, 2, ctypes.c_float), word(params, 3, ctypes.c_int32)
    array(y, count)[:] = np.float32(factor) * array(x, count)


def add_on_host(blocks, threads, params):
    """What the engine's kernel of `a + b` does with four elements."""
    array(word(params, 2), 4)[:] = array(word(params, 0), 4) + array(word(params, 1), 4)


def double_on_host(blocks, threads, params):
    """Double what a map says: its first word is the address."""
    array(word(params, 0), 8)[:] = 2 * array(word(params, 2), 8)


class Kernels(dict):
    def __missing__(self, name):
        return add_on_host


KERNELS = Kernels(scale=scale_on_host, scalar=scale_on_host, boxes=double_on_host)


@pytest.fixture
def module(fake_driver):
    return with_addresses(fake_driver)


@pytest.fixture
def device(module):
    CALLS.find("picograd_launch")
    return CudaDevice(driver.Driver(module), 0)


def chain(device, kernels):
    """A tape of kernels, each of which scales what the last wrote, and its buffers."""
    executable = device.load(CODE, b"scale")
    buffers = [device.new_buffer(float32, COUNT) for _ in range(kernels + 1)]
    device.copy_in(buffers[0], np.ones(COUNT, np.float32))
    steps = [TapeLaunch(executable, (n + 1, n), (1 if n == 0 else 2, 0)) for n in range(kernels)]
    tape = device.make_tape(steps, kernels + 1, (int32, float32, float32))
    for _ in range(PLAIN_RUNS):
        assert run(device, tape, buffers, 1.0, 2.0) == 2.0 ** (kernels - 1)
    return tape, buffers


def read(device, buffer):
    (value,) = {*device.copy_out(buffer).view(np.float32).tolist()}
    return value


def run(device, tape, buffers, *factors):
    """Run a tape by Python, and read its last buffer."""
    device.run_tape(tape, [each.address for each in buffers], (COUNT, *factors))
    return read(device, buffers[-1])


def run_native(device, tape, buffers, *factors):
    """Run a tape by machine code, which fills the table itself: a status of the driver, or a value.

    The last buffer is poisoned before.
    """
    entry = device.entry(tape)
    device.copy_in(buffers[-1], np.full(COUNT, np.nan, np.float32))
    (WORD * len(buffers)).from_address(entry.addresses)[:] = [each.address for each in buffers]
    numbers = ctypes.c_int64.from_address(entry.scalars), [WORD, ctypes.c_float]
    numbers[0].value = COUNT
    for place, factor in enumerate(factors, 1):
        ctypes.c_float.from_address(entry.scalars + 8 * place).value = factor
    enter = ctypes.CFUNCTYPE(ctypes.c_int64, WORD, WORD)(CALLS.kernels)
    status = enter(entry.runner.context, entry.call)
    return f"error {status}" if status else read(device, buffers[-1])


def names(module):
    found = [each[0] for each in module.log if isinstance(each, tuple)]
    module.log.clear()
    return [name for name in found if name in {each.decode() for each in FUNCTIONS.values()}]


def test_one_kernel_is_a_graph(device, module):
    """A launch takes the driver longer than an update and a graph's launch."""
    tape, buffers = chain(device, 1)
    assert not tape.state.replays
    assert device.entry(tape).singles == 0b110
    (replay,) = tape.state.replays
    module.log.clear()
    assert run_native(device, tape, buffers, 3.0, 0.0) == 3.0
    activated, _, launched = [each for each in module.log if str(each[0]).startswith("cu")]
    assert activated == ("cuCtxSetCurrent", 70)
    assert launched == ("cuGraphLaunch", replay.executable, 77)
    assert run(device, tape, buffers, 4.0, 0.0) == 4.0


def test_where_the_driver_makes_no_graph(device, module, monkeypatch):
    tape, buffers = chain(device, 1)
    monkeypatch.setattr(module, "cuGraphInstantiate", lambda graph, flags: (2, None))
    monkeypatch.setattr(module, "cuGraphCreate", lambda flags: (2, None))
    assert device.entry(tape) is None
    assert run(device, tape, buffers, 4.0, 0.0) == 4.0


def test_nodes_follow_words_that_changed(device, module):
    tape, buffers = chain(device, 3)
    (replay,) = tape.state.replays
    assert run_native(device, tape, buffers, 1.0, 2.0) == 4.0
    module.log.clear()
    update = "cuGraphExecKernelNodeSetParams"
    for factors, moved, updates in (
        ((1.0, 2.0), None, []),
        ((3.0, 2.0), None, [0]),
        ((3.0, 5.0), None, [1, 2]),
        ((3.0, 5.0), 1, [0, 1]),
    ):
        if moved is not None:
            device.copy_in(buffers[moved], np.full(COUNT, np.nan, np.float32))
            before = buffers[moved]
            buffers[moved] = device.new_buffer(float32, COUNT)
        assert run_native(device, tape, buffers, *factors) == factors[0] * factors[1] ** 2
        found = [each[2] for each in module.log if each[0] == update and each[1] != "set"]
        assert found == [replay.nodes[number] for number in updates]
        assert names(module)[-1] == "cuGraphLaunch"
    assert np.isnan(device.copy_out(before).view(np.float32)).all()


def test_long_tapes(device, module):
    """Of many words, too, those that changed are told one by one."""
    tape, buffers = chain(device, 100)
    (replay,) = tape.state.replays
    assert run_native(device, tape, buffers, 1.0, 2.0) == 2.0**99
    buffers[70] = device.new_buffer(float32, COUNT)
    module.log.clear()
    assert run_native(device, tape, buffers, 1.0, 2.0) == 2.0**99
    found = [each[2] for each in module.log if each[0] == "cuGraphExecKernelNodeSetParams"]
    assert found == [replay.nodes[number] for number in (69, 70)]


def test_python_and_machine_code_take_turns(device):
    tape, buffers = chain(device, 3)
    draw = np.random.default_rng(0)
    for number, is_native in enumerate(draw.integers(0, 2, 40)):
        factors = float(number), 2.0 + number % 3
        if number % 4 == 0:
            buffers[1] = device.new_buffer(float32, COUNT)
        call = run_native if is_native else run
        assert call(device, tape, buffers, *factors) == factors[0] * factors[1] ** 2


@pytest.mark.parametrize("name", ["activate", "replay", "update"])
def test_errors_of_the_driver(device, module, name):
    """Nothing was launched then, and the next run is right."""
    tape, buffers = chain(device, 3)
    assert run_native(device, tape, buffers, 1.0, 2.0) == 4.0
    module.status[FUNCTIONS[name]] = 719
    wanted = "error 1" if name == "activate" else "error 719"
    factors = (1.0, 2.0) if name == "replay" else (5.0, 3.0)
    assert run_native(device, tape, buffers, *factors) == wanted
    assert run_native(device, tape, buffers, 5.0, 3.0) == 45.0


def test_a_child_process_launches_nothing(device, module, monkeypatch):
    tape, buffers = chain(device, 1)
    entry = device.entry(tape)
    monkeypatch.setattr(driver, "DRIVERS", {device.driver})
    driver.disable_all()
    module.log.clear()
    assert not any(device.launcher.words) and device.entry(tape) is None
    enter = ctypes.CFUNCTYPE(ctypes.c_int64, WORD, WORD)(CALLS.kernels)
    assert enter(entry.runner.context, entry.call) == 1
    assert not module.log and buffers


def test_other_tapes_are_left_to_python(device, module, monkeypatch):
    tape, _ = chain(device, 3)
    assert device.is_settled(tape) and device.entry(tape) is not None
    with monkeypatch.context() as patch:
        patch.setattr(cuda, "SHORT", -1)
        assert device.entry(tape) is None
    tape.state.replays *= 2  # it is not known yet which is faster
    assert not device.is_settled(tape)
    fresh = device.make_tape(tape.launches, 4, (int32, float32, float32))
    assert not device.is_settled(fresh) and device.entry(fresh) is None
    half = Code("scalar", "cuda", "scale", "", 4, scalars=(float16,))
    assert device.entry(single(device, half, (0,), (float16,))) is None
    none = Code("scalar", "cuda", "scale", "", 0)
    assert device.entry(single(device, none)) is None


WINDOWS = Windows((-1, 0), (3, 4), (2, 1))
MAPS = [
    TensorMap(1, float32, 2, (8, 2), (8,), (8, 1)),
    TensorMap(1, float32, 2, (8, 1, 1, 1), (8, 8, 8), (8, 1), WINDOWS),
]


@pytest.mark.parametrize("tensor", MAPS, ids=["tiled", "windowed"])
def test_maps_follow_arrays_that_moved(device, module, tensor):
    """Encoded by machine code as by Python, and again by either after the other one ran."""
    module.parameters = 3
    code = Code("boxes", "cuda", "boxes", "", 4, tensors=(tensor,))
    tape = device.make_tape([TapeLaunch(device.load(code, b"boxes"), (0, 1))], 2)
    buffers = [device.new_buffer(float32, COUNT) for _ in range(3)]
    for number, buffer in enumerate(buffers):
        device.copy_in(buffer, np.full(COUNT, number, np.float32))
    entry = device.entry(tape)
    words = (WORD * 2).from_address(entry.addresses)
    enter = ctypes.CFUNCTYPE(ctypes.c_int64, WORD, WORD)(CALLS.kernels)
    asked = {}
    draw = np.random.default_rng(0)
    for is_native, number in [
        (0, 1),
        (1, 1),
        (1, 2),
        (0, 1),
        (1, 1),
        *draw.integers(0, 2, (20, 2)),
    ]:
        source = buffers[1 + number % 2]
        addresses = buffers[0].address, source.address
        module.maps.clear()
        if is_native:
            words[:] = addresses
            assert enter(entry.runner.context, entry.call) == 0
        else:
            device.run_tape(tape, addresses)
        for each in module.maps:
            assert asked.setdefault(source.address, each) == each
        found = array(addresses[0], 8)
        assert found.tolist() == [2.0 * (1 + number % 2)] * 8
        found[:] = np.nan
    assert len(asked) == 2
    module.status = dict.fromkeys(FUNCTIONS.values(), 719)
    module.status.pop(FUNCTIONS["activate"])
    words[1] = buffers[0].address
    assert enter(entry.runner.context, entry.call) == 719  # of the map: nothing was launched
    module.status.clear()
    words[1] = buffers[2].address
    assert enter(entry.runner.context, entry.call) == 0 and array(words[0], 8)[0] == 4.0


def single(device, code, scalars=(), dtypes=()):
    step = TapeLaunch(device.load(code, b"scale"), (0,), scalars)
    return device.make_tape([step], 1, dtypes)


def test_a_driver_without_addresses(fake_driver, module):
    module.missing = (FUNCTIONS["update"],)
    device = CudaDevice(driver.Driver(module), 0)
    tape, buffers = chain(device, 1)
    assert device.entry(tape) is None
    assert run(device, tape, buffers, 2.0, 0.0) == 2.0


@pytest.fixture
def on_double(device, monkeypatch, tmp_path):
    """The engine on the double: every kernel adds. A real GPU would be given its addresses."""
    if driver.has_driver():
        pytest.skip("there is a driver")
    made = lambda codes: [(number, b"") for number, _ in enumerate(codes)]  # noqa: E731
    monkeypatch.setattr(device, "compile_many", made)
    monkeypatch.setitem(backends.OPEN, "cuda:0", device)
    monkeypatch.setattr(compile, "LOADED", type(compile.LOADED)())
    PLANS.clear()
    with picograd.config.override(dynamic=0, cache=str(tmp_path)):
        yield device
    PLANS.clear()


def test_the_engine_launches_without_python(on_double, module, monkeypatch):
    """Eager, and under `jit`; what is watched, or fails, goes through Python."""
    module.parameters = 3
    values = np.arange(4, dtype=np.float32).reshape(2, 2)
    a, b = (Tensor(values + n, device="cuda") for n in (0, 1))
    step = picograd.jit(lambda a, b: a + b)
    for _ in range(3 * NATIVE_AFTER):
        found = (a + b).realize(), step(a, b)
    monkeypatch.setattr(module, "cuGraphLaunch", lambda *given: (719,))  # Python's
    for _ in range(4):
        found = (a + b).realize(), step(a, b)
        for each in found:
            assert each.tolist() == (values + values + 1).tolist()
    module.status[FUNCTIONS["replay"]] = 719
    with pytest.raises(DeviceError, match="cuGraphLaunch failed with 719"):
        step(a, b)
    monkeypatch.setattr(on_double.launcher, "running", object())  # another thread is in a launch
    with pytest.raises(DeviceError, match="cuGraphLaunch failed with 719"):
        step(a, b)


def test_doubles_and_whole_numbers_are_words(device, module):
    module.parameters = 3
    code = Code("scalar", "cuda", "scale", "", 4, scalars=(float64, int32))
    assert device.entry(single(device, code, (0, 1), (float64, int32))).singles == 0
