"""Functions behind the layers, by PyTorch's names of torch.nn.functional.

Every loss takes `reduction="mean" | "sum" | "none"`. Names come from rows, `@within("functional")`
above a definition: those of methods of tensors in picograd/tensor/network, the others here, in
functional_basic, _attention, _embedding and _losses. Checkers read functional.pyi, which
`docs/stubs.py` writes.
"""

import functools

from picograd.nn import fractional_pooling as fractional_pooling
from picograd.nn import functional_attention as functional_attention
from picograd.nn import functional_basic as functional_basic
from picograd.nn import functional_embedding as functional_embedding
from picograd.nn import functional_losses as functional_losses
from picograd.tensor.core.calling import late_functions, overwriting
from picograd.tensor.core.function import MODULES

_rows = MODULES["functional"]
_written_over = {f"{_row.name}_": _row for _row in _rows.values() if _row.in_place}
__all__ = sorted([*_rows, *_written_over])
_find, __dir__ = late_functions(globals(), _rows)


def __getattr__(name: str) -> object:
    """Make a function, or what few programs ask for: pools with indices."""
    if name in _written_over:
        return globals().setdefault(name, overwriting(_written_over[name], __name__))
    plain = name.removesuffix("_with_indices")
    if plain != name and plain in _rows:
        return functools.partial(_find(plain), return_indices=True)
    return _find(name)
