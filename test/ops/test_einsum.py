"""einsum of every form equals PyTorch's, with gradients."""

from typing import Any

import pytest
from op_support import Case, compare, numbers

import picograd
from picograd import Tensor
from picograd.errors import PicogradError

torch = pytest.importorskip("torch")

SIZES = dict(i=3, j=4, k=2, b=2, c=3, N=2, M=3, a=4, q=2)
EQUATIONS = [
    "i->", "i->i", "ij->ji", "ij->", "ij->i", "ij->j", "ii->i", "ii", "ii->", "iij->ij", "iij->j",
    "ijij->ij", "iii->i", "i,i", "i,i->i", "i,j->ij", "i,j->ji", "ij,jk", "ij,jk->ik", "ij,kj->ik",
    "ij,ij->", "ij,ij->ij", "ij,j->i", "ij,j", "bij,bjk->bik", "bij,bjk->ik", "bij,jk->bik",
    "ij,jk,kc->ic", "i,ij,j->", "ijk,j->ik", "ii,ij->j", "ii,jj->ij", "ij,kk->ij", "i,,j->ij",
    ",ij->ji", ",->", "->", "...->...", "...i->...", "i...->...i", "...ij,...jk->...ik",
    "...ij,jk->ik...", "b...,b...->b...", "...,...", "i...,j...->ij...", "N M, M i -> N i",
    "ij, jk -> ki", "bi,bj,bk->bijk", "ab,bc,ca->", "ab,ab,ab->a", "ba", "bac", "kji",
]  # fmt: skip
SPREAD = (2, 3)  # the axes under an ellipsis


def operand(term: str, number: int) -> Any:
    letters = term.replace("...", "").replace(" ", "")
    shape = [SIZES[each] for each in letters]
    if "..." in term:
        at = term.replace(" ", "").index("...")
        spread = SPREAD if number == 0 else (1, 3)
        shape = [*shape[:at], *spread, *shape[at:]]
    return numbers(shape, seed=number)


def test_equations(device: str) -> None:
    cases = []
    for equation in EQUATIONS:
        terms = equation.partition("->")[0].split(",")
        inputs = [operand(term, number) for number, term in enumerate(terms)]

        def call(*tensors: Any, equation: str = equation) -> Any:
            library = torch if isinstance(tensors[0], torch.Tensor) else picograd
            return library.einsum(equation, *tensors)

        cases.append(Case(equation, call, inputs, dtype="float64"))
    compare(cases, device)


def test_lists_of_labels(device: str) -> None:
    def call(*rest: Any) -> Any:
        def function(a: Any, b: Any) -> Any:
            library = torch if isinstance(a, torch.Tensor) else picograd
            return library.einsum(a, rest[0], b, *rest[1:])

        return function

    a, b = numbers((2, 3)), numbers((3, 4))
    cases = [
        Case("product", call([0, 1], [1, 2], [0, 2]), [a, b]),
        Case("implicit", call([5, 1], [1, 2]), [a, b]),
        Case("capitals sort first", call([26, 1], [1, 2]), [a, b]),
        Case("ellipsis", call([..., 1], [1, 2], [2, ...]), [a, b]),
        Case("all", call([0, 1], [1, 2], []), [a, b]),
    ]
    compare(cases, device)
    x = Tensor(a, device=device)
    assert picograd.einsum("ij->ji", [x]).shape == (3, 2)


def test_rearranging(device: str) -> None:
    """Axes split, joined and repeated with einsum, reshape and expand, as patterns do."""
    x = numbers((2, 12, 3))

    def patches(t: Any) -> Any:
        library = torch if isinstance(t, torch.Tensor) else picograd
        cut = t.unflatten(1, (4, 3))
        return library.einsum("bhwc->bwch", cut).reshape(2, 9, 4)

    def heads(t: Any) -> Any:
        library = torch if isinstance(t, torch.Tensor) else picograd
        cut = t.reshape(2, 4, 3, 3)
        return library.einsum("bhqd,bhkd->bhqk", cut, cut).flatten(1, 2)

    compare([Case("patches", patches, [x]), Case("heads", heads, [x], dtype="float64")], device)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk", [(2, 3), (4, 5)]),
        ("ij", [(2,)]),
        ("ij,jk", [(2, 3)]),
        ("ij->ik", [(2, 3)]),
        ("ij->ii", [(2, 3)]),
        ("ii", [(2, 3)]),
        ("i1->i", [(2, 3)]),
        ("i..j->ij", [(2, 3)]),
    ],
)
def test_mistakes(equation: str, shapes: Any, device: str) -> None:
    with pytest.raises(PicogradError):
        picograd.einsum(equation, *(Tensor.zeros(*shape, device=device) for shape in shapes))
    with pytest.raises(PicogradError):
        picograd.einsum(Tensor.zeros(2), [60])
    with pytest.raises(PicogradError):
        picograd.einsum(Tensor.zeros(2), 0)


def test_integers_that_were_summed_are_wide() -> None:
    a, b = Tensor.ones(2, 3).int(), Tensor.ones(3).int()
    assert picograd.einsum("ik,j->ij", a, b).dtype is picograd.int64
    assert picograd.einsum("ik,k->i", a, b).dtype is picograd.int32
