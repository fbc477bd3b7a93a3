"""The version: our release, which texts and tuples meet as the PyTorch whose names there are."""

from pathlib import Path

import pytest

import picograd
from picograd.version import NAMES_OF, RELEASE, TorchVersion, numbers_of


def test_it_is_the_release() -> None:
    assert picograd.__version__ == f"{NAMES_OF}+picograd.{RELEASE}"
    assert picograd.version.__version__ is picograd.__version__ and picograd.version.cuda is None
    project = Path(picograd.__file__).parents[1] / "pyproject.toml"
    if project.exists():  # not beside an installed package
        assert f'version = "{RELEASE}"' in project.read_text()


def test_names_are_those_of_the_pytorch_compared_with() -> None:
    torch = pytest.importorskip("torch")
    assert numbers_of(str(torch.__version__))[:2] <= numbers_of(NAMES_OF)[:2]


@pytest.mark.parametrize("other", ["1.8", "2.2", (2, 2), "2.9.1", "2.13.0.dev1", [1]])
def test_earlier_ones(other: object) -> None:
    version = TorchVersion("2.13.0")
    assert version >= other and not version < other
    assert (version > other) == (other != "2.13.0.dev1") == (not version <= other)


def test_programs_read_the_text() -> None:
    version = picograd.__version__
    assert version.split("+")[0] == NAMES_OF and version.startswith("2") and float(version[:3]) >= 2
    assert tuple(map(int, version.split(".")[:2])) >= (1, 8)
    parse = pytest.importorskip("packaging.version").parse
    assert parse("2.12") < parse(version) and parse(version).release == numbers_of(NAMES_OF)


def test_what_is_no_version() -> None:
    assert numbers_of("nightly") == ()
    with pytest.raises(TypeError):
        TorchVersion("2.13.0") < 3  # type: ignore # noqa: B015
    assert {TorchVersion("2.0"): 1}["2.0"] == 1 and TorchVersion("2.0").split(".") == ["2", "0"]
