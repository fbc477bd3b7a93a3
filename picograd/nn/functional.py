"""Functions behind the layers, by PyTorch's names of torch.nn.functional.

Every loss takes `reduction="mean" | "sum" | "none"`. Names come from rows, `@within("functional")`
above a definition: those of methods of tensors in picograd/tensor/network, the others here, in
functional_basic, _attention, _embedding and _losses. Checkers read functional.pyi, which
`docs/stubs.py` writes.
"""

import functools
import importlib

from picograd.nn import fractional_pooling as fractional_pooling
from picograd.nn import functional_attention as functional_attention
from picograd.nn import functional_basic as functional_basic
from picograd.nn import functional_embedding as functional_embedding
from picograd.nn import functional_losses as functional_losses
from picograd.tensor.core.calling import function_of, overwriting
from picograd.tensor.core.function import MODULES

_made = {}

for _row in MODULES["functional"].values():
    _made[_row.name] = function_of(_row, __name__)
    if _row.in_place:
        _made[f"{_row.name}_"] = overwriting(_row, __name__)

globals().update(_made)
__all__ = sorted(_made)


def __getattr__(name: str) -> object:
    """Make what few programs ask for: pools with indices, and what MultiheadAttention calls."""
    plain = name.removesuffix("_with_indices")
    if plain != name and plain in _made:
        return functools.partial(_made[plain], return_indices=True)
    if name == "multi_head_attention_forward":
        return importlib.import_module("picograd.nn.attention").multi_head_attention_forward
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
