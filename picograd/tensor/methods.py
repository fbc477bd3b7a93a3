"""The methods of `Tensor` that rows of definitions give; `methods.pyi` is what checkers read."""

from picograd.tensor.core import arguments as arguments
from picograd.tensor.core import methods_family as methods_family
from picograd.tensor.core import type_info as type_info
from picograd.tensor.core.calling import in_place_of, method_of
from picograd.tensor.core.function import FUNCTIONS
from picograd.tensor.core.recording import Recorded
from picograd.tensor.indexing import indexing as indexing
from picograd.tensor.indexing import partial_writes as partial_writes
from picograd.tensor.indexing import writing as writing
from picograd.tensor.linalg import decompositions as decompositions
from picograd.tensor.linalg import fourier as fourier
from picograd.tensor.linalg import products as products
from picograd.tensor.linalg import systems as systems
from picograd.tensor.making import dense_storage as dense_storage
from picograd.tensor.making import distributions as distributions
from picograd.tensor.making import from_data as from_data
from picograd.tensor.making import tensors_like as tensors_like
from picograd.tensor.math import arithmetic as arithmetic
from picograd.tensor.math import complex_functions as complex_functions
from picograd.tensor.math import gamma as gamma
from picograd.tensor.math import methods_operator as methods_operator
from picograd.tensor.math import primitives as primitives
from picograd.tensor.math import special as special
from picograd.tensor.math import transcendental as transcendental
from picograd.tensor.network import activation as activation
from picograd.tensor.network import activation_functions as activation_functions
from picograd.tensor.network import attention as attention
from picograd.tensor.network import convolution_functions as convolution_functions
from picograd.tensor.network import dropout as dropout
from picograd.tensor.network import grid_sample as grid_sample
from picograd.tensor.network import interpolation as interpolation
from picograd.tensor.network import losses as losses
from picograd.tensor.network import normalization as normalization
from picograd.tensor.network import pooling_functions as pooling_functions
from picograd.tensor.reductions import reduce as reduce
from picograd.tensor.reductions import statistics as statistics
from picograd.tensor.shaping import assembling as assembling
from picograd.tensor.shaping import axis_formulas as axis_formulas
from picograd.tensor.shaping import joining as joining
from picograd.tensor.shaping import methods_movement as methods_movement
from picograd.tensor.shaping import movement as movement
from picograd.tensor.shaping import resizing as resizing


class Methods(Recorded):
    """This class holds the derived methods of `Tensor`."""

    __slots__ = ()


for _row in FUNCTIONS.values():
    if _row.method:
        setattr(Methods, _row.name, method_of(_row))
    if _row.in_place:
        setattr(Methods, f"{_row.name}_", in_place_of(_row))
