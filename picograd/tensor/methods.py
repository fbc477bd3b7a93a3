"""The methods of `Tensor` that rows of definitions give; `methods.pyi` is what checkers read."""

from picograd.tensor.core.calling import in_place_of, method_of
from picograd.tensor.core.function import FUNCTIONS
from picograd.tensor.core.recording import Recorded
from picograd.tensor.indexing import indexing as indexing
from picograd.tensor.indexing import writing as writing
from picograd.tensor.linalg import products as products
from picograd.tensor.math import gamma as gamma
from picograd.tensor.math import primitives as primitives
from picograd.tensor.math import transcendental as transcendental
from picograd.tensor.network import activation as activation
from picograd.tensor.reductions import reduce as reduce
from picograd.tensor.reductions import statistics as statistics
from picograd.tensor.shaping import assembling as assembling
from picograd.tensor.shaping import movement as movement


class Methods(Recorded):
    """This class holds the derived methods of `Tensor`."""

    __slots__ = ()


for _row in FUNCTIONS.values():
    if _row.method:
        setattr(Methods, _row.name, method_of(_row))
    if _row.in_place:
        setattr(Methods, f"{_row.name}_", in_place_of(_row))
