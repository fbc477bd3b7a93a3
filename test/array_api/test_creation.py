"""Functions of the array API that make tensors."""

from picograd import array_api as xp


def test_creation() -> None:
    assert xp.arange(0, step=1.0).dtype == xp.arange(2.0).dtype == xp.float32
    assert xp.arange(5, 0).shape == (0,) and xp.eye(2, 3, k=1).tolist() == [[0, 1, 0], [0, 0, 1]]
    assert xp.linspace(0, 1, 4, endpoint=False).tolist() == [0, 0.25, 0.5, 0.75]
    assert xp.full_like(xp.asarray([1, 2]), 7).tolist() == [7, 7]
    assert xp.meshgrid(xp.arange(2), xp.arange(3))[0].shape == (3, 2)


def test_default_dtypes() -> None:
    made = xp.eye(2), xp.zeros(2), xp.ones(2), xp.linspace(0, 1, 3), xp.full(2, 0.5), xp.empty(2)
    assert {each.dtype for each in made} == {xp.float32}
