"""What is computed from memory that others write does not change when they write it later."""

import copy

import numpy as np
import pytest

import picograd
from picograd import Tensor
from picograd.config import config
from picograd.engine import foreign
from picograd.engine.recorder import recorded

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def on_the_cpu():
    with config.override(device="cpu"):
        yield


MAKERS = {
    "from_numpy": lambda a, library: library.from_numpy(a),
    "from_dlpack": lambda a, library: library.from_dlpack(a),
    "as_tensor": lambda a, library: library.as_tensor(a),
}
PROGRAMS = {
    "elementwise": lambda x, lib: x * 2,
    "reflected": lambda x, lib: 3 - x,
    "composite": lambda x, lib: x.softmax(0),
    "reduction": lambda x, lib: x.sum(),
    "index": lambda x, lib: x[lib.tensor([1, 0])],
    "concatenation": lambda x, lib: lib.cat([x, x + 1]),
    "through a view": lambda x, lib: x.reshape(2, 2)[0] + 1,
    "clone": lambda x, lib: x.clone(),
    "second step": lambda x, lib: (x + 1) * 2,
    "split": lambda x, lib: (x + 1).split(2)[1],
    "in place": lambda x, lib: lib.zeros(4, dtype=x.dtype).add_(x),
    "copied into": lambda x, lib: lib.zeros(4, dtype=x.dtype).copy_(x),
    "of three": lambda x, lib: lib.ones(4, dtype=x.dtype).addcmul_(x, x[:1]),
    "put into": lambda x, lib: put(lib.zeros(4, dtype=x.dtype), x),
    "added at": lambda x, lib: lib.zeros(4, dtype=x.dtype).index_add_(
        0, lib.tensor([3, 1, 0, 0]), x * 2
    ),
    "a product": lambda x, lib: x.reshape(2, 2) @ lib.ones(2, 2, dtype=x.dtype),
    "a view stays one": lambda x, lib: x[:2],
    "a detached view": lambda x, lib: x.detach().reshape(2, 2)[1],
}


def put(target, values):
    target[1:3] = values[2:]
    target[0] = values[1]
    return target


@pytest.mark.parametrize("copied", [0, foreign.SMALL])
@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_those_of_pytorch(name, make, copied, monkeypatch):
    monkeypatch.setattr(foreign, "SMALL", copied)  # what is larger is computed when it is recorded
    found = []
    for library in (picograd, torch):
        array = np.array([1.0, 2.0, 3.0, 4.0])
        result = PROGRAMS[name](MAKERS[make](array, library), library)
        array[:] = [9.0, -8.0, 7.0, -6.0]
        found.append(result.tolist())
    np.testing.assert_allclose(found[0], found[1])


def test_casts_of_autocast_read_what_was_there() -> None:
    found = []
    for library in (torch, picograd):
        array = np.ones((4, 4), np.float32)
        x, weight = library.from_numpy(array), library.ones(4, 4).requires_grad_()
        with library.autocast("cpu", dtype=library.bfloat16):
            results = [x @ weight, library.nn.functional.linear(x, weight), x.t() @ weight]
            results += [x @ weight for _ in range(3)]  # stamped out
        array[:] = 3
        sum(each.float().sum() for each in results).backward()
        found.append([each.float()[0, 0].item() for each in (*results, weight.grad)])
    assert found[0] == found[1]


def test_the_tensor_shows_later_writes_and_writes_show_at_once():
    array = np.array([1.0, 2.0])
    x = picograd.from_numpy(array)
    array[0] = 9
    assert x.tolist() == [9.0, 2.0]
    x += 1
    assert array.tolist() == [10.0, 3.0]
    x[1] = 5
    assert array.tolist() == [10.0, 5.0]
    array[1] = 7
    assert (x + 0).tolist() == [10.0, 7.0]


def test_gradients_flow_through_what_was_computed_at_once():
    array = np.array([1.0, 2.0, 3.0], np.float32)
    w = Tensor([2.0, 2.0, 2.0], requires_grad=True)
    loss = ((picograd.from_numpy(array) * w) ** 2).sum()
    loss.backward()
    assert w.grad.tolist() == [4.0, 16.0, 36.0]


def both_gradients(library, shared, change):
    array = np.array([[1.0, -2.0], [3.0, 4.0]])
    x = library.from_numpy(array)
    x = x.requires_grad_() if shared else x
    w = library.tensor([[2.0, 1.0], [0.5, 3.0]], dtype=library.float64, requires_grad=True)
    loss = ((x[:, :1] * x[1:] @ w) * x).exp().tanh().sum()
    if change:
        array[:] = 7.0
    loss.backward()
    return [each.grad.tolist() for each in ([x, w] if shared else [w])]


@pytest.mark.parametrize("shared", [False, True])
def test_gradients_read_what_was_there_when_it_was_recorded(shared: bool) -> None:
    wanted = both_gradients(torch, shared, False)
    for change in (False, True):
        found = both_gradients(picograd, shared, change)
        for one, other in zip(found, wanted):
            np.testing.assert_allclose(one, other, rtol=1e-10)


@pytest.mark.parametrize("makes", ["whole", "rows"])
def test_a_training_step_over_an_array_is_one_plan(makes: str) -> None:
    """The batch is copied, and all that reads it waits."""
    counts = []
    for make in (Tensor, picograd.from_numpy):
        data = make(np.ones((8, 4), np.float32))
        x = data[2:6] if makes == "rows" else data
        model = picograd.nn.Sequential(picograd.nn.Linear(4, 3), picograd.nn.Linear(3, 2))
        optimizer = picograd.optim.Adam(model.parameters())
        for _ in range(3):
            with recorded() as recorder:
                optimizer.zero_grad()
                loss = model(x).square().mean()
                loss.backward()
                optimizer.step()
                loss.item()
        counts.append(sum(runs.count for runs in recorder.runs.values()))
    assert counts == [1, 1]


def test_work_on_small_arrays_waits_and_is_one_plan() -> None:
    array = np.arange(12, dtype="uint8").reshape(2, 2, 3)
    wanted = 66 / 2 - 12 + 4 / 4 + 2
    with recorded() as recorder:
        image = picograd.from_numpy(array.transpose(2, 0, 1)).float() / 2 - 1
        again = picograd.from_numpy(array[:1, 1, 1]).float() / 4
        joined = picograd.stack([picograd.from_numpy(array[0, :1, 2]), again])
        array[:] = 0
        assert not recorder.runs
        assert (image.sum() + joined.sum()).item() == wanted
    assert sum(runs.count for runs in recorder.runs.values()) == 1


def test_a_copied_array_costs_nothing_later():
    array = np.array([1.0, 2.0])
    x, y = Tensor(array), picograd.tensor(array)
    array[0] = 9
    assert x.tolist() == y.tolist() == [1.0, 2.0]
    assert not foreign.reads((x + 1).node)


def test_jit_reads_at_the_call():
    array = np.array([1.0, 2.0])
    x = picograd.from_numpy(array)
    double = picograd.jit(lambda t: t * 2)
    results = []
    for k in range(4):
        array[:] = k
        results.append(double(x))
    assert [each.tolist() for each in results] == [[2.0 * k] * 2 for k in range(4)]


def test_what_is_shared_is_forgotten_with_its_memory():
    before = len(foreign.SHARED)
    x = picograd.from_numpy(np.ones(3))
    assert len(foreign.SHARED) == before + 1
    del x
    assert len(foreign.SHARED) == before


def test_every_node_is_looked_at_once():
    kept = picograd.from_numpy(np.ones(3))
    x = Tensor([1.0])
    for _ in range(2000):
        x = x + 1
    assert x.tolist() == [2001.0] and kept.tolist() == [1.0] * 3


SAME_VALUES = {
    "x + 0": lambda x: x + 0,
    "x * 1": lambda x: x * 1,
    "x - 0": lambda x: x - 0,
    "x / 1": lambda x: x / 1,
    "x ** 1": lambda x: x**1,
    "clone": lambda x: x.clone(),
    "deepcopy": copy.deepcopy,
    "where": lambda x: picograd.where(Tensor.of(True), x, x * 0),
    "cat": lambda x: picograd.cat([x]),
    "stack": lambda x: picograd.stack([x]),
    "pad": lambda x: picograd.nn.functional.pad(x, (0, 0)),
    "sum": lambda x: x.reshape(4, 1, 3).sum(1),
    "mean": lambda x: x.reshape(4, 1, 3).mean(1),
    "max": lambda x: x.reshape(4, 1, 3).amax(1),
    "cumsum": lambda x: x.reshape(4, 1, 3).cumsum(1),
    "flip": lambda x: x.flip(()),
    "roll": lambda x: x.roll(0, 0),
    "repeat": lambda x: x.repeat(1, 1),
    "of a view": lambda x: x.T[1:] + 0,
    "index": lambda x: x[picograd.arange(4)],
}
VIEWS = {
    "slice": lambda x: x[1:],
    "all": lambda x: x[:],
    "turned": lambda x: x.T,
    "reshaped": lambda x: x.reshape(12),
    "repeated": lambda x: x.expand(2, 4, 3),
    "windows": lambda x: x.unfold(0, 2, 1),
    "detached": lambda x: x.detach(),
    "Tensor": Tensor,
    "contiguous": lambda x: x.contiguous(),
    "its dtype": lambda x: x.to("float32"),
    "asarray": picograd.asarray,
}


@pytest.mark.parametrize("name", SAME_VALUES | VIEWS)
def test_what_changes_nothing_is_a_copy_unless_it_is_a_view(name: str) -> None:
    array = np.arange(12, dtype=np.float32).reshape(4, 3)
    function = (SAME_VALUES | VIEWS)[name]
    before = function(Tensor(array.copy())).numpy()
    found = function(Tensor.from_numpy(array))
    array[:] = -7.0
    wanted = before if name in SAME_VALUES else np.full(before.shape, -7.0)
    np.testing.assert_array_equal(found.numpy(), wanted)


def test_memory_that_was_handed_out_is_shared() -> None:
    """Who took it by DLPack may write it: what was computed before and after does not change."""
    x = Tensor([1.0, 2.0, 3.0])
    pending = x * 2
    view = torch.from_dlpack(x)
    same, twice = x + 0, x * 2
    x += 1
    assert view.tolist() == [2.0, 3.0, 4.0]
    again = np.from_dlpack(x)
    view[:] = 9.0
    assert x.tolist() == again.tolist() == x.detach().tolist() == [9.0] * 3
    assert same.tolist() == [1.0, 2.0, 3.0]
    assert pending.tolist() == twice.tolist() == [2.0, 4.0, 6.0]


def test_frombuffer_shares_what_may_be_written() -> None:
    memory = bytearray(np.array([1.0, 2.0], np.float32).tobytes())
    x = picograd.frombuffer(memory, dtype=picograd.float32)
    total = x.sum()
    memory[:4] = np.float32(5.0).tobytes()
    assert x.tolist() == [5.0, 2.0] and total.item() == 3.0
    x += 1
    assert np.frombuffer(memory, np.float32).tolist() == [6.0, 3.0]
    fixed = picograd.frombuffer(bytes(memory), dtype=picograd.float32, offset=4, count=1)
    fixed += 1
    assert fixed.tolist() == [4.0] and np.frombuffer(memory, np.float32).tolist() == [6.0, 3.0]
    assert picograd.frombuffer(memory, dtype=picograd.float32, requires_grad=True).requires_grad
    for wrong in ({"count": 0}, {"offset": 8}, {"offset": -1}, {"offset": 3}, {"count": 9}):
        with pytest.raises(ValueError, match="frombuffer"):
            picograd.frombuffer(memory, dtype=picograd.float32, **wrong)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_parameters_over_arrays_are_trained(momentum: float) -> None:
    """A step writes several, of which each is read by what waits to be written to the others."""
    found = []
    for library in (torch, picograd):
        arrays = [np.arange(4, dtype=np.float32).reshape(2, 2) / 4, np.eye(2, dtype=np.float32)]
        weights = [library.nn.Parameter(library.from_numpy(each)) for each in arrays]
        optimizer = library.optim.SGD(weights, lr=0.1, momentum=momentum)
        for _ in range(3):
            optimizer.zero_grad()
            ((weights[0] @ weights[1]) ** 2).mean().backward()
            optimizer.step()
        assert all((a == w.detach().numpy()).all() for a, w in zip(arrays, weights))
        found.append(arrays)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5)


def test_rows_are_those_of_an_index_as_it_was() -> None:
    index = np.array([1, 2])
    shown, weight = picograd.from_numpy(index), Tensor.ones(3, 2, requires_grad=True)
    taken, rows = Tensor([[0.0], [1.0], [2.0]])[shown], (weight * 2)[shown]
    index[:] = 0
    assert taken.tolist() == [[1.0], [2.0]]
    rows.sum().backward()
    assert weight.grad is not None and weight.grad.tolist() == [[0.0, 0.0], [2.0, 2.0], [2.0, 2.0]]


@pytest.mark.parametrize("show", ["detach", "t", "flatten"])
@pytest.mark.parametrize("rows", [3, 300])  # what is small is read otherwise
def test_views_that_were_read_show_later_writes_of_others(show: str, rows: int) -> None:
    array = np.random.default_rng(0).standard_normal((rows, 40)).astype("float32")
    view = getattr(picograd.from_numpy(array), show)()
    view.realize()
    assert np.isclose(view.sum().item(), array.sum(), atol=1e-2)
    view.numpy()
    array += 1
    assert np.isclose(view.numpy().sum(), array.sum(), atol=1e-1)


STRIDED = {
    "turned": lambda a: a.transpose(2, 0, 1),
    "stepped": lambda a: a[:, ::2, ::2],
    "part": lambda a: a[1:, 1:, 1],
    "last": lambda a: a[-1:, None, :, 2].T,
    "fortran": lambda a: a.reshape(6, 5, order="A").T[1:],
    "wide": lambda a: a.reshape(-1)[:24].reshape(4, 6).view("complex64")[:, ::2],
    "real": lambda a: a.reshape(-1)[:28].view("complex64")[1:].real,
}


@pytest.mark.parametrize("name", STRIDED)
def test_strided_arrays_share_their_memory(name: str) -> None:
    array = np.random.default_rng(0).standard_normal((2, 3, 5)).astype("float32")
    part, before = STRIDED[name](array), array.copy()
    assert not part.flags.c_contiguous and np.shares_memory(part, array)
    shown, theirs = picograd.from_numpy(part), torch.from_numpy(part)
    sizes = [size > 1 for size in part.shape]
    steps = zip(shown.stride(), theirs.stride(), sizes, strict=True)
    assert all(own == other for own, other, is_long in steps if is_long)
    assert np.array_equal(shown.numpy(), part)
    shown += 10
    assert (array != before).sum() == part.size and np.array_equal(shown.numpy(), part)
    part *= 2
    assert np.array_equal(shown.numpy(), part) and np.shares_memory(np.from_dlpack(shown), array)
    assert np.array_equal(np.from_dlpack(shown), part) and np.array_equal(shown.numpy(), part)


def test_arrays_that_show_an_element_twice_are_copied() -> None:
    array = np.arange(6.0)
    windows = np.lib.stride_tricks.sliding_window_view(array, 2, writeable=True)
    for each in (windows, array[::-1]):
        picograd.from_numpy(each).zero_()
    assert array.tolist() == [0, 1, 2, 3, 4, 5]


def test_views_of_what_is_handed_out_stay_views() -> None:
    x = Tensor([[1.0, 2.0], [3.0, 4.0]]).realize()
    views = [x.T, x[0], x.view(-1)[1:], x.detach()]
    copies = [x.T.reshape(-1), x.T.reshape(-1)[1:], x * 1, x + 1]
    before = [each.tolist() for each in map(Tensor.clone, copies)]
    array = np.from_dlpack(x)
    array[:] = 9
    assert all((each == 9).all().item() for each in views)
    assert [each.tolist() for each in copies] == before
