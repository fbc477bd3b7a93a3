"""Functions over lists of tensors give what PyTorch's give."""

import pytest

import picograd
from picograd import Tensor, foreach
from picograd.errors import ShapeError

torch = pytest.importorskip("torch")
CALLS = {
    "add": ([[1.0, 2.0], [3.0]], {"alpha": 0.5}),
    "mul": (2.0, {}),
    "addcmul": ([[1.0, 2.0], [3.0]], [[4.0, 5.0], [6.0]], 0.5, {}),
    "addcdiv": ([[1.0, 2.0], [3.0]], [[4.0, 5.0], [6.0]], -0.5, {}),
    "lerp": ([[1.0, 2.0], [3.0]], 0.25, {}),
    "maximum": (1.5, {}),
    "minimum": ([[1.0, 2.0], [3.0]], {}),
    "pow": (3, {}),
    "sqrt": ({},),
    "zero": ({},),
    "copy": ([[1.0, 2.0], [3.0]], {}),
}


def lists(library, operands):
    return [
        [library.tensor(x) for x in each] if isinstance(each, list) else each for each in operands
    ]


@pytest.mark.parametrize("name", CALLS)
def test_results_and_changes_in_place_are_those_of_pytorch(name: str) -> None:
    *operands, options = CALLS[name]
    found = []
    for library in (torch, picograd):
        xs = [library.tensor([1.0, 4.0]), library.tensor([9.0])]
        if name not in ("zero", "copy"):
            results = getattr(library, f"_foreach_{name}")(xs, *lists(library, operands), **options)
            found.append([x.tolist() for x in results])
        getattr(library, f"_foreach_{name}_")(xs, *lists(library, operands), **options)
        found.append([x.tolist() for x in xs])
    half = len(found) // 2
    for theirs, ours in zip(sum(found[:half], []), sum(found[half:], [])):
        assert ours == pytest.approx(theirs)


def test_norms_and_wrong_lists() -> None:
    xs = [picograd.tensor([3.0, 4.0]), picograd.tensor([1.0])]
    assert [x.item() for x in picograd._foreach_norm(xs, 2)] == [5.0, 1.0]
    with pytest.raises(ShapeError, match="_foreach_add: lists of"):
        picograd._foreach_add(xs, [1.0])
    with pytest.raises(AttributeError):
        picograd._foreach_nothing(xs)


def test_tensors_of_one_memory_change_one_after_the_other() -> None:
    x = picograd.Tensor([1.0, 2.0])
    picograd._foreach_add_([x, x.detach()], 1.0)
    assert x.tolist() == [3.0, 4.0]


def test_groups_are_by_device_and_dtype() -> None:
    from picograd.foreach import _group_tensors_by_device_and_dtype

    xs = [picograd.tensor([1.0]), picograd.tensor([2]), picograd.tensor([3.0])]
    groups = _group_tensors_by_device_and_dtype([xs, []])
    assert [places for _, places in groups.values()] == [[0, 2], [1]]


def test_norms_of_a_kind() -> None:
    found = picograd._foreach_norm(
        [picograd.tensor([3.0, -4.0]), picograd.ones(1)], ord=float("inf")
    )
    assert [x.item() for x in found] == [4.0, 1.0]


def test_lists_are_sorted_by_dtype() -> None:
    group = foreach._group_tensors_by_device_and_dtype
    found = group([[Tensor([1.0]), Tensor([2]), Tensor([3.0])], [4, 5, 6], []], True)
    assert [dtype.name for _, dtype in found] == ["float32", "int64"]
    (_, values, none), places = next(iter(found.values()))
    assert (values, none, places) == ([4, 6], [None, None], [0, 2])


def test_tensors_are_joined_and_cut() -> None:
    values = [Tensor([[1.0, 2.0]]), Tensor([3.0])]
    flat = foreach._flatten_dense_tensors(values)
    cut = foreach._unflatten_dense_tensors(flat, values)
    assert flat.tolist() == [1.0, 2.0, 3.0] and [x.tolist() for x in cut] == [[[1.0, 2.0]], [3.0]]


def test_lists_are_cut_by_dtype_and_bytes() -> None:
    sizes = (2, 2, 5, 1)
    values = [Tensor.ones(n) for n in sizes] + [Tensor([1], dtype="int64")]
    theirs = [torch.ones(n) for n in sizes] + [torch.tensor([1])]
    cut = [[len(x) for x in part] for part in foreach._take_tensors(values, 16)]
    assert cut == [[len(x) for x in part] for part in torch._utils._take_tensors(theirs, 16)]


def test_operands_by_name() -> None:
    values = [Tensor([1.0, 2.0]), Tensor([3.0])]
    picograd._foreach_mul_(values, scalar=2.0)
    assert [x.tolist() for x in values] == [[2.0, 4.0], [6.0]]
    assert picograd._foreach_pow(values, exponent=2)[1].tolist() == [36.0]


def test_numbers_of_devices_and_sizes_of_elements() -> None:
    from picograd._utils import _element_size, _get_device_index

    assert _get_device_index("cuda:3") == _get_device_index(3) == 3
    assert _get_device_index("cpu", allow_cpu=True) == 0 and _element_size(picograd.float64) == 8
    with pytest.raises(ValueError, match="has no number"):
        _get_device_index("cpu")
