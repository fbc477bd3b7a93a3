"""PyTorch's spellings of arguments: every call of the tables means the same in both libraries."""

import pickle
import warnings
from inspect import isfunction, signature
from typing import Any

import numpy as np
import pytest

import picograd
from picograd import Tensor
from picograd.errors import DTypeError, GradientError
from picograd.tensor.core.spelling import OLDER, parameter_names

torch = pytest.importorskip("torch")

# L is the library, F its functional module, x and y (2, 3) floats, i (2, 3) ints, m (3, 3).
CALLS = """
L.exp(input=x) | L.add(input=x, other=y, alpha=2) | L.sum(input=x, dim=1)
L.bmm(x[None], mat2=m[None]) | L.mm(input=x, mat2=m) | L.outer(input=x[0], vec2=x[1])
L.dot(x[0], tensor=x[1]) | L.split(tensor=x, split_size_or_sections=2, dim=1)[1]
x.split(split_size=2, dim=1)[1] | L.swapdims(x, dim0=0, dim1=1) | x.swapdims(dim0=0, dim1=1)
x.float(memory_format=L.preserve_format) | x.short(memory_format=L.contiguous_format)
x.to("cpu", L.float64, True, True) | x.to(L.int32, False, True) | x.to(m, True)
L.tile(input=x, dims=(2, 1)) | x.tile(dims=(2,)) | x.repeat(repeats=(2, 1))
x.expand(size=(4, 2, 3)) | x.broadcast_to(size=(4, 2, 3)) | L.tensordot(a=x, b=m, dims=1)
L.where(input=x, condition=x > 0, other=y) | L.zeros(size=(2, 3))
L.searchsorted(sorted_sequence=L.tensor([1., 2.]), input=L.tensor([1.5]))
L.ones(size=(2,), dtype=L.int32)
L.searchsorted(L.tensor([3., 1.]), L.tensor([1.5]), sorter=L.tensor([1, 0]), out_int32=True)
L.cdist(x1=x, x2=y) | L.max(input=x, dim=1).values | L.max(x, other=y) | L.min(x, other=y)
x.max(other=y) | L.tensor_split(x, sections=2, dim=1)[0]
L.tensor_split(x, indices=(1,), dim=1)[1] | L.full(size=(2,), fill_value=3)
L.empty(size=(2, 3)).shape | L.randn(size=(2, 3)).shape | L.rand(size=(2, 3)).shape
L.zeros(2, pin_memory=False) | L.zeros(2, layout=None) | L.randint(3, (2,)).shape
x.clone(memory_format=None) | x.contiguous() | x.gather(1, i, sparse_grad=False) | x.stride(dim=0)
x.stride(1) | L.nansum(x, dtype=L.float64) | L.nanmean(x, 1, dtype=L.float64)
L.norm(x, dtype=L.float64) | L.linalg.norm(x, dtype=L.float64) | L.linalg.vector_norm(x=x)
L.linalg.matrix_norm(input=x) | L.linalg.inv(A=m) | L.linalg.det(A=m)
L.linalg.matmul(input=x, other=m) | L.linalg.matrix_power(input=m, n=2)
L.scatter(x, 1, i, value=3) | L.scatter(x, 1, i, 3.0) | x.scatter(dim=1, index=i, src=y)
x.scatter(1, i, 3) | x.scatter(1, i[:, :1], y, reduce="add")
x.scatter(1, i[:, :1], value=3, reduce="multiply") | x.clone().scatter_(1, i, value=3)
x.clone().scatter_(1, i, 3, reduce="add") | x.index_add(0, i[0, :2], y, alpha=2)
L.index_add(x, 0, i[0, :2], y, alpha=-0.5) | x.clone().index_add_(0, i[0, :2], y, alpha=3)
i.index_add(0, i[0, :2], i, alpha=2) | x.allclose(y, equal_nan=True)
L.tril_indices(2, 3, dtype=L.int32) | L.triu_indices(row=2, col=2) | L.chain_matmul(x, m, m)
L.repeat_interleave(x, 2, 1, output_size=6) | x.clone().div_(2, rounding_mode="floor")
x.clone().copy_(y, non_blocking=True) | L.softmax(input=x, dim=1, dtype=L.float64)
L.isclose(input=x, other=y) | F.mse_loss(x, y, size_average=False)
F.mse_loss(x, y, reduce=False) | F.l1_loss(x, y, size_average=True)
F.cosine_similarity(x1=x, x2=y) | F.pairwise_distance(x1=x, x2=y) | F.relu(input=x)
F.pixel_shuffle(input=L.ones(1, 4, 2, 2), upscale_factor=2)
L.lu_solve(x.T, *L.linalg.lu_factor(m)) | x.T.lu_solve(*L.linalg.lu_factor(m))
x.view(dtype=L.int32) | x.type_as(other=i) | L.stack(tensors=[x, y])
L.cat(tensors=(x, y), dim=1) | L.tensor([1.0], pin_memory=False)
x.to(L.float64, non_blocking=True) | L.dist(input=x, other=y) | L.fft.rfftfreq(4, layout=None)
L.Tensor(2, 3).shape | L.Tensor().shape
F.mse_loss(x, y, None, None, "sum") | F.mse_loss(x, y, False) | F.l1_loss(x, y, True, False)
F.cross_entropy(x, i[0, :2], None, None, 1) | F.nll_loss(x, i[0, :2], m[0], False, -100)
F.cross_entropy(x, i[0, :2], m[0], None, -100, None, "none", 0.1)
F.poisson_nll_loss(x, y, True, False, None, 1e-8, None, "sum") | F.kl_div(x, y, None, None, "sum")
F.triplet_margin_loss(x, y, x * y, 1.0, 2, 1e-6, False, None, False)
L.nn.CrossEntropyLoss(None, None, 1)(x, i[0, :2]) | L.nn.MSELoss(False)(x, y)
L.nn.BCEWithLogitsLoss(None, None, None, "sum", m[0])(x, y)
x.numpy(force=True).tolist() | F.pad(x, (1, 1), "constant", None)
L.func.jvp(L.sin, (x,), (y,), strict=False)[1] | L.amp.is_autocast_available("cpu")
len(list(L.nn.Sequential(*[L.nn.ReLU()] * 2).modules(remove_duplicate=False)))
L.func.functional_call(L.nn.Linear(3, 1, False), {"weight": x[:1]}, (y,), tie_weights=True)
L.func.functional_call(L.nn.ReLU(), parameter_and_buffer_dicts={}, args=(x,))
L.nn.utils.rnn.unpad_sequence(padded_sequences=x, lengths=L.tensor([1, 2, 0]))[1]
L.nn.utils.rnn.invert_permutation(L.tensor([2, 0, 1]))
L.nn.utils.fuse_conv_bn_weights(m[:2], None, x[0, :2], y[0, :2] ** 2, 1e-5, x[1, :2], None)[0]
L.utils.checkpoint.checkpoint(L.sin, x, use_reentrant=False, determinism_check="none")
list(L.nn.ConvTranspose1d(1, 1, 3)._output_padding(y[None], [6], [2], [1], [3], 1))
[0 for block in [L.random.fork_rng(device_type="cpu")]]
"""
# Calls with out=...: the result, and the tensor it was written into.
OUT = """
L.add(x, y, out=o) | L.exp(x, out=o) | L.matmul(x, m, out=o) | L.cat([x, y], out=o)
L.stack([x, y], out=o) | L.sum(x, 1, out=o) | L.mean(x, dim=0, out=o) | L.zeros(2, out=o)
L.arange(3.0, out=o) | L.softmax(x, 1, out=o) | L.where(x > 0, x, y, out=o) | L.clamp(x, 0, out=o)
L.mm(x, m, out=o) | L.linalg.inv(m, out=o) | L.mul(x, 2, out=o) | L.cumsum(x, 1, out=o)
L.tril(m, out=o) | L.gather(x, 1, i, out=o) | L.index_select(x, 1, i[0], out=o)
L.bmm(x[None], m[None], out=o) | L.linspace(0, 1, 3, out=o) | L.full((2,), 1.5, out=o)
L.maximum(x, y, out=o) | L.sub(x, y, alpha=2, out=o) | L.div(x, y, out=o)
L.special.expit(x, out=o) | L.linalg.norm(x, out=o) | L.logsumexp(x, 1, out=o)
L.var(x, 1, out=o) | L.sum(i, 1, out=o) | L.add(i, i, out=o)
"""


def split_table(text: str) -> list[str]:
    return [each.strip() for line in text.strip().splitlines() for each in line.split(" | ")]


def names(lib: Any) -> dict[str, Any]:
    draw = np.random.default_rng(4)
    x, y = draw.normal(size=(2, 2, 3)).astype(np.float32)
    m = (draw.normal(size=(3, 3)) + 3 * np.eye(3)).astype(np.float32)
    i = np.array([[0, 1, 1], [1, 0, 1]])
    return {"L": lib, "F": lib.nn.functional, "x": lib.tensor(x), "y": lib.tensor(y),
            "i": lib.tensor(i), "m": lib.tensor(m)}  # fmt: skip


def same(found: Any, wanted: Any) -> None:
    if not isinstance(wanted, torch.Tensor):
        assert found == (tuple(wanted) if isinstance(wanted, torch.Size) else wanted)
        return
    assert found.shape == tuple(wanted.shape) and str(found.dtype)[9:] == str(wanted.dtype)[6:]
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), 1e-4, 1e-5)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", split_table(CALLS))
def test_names_of_arguments(call: str) -> None:
    same(eval(call, names(picograd)), eval(call, names(torch)))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", split_table(OUT))
@pytest.mark.parametrize("shape", [0, (7, 2), None], ids=["empty", "wrong", "right"])
def test_out_is_written(call: str, shape: Any) -> None:
    """An empty out takes the shape, one of another shape too (PyTorch warns), a right one stays."""
    results = []
    for lib in (picograd, torch):
        known = names(lib)
        place = shape if shape is not None else eval(call, {**known, "o": None}).shape
        known["o"] = out = lib.zeros(place)
        assert eval(call, known) is out
        results.append(out)
    same(*results)


def test_out_of_several_results() -> None:
    x = Tensor([[1.0, 3.0], [2.0, 0.0]])
    values, places = picograd.empty(0), picograd.empty(0, dtype="int64")
    found = picograd.max(x, 1, out=(values, places))
    assert found.values is values and found.indices is places
    assert values.tolist() == [3, 2] and places.tolist() == [1, 0]
    ordered = picograd.sort(x, dim=1, out=(values, places))
    assert ordered.values is values and values.tolist() == [[1, 3], [0, 2]]


def test_out_may_be_an_argument(device: str) -> None:
    x, y = Tensor([1.0, 2.0], device=device), Tensor([10.0, 20.0], device=device)
    before = x * 1
    assert picograd.add(x, y, out=x) is x and x.tolist() == [11, 22] and before.tolist() == [1, 2]
    half = picograd.empty(2, dtype="float16", device=device)
    picograd.mul(x, y, out=half)
    assert half.dtype is picograd.float16 and half.tolist() == [110, 440]


def test_wrong_out() -> None:
    x = Tensor([1.5, 2.5])
    with pytest.raises(DTypeError, match="exp: the result is float32 but out is int64"):
        picograd.exp(x, out=picograd.empty(2, dtype="int64"))
    with pytest.raises(DTypeError, match="out must be a Tensor, not list"):
        picograd.exp(x, out=[])
    with pytest.raises(DTypeError, match="out must be 2 tensors"):
        picograd.sort(x, out=x)
    with pytest.raises(GradientError, match="out=... is not recorded"):
        picograd.exp(x.requires_grad_(), out=picograd.empty(2))
    with picograd.no_grad():
        assert picograd.exp(x, out=picograd.empty(2)).shape == (2,)
    with pytest.raises(DTypeError, match="both sizes and split_size"):
        picograd.split(x, split_size=1, sizes=2)
    with pytest.raises(DTypeError, match="pass src or value"):
        x.detach().scatter(0, Tensor([0]))
    with pytest.raises(TypeError):
        picograd.exp(x, nothing=3)
    with pytest.raises(TypeError):
        x.exp(out=x)  # as PyTorch's methods


def test_functions_stay_what_they_are() -> None:
    for function in (picograd.exp, picograd.linalg.inv, picograd.zeros, picograd.split,
                     picograd.nn.functional.relu, picograd.special.expit):  # fmt: skip
        assert pickle.loads(pickle.dumps(function)) is function
        assert function.__doc__


def test_parameters_are_named_as_signatures_name_them() -> None:
    def every(a, b=1, *rest, c, d=2, **options):  # type: ignore[no-untyped-def]
        pass

    values = [getattr(picograd, name) for name in dir(picograd)]
    found = [every, *filter(isfunction, values)]
    for function in found:
        if hasattr(function, "__signature__"):  # said of what takes anything, as `celu_`
            continue
        assert parameter_names(function) == list(signature(function).parameters), function


@pytest.mark.parametrize("name", ["int64", "float64", "uint8"])
def test_what_makes_tensors_takes_the_dtype_of_out(name: str) -> None:
    """A result of the default dtype would be refused by `out` of integers, or rounded before."""
    calls: list[tuple[str, tuple[Any, ...]]] = [
        ("eye", (2,)),
        ("full", ((2,), 1.0)),
        ("arange", (1, 10, 2.5)),
        ("linspace", (0, 9, 4)),
        ("zeros", (2, 3)),
    ]
    for function, arguments in calls:
        ours = getattr(picograd, function)(*arguments, out=picograd.empty(0, dtype=name))
        theirs = getattr(torch, function)(
            *arguments, out=torch.empty(0, dtype=getattr(torch, name))
        )
        assert ours.dtype.name == name
        assert ours.tolist() == theirs.tolist(), function

    x = [[1.5, 2.5], [1e-9, 1.0]]
    for function in ("sum", "prod", "cumsum", "cumprod"):  # added up in this dtype, as in PyTorch
        ours = picograd.empty(0, dtype=name)
        getattr(picograd, function)(Tensor(x), 0, out=ours)
        theirs = torch.empty(0, dtype=getattr(torch, name))
        getattr(torch, function)(torch.tensor(x), 0, out=theirs)
        assert ours.tolist() == theirs.tolist(), function


OLDER_CALLS = """T.add(x, 2, x) | x.add(0.5, x) | x.clone().add_(0.5, x) | T.sub(x, 2, x)
x.clone().sub_(0.5, x) | x.sub(2, x) | x.clone().addcmul_(0.5, x, x)
x.clone().addcdiv_(-0.1, x, x * 2) | T.addcmul(x, 0.5, x, x) | T.addcdiv(x, 0.5, x, x)
T.addmm(2, a, 3, a, a) | T.addmm(2, a, a, a) | a.addmm(2, 3, a, a) | a.addmm(2, a, a)
a.clone().addmm_(2, 3, a, a) | T.addmv(2, x, 3, a, x) | x.addmv(2, 3, a, x) | a.addr(2, 3, x, x)
T.addr(2, a, 3, x, x) | T.baddbmm(2, s, 3, s, s) | a.addbmm(2, 3, s, s)
T.addbmm(2, a, 3, s, s) | x.add(n, x) | x.clone().sub_(n, x) | T.add(n, n, x)
x.clone().addcmul_(n, x, x) | T.addcdiv(x, n, x, x) | x.addcmul(n, n, x)
T.addmm(n, a, n, a, a) | a.addmm(n, a, a) | a.addmm(n, 3, a, a) | a.addbmm(2, n, s, s)"""


@pytest.mark.parametrize("call", OLDER_CALLS.replace("\n", " | ").split(" | "))
@pytest.mark.filterwarnings("ignore:This overload:UserWarning")
def test_as_in_pytorch(call: str) -> None:
    torch = pytest.importorskip("torch")
    results = []
    for library in (picograd, torch):
        tensor: Any = library.tensor
        x, a = tensor([1.0, 4.0]), tensor([[1.0, 2.0], [3.0, 4.0]])
        with warnings.catch_warnings(action="ignore"):
            names = {"T": library, "x": x, "a": a, "s": a[None], "n": tensor(0.5)}
            results.append(eval(call, names))
    np.testing.assert_allclose(results[0].numpy(), results[1].numpy(), rtol=1e-6)


def test_the_order_of_today_stays() -> None:
    x = picograd.tensor([1.0, 4.0])
    assert x.add(x, alpha=2).tolist() == [3.0, 12.0] and x.add(2).tolist() == [3.0, 6.0]
    assert x.addcmul(x, x, value=2).tolist() == [3.0, 36.0]
    with pytest.raises(TypeError, match="takes 2 positional arguments but 3"):
        x.add(1, 2)  # type: ignore[call-arg]
    assert all(hasattr(picograd.Tensor, name) for name in OLDER)


def test_classes_are_told_of_the_functions_that_programs_name() -> None:
    class Matrix:
        @classmethod
        def __torch_function__(cls, function: Any, *given: Any) -> Any:
            return function

    composed = (picograd.logdet, picograd.linalg.solve, picograd.linalg.eigh, picograd.fft.fft)
    for function in (picograd.exp, *composed):
        assert function(Matrix(), Matrix()) is function


def test_sequences_fill_what_has_their_size() -> None:
    memory = picograd.zeros(4, 2)
    picograd.arange(4, out=memory[::2])
    assert memory.tolist() == [[0, 1], [0, 0], [2, 3], [0, 0]]
