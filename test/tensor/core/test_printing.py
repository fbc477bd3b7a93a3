"""How tensors print: the numbers, brackets and line breaks of PyTorch."""

from collections.abc import Iterator

import numpy as np
import pytest

import picograd
from picograd import Tensor
from picograd.dtype import float32, float64
from picograd.errors import TraceError, ValueRangeError
from picograd.tensor.core.printing import format_array, format_tensor, format_traced


@pytest.fixture(autouse=True)
def defaults() -> Iterator[None]:
    yield
    picograd.set_printoptions(profile="default")


def draw(random: np.random.Generator) -> np.ndarray:
    """Draw an array of one of the kinds that print differently."""
    shape = tuple(random.integers(0, 5, random.integers(0, 4)))
    kind, normal = random.integers(0, 7), random.normal(size=shape)
    if kind == 0:
        return np.asarray(random.integers(-1000, 1000, shape))
    if kind == 1:
        return np.asarray(normal > 0)
    if kind == 2:
        return np.round(normal * 10.0 ** random.integers(0, 10)).astype(np.float32)
    if kind == 3:
        spoilt = np.where(normal > 1, np.nan, np.where(normal < -1, -np.inf, normal))
        return spoilt.astype(np.float32)
    if kind == 4:
        return np.where(normal > 0, np.inf, np.round(normal * 5)).astype(np.float32)
    if kind == 5:
        return (normal * 10.0 ** random.integers(-4, 4, shape)).astype(np.float32)
    return np.asarray(normal * 10.0 ** random.integers(-6, 9), np.float32)


def test_it_is_the_text_of_pytorch() -> None:
    torch = pytest.importorskip("torch")
    random = np.random.default_rng(0)
    arrays = [draw(random) for _ in range(150)]
    for shape in ((2000,), (50, 50), (4, 20, 20), (30,), (3, 40)):
        arrays.append(random.normal(size=shape).astype(np.float32))
        arrays.append(random.integers(0, 9, shape))
    for array in arrays:
        wanted = repr(torch.tensor(array)).replace("torch.", "picograd.")
        assert "t" + repr(Tensor(array, device="cpu"))[1:] == wanted


def test_suffixes() -> None:
    x = Tensor([1.0, 2.5], requires_grad=True, device="cpu")
    assert repr(x) == "Tensor([1.0000, 2.5000], requires_grad=True)"
    assert repr(x * 2) == "Tensor([2., 5.], grad_fn=<MulBackward0>)"
    assert repr(Tensor([1], dtype="int32", device="cpu")) == "Tensor([1], dtype=picograd.int32)"
    assert repr(Tensor.zeros(0, 3, device="cpu")) == "Tensor([], size=(0, 3))"
    text = format_tensor(np.array([1.0, 2.0]), (2,), float64, "cuda:0", True)
    assert text == ("Tensor([1., 2.], dtype=picograd.float64, device='cuda:0', requires_grad=True)")
    Named = type("Named", (Tensor,), {})
    assert repr(Named([1, 2])) == "Named([1, 2])"
    assert repr(picograd.nn.Parameter(Tensor([1.0]))).splitlines()[1].startswith("Tensor([1.]")
    long = format_tensor(np.arange(25.0), (25,), float32, "cpu", True).splitlines()
    assert long[-1] == "       requires_grad=True)"


def test_options() -> None:
    x = np.array([1.0, 0.123456])
    picograd.set_printoptions(precision=2)
    assert format_array(x, 0) == "[1.00, 0.12]"
    picograd.set_printoptions(sci_mode=True)
    assert format_array(x, 0) == "[1.00e+00, 1.23e-01]"
    picograd.set_printoptions(profile="short", sci_mode=False, threshold=3, edgeitems=1)
    assert format_array(np.arange(5) * 10000.3, 0) == "[    0.00,  ..., 40001.20]"
    picograd.set_printoptions(profile="default", linewidth=20)
    assert format_array(np.ones(9), 0) == "[1., 1., 1., 1., 1.,\n 1., 1., 1., 1.]"
    picograd.set_printoptions(profile="full")
    assert "..." not in format_array(np.zeros(2000), 0)
    with pytest.raises(ValueRangeError, match="profile='tiny' is unknown"):
        picograd.set_printoptions(profile="tiny")
    with pytest.raises(ValueRangeError, match="precision=-1"):
        picograd.set_printoptions(precision=-1)


def test_a_traced_tensor_has_no_values() -> None:
    text = format_traced((2, 3), "float32", "cpu")
    assert "2, 3" in text and "float32" in text


pytestmark = pytest.mark.usefixtures("cpu_by_default")


def test_one_and_two_dimensions_are_tables():
    text = Tensor([[1.0, 2.5], [3.0, float("nan")]], name="a<b")._repr_html_()
    assert "a&lt;b float32[2, 2] on cpu" in text
    assert text.count("<tr>") == 2 and text.count("<td") == 4
    assert ">2.5000<" in text and ">nan<" in text
    assert Tensor([1, 2, 3])._repr_html_().count("<tr>") == 1
    assert ">True<" in Tensor.of([True])._repr_html_()
    assert ">1.+2.5000j<" in Tensor([1 + 2.5j])._repr_html_()


def test_large_ones_are_cut():
    text = Tensor(np.arange(100.0 * 200).reshape(100, 200))._repr_html_()
    assert text.count("<tr>") == 11 and text.count("<td") == 121 and text.count("…") == 21
    assert ">0.0000e+00<" in text and ">1.9999e+04<" in text
    assert Tensor(np.arange(100.0))._repr_html_().count("<td") == 11


def test_of_huge_ones_the_ends_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    x = picograd.arange(3.0)[:, None].expand(3, 10**11)
    row = ["[" + ", ".join(f"{n}." for _ in range(3)) for n in range(3)]
    rows = [f"{text},  ..., {text[1:]}]" for text in row]
    assert repr(x) == "Tensor([" + ",\n        ".join(rows) + "])"
    assert x._repr_html_().count("<td") == 33
    tensors = [Tensor(np.arange(2002.0 * n).reshape(n, -1)) for n in (1, 7, 2002)]
    whole = [(repr(x), repr(x + 1), x._repr_html_()) for x in tensors]
    monkeypatch.setattr("picograd.tensor.core.methods_protocol.READ", 10)
    assert [(repr(x), repr(x + 1), x._repr_html_()) for x in tensors] == whole


@pytest.mark.parametrize("shape", [(), (2, 1, 2), (0,), (0, 3)])
def test_others_are_text(shape):
    text = Tensor(np.zeros(shape, np.float32))._repr_html_()
    assert "<pre>Tensor(" in text and "<table>" not in text


def test_while_jit_traces_there_is_nothing_to_show():
    with pytest.raises(TraceError):
        picograd.jit(lambda x: x._repr_html_())(Tensor([1.0]))


@pytest.mark.parametrize("shape", [(), (2,), (2, 3)])
def test_without_values_the_text_is_shown(shape: tuple[int, ...]) -> None:
    x = picograd.empty(*shape, device="meta")
    assert f"{x}" == repr(x) and f"float32{list(shape)} on meta" in x._repr_html_()
