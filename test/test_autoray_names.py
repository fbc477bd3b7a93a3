"""Names of autoray's functions: what stands for PyTorch in them stands for us in copies."""

import sys
from types import ModuleType
from typing import Any

import pytest

import picograd

SOURCE = """
def pad(library="torch"):
    return "torch", get_torch() if library == "torch" else None
"""


def test_rows_of_pytorch_are_ours_too(monkeypatch: pytest.MonkeyPatch) -> None:
    fake: Any = ModuleType("autoray.autoray")
    exec(SOURCE, vars(fake))
    fake._FUNCS = {("torch", "pad"): fake.pad, ("torch", "max"): "amax", ("numpy", "max"): "max"}
    fake._SUBMODULE_ALIASES = {("torch", "expm"): "torch"}
    monkeypatch.setitem(sys.modules, "autoray.autoray", fake)
    monkeypatch.delitem(sys.modules, "picograd.autoray_names", raising=False)
    __import__("picograd.autoray_names")
    rows, places = fake._FUNCS, fake._SUBMODULE_ALIASES
    assert rows["picograd", "max"] == "amax" and places["picograd", "expm"] == "picograd"
    name, library = rows["picograd", "pad"]("picograd")
    assert name == "picograd" and library is picograd
    sys.modules.pop("picograd.autoray_names")  # the real package's import makes it anew
