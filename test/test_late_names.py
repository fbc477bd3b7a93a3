"""Names that are imported at their first use, and those there are none of."""

import pytest

import picograd
from picograd import late_names


@pytest.mark.parametrize("name", [*late_names.ROOMS_ABOVE, *late_names.PLACES])
def test_every_name_is_found(name: str) -> None:
    assert getattr(picograd, name) is late_names.find(name)


def test_what_is_not_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'$"):
        picograd.nothing  # type: ignore[attr-defined]


def test_every_name_of_nn_is_found() -> None:
    for name in (*late_names.ROOMS_OF_NN, *late_names.PLACES_IN_NN):
        found = getattr(picograd.nn, name)
        assert found is late_names.find_in_nn(name) and name in dir(picograd.nn)
    with pytest.raises(AttributeError, match=r"'picograd.nn' has no attribute 'nothing'$"):
        picograd.nn.nothing  # type: ignore[attr-defined]
