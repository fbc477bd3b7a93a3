"""Every public name of PyTorch is there, or docs/pytorch_names.txt says why not."""

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import picograd
from picograd import Tensor
from picograd.tensor import families

ROOT = Path(__file__).parents[1]
SPELLING = re.compile(r"^picograd((?:\.\w+)+)")
# a pattern of names may outlive the names it was written for; in-place forms need a value to try
IN_PLACE = ("acos", "atan", "erfinv", "logit", "sinc", "sgn", "sign", "digamma", "rad2deg", "i0")


def load_tool() -> ModuleType:
    specification = importlib.util.spec_from_file_location(
        "pytorch_names", ROOT / "docs/pytorch_names.py"
    )
    assert specification and specification.loader
    module = importlib.util.module_from_spec(specification)
    sys.modules["pytorch_names"] = module
    specification.loader.exec_module(module)
    return module


TOOL = load_tool()


@pytest.mark.parametrize("namespace", TOOL.SECTIONS)
def test_every_name_is_classified(namespace: str) -> None:
    pytest.importorskip("torch")
    found = TOOL.comparisons()[namespace]
    assert found.unknown == [], "build it, or say in docs/pytorch_names.txt why it is not there"
    assert found.stale == [], "PyTorch has no such name: take it off docs/pytorch_names.txt"


def test_the_page_is_up_to_date(update_golden: bool) -> None:
    pytest.importorskip("torch")
    if update_golden:
        TOOL.main()
    assert TOOL.PAGE.read_text() == TOOL.page(), "run python docs/pytorch_names.py"


def test_a_name_that_is_neither_is_found() -> None:
    data = {"everywhere": TOOL.Section(), "math": TOOL.Section({"sin": "picograd.sin", "no": "x"})}
    data["math"].refused["of a test"] = ["c*", "sqrt"]
    found = TOOL.compare("math", "picograd", data)
    assert found.different == {"sin": "picograd.sin"} and found.stale == ["no"]
    assert "sqrt" in found.same and "ceil" in found.same  # patterns are for what is missing
    assert "cbrt" in found.refused["of a test"] and "fsum" in found.unknown


def test_spellings_resolve() -> None:
    """A line `name = picograd.x.y ...` names something that exists."""
    for section in TOOL.read_data(TOOL.DATA.read_text()).values():
        for name, meaning in section.different.items():
            match = SPELLING.match(meaning)
            if match and "operations" not in meaning:
                value = importlib.import_module("picograd")
                for part in match[1].split(".")[1:]:
                    value = getattr(value, part)
                assert value is not None, name


def test_functions_of_families() -> None:
    assert families.__all__ == sorted(families.__all__)
    for name in families.__all__:
        assert getattr(picograd, name) is getattr(families, name)
        assert name in picograd.__all__
    for value in families.newaxis, families.pi:
        assert value is None or abs(value - np.pi) < 1e-15


def test_methods_of_families(device: str) -> None:
    x = Tensor([[4.0, 1.0], [1.0, 3.0]], device=device)
    assert abs(x.logdet().item() - np.log(11)) < 1e-6 and x.absolute().fix().tolist() == x.tolist()
    u, s, v = x.svd()
    np.testing.assert_allclose((u * s @ v.T).numpy(), x.numpy(), atol=1e-6)
    assert x[0].ger(x[1]).tolist() == [[4.0, 12.0], [1.0, 3.0]]
    assert x.narrow_copy(0, 1, 1).tolist() == [[1.0, 3.0]]
    assert [y.shape for y in x.unsafe_chunk(2)] == [y.shape for y in x.unsafe_split(1)]
    assert len(x.unsafe_split_with_sizes([1, 1])) == 2 and x.storage_offset() == 0
    assert not x.is_inference() and not x.is_pinned() and not x.retains_grad


@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place_forms(name: str, device: str) -> None:
    x = Tensor([0.25, 0.5], device=device)
    want = getattr(x, name)().tolist()
    assert getattr(x, f"{name}_")() is x and x.tolist() == want
